"""Marginals of pairwise graphs with cycles, by a relaxation that bounds the partition function from above.

The marginals of exp(score / T) are out of reach where inference is. Any distribution over spanning forests that uses
edge e with probability rho_e > 0 gives a concave relaxation of them (Wainwright, Jaakkola, Willsky, "A new class of
upper bounds on the log partition function", 2005):

    T log Z  <=  max_b  sum_s <b_s, node_s> + sum_e <b_e, pair_e> + T { sum_s H(b_s) - sum_e rho_e I(b_e) }

over the local polytope: b_s are distributions of labels at nodes, b_e of pairs of labels along edges, and b_e has the
marginals b_s and b_t of its ends. I is the mutual information of both ends under b_e. The maximiser is unique; on
forests rho = 1, the bound is equal to T log Z, and b are the true marginals. With cycles they are consistent along
every edge, but in general not those of the distribution, nor of any other.

Messages find the maximum, in parallel and damped:

    m_{t -> s}(x) = log sum_{x'} exp{ pair(x, x') / (T rho_st) + node_t(x') / T
                                      + sum_v rho_vt m_{v -> t}(x') - m_{s -> t}(x') }

rho comes from as many spanning forests as it takes to use every edge, each made of the edges used least so far. Cost of
a round: O(edges labels^2).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse

DAMPING = 0.5  # the share of the old messages; without it parallel messages may go round in circles


@dataclass(frozen=True)
class RelaxedMarginals:
    """Marginals of the relaxation.

    Attributes
    ----------
    node : array (nodes, labels)
        Of the labels of every node, graph after graph.
    values : array (n,)
        Of every graph the value of the relaxation: where ``converged``, an upper bound on T log sum exp(score / T).
    converged : array of bool (n,)
        Whether messages stopped changing.
    """

    node: np.ndarray
    values: np.ndarray
    converged: np.ndarray


def relaxed_marginals(
    node: np.ndarray,
    edges: np.ndarray,
    pair: np.ndarray,
    *,
    offsets: np.ndarray,
    edge_offsets: np.ndarray,
    temperature: float = 1.0,
    tol: float = 1e-8,
    max_rounds: int = 2000,
) -> RelaxedMarginals:
    """Node marginals of every graph under exp(score / temperature), of a relaxation that is exact on forests.

    Parameters
    ----------
    node, edges, pair, offsets, edge_offsets : arrays
        As in ``relaxed_map``.
    temperature : float
        Small values sharpen the distribution, large ones flatten it.
    tol : float
        Messages have settled when none of them changes by more than this.
    max_rounds : int
        The largest number of rounds.
    """
    shared = pair.ndim == 2
    marginals, values, converged = np.empty(node.shape), np.empty(len(offsets) - 1), np.empty(len(offsets) - 1, bool)
    for k in range(len(values)):
        own, mine = slice(*offsets[k : k + 2]), slice(*edge_offsets[k : k + 2])
        tables = np.broadcast_to(pair, (mine.stop - mine.start, *pair.shape)) if shared else pair[mine]
        graph = _Graph.of(node[own] / temperature, edges[mine], tables / temperature)
        marginals[own], value, converged[k] = graph.solve(tol, max_rounds)
        values[k] = temperature * value
    return RelaxedMarginals(marginals, values, converged)


@dataclass(frozen=True)
class _Graph:
    """One graph, its parallel edges joined to one; a message for each direction of an edge, those there first."""

    node: np.ndarray  # (nodes, labels)
    pair: np.ndarray  # (edges, labels, labels)
    ends: np.ndarray  # (edges, 2)
    rho: np.ndarray  # (edges,)

    @classmethod
    def of(cls, node: np.ndarray, edges: np.ndarray, pair: np.ndarray) -> _Graph:
        turned = edges[:, 0] > edges[:, 1]
        pair = np.where(turned[:, None, None], pair.transpose(0, 2, 1), pair)
        ends, which = np.unique(np.sort(edges, axis=1), axis=0, return_inverse=True)
        joined = np.zeros((len(ends), *pair.shape[1:]))
        np.add.at(joined, which.ravel(), pair)
        return cls(node, joined, ends.reshape(-1, 2), appearance(len(node), ends.reshape(-1, 2)))

    def solve(self, tol: float, max_rounds: int) -> tuple[np.ndarray, float, bool]:
        """Node marginals, the value, and whether messages have settled."""
        source, target = np.concatenate([self.ends, self.ends[:, ::-1]]).T
        count, labels = len(self.ends), self.node.shape[1]
        rho = np.tile(self.rho, 2)
        collect = scipy.sparse.csr_array((rho, (target, np.arange(2 * count))), shape=(len(self.node), 2 * count))
        tables = self.pair / self.rho[:, None, None]
        tables = np.concatenate([tables, tables.transpose(0, 2, 1)])  # (messages, labels there, labels here)
        messages, settled = np.zeros((2 * count, labels)), count == 0
        for _ in range(max_rounds):
            if settled:
                break
            rest = _without(_collected(self.node, collect, messages)[source], np.roll(messages, count, axis=0))
            new = _log_sums(tables + rest[:, :, None])
            change = np.abs(np.subtract(new, messages, out=np.zeros(new.shape), where=np.isfinite(new)))
            settled = bool(change.max(initial=0.0) <= tol)
            messages = DAMPING * messages + (1.0 - DAMPING) * new
        total = _collected(self.node, collect, messages)
        beliefs = _normalized(total)
        there, back = messages[:count], messages[count:]
        first = _without(total[self.ends[:, 0]], back)[:, :, None]
        both = tables[:count] + first + _without(total[self.ends[:, 1]], there)[:, None, :]
        pairs = _normalized(both.reshape(count, labels * labels)).reshape(both.shape)
        return beliefs, self._value(beliefs, pairs), settled

    def _value(self, node: np.ndarray, pair: np.ndarray) -> float:
        entropies = _entropy(node).sum()
        information = (
            _entropy(pair.sum(axis=2))
            + _entropy(pair.sum(axis=1))
            - _entropy(pair.reshape(len(pair), node.shape[1] ** 2))
        )
        return float(_product(node, self.node) + _product(pair, self.pair) + entropies - self.rho @ information)


def appearance(nodes: int, edges: np.ndarray) -> np.ndarray:
    """How often spanning forests use every edge: positive, and 1 on forests.

    Parameters
    ----------
    nodes : int
        Number of nodes.
    edges : array of int (count, 2)
        Edges, each once, the smaller node first.
    """
    from scipy.sparse.csgraph import minimum_spanning_tree  # slow to load

    uses, forests = np.zeros(len(edges)), 0
    number = scipy.sparse.csr_array((np.arange(1, len(edges) + 1), edges.T), shape=(nodes, nodes))
    while not uses.all():
        weights = scipy.sparse.csr_array((1.0 + uses, edges.T), shape=(nodes, nodes))
        chosen = minimum_spanning_tree(weights).nonzero()
        uses[np.asarray(number[chosen]).ravel() - 1] += 1.0
        forests += 1
    return uses / max(forests, 1)


def _collected(node: np.ndarray, collect: scipy.sparse.csr_array, messages: np.ndarray) -> np.ndarray:
    """Scores of nodes with what all of their neighbours say; -inf where any of them forbids."""
    finite = np.where(np.isfinite(messages), messages, 0.0)
    total = node + collect @ finite
    total[(collect @ (~np.isfinite(messages)).astype(float)) > 0.0] = -np.inf
    return total


def _without(total: np.ndarray, message: np.ndarray) -> np.ndarray:
    """What remains of sums without one message; -inf stays."""
    return np.subtract(total, message, out=np.full(total.shape, -np.inf), where=np.isfinite(total))


def _log_sums(scores: np.ndarray) -> np.ndarray:
    """log sum exp over the labels there, less the largest over those here."""
    top = np.maximum(scores.max(axis=1), np.finfo(float).min)
    with np.errstate(divide="ignore"):
        sums = np.log(np.exp(scores - top[:, None, :]).sum(axis=1)) + top
    return sums - np.maximum(sums.max(axis=1, keepdims=True), np.finfo(float).min)


def _normalized(scores: np.ndarray) -> np.ndarray:
    weights = np.exp(scores - np.maximum(scores.max(axis=1, keepdims=True), np.finfo(float).min))
    return weights / np.maximum(weights.sum(axis=1, keepdims=True), np.finfo(float).tiny)


def _entropy(shares: np.ndarray) -> np.ndarray:
    logarithms = np.log(shares, out=np.zeros(shares.shape), where=shares > 0.0)
    return -(shares * logarithms).sum(axis=1)


def _product(shares: np.ndarray, scores: np.ndarray) -> float:
    """<shares, scores>; what has no share may score -inf."""
    return float(np.multiply(shares, scores, out=np.zeros(shares.shape), where=shares > 0.0).sum())
