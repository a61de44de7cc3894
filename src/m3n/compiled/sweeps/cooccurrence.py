"""Which words of two languages occur in the same sentence pair: sparse rows, one per source word.

A *type* is a pair of words that meet in some sentence pair. Types are numbered by source word, then by target word, so
they are the entries of a sparse matrix; the number of a type is its *slot*. A *cell* is a word of a source sentence
beside a word of its target sentence; the cells of a sentence pair are its matrix, row by row.

    slots[cells[k] + i J_k + j] = slot of (word i of source sentence k, word j of target sentence k)

One source word after another: its sentence pairs are read once to mark the target words in them, once more to write
the slots. Cost: O(cells) and a sort of every row.
"""

from typing import NamedTuple

import numpy as np

from m3n.compiled.jit import compiled
from m3n.compiled.primitives.order import ascend


class PackedPairs(NamedTuple):
    """Sentence pairs one after another; words are numbers, negative if unknown."""

    source: np.ndarray  # (source tokens,)
    target: np.ndarray  # (target tokens,)
    source_starts: np.ndarray  # (n + 1,)
    target_starts: np.ndarray  # (n + 1,)
    cells: np.ndarray  # (n + 1,) where the cells of a sentence pair begin


class Occurrences(NamedTuple):
    """The source tokens, sorted by word."""

    tokens: np.ndarray  # (source tokens,)
    starts: np.ndarray  # (source words + 1,) where the tokens of a word begin
    pairs: np.ndarray  # (source tokens,) the sentence pair of a token, by its place in the text


@compiled
def count_types(pairs, where, seen, sizes):
    """sizes[e] = how many target words source word e meets; ``seen`` has a -1 for every target word."""
    for e in range(sizes.shape[0]):
        for o in range(where.starts[e], where.starts[e + 1]):
            k = where.pairs[where.tokens[o]]
            for j in range(pairs.target_starts[k], pairs.target_starts[k + 1]):
                f = pairs.target[j]
                if seen[f] != e:
                    seen[f] = e
                    sizes[e] += 1


@compiled
def number_types(pairs, where, rows, seen, place, columns, slots, meetings):
    """Fill columns and slots; meetings[slot] = in how many sentence pairs the two words meet.

    ``seen`` has a -1 for every target word, ``place`` room for as many numbers.
    """
    last = np.full(columns.shape[0], -1, dtype=np.int32)  # the sentence pair in which a type was last counted
    for e in range(rows.shape[0] - 1):
        _find_columns(pairs, where, e, rows, seen, columns)
        for slot in range(rows[e], rows[e + 1]):
            place[columns[slot]] = slot
        for o in range(where.starts[e], where.starts[e + 1]):
            token = where.tokens[o]
            k = where.pairs[token]
            first, width = pairs.target_starts[k], pairs.target_starts[k + 1] - pairs.target_starts[k]
            cell = pairs.cells[k] + (token - pairs.source_starts[k]) * width
            for j in range(width):
                slot = place[pairs.target[first + j]]
                slots[cell + j] = slot
                if last[slot] != k:
                    last[slot] = k
                    meetings[slot] += 1


@compiled
def _find_columns(pairs, where, e, rows, seen, columns):
    """The target words of a row, ascending."""
    end = rows[e]
    for o in range(where.starts[e], where.starts[e + 1]):
        k = where.pairs[where.tokens[o]]
        for j in range(pairs.target_starts[k], pairs.target_starts[k + 1]):
            f = pairs.target[j]
            if seen[f] != e:
                seen[f] = e
                columns[end] = f
                end += 1
    ascend(columns, rows[e], end)


@compiled
def find_slots(low, high, pairs, rows, columns, missing, slots):
    """The slots of all cells of sentence pairs low..high; ``missing`` where two words never met, or are unknown."""
    for k in range(low, high):
        cell = pairs.cells[k]
        for i in range(pairs.source_starts[k], pairs.source_starts[k + 1]):
            e = pairs.source[i]
            for j in range(pairs.target_starts[k], pairs.target_starts[k + 1]):
                f = pairs.target[j]
                slots[cell] = missing if e < 0 or f < 0 else _slot(rows[e], rows[e + 1], columns, f, missing)
                cell += 1


@compiled
def _slot(low, high, columns, f, missing):
    """Where a row, columns[low:high], has a number, by bisection."""
    end = high
    while low < high:
        middle = (low + high) // 2
        if columns[middle] < f:
            low = middle + 1
        else:
            high = middle
    return low if low < end and columns[low] == f else missing


@compiled
def collect(low, high, pairs, where, rows, slots, links, counts):
    """counts[slot] = sum of ``links`` over the cells of a type, for source words low..high.

    Every word belongs to one thread, and its cells come in the order of the text: sums do not depend on threads.
    """
    for e in range(low, high):
        counts[rows[e] : rows[e + 1]] = 0.0
        for o in range(where.starts[e], where.starts[e + 1]):
            token = where.tokens[o]
            k = where.pairs[token]
            width = pairs.target_starts[k + 1] - pairs.target_starts[k]
            cell = pairs.cells[k] + (token - pairs.source_starts[k]) * width
            for c in range(cell, cell + width):
                counts[slots[c]] += links[c]
