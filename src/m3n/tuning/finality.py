"""Which labels the optimum may still choose: all that no bound excludes.

Let y^ be the prediction of weights w, and |w' - w| <= r. An output y is not the prediction of w' if

    <w, phi(y^) - phi(y)>  >  r |phi(y^) - phi(y)|.

The distance on the right is at most a sum over the positions S at which y differs from y^: with n_t(k) the norm of the
attributes of position t that have weights with label k, their part of it is orthogonal to that of transitions, and

    |phi(y^) - phi(y)|  <=  sum_{t in S} sqrt( n_t(y^_t)^2 + n_t(y_t)^2 + e_t^2 ),

where e_t is sqrt(2) for each of the two transitions (or ends) that touch the position: every transition that differs
touches a position in S. So it is enough that y^ beats y after r times its summand is added to the score of every label
but y^'s. Max-marginals of these scores, forwards and backwards, say for every position and label whether an output with
it could win. Cost: that of the max-oracle twice, O(positions labels^2).

This is for linear models of chains without attributes of pairs.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

from m3n.estimators import SequenceTagger
from m3n.estimators.chains import GROUPS, MASKS
from m3n.estimators.inputs import Inputs
from m3n.estimators.training import resolve_strengths
from m3n.tuning.guarantee import ROUNDING

MOST = 1 << 22  # scores of pairs of labels at a time, 32 MB


def obstacle(model: Any) -> str:
    """Why nothing can be said about a model's predictions; empty if something can.

    Parameters
    ----------
    model : estimator
        A fitted one.
    """
    if not isinstance(model, SequenceTagger):
        return f"there are bounds for SequenceTagger alone, not for {type(model).__name__}"
    if model.kernel is not None or model.approximation is not None:
        return "there are bounds for linear models alone, not for kernels"
    if model.l1:
        return "an l1 penalty has no bounds along lam"
    return "" if getattr(model, "edge_coef_", None) is None else "attributes of pairs have no bounds"


def share_final(model: SequenceTagger, X: Any, radius: float) -> list[np.ndarray]:
    """For every position whether all weights within a radius predict the same label there.

    Parameters
    ----------
    model : SequenceTagger
        A linear one.
    X : sequences
        As in ``predict``.
    radius : float
        In the norm of the regulariser.

    Returns
    -------
    list of arrays of bool (positions,)
        One per sequence.
    """
    inputs = X if isinstance(X, Inputs) else model.reader_.read(X)
    possible, _ = possible_labels(model, inputs, radius)
    return np.split(possible.sum(axis=1) == 1, np.cumsum(inputs.lengths)[:-1])


def possible_labels(model: SequenceTagger, inputs: Inputs, radius: float) -> tuple[np.ndarray, np.ndarray]:
    """The labels of every position that some weights within a radius may predict, and those that the model predicts.

    Parameters
    ----------
    model : SequenceTagger
        A linear one.
    inputs : Inputs
        Sequences, as its reader has read them.
    radius : float
        In the norm of the regulariser.

    Returns
    -------
    tuple of arrays
        Of bool (positions, labels), and of int (positions,).
    """
    lengths = inputs.lengths[inputs.lengths > 0]
    if not len(lengths):
        return np.zeros((0, len(model.classes_)), bool), np.zeros(0, np.int64)
    scored = model._scores_of(inputs.occupied(), None, np.flatnonzero(inputs.lengths))
    node, tables = scored.theta[0], _tables(model)
    values, best = scored.structure.hard(tuple(part.copy() for part in scored.theta), scored.threads)
    scored._check(values)
    node = node + radius * _distances(model, inputs, best, lengths)
    reached = max_marginals(node, tables, lengths)
    bound = np.repeat(values - ROUNDING * (1.0 + np.abs(values)), lengths)
    possible = reached >= bound[:, None]
    possible[np.arange(len(best)), best] = True
    return possible, best


def _tables(model: SequenceTagger) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scores of transitions, starts and ends; -inf for those that constraints forbid."""
    tables = model._tables()
    if model.constraints_ is not None:
        for table, name in zip(tables, MASKS, strict=True):
            table[getattr(model.constraints_, name)] = -np.inf
    return tables


def _distances(model: SequenceTagger, inputs: Inputs, best: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """For every position and label its summand of the bound; 0 for the label that is predicted."""
    factors = resolve_strengths(model.strengths, GROUPS)
    squares = _squares(inputs.matrix, model.coef_) * factors["attributes"] ** 2
    squares = np.broadcast_to(squares, (len(best), len(model.classes_)))
    rows, last = np.arange(len(best)), np.cumsum(lengths) - 1
    ends = factors["boundaries"] if model.boundaries else 0.0
    before, after = np.full(len(best), factors["transitions"]), np.full(len(best), factors["transitions"])
    before[last - lengths + 1], after[last] = ends, ends
    touched = 2.0 * (before + after) ** 2  # (sqrt(2) before + sqrt(2) after)^2
    distances = np.sqrt(squares + squares[rows, best][:, None] + touched[:, None])
    distances[rows, best] = 0.0
    return distances


def _squares(matrix: Any, coef: Any) -> np.ndarray:
    """Squared norms of the attributes of every position (positions, labels), or (positions, 1) if all have the same."""
    if not scipy.sparse.issparse(matrix):
        return np.einsum("tf,tf->t", matrix, matrix)[:, None]
    squared = matrix.multiply(matrix).tocsr()
    if not scipy.sparse.issparse(coef):
        return np.asarray(squared.sum(axis=1)).reshape(-1, 1)
    held = scipy.sparse.csr_array((np.ones(len(coef.data)), coef.indices, coef.indptr), coef.shape)
    return np.asarray((squared @ held).todense())


def max_marginals(node: np.ndarray, tables: tuple[np.ndarray, ...], lengths: np.ndarray) -> np.ndarray:
    """The largest score of an output with a label at a position, for all of both (positions, labels).

    Parameters
    ----------
    node : array (positions, labels)
        Scores of labels, sequence after sequence.
    tables : tuple of arrays
        Scores of transitions, starts and ends.
    lengths : array of int (sequences,)
        At least 1 each.
    """
    reached, each = np.empty_like(node), max(MOST // node.shape[1] ** 2, 1)
    begins, order = np.cumsum(lengths) - lengths, np.argsort(-lengths, kind="stable")
    for first in range(0, len(order), each):
        chosen = order[first : first + each]
        _reach(node, tables, (begins[chosen], lengths[chosen]), reached)
    return reached


def _reach(
    node: np.ndarray, tables: tuple[np.ndarray, ...], sequences: tuple[np.ndarray, np.ndarray], out: np.ndarray
) -> None:
    """The same for some sequences, the longest first, position by position of all of them at once."""
    pair, start, end = tables
    begins, lengths = sequences
    live = [int(np.searchsorted(-lengths, -t, side="left")) for t in range(int(lengths[0]))]  # longer than t
    out[begins] = node[begins] + start
    for t in range(1, len(live)):
        rows = begins[: live[t]] + t
        out[rows] = node[rows] + (out[rows - 1][:, :, None] + pair).max(axis=1)
    behind = np.broadcast_to(end, (len(begins), len(end))).copy()  # the best continuation after a position
    for t in range(len(live) - 2, -1, -1):
        rows = begins[: live[t + 1]] + t
        ahead = node[rows + 1] + behind[: live[t + 1]]
        out[rows + 1] += behind[: live[t + 1]]
        behind[: live[t + 1]] = (pair + ahead[:, None, :]).max(axis=2)
    out[begins] += behind
