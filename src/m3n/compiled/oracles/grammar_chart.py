"""Which symbols of which cells can be part of a complete parse of a sentence.

Bottom up: a low symbol is possible if it is a tag that the word may have, or if the two children of one of its rules
are possible on the two sides of some split; a high symbol if it or the child of one of its unary rules is possible
below. Top down, from the root of the whole sentence: what is possible and has a use further up. Sets of splits are bits
of integers, so that a rule is tried in a cell for all splits at once.

Cost: O(L^2 rules) for a sentence of length L, once; the answer holds for any scores.
"""

import numpy as np

from m3n.compiled.jit import compiled, inner
from m3n.compiled.oracles.grammar import cell_of
from m3n.compiled.primitives.bits import mark, marked


@compiled
def find_items(space, length, allowed, items, counts):
    """The items of one sentence: low symbols of its first cell, high ones, low ones of its second cell, and so on.

    ``allowed`` (length, tags) are the tags that words may have. ``counts`` (cells, 2) becomes the number of low and of
    high symbols of every cell. Returns the number of all; 0 if there is no complete parse.
    """
    symbols, words = space.begins.shape[0] - 1, length // 64 + 1
    cells = length * (length + 1) // 2
    low = np.zeros((cells, symbols), np.bool_)
    high = np.zeros((cells, symbols), np.bool_)
    left, right = np.zeros((2, length + 1, symbols, words), np.int64)
    for width in range(1, length + 1):
        for begin in range(length - width + 1):
            _look_up(space, length, begin, begin + width, allowed, low, high, left, right)
    if not high[cell_of(length, 0, length), space.root]:
        return 0
    keep_left, keep_right = np.zeros((2, length + 1, symbols, words), np.int64)
    mark(keep_left[0, space.root], length)
    for width in range(length, 0, -1):
        for begin in range(length - width + 1):
            _look_down(space, length, begin, begin + width, low, high, left, right, keep_left, keep_right)
    return _listed(low, high, items, counts)


@inner
def _look_up(space, length, begin, end, allowed, low, high, left, right):
    cell = cell_of(length, begin, end)
    for symbol in range(left.shape[1]):
        if end - begin == 1:
            low[cell, symbol] = symbol < space.tags and allowed[begin, symbol]
        else:
            low[cell, symbol] = _applies(space, symbol, left[begin], right[end])
    for symbol in range(left.shape[1]):
        high[cell, symbol] = low[cell, symbol]
        for m in range(space.unary_begins[symbol], space.unary_begins[symbol + 1]):
            if low[cell, space.unary[space.unary_of[m], 1]]:
                high[cell, symbol] = True
        if high[cell, symbol]:
            mark(left[begin, symbol], end)
            mark(right[end, symbol], begin)


@inner
def _applies(space, symbol, left, right):
    """Whether a binary rule of a parent has a split where both children are possible."""
    for m in range(space.begins[symbol], space.begins[symbol + 1]):
        for word in range(left.shape[1]):
            if left[space.lefts[m], word] & right[space.rights[m], word]:
                return True
    return False


@inner
def _look_down(space, length, begin, end, low, high, left, right, keep_left, keep_right):
    cell = cell_of(length, begin, end)
    useful = np.zeros(left.shape[1], np.bool_)  # low symbols
    for symbol in range(left.shape[1]):
        used = marked(keep_left[begin, symbol], end) or marked(keep_right[end, symbol], begin)
        high[cell, symbol] = high[cell, symbol] and used
        if high[cell, symbol]:
            useful[symbol] = low[cell, symbol]
    for symbol in range(left.shape[1]):
        if high[cell, symbol]:
            for m in range(space.unary_begins[symbol], space.unary_begins[symbol + 1]):
                child = space.unary[space.unary_of[m], 1]
                useful[child] = useful[child] or low[cell, child]
    for symbol in range(left.shape[1]):
        low[cell, symbol] = useful[symbol]
        if useful[symbol] and end - begin > 1:
            _keep_children(space, symbol, left[begin], right[end], keep_left[begin], keep_right[end])


@inner
def _keep_children(space, symbol, left, right, keep_left, keep_right):
    for m in range(space.begins[symbol], space.begins[symbol + 1]):
        for word in range(left.shape[1]):
            bits = left[space.lefts[m], word] & right[space.rights[m], word]
            keep_left[space.lefts[m], word] |= bits
            keep_right[space.rights[m], word] |= bits


@inner
def _listed(low, high, items, counts):
    number = 0
    for cell in range(low.shape[0]):
        for layer in range(2):
            first = number
            for symbol in range(low.shape[1]):
                if (low[cell, symbol] and layer == 0) or (high[cell, symbol] and layer == 1):
                    items[number] = symbol
                    number += 1
            counts[cell, layer] = number - first
    return number
