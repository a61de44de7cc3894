"""Runs of neighbouring weights that lie anywhere: sums of them, additions to them, asking for those to come.

What block methods do to the weights is bound by memory. A run spans a few cache lines at a place that the hardware
cannot guess, so the weights of the next row are asked for while this one is worked on. Sums of runs stay in registers,
24 parts at a time, as in ``maps.sparse``; so does what is added to them. ``data`` of one number is that of all entries:
text has nothing but ones.

``pointers``, ``lists`` and ``columns`` as in ``maps.observed``; without lists ``lists[r]`` is where row r ends.
Every function works on rows low..high-1 of the map, whose parts stand one after another from ``at`` on in an array: a
call, or a view of an array, costs as much as the work on a short row. So does a tuple of arrays, whose references are
counted: that is why all of them are handed over one by one.
"""

import numpy as np

from m3n.compiled.jit import compiled, inner
from m3n.compiled.primitives.groups import kept_each, loads, six, stores, within
from m3n.compiled.primitives.vector import LINE, add, kept, load, multiply, multiply_add, prefetch, splat, store, total

NEAR = 1 << 14  # so many weights stay in the nearest caches anyway


@inner
def ask(pointers, lists, runs, low, high, columns, w):
    """Prefetch the weights that rows low..high-1 meet.

    Maps with lists have few runs, which are near, as are all weights if there are few of them.
    """
    if columns.shape[0] > 0:
        for r in range(low, high):
            for e in range(lists[r], pointers[r + 1]):
                prefetch(w, runs[e])
                prefetch(columns, runs[e])
    elif w.shape[0] > NEAR:
        for e in range(pointers[low], pointers[high]):
            ask_run(w, runs[e])


@inner
def ask_run(w, at):
    """Prefetch the three lines of 24 weights."""
    prefetch(w, at)
    prefetch(w, at + LINE)
    prefetch(w, at + 2 * LINE)


@compiled
def sum_runs(pointers, lists, runs, data, low, high, w, out, at, width):
    """Sums of data[e] times the run of weights at runs[e] for rows low..high-1, one after another from out[at] on."""
    last = data.shape[0] - 1
    if width < 4:
        for r in range(low, high):
            place = at + (r - low) * width
            for j in range(place, place + width):
                out[j] = 0.0
            for e in range(pointers[r], lists[r]):
                for j in range(width):
                    out[place + j] += data[np.uint64(min(e, last))] * w[runs[e] + j]
    else:
        for part in range(0, width, 24):  # the last four parts may be computed twice
            _sum_six(pointers, lists, runs, data, low, high, w, min(part, width - 4), out, at, width)


@inner
def _sum_six(pointers, lists, runs, data, low, high, w, part, out, at, width):
    """Up to 24 parts of every row. Beyond the last part the sums repeat one another."""
    last = data.shape[0] - 1
    offsets = within(six(0.0), width - 4 - part)
    for r in range(low, high):
        sums = six(0.0)
        for e in range(pointers[r], lists[r]):
            run, x = runs[e] + part, splat(data[np.uint64(min(e, last))])
            sums = multiply_add(x, loads(w, run, offsets), sums)
        stores(out, at + (r - low) * width + part, offsets, sums)


@compiled
def add_runs(pointers, lists, runs, data, low, high, row, at, width, scale, columns, out):
    """The runs of ``out`` at runs[e] += scale data[e] times their row, rows low..high-1 as in ``sum_runs``.

    Padding, where ``columns`` is negative, stays as it is; with empty ``columns`` there is none.
    """
    last = data.shape[0] - 1
    padding, rest = columns.shape[0] > 0, width % 24
    whole = width - rest if rest < 4 else width
    for part in range(0, whole, 24):
        _add_six(pointers, lists, runs, data, low, high, row, at, width, part, scale, columns, out)
    for r in range(low, high if whole < width else low):
        for e in range(pointers[r], lists[r]):
            for j in range(whole, width):
                k = np.uint64(runs[e] + j)
                if not padding or columns[k] >= 0:
                    out[k] += scale * data[np.uint64(min(e, last))] * row[at + (r - low) * width + j]


