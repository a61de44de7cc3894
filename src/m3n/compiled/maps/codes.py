"""Indicator features, hashed: sums over the weights whose numbers are listed for a row, and additions to them.

Row r has the entries pointers[r]..pointers[r + 1]-1, and scores one part or several, labels of an arc for example.
Part p meets the weight ``codes[e] ^ masks[p]`` of every entry e: the mask of a label makes other numbers of the same
codes, so codes are kept once for all labels. A row counts ``values[r]`` times.

First whole passes, then what block methods need: functions of one part, and of all rows of an example.
"""

from typing import NamedTuple

import numpy as np

from m3n.compiled.jit import compiled, inlined
from m3n.compiled.primitives.vector import prefetch

AHEAD = 64  # entries between asking for a weight and using it


class CodeRows(NamedTuple):
    """Rows of codes, and which of them every example uses, as in ``sweeps.visits.MapRows``."""

    pointers: np.ndarray  # (rows + 1,) entries of every row
    codes: np.ndarray  # (entries,)
    bases: np.ndarray  # (rows,) where the weights begin that a row's codes count from
    values: np.ndarray  # (rows,) how often a row counts
    parts: np.ndarray  # (rows,) the mask of the first part of a row
    masks: np.ndarray  # masks of parts, neighbours for the parts of a row
    widths: np.ndarray  # (rows,) parts that a row scores
    first: np.ndarray  # (n + 1,) uses of every example
    used: np.ndarray  # (uses,) row of a use
    place: np.ndarray  # (uses,) where its parts begin in the local theta
    sizes: np.ndarray  # (n,) length of the local theta
    squares: np.ndarray  # (rows,) square of the norm of a part's features


@compiled
def sum_codes(low, high, pointers, codes, parts, masks, w, out):
    """out[p] = the sum of the weights of part p, for the parts of rows low..high-1."""
    last = pointers[high] - 1
    for r in range(low, high):
        begin, end = parts[r], parts[r + 1]
        if end - begin == 1:
            total, mask = 0.0, masks[begin]
            for e in range(pointers[r], pointers[r + 1]):
                prefetch(w, codes[min(e + AHEAD, last)] ^ mask)
                total += w[codes[e] ^ mask]
            out[begin] = total
        else:
            for p in range(begin, end):
                out[p] = 0.0
            for e in range(pointers[r], pointers[r + 1]):
                for p in range(begin, end):
                    out[p] += w[codes[e] ^ masks[p]]


@compiled
def add_codes(low, high, pointers, codes, parts, masks, amounts, scale, out):
    """out += scale * amounts[p] at the weights of part p, for the parts of rows low..high-1; zeros are left out."""
    for r in range(low, high):
        for p in range(parts[r], parts[r + 1]):
            amount = scale * amounts[p]
            if amount != 0.0:
                for e in range(pointers[r], pointers[r + 1]):
                    out[codes[e] ^ masks[p]] += amount


@inlined
def entries_of(rows, i):
    """What the functions of one part need."""
    return rows.pointers, rows.codes, rows.bases, rows.values, rows.parts, rows.masks


@compiled
def score_part(entries, r, j, w):
    """The score of part j of row r."""
    pointers, codes, bases, values, parts, masks = entries
    total, base, mask = 0.0, bases[r], masks[parts[r] + j]
    for e in range(pointers[r], pointers[r + 1]):
        total += w[np.uint64(base + (codes[e] ^ mask))]  # unsigned: no test for negative indices
    return values[r] * total


@compiled
def add_part(entries, r, j, amount, out):
    """out += amount * the features of part j of row r."""
    pointers, codes, bases, values, parts, masks = entries
    change, base, mask = amount * values[r], bases[r], masks[parts[r] + j]
    for e in range(pointers[r], pointers[r + 1]):
        out[np.uint64(base + (codes[e] ^ mask))] += change


@compiled
def spread_part(entries, r, j, amount, dense):
    """As ``add_part``; returns by how much |dense|^2 grows."""
    pointers, codes, bases, values, parts, masks = entries
    change, base, mask, total = amount * values[r], bases[r], masks[parts[r] + j], 0.0
    for e in range(pointers[r], pointers[r + 1]):
        at = np.uint64(base + (codes[e] ^ mask))
        total += change * (2.0 * dense[at] + change)
        dense[at] += change
    return total


@compiled
def clear_part(entries, r, j, dense):
    """dense = 0 at the features of part j of row r."""
    pointers, codes, bases, _, parts, masks = entries
    base, mask = bases[r], masks[parts[r] + j]
    for e in range(pointers[r], pointers[r + 1]):
        dense[np.uint64(base + (codes[e] ^ mask))] = 0.0


@compiled
def join_support(entries, r, j, support):
    """Weights of part j of row r that no output touched before join the support."""
    pointers, codes, bases, _, parts, masks = entries
    base, mask = bases[r], masks[parts[r] + j]
    for e in range(pointers[r], pointers[r + 1]):
        at = base + (codes[e] ^ mask)
        if not support.member[at]:
            support.member[at] = True
            support.listed[support.size[0]] = at
            support.size[0] += 1


@compiled
def gather(rows, i, w, theta):
    """theta = the scores of example i under w."""
    pointers, codes, bases, masks, used, place = (
        rows.pointers,
        rows.codes,
        rows.bases,
        rows.masks,
        rows.used,
        rows.place,
    )
    values, parts, widths, last = rows.values, rows.parts, rows.widths, pointers[-1] - 1
    for k in range(rows.first[i], rows.first[i + 1]):
        r, at = used[k], place[k]
        base, first, width = bases[r], parts[r], widths[r]
        if width == 1:
            total, mask = 0.0, masks[first]
            for e in range(pointers[r], pointers[r + 1]):
                prefetch(w, base + (codes[min(e + AHEAD, last)] ^ mask))
                total += w[np.uint64(base + (codes[e] ^ mask))]
            theta[at] = values[r] * total
        else:
            for j in range(width):
                theta[at + j] = 0.0
            for e in range(pointers[r], pointers[r + 1]):
                for j in range(width):
                    theta[at + j] += w[np.uint64(base + (codes[e] ^ masks[first + j]))]
            for j in range(width):
                theta[at + j] *= values[r]


@compiled
def scatter_all(rows, i, delta, scale, out):
    """out += scale * F' delta, for a delta that may be nonzero anywhere."""
    entries = entries_of(rows, i)
    for k in range(rows.first[i], rows.first[i + 1]):
        r, at = rows.used[k], rows.place[k]
        for j in range(rows.widths[r]):
            if delta[at + j] != 0.0:
                add_part(entries, r, j, scale * delta[at + j], out)


@compiled
def grow_all(rows, i, delta, scale, w):
    """The same; returns the growth of |w|^2."""
    entries, growth = entries_of(rows, i), 0.0
    for k in range(rows.first[i], rows.first[i + 1]):
        r, at = rows.used[k], rows.place[k]
        for j in range(rows.widths[r]):
            if delta[at + j] != 0.0:
                growth += spread_part(entries, r, j, scale * delta[at + j], w)
    return growth
