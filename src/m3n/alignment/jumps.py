"""The M-step of jumps: c(d), normalised over the places that a sentence has.

Jumps are in buckets b = 0 .. 2 W. Of n(b) expected jumps into every bucket, N(I, r) left place r of a sentence of I
words, where a jump of i - r + 1 leads to word i. The expected log-likelihood

    Q(c) = sum_b n(b) log c(b) - sum_{I,r} N(I, r) log sum_i c(i - r + 1)

has no maximum in closed form, as every place has its own normalisation. The second term is bounded by its tangent,
which gives the update

    c(b) = n(b) / sum_{I,r} N(I, r) k_{I,r}(b) / sum_b' k_{I,r}(b') c(b'),    k(b): how many words bucket b leads to

that never lowers Q, so EM with a few of them never lowers the likelihood. Cost of an update: O(I^2) for the longest I.

Hunter, "MM algorithms for generalized Bradley-Terry models" (Annals of Statistics 2004).
"""

from __future__ import annotations

import numpy as np

UPDATES = 20
LEAST = 1e-10  # of the largest c: a jump that was never expected stays possible


def even_jumps(reach: int) -> np.ndarray:
    """All jumps alike.

    Parameters
    ----------
    reach : int
        The longest jump that is told apart from longer ones.
    """
    return np.ones(2 * reach + 1)


def fitted_jumps(counts: np.ndarray, departures: np.ndarray, jumps: np.ndarray) -> np.ndarray:
    """New c by some updates.

    Parameters
    ----------
    counts : array (buckets,)
        n, expected jumps.
    departures : array (most words + 1, most words + 1)
        N, expected jumps by length of the sentence and place of departure.
    jumps : array (buckets,)
        c before.
    """
    if not len(jumps):  # Model 1
        return jumps
    sizes, places = np.nonzero(departures)
    for _ in range(UPDATES):
        jumps = counts / np.maximum(_slopes(departures[sizes, places], sizes, places, jumps), np.finfo(float).tiny)
        jumps = np.maximum(jumps / jumps.max(), LEAST)
    return jumps


def _slopes(weights: np.ndarray, sizes: np.ndarray, places: np.ndarray, jumps: np.ndarray) -> np.ndarray:
    """sum_{I,r} N k(b) / sum k c for every bucket."""
    longest, reach = int(sizes.max()), len(jumps) // 2
    distances = np.arange(-longest, longest + 1)
    buckets = np.clip(distances, -reach, reach) + reach
    before = np.concatenate([[0.0], np.cumsum(jumps[buckets])])
    low, high = longest + 1 - places, longest + 1 - places + sizes  # jumps 1 - r .. I - r, as places of ``distances``
    shares = weights / (before[high] - before[low])
    opened = np.bincount(low, shares, len(before)) - np.bincount(high, shares, len(before))
    return np.bincount(buckets, np.cumsum(opened)[:-1], len(jumps))
