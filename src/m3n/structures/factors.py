"""Factors of graphs: which variables each of them joins."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from m3n.packed.ragged import ranges


class Factors:
    """One array of theta beyond the nodes: a table of scores for every tuple of variables that is listed.

    Parameters
    ----------
    scopes : sequence of array of int (count, k)
        For every example the variables of its factors, numbered from 0 within the example; k >= 2 is the same for all.
        The first column is the first axis of a table. An example may have none.
    shared : bool
        Whether all factors have the same table. Theta then has one array (labels, ..., labels), and its marginals are
        summed; otherwise it has a row for every factor, example after example.
    """

    def __init__(self, scopes: Sequence[Any], shared: bool = False):
        arrays = [np.asarray(scope) for scope in scopes]
        orders = {a.shape[1] for a in arrays if a.ndim == 2}
        self.k = min(orders, default=0)
        checked = [_check(a, self.k, f"example {i}") for i, a in enumerate(arrays)]
        if self.k < 2:
            raise ValueError(
                "factors need two variables at least: give every example an array (count, k) with k >= 2, "
                "also where count is 0; scores of single variables belong to the first array of theta"
            )
        self.shared = shared
        self.scopes = np.concatenate(checked)  # (total, k)
        self.first = np.cumsum([0, *map(len, checked)])  # (n + 1,)

    @classmethod
    def packed(cls, scopes: np.ndarray, first: np.ndarray, shared: bool) -> Factors:
        """From arrays that were checked before: all scopes one after another, and where those of an example begin."""
        factors = cls.__new__(cls)
        factors.k, factors.shared, factors.scopes, factors.first = scopes.shape[1], shared, scopes, first
        return factors

    def tables(self, both_ways: bool = False) -> list[Factors]:
        """Tables for single factors of the same variables; if asked for, then also for them in reverse order.

        Parameters
        ----------
        both_ways : bool
            Whether there are two.
        """
        orders = [self.scopes, self.scopes[:, ::-1]][: 1 + both_ways]
        return [Factors.packed(np.ascontiguousarray(scopes), self.first, False) for scopes in orders]

    def select(self, examples: np.ndarray) -> Factors:
        """Those of some examples."""
        counts = np.diff(self.first)[examples]
        first = np.concatenate([[0], np.cumsum(counts)])
        return Factors.packed(self.scopes[ranges(self.first[examples], counts)], first, self.shared)

    def check(self, nodes: np.ndarray, number: int) -> None:
        """Refuse variables that do not exist, and scopes with a variable twice."""
        if len(self.first) - 1 != len(nodes):
            raise ValueError(
                f"factors[{number}] lists the scopes of {len(self.first) - 1} examples, but there are {len(nodes)}; "
                "give an example without factors an array of shape (0, k)"
            )
        most = np.repeat(nodes, np.diff(self.first))
        bad = ((self.scopes < 0) | (self.scopes >= most[:, None])).any(axis=1)
        for a, b in itertools.combinations(range(self.k), 2):
            bad |= self.scopes[:, a] == self.scopes[:, b]
        if bad.any():
            row = int(bad.argmax())
            i = int(np.searchsorted(self.first, row, side="right")) - 1
            raise ValueError(
                f"factors[{number}], example {i}, row {row - self.first[i]}: scope {self.scopes[row].tolist()} must "
                f"name {self.k} different variables out of 0..{nodes[i] - 1}, numbered within the example"
            )


def _check(scopes: np.ndarray, k: int, where: str) -> np.ndarray:
    """Scopes as an array (count, k) of int64."""
    if scopes.size == 0 and scopes.ndim <= 2:
        return np.empty((0, k), np.int64)
    if scopes.ndim != 2 or scopes.shape[1] != k or scopes.dtype.kind not in "iu":
        raise ValueError(
            f"{where}: scopes must be an array (count, k) of integers with the same k for all examples, got shape "
            f"{scopes.shape} of {scopes.dtype} where k = {k}; factors of another size are another Factors"
        )
    return scopes.astype(np.int64)
