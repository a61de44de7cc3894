"""What ``predict`` returns where outputs have different sizes: a list, which NumPy takes for one column of objects."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np

T = TypeVar("T")


class Predictions(list[T]):
    """One output per example: a list in every respect, and for NumPy a 1-D array of outputs.

    NumPy refuses a plain list of lists of different lengths, and makes a 2-D array of it if all lengths happen to be
    equal. scikit-learn's ``cross_val_predict`` joins the predictions of its folds by NumPy, so that it needs one array
    of as many entries as there are examples.
    """

    __slots__ = ()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """The outputs as objects; a dtype of numbers asks for the numbers inside instead.

        Parameters
        ----------
        dtype : dtype, optional
            None or object for a 1-D array of outputs; else as ``numpy.array`` of a plain list.
        copy : bool, optional
            False is refused: an array cannot share a list's memory.
        """
        if copy is False:
            raise ValueError("predictions are a list, which no array can share; leave out copy=False")
        if dtype is not None and np.dtype(dtype) != np.dtype(object):
            return np.array(list(self), dtype=dtype)
        column = np.empty(len(self), dtype=object)
        for k, output in enumerate(self):
            column[k] = output
        return column
