"""Sparse matrices from lists of columns that grow row by row."""

from __future__ import annotations

import numpy as np
import scipy.sparse


def csr(values: np.ndarray, columns: np.ndarray, ends: np.ndarray, width: int | None) -> scipy.sparse.csr_array:
    """A matrix from the entries of its rows, one after another.

    Parameters
    ----------
    values : array (entries,)
        Numbers.
    columns : array of int (entries,)
        Where they stand.
    ends : array of int (rows + 1,)
        Row r has the entries ends[r] to ends[r + 1].
    width : int or None
        How many columns there are: entries elsewhere, also those of negative columns, are left out. None: as many as
        the entries need.
    """
    if width is None:
        width = int(columns.max(initial=-1)) + 1
    else:
        kept = (columns >= 0) & (columns < width)
        ends = np.concatenate([[0], np.cumsum(kept)])[ends]
        columns, values = columns[kept], values[kept]
    return scipy.sparse.csr_array((values, columns, ends), shape=(len(ends) - 1, width))


def renumbered(matrix: scipy.sparse.csr_array, numbers: np.ndarray, width: int) -> scipy.sparse.csr_array:
    """The matrix with other numbers for its columns, in ascending order and without those that have none.

    Where columns of a row have the same number, the largest of their values stays.

    Parameters
    ----------
    matrix : csr_array
        The rows.
    numbers : array of int (columns,)
        The new number of every column, negative for none.
    width : int
        How many columns there are then.
    """
    found = csr(matrix.data, numbers[matrix.indices], matrix.indptr, width)
    found.sort_indices()
    first = np.ones(found.nnz, bool)
    first[1:] = found.indices[1:] != found.indices[:-1]
    first[found.indptr[:-1][np.diff(found.indptr) > 0]] = True
    if not first.all():
        starts = np.flatnonzero(first)
        values, ends = np.maximum.reduceat(found.data, starts), np.concatenate([[0], np.cumsum(first)])
        found = csr(values, found.indices[starts], ends[found.indptr], width)
    found.has_canonical_format = True
    return found
