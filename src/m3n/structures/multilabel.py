"""Multilabel problems: every example has L labels, each on or off, and some pairs of labels have scores.

theta = (node (n L, 2), one table (2, 2) for every pair of labels, shared by all examples). |Y| = 2^L. Both oracles cost
O(L) without pairs or with a tree of pairs, O(2^L) with all pairs. Slack rescaling tries all outputs where labels are
few, and searches with the max-oracle, exact or refused, where they are many.

``Y`` (n, L) holds the zeros and ones of training data. The tree chosen from it is that of Chow and Liu ("Approximating
discrete probability distributions with dependence trees", 1968): among all trees the one with the largest sum, over its
edges, of the mutual information

    I(i, j) = sum_ab p_ij(a, b) log { p_ij(a, b) / (p_i(a) p_j(b)) },

the maximum spanning tree of I. No other tree gives ``Y`` a higher likelihood.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse

from m3n.packed import SERIAL, Threads
from m3n.structures.base import Parts
from m3n.structures.factors import Factors
from m3n.structures.graph import Graph

PAIRS = ("full", "tree", "none")
MOST_ENUMERATED = 12  # labels: slack rescaling tries all outputs one by one


class Multilabel(Graph):
    """A graph of binary variables, one per label, that is the same for all examples.

    Parameters
    ----------
    n, labels : int
        Number of examples and of labels.
    pairs : array of int (m, 2)
        Pairs of labels, as ``multilabel_pairs`` chooses them: each is one more array of theta, [value of the first,
        value of the second].
    budget : float
        Most table entries that one example may need, as in ``Graph``.
    """

    def __init__(self, n: int, labels: int, pairs: np.ndarray, *, budget: float = 2e8):
        pairs = np.asarray(pairs, dtype=np.int64).reshape(-1, 2)
        factors = [Factors.packed(np.tile(pair, (n, 1)), np.arange(n + 1), shared=True) for pair in pairs]
        super().__init__(np.full(n, labels), 2, factors, budget=budget)

    def slack(
        self, theta: Parts, gold: np.ndarray, cost: Any, threads: Threads = SERIAL
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        labels = int(self.nodes[0])
        if labels > MOST_ENUMERATED:
            return super().slack(theta, gold, cost, threads)
        outputs = np.array(list(itertools.product((0, 1), repeat=labels)))
        costs = tuple(np.zeros(shape) for shape in self.shapes)
        cost.add_to(costs, 1.0, threads)
        values, losses, labelling = np.empty(self.n), np.empty(self.n), gold.copy().reshape(self.n, labels)
        scores = self.score(theta, gold, threads)

        def lane(low: int, high: int) -> None:
            for i in range(low, high):
                own = slice(i * labels, (i + 1) * labels)
                ell = self._totals(costs, own, outputs)
                margins = 1.0 + self._totals(theta, own, outputs) - scores[i]
                products = np.multiply(ell, margins, out=np.zeros(len(outputs)), where=ell > 0.0)
                best = int(products.argmax())
                values[i], losses[i] = products[best], ell[best]
                if values[i] > 0.0:
                    labelling[i] = outputs[best]

        threads.run(lane, threads.rows(self.n))
        losses[values == 0.0] = 0.0
        return values, labelling.ravel(), losses

    def _totals(self, theta: Parts, own: slice, outputs: np.ndarray) -> np.ndarray:
        """The score of every output of the example that has some rows."""
        total = theta[0][own][np.arange(outputs.shape[1]), outputs].sum(axis=1)
        for table, given in zip(theta[1:], self.factors, strict=True):
            first, second = given.scopes[0]
            total += table[outputs[:, first], outputs[:, second]]
        return total


def multilabel_pairs(
    Y: Any, pairs: str | Sequence[Any] | np.ndarray = "full", weights: np.ndarray | None = None
) -> np.ndarray:
    """The pairs of labels that get scores of their own, as an array of int (m, 2); i < j if they are chosen here.

    Parameters
    ----------
    Y : array or sparse matrix (n, labels)
        Zeros and ones: which labels an example has.
    pairs : {"full", "tree", "none"} or pairs of int
        All of them, the tree of Chow and Liu, none, or these.
    weights : array (n,), optional
        How often every example counts.
    """
    indicator = check_indicator(Y)
    labels = indicator.shape[1]
    if not isinstance(pairs, str):
        return checked_pairs(pairs, labels)
    if pairs not in PAIRS:
        raise ValueError(f"pairs={pairs!r} is not available; choose one of {PAIRS}, or list pairs of labels")
    if pairs == "none":
        return np.empty((0, 2), np.int64)
    if pairs == "full":
        return np.stack(np.triu_indices(labels, 1), axis=1).astype(np.int64)
    return _spanning_tree(mutual_information(indicator, weights))


def checked_pairs(pairs: Sequence[Any] | np.ndarray, labels: int) -> np.ndarray:
    """Pairs of different labels, each once in either order, as an array of int (m, 2).

    Parameters
    ----------
    pairs : pairs of int
        Numbers of labels.
    labels : int
        How many there are.
    """
    given = np.asarray(pairs)
    if given.size == 0:
        return np.empty((0, 2), np.int64)
    if given.ndim != 2 or given.shape[1] != 2 or given.dtype.kind not in "iu":
        raise ValueError(f"pairs must be pairs of numbers of labels, got {pairs!r:.80}")
    for one, other in given.tolist():
        if one == other or not (0 <= one < labels and 0 <= other < labels):
            raise ValueError(f"pairs: ({one}, {other}) must be two different labels of 0..{labels - 1}")
    _, first = np.unique(np.sort(given, axis=1), axis=0, return_index=True)
    if len(first) < len(given):
        again = min(set(range(len(given))) - set(first.tolist()))
        raise ValueError(f"pairs: {tuple(given[again].tolist())} is listed twice; one table serves both orders")
    return given.astype(np.int64)


def check_indicator(Y: Any) -> np.ndarray:
    """Y as an array of zeros and ones, or an error that says where it is something else."""
    indicator = np.asarray(Y.toarray() if scipy.sparse.issparse(Y) else Y)
    if indicator.ndim != 2 or 0 in indicator.shape or indicator.dtype.kind not in "biuf":
        raise ValueError(
            "y must be an indicator matrix (examples, labels) of zeros and ones, with at least one example and one "
            f"label; got shape {indicator.shape} of {indicator.dtype}"
        )
    wrong = np.argwhere((indicator != 0) & (indicator != 1))
    if len(wrong):
        i, label = wrong[0]
        raise ValueError(f"y, example {i}, label {label}: {indicator[i, label]} is neither 0 nor 1")
    return indicator.astype(np.int64)


def mutual_information(Y: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    """I(i, j) of all pairs of labels under the empirical distribution, in nats: symmetric, (labels, labels)."""
    share = np.full(len(Y), 1.0 / len(Y)) if weights is None else weights / np.sum(weights)
    values = np.stack([1 - Y, Y]).astype(np.float64)  # (2, n, labels)
    total = np.zeros((Y.shape[1], Y.shape[1]))
    for first in values:
        for second in values:
            both = (share[:, None] * first).T @ second
            apart = np.outer(share @ first, share @ second)
            seen = both > 0.0
            total[seen] += both[seen] * np.log(both[seen] / apart[seen])
    return total


def _spanning_tree(gains: np.ndarray) -> np.ndarray:
    """The edges of a maximum spanning tree of the complete graph."""
    from scipy.sparse.csgraph import minimum_spanning_tree  # slow to load, for trees only

    costs = np.triu(1.0 + gains.max() - gains, 1)  # at least 1: SciPy takes 0 for an edge that is not there
    return np.stack(minimum_spanning_tree(costs).nonzero(), axis=1).astype(np.int64)
