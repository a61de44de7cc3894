"""How the changes of several lanes are put together: added, each as careful as the others are in its way.

D is the sum of what every lane can see of it, less lam/2 |sum_k d_k|^2, where d_k is by how much lane k moves
u = w(alpha). Lanes visit their own examples side by side, for a *round*; each with weights of its own that move sigma
times as far as u does,

    w_k = w + sigma d_k,    as if the square were sigma times as large:  D rises by what each lane sees of its own, plus

    lam/2 (sigma sum_k |d_k|^2 - |sum_k d_k|^2).

With K lanes |sum_k d_k|^2 <= K sum_k |d_k|^2, so sigma = K is always safe (CoCoA+), and slow. The ratio

    r = |sum_k d_k|^2 / sum_k |d_k|^2,    from 0 to K, about 1 where lanes have nothing in common,

is known after every round. The next one has sigma = 1 + ``CAUTION`` (r - 1), between 1 and K: with r itself lanes stay
at the edge at which they overshoot together, and swing. Both sums of D are known exactly as well: a round that lowers D
is taken back, and sigma is twice as large for the next.

The more rounds visits of all examples are cut into, the less lanes correct the same errors twice. How many follows from
what a round ships, a vector of all weights to and from each lane, beside the work of its visits.

Reference: Ma, Smith, Jaggi, Jordan, Richtárik, Takáč, "Adding vs. averaging in distributed primal-dual optimization",
2015.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from m3n.problem import Objective, Sharded
from m3n.problem.sections import extent

CAUTION = 1.5  # of 1, 1.5 and 2 the one with the fewest passes on 2, 4 and 8 lanes (CoNLL-2000)
LEAST_VISITS = 16  # of every lane in a round


@dataclass(frozen=True)
class Change:
    """By how much lanes have moved u in a round, and what they say of D.

    Attributes
    ----------
    vector : array (dim,)
        d, or the sum of the d_k.
    square : float
        The sum of |d_k|^2.
    offset : float
        The lanes' share of the sum ell alpha + T H(alpha), as it is now.
    counts : array of int
        What the method counts: calls of oracles, for example.
    """

    vector: np.ndarray
    square: float
    offset: float
    counts: np.ndarray

    def __add__(self, other: Change) -> Change:
        """Of the lanes of both."""
        return Change(
            vector=self.vector + other.vector, square=self.square + other.square,
            offset=self.offset + other.offset, counts=self.counts + other.counts,
        )  # fmt: skip


def moved(after: np.ndarray, before: np.ndarray, sigma: float, offset: float, *counts: float) -> Change:
    """The change of one lane, whose own weights have moved sigma times as far as u.

    Parameters
    ----------
    after, before : array (dim,)
        Its weights.
    sigma : float
        How careful it was.
    offset : float
        Its share of the offset, or by how much that has changed.
    counts : float
        What else there is to add up.
    """
    vector = after - before
    if sigma != 1.0:
        vector *= 1.0 / sigma
    return Change(vector, float(vector @ vector), offset, np.array(counts))


def care(change: Change, lanes: int) -> float:
    """sigma for the next round, from what lanes had in common in the last one.

    Parameters
    ----------
    change : Change
        Of all lanes.
    lanes : int
        How many there are.
    """
    if change.square <= 0.0:
        return 1.0
    common = float(change.vector @ change.vector) / change.square - 1.0
    return float(np.clip(1.0 + CAUTION * common, 1.0, lanes))


def rounds_of(problem: Sharded, share: float, least: int, most: int) -> int:
    """Into how many rounds visits of all examples are cut: so that they ship no more numbers than they look at.

    Parameters
    ----------
    problem : Sharded
        The examples.
    share : float
        Which part of the scores of all examples the visits look at.
    least, most : int
        No fewer and no more, if there are examples enough.
    """
    engine = problem.engine
    if engine.lanes == 1:
        return 1
    wanted = np.clip(share * engine.total(extent).parts / problem.dim, least, most)
    return int(min(wanted, max(min(engine.sizes) // LEAST_VISITS, 1)))


def most_care(problem: Objective) -> float:
    """The largest sigma that a run can have; without bound for a problem that is not in lanes yet.

    Parameters
    ----------
    problem : Objective
        The examples.
    """
    return float(problem.engine.lanes) if isinstance(problem, Sharded) else np.inf


def careful(sigma: float, lanes: int) -> float:
    """sigma after a round that lowered D.

    Parameters
    ----------
    sigma : float
        What it was.
    lanes : int
        How many lanes there are.
    """
    return min(2.0 * sigma, float(lanes))


def shown(sigma: float, rounds: int) -> dict[str, float]:
    """What a run tells about it.

    Parameters
    ----------
    sigma : float
        How careful lanes are now.
    rounds : int
        Of a pass or of a sweep.
    """
    return {"sigma": sigma, "rounds": rounds}
