"""Feature maps of either kind, as block methods see them.

``MapRows`` meet weights directly; among ``KernelRows`` some are kernel expansions (``maps.grams``). The functions
below pick their implementation by the type of the rows, or of their entries, when a kernel is compiled, so the kernels
of ordinary rows carry no trace of the others. In the interpreter they call the compiled one.
"""

from numba import types
from numba.extending import overload

from m3n.compiled.jit import OPTIONS
from m3n.compiled.maps import grams, single, walks

ORDINARY = 5  # arrays that ``entries_of`` gives for ordinary rows


def _expanded(rows):
    kind = rows.instance_class if isinstance(rows, types.BaseNamedTuple) else type(rows)
    return kind is grams.KernelRows


def _of_parts(entries):
    return single if len(entries) == ORDINARY else grams


def _of_rows(rows):
    return grams if _expanded(rows) else walks


def entries_of(rows, i):
    """What the functions of one part of example i need."""
    return (grams.entries_of if _expanded(rows) else single.entries_of).py_func(rows, i)


def score_part(entries, r, j, w):
    """The score of part j of row r."""
    return _of_parts(entries).score_part(entries, r, j, w)


def add_part(entries, r, j, amount, out):
    """out += amount * the features of part j of row r."""
    _of_parts(entries).add_part(entries, r, j, amount, out)


def spread_part(entries, r, j, amount, dense):
    """As ``add_part``, as far as rows of the same example can see it; returns by how much |dense|^2 grows."""
    return _of_parts(entries).spread_part(entries, r, j, amount, dense)


def clear_part(entries, r, j, dense):
    """dense = 0 wherever ``spread_part`` may have changed it."""
    _of_parts(entries).clear_part(entries, r, j, dense)


def join_support(entries, r, j, support):
    """Weights of part j of row r that no output touched before join the support."""
    _of_parts(entries).join_support(entries, r, j, support)


def gather(rows, i, w, theta):
    """theta = the scores of example i under w."""
    _of_rows(rows).gather(rows, i, w, theta)


def scatter_all(rows, i, delta, scale, out):
    """out += scale * F' delta, for a delta that may be nonzero anywhere."""
    _of_rows(rows).scatter_all(rows, i, delta, scale, out)


def grow_all(rows, i, delta, scale, w):
    """The same; returns the growth of |w|^2."""
    return _of_rows(rows).grow_all(rows, i, delta, scale, w)


@overload(entries_of, inline="always", jit_options=OPTIONS)
def _entries_of(rows, i):
    return (grams.entries_of if _expanded(rows) else single.entries_of).py_func


@overload(score_part, jit_options=OPTIONS)
def _score_part(entries, r, j, w):
    return _of_parts(entries).score_part.py_func


@overload(add_part, jit_options=OPTIONS)
def _add_part(entries, r, j, amount, out):
    return _of_parts(entries).add_part.py_func


@overload(spread_part, jit_options=OPTIONS)
def _spread_part(entries, r, j, amount, dense):
    return _of_parts(entries).spread_part.py_func


@overload(clear_part, jit_options=OPTIONS)
def _clear_part(entries, r, j, dense):
    return _of_parts(entries).clear_part.py_func


@overload(join_support, jit_options=OPTIONS)
def _join_support(entries, r, j, support):
    return _of_parts(entries).join_support.py_func


@overload(gather, jit_options=OPTIONS)
def _gather(rows, i, w, theta):
    return _of_rows(rows).gather.py_func


@overload(scatter_all, jit_options=OPTIONS)
def _scatter_all(rows, i, delta, scale, out):
    return _of_rows(rows).scatter_all.py_func


@overload(grow_all, jit_options=OPTIONS)
def _grow_all(rows, i, delta, scale, w):
    return _of_rows(rows).grow_all.py_func