@inner
def _add_six(pointers, lists, runs, data, low, high, row, at, width, part, scale, columns, out):
    """Up to 24 parts. All is loaded before any is stored, so vectors that overlap store the same numbers."""
    last = data.shape[0] - 1
    padding, offsets = columns.shape[0] > 0, within(six(0.0), width - 4 - part)
    for r in range(low, high):
        amounts = multiply(splat(scale), loads(row, at + (r - low) * width + part, offsets))
        for e in range(pointers[r], lists[r]):
            run, x = runs[e] + part, splat(data[np.uint64(min(e, last))])
            own = kept_each(columns, run, offsets, amounts) if padding else amounts
            stores(out, run, offsets, multiply_add(x, own, loads(out, run, offsets)))


@compiled
def grow_runs(pointers, lists, runs, data, low, high, row, at, width, scale, columns, out):
    """The same; returns the growth of |out|^2."""
    last = data.shape[0] - 1
    padding, whole = columns.shape[0] > 0, width // 4 * 4
    growth, rest = splat(0.0), 0.0
    for r in range(low, high):
        place = at + (r - low) * width
        for e in range(pointers[r], lists[r]):
            run, x = runs[e], scale * data[np.uint64(min(e, last))]
            factor = splat(x)
            for c in range(0, whole, 4):
                part = load(row, place + c)
                change = multiply(factor, kept(columns, run + c, part) if padding else part)
                old = load(out, run + c)
                new = add(old, change)
                growth = multiply_add(change, add(old, new), growth)
                store(out, run + c, new)
            for j in range(whole, width):
                if not padding or columns[run + j] >= 0:
                    rest += _grow(out, run + j, x * row[place + j])
    return total(growth) + rest


@compiled
def sum_lists(pointers, lists, runs, data, low, high, columns, w, out, at, width):
    """Rows as in ``sum_runs`` += data[e] times the weights of the list at runs[e], each at its column."""
    last = data.shape[0] - 1
    for r in range(low, high):
        begin = np.uint64(at + (r - low) * width)
        for e in range(lists[r], pointers[r + 1]):
            k, x = np.uint64(runs[e]), data[np.uint64(min(e, last))]
            column = columns[k]
            while column >= 0:
                out[begin + np.uint64(column)] += x * w[k]
                k += np.uint64(1)
                column = columns[k]
            out[begin + np.uint64(~column)] += x * w[k]


@compiled
def add_lists(pointers, lists, runs, data, low, high, row, at, width, scale, columns, out):
    """The lists of ``out`` at runs[e] += scale data[e] times the entries of their row in their columns."""
    last = data.shape[0] - 1
    for r in range(low, high):
        begin = np.uint64(at + (r - low) * width)
        for e in range(lists[r], pointers[r + 1]):
            k, x = np.uint64(runs[e]), scale * data[np.uint64(min(e, last))]
            column = columns[k]
            while column >= 0:
                out[k] += x * row[begin + np.uint64(column)]
                k += np.uint64(1)
                column = columns[k]
            out[k] += x * row[begin + np.uint64(~column)]


@compiled
def grow_lists(pointers, lists, runs, data, low, high, row, at, width, scale, columns, out):
    """The same; returns the growth of |out|^2."""
    last = data.shape[0] - 1
    growth = 0.0
    for r in range(low, high):
        begin = np.uint64(at + (r - low) * width)
        for e in range(lists[r], pointers[r + 1]):
            k, x = np.uint64(runs[e]), scale * data[np.uint64(min(e, last))]
            column = columns[k]
            while column >= 0:
                growth += _grow(out, k, x * row[begin + np.uint64(column)])
                k += np.uint64(1)
                column = columns[k]
            growth += _grow(out, k, x * row[begin + np.uint64(~column)])
    return growth


@inner
def _grow(out, k, change):
    """out[k] += change; the growth of its square."""
    old = out[k]
    out[k] = old + change
    return change * (old + out[k])
