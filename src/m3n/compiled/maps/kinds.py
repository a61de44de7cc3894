"""Feature maps of every kind, as block methods see them.

``MapRows`` meet weights directly; among ``KernelRows`` some are kernel expansions (``maps.grams``); ``CodeRows`` have
indicator features (``maps.codes``). The functions below pick their implementation by the type of the rows, or of their
entries, when their caller is compiled, so that code for one kind carries no trace of the others. In the interpreter
they call the compiled one. Those of all rows of an example look at the weights too, which may be ``Shrunk``.
"""

from functools import wraps

from numba import types
from numba.extending import overload

from m3n.compiled.jit import CHOSEN
from m3n.compiled.maps import codes, grams, ordinary, shrunk, shrunk_codes

BY_ENTRIES = {5: ordinary, 6: codes, 10: grams}  # by the number of arrays that ``entries_of`` gives


def _of_parts(entries, *others):
    return BY_ENTRIES[len(entries)]


def _of_rows(rows, *others):
    kind = _kind(rows)
    if any(_kind(other) is shrunk.Shrunk for other in others):
        return shrunk_codes if kind is codes.CodeRows else shrunk
    return {grams.KernelRows: grams, codes.CodeRows: codes}.get(kind, ordinary)


def _kind(value):
    return value.instance_class if isinstance(value, types.BaseNamedTuple) else type(value)


def _chosen(module_of):
    """A function that ``module_of(its arguments)`` implements under the same name; here it is only described."""

    def make(described):
        name = described.__name__

        @wraps(described)
        def function(first, *others):
            return getattr(module_of(first, *others), name)(first, *others)

        @overload(function, jit_options=CHOSEN, strict=False)
        def implementation(first, *others):
            return getattr(module_of(first, *others), name).py_func

        return function

    return make


def entries_of(rows, i):
    """What the functions of one part of example i need."""
    return _of_rows(rows).entries_of.py_func(rows, i)


@overload(entries_of, inline="always", jit_options=CHOSEN)
def _entries_of(rows, i):
    return _of_rows(rows).entries_of.py_func


@_chosen(_of_parts)
def score_part(entries, r, j, w):
    """The score of part j of row r."""


@_chosen(_of_parts)
def add_part(entries, r, j, amount, out):
    """out += amount * the features of part j of row r."""


@_chosen(_of_parts)
def spread_part(entries, r, j, amount, dense):
    """As ``add_part``, as far as rows of the same example can see it; returns by how much |dense|^2 grows."""


@_chosen(_of_parts)
def clear_part(entries, r, j, dense):
    """dense = 0 wherever ``spread_part`` may have changed it."""


@_chosen(_of_parts)
def join_support(entries, r, j, support):
    """Weights of part j of row r that no output touched before join the support."""


@_chosen(_of_rows)
def gather(rows, i, w, theta):
    """theta = the scores of example i under w."""


@_chosen(_of_rows)
def scatter_all(rows, i, delta, scale, out):
    """out += scale * F' delta, for a delta that may be nonzero anywhere."""


@_chosen(_of_rows)
def grow_all(rows, i, delta, scale, w):
    """The same; returns the growth of |w|^2."""
