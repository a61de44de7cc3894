"""What a feature map must offer.

phi is linear: the scores of all parts are ``theta = F w`` and the expected features of a distribution are ``F' m`` of
its marginals m. Solvers never look inside w: they form linear combinations and ask for ``inner``, so that a map may
choose its own coordinates (a kernel expansion, for example).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

from m3n.packed import SERIAL, Threads
from m3n.structures.base import Parts, Selection

MOST_PARTS = 200_000  # to be written out one by one


@dataclass(frozen=True)
class GramRows:
    """Kernel expansions among sparse rows: pairs (C, Theta) of coefficients and scores, see ``m3n.features.kernel``.

    A row of Gram matrix g has a single entry e, at ``runs[e] = bases[g, 1] + unit``. With U units,

        theta[j] = data[e] w[runs[e] + j U],

    and adding a times the features of part j adds a data[e] to the coefficient at bases[g, 0] + j U + unit, and
    a data[e] mix[j', j] K[unit, u] to the scores at bases[g, 1] + j' U + u, for all labels j' and units u.

    Attributes
    ----------
    which : array of int (rows,)
        The Gram matrix of a row, -1 for an ordinary row.
    bases : array of int (grams, 2)
        Where coefficients and scores begin among the weights.
    grams : tuple of arrays (units, units)
        Gram matrices K, row-major, of one dtype.
    mixes : tuple of arrays (labels, labels)
        Inner products of labels; shape (0, 0) stands for the identity.
    """

    which: np.ndarray
    bases: np.ndarray
    grams: tuple[np.ndarray, ...]
    mixes: tuple[np.ndarray, ...]


@dataclass(frozen=True)
class SparseRows:
    """Row r scores ``widths[r]`` neighbouring parts: theta[r, j] = sum_e data[e] w[runs[e] + j] over its entries e.

    A map with weights for some parts only also names the part of every weight in ``columns``. Its runs may then have
    padding, weights that are zero and must stay so, and the last entries of a row may meet lists of weights instead:
    weight k from runs[e] on scores part columns[k], the last of them part ~columns[k].

    Attributes
    ----------
    pointers : array of int (rows + 1,)
        Where the entries of every row begin.
    runs : array of int (entries,)
        First of the neighbouring weights that an entry meets.
    data : array (entries,) or (1,)
        Values; one number is that of all entries.
    widths : array of int (rows,)
        Number of parts that a row scores.
    arrays : tuple of int
        Number of rows of every part array.
    lists : array of int (rows,) or None
        The first entry of every row that meets a list; None if there are no lists.
    columns : array of int (dim,) or None
        The part that a weight scores, negative for padding and at the end of a list; None if there are neither.
    gram : GramRows or None
        What there is to know about rows that are kernel expansions; None if there are no such rows.
    """

    pointers: np.ndarray
    runs: np.ndarray
    data: np.ndarray
    widths: np.ndarray
    arrays: tuple[int, ...]
    lists: np.ndarray | None = None
    columns: np.ndarray | None = None
    gram: GramRows | None = None

    @property
    def values(self) -> np.ndarray:
        """The value of every entry, to be read only."""
        return np.broadcast_to(self.data, self.runs.shape)


class FeatureMap(ABC):
    """A linear map and its adjoint: <scores(w), m> = <w, adjoint(m)> for all w and m.

    Attributes
    ----------
    dim : int
        Number of weights.
    shapes : tuple of tuple of int
        Shapes of the part arrays it fills; the structure's must agree.
    light : bool
        Whether ``select`` makes no copies for a range of rows.
    fixed_work : int
        Numbers that scores and adjoint touch however few the rows are: a pass in pieces takes pieces that are larger.
    """

    dim: int
    shapes: tuple[tuple[int, ...], ...]
    light: bool = False
    fixed_work: int = 0

    @abstractmethod
    def scores(self, w: np.ndarray, out: Parts, threads: Threads = SERIAL) -> Parts:
        """Fill ``out`` with theta = F w and return it."""

    @abstractmethod
    def adjoint(self, parts: Parts, threads: Threads = SERIAL) -> np.ndarray:
        """The vector F' parts, shape (dim,)."""

    def add_adjoint(self, parts: Parts, scale: float, out: np.ndarray, threads: Threads = SERIAL) -> None:
        """out += scale * F' parts. A map with many weights does it in place, without a vector in between."""
        out += scale * self.adjoint(parts, threads)

    @abstractmethod
    def norms(self) -> Parts:
        """Feature norm of every part: shape (rows,) for arrays of rows, the table's shape for shared tables.

        Structures bound |psi| by them on the assumption that parts with different labels have features in coordinates
        of their own, |x (e_gold - e_y)| = sqrt(2) |x|. A map in which labels share weights must return sqrt(2) times
        more.
        """

    def share(self, rows: SparseRows) -> None:
        """Take the beginning of these rows in place of own arrays that are equal, so that memory holds them once."""
        del rows  # a map that makes its rows for the occasion has nothing to share

    @abstractmethod
    def select(self, rows: tuple[Selection, ...]) -> FeatureMap:
        """The map restricted to some rows of its part arrays; None keeps a shared array."""

    def rows(self) -> SparseRows:
        """The map written out as sparse rows, for block methods.

        The default asks ``adjoint`` about every single part: right for any map whose inner product is the usual one,
        and quick enough for a few thousand parts.
        """
        if not self.euclidean:
            raise TypeError(f"{type(self).__name__} has an inner product of its own: block methods cannot use it")
        return _written_out(self)

    def coded(self) -> Any:
        """The map as ``m3n.features.codes.CodedRows``, which block methods take instead of ``rows``, or None."""
        return None

    @property
    def array(self) -> np.ndarray | None:
        """The dense array (rows, attributes) that its weights multiply, of several maps the first one's; or None."""
        return None

    @property
    def euclidean(self) -> bool:
        """Whether ``inner`` is the usual inner product, so that single weights have a meaning of their own."""
        return type(self).inner is FeatureMap.inner

    def inner(self, u: np.ndarray, v: np.ndarray) -> float:
        """Inner product of two weight vectors."""
        return float(u @ v)

    def refresh(self, w: np.ndarray) -> np.ndarray:
        """The same weights, with whatever the map keeps in ``w`` beyond its free coordinates computed anew.

        Most maps keep nothing. One that does must be given weights of its own making, or refreshed ones.
        """
        return w


class InPlace(FeatureMap):
    """A map that adds its adjoint to a vector in place: with many weights a vector in between would cost too much."""

    def adjoint(self, parts: Parts, threads: Threads = SERIAL) -> np.ndarray:
        vector = np.zeros(self.dim)
        self.add_adjoint(parts, 1.0, vector, threads)
        return vector

    @abstractmethod
    def add_adjoint(self, parts: Parts, scale: float, out: np.ndarray, threads: Threads = SERIAL) -> None:
        """out += scale * F' parts."""


def label_shape(labels: int | tuple[int, ...]) -> tuple[int, ...]:
    """What a row scores, as a shape: ``(s,)`` for s labels, ``(s, s)`` for pairs of labels.

    Parameters
    ----------
    labels : int or tuple of int
        As users say it.
    """
    return (labels,) if isinstance(labels, int) else tuple(labels)


def shortest(values: np.ndarray) -> np.ndarray:
    """The values of entries, or one number if it is that of all: text has nothing but ones.

    Parameters
    ----------
    values : array (entries,)
        They themselves.
    """
    alike = values.size > 1 and (not any(values.strides) or (values == values[0]).all())
    return values[:1].copy() if alike else values


def adding_up(owners: np.ndarray, values: np.ndarray, size: int) -> scipy.sparse.csr_array:
    """The matrix (size, rows) that adds up the rows of every owner.

    Parameters
    ----------
    owners : array of int (rows,)
        The owner of every row, below ``size``.
    values : array (rows,)
        What a row counts.
    size : int
        How many owners there are.
    """
    rows = len(owners)
    return scipy.sparse.csc_array((values, owners, np.arange(rows + 1)), shape=(size, rows)).tocsr()


def _written_out(features: FeatureMap) -> SparseRows:
    """One row per part."""
    sizes = [int(np.prod(shape)) for shape in features.shapes]
    if sum(sizes) > MOST_PARTS:
        raise TypeError(f"{type(features).__name__} must define rows() for problems of {sum(sizes)} parts")
    parts = tuple(np.zeros(shape) for shape in features.shapes)
    runs, data, pointers = [], [], [0]
    for array in parts:
        for k in range(array.size):
            array.flat[k] = 1.0
            vector = features.adjoint(parts)
            array.flat[k] = 0.0
            runs.append(np.flatnonzero(vector))
            data.append(vector[runs[-1]])
            pointers.append(pointers[-1] + len(runs[-1]))
    ones = np.ones(sum(sizes), np.int64)
    return SparseRows(np.array(pointers), np.concatenate(runs), np.concatenate(data), ones, tuple(sizes))
