"""Thresholds with a guarantee that asks nothing of the model: conformal prediction and conformal risk control.

m held-out examples and a new one are *exchangeable*: every order of them is equally likely. For whole outputs, let s_i
be how surprising the right output of example i is (any number that the model computes), and q the r-th smallest of
s_1..s_m with r = ceil((m+1)(1-alpha)). The rank of the new example's s among all m+1 is uniform, so that

    P(s_new <= q) >= 1 - alpha        (and <= 1 - alpha + 1/(m+1) where no two s are equal).

The set of all outputs with s <= q holds the right one with that probability. For labels of positions, let L_i(t) in
[0, 1] be the share of positions of example i whose right label has a probability below t, which grows with t. The
largest t with

    m/(m+1) * mean_i L_i(t) + 1/(m+1) <= alpha

has E L_new(t) <= alpha. Both need m >= 1/alpha - 1, or no finite threshold is enough. Right outputs that no set can
hold count as missed; where these alone are too many, there is no threshold either, and both refuse.

References: Vovk, Gammerman, Shafer, "Algorithmic Learning in a Random World", 2005; Angelopoulos, Bates, Fisch, Lei,
Schuster, "Conformal Risk Control", 2022.
"""

from __future__ import annotations

import math

import numpy as np

ROUNDING = 1e-9  # (m+1) alpha may be a whole number up to rounding
UNREACHABLE = (
    "coverage of {:.4g} cannot be reached: {} hold labels that the model does not know or that its constraints forbid, "
    "which no set of its answers can hold; take a larger alpha, or train with these labels"
)


def check_alpha(alpha: float, name: str = "alpha") -> None:
    """Refuse what is no share of errors.

    Parameters
    ----------
    alpha : float
        How much may be missed.
    name : str
        Of the argument.
    """
    if isinstance(alpha, bool) or not 0.0 < alpha < 1.0:
        raise ValueError(f"{name} must lie between 0 and 1, such as 0.1 for a coverage of 0.9; got {alpha!r}")


def least_examples(alpha: float) -> int:
    """How many held-out examples a threshold takes at least: 1/alpha - 1.

    Parameters
    ----------
    alpha : float
        How much may be missed.
    """
    return max(math.ceil(1.0 / alpha - 1.0 - ROUNDING), 1)


def surprise_threshold(surprises: np.ndarray, alpha: float) -> float:
    """The ceil((m+1)(1-alpha))-th smallest of m surprises.

    Parameters
    ----------
    surprises : array (examples,)
        How surprising right outputs are, at least ``least_examples(alpha)`` of them; inf where no set can hold one.
    alpha : float
        How often a set may miss.
    """
    rank = len(surprises) + 1 - math.floor((len(surprises) + 1) * alpha + ROUNDING)
    found = float(np.sort(surprises)[rank - 1])
    if math.isinf(found):
        what = f"the right answers of {np.isinf(surprises).sum()} of {len(surprises)} held-out sequences"
        raise ValueError(UNREACHABLE.format(1.0 - alpha, what))
    return found


def share_threshold(shares: np.ndarray, lengths: np.ndarray, alpha: float) -> float:
    """The largest least probability of a label at which the expected share of missed labels is at most alpha.

    Parameters
    ----------
    shares : array (positions,)
        Probabilities of right labels; inf where one is in the set at any threshold, -inf where it never is.
    lengths : array of int (examples,)
        Positions of every example, at least ``least_examples(alpha)`` examples of at least one position.
    alpha : float
        The share that may be missed.
    """
    count = len(lengths)
    budget = (alpha * (count + 1) - 1.0) / count + ROUNDING / count
    order = np.argsort(shares)
    missed = np.cumsum(np.repeat(1.0 / (count * lengths), lengths)[order])  # if the threshold is above this share
    over = np.searchsorted(missed, budget, side="right")
    found = float(shares[order[over]]) if over < len(shares) else 1.0
    if found == -math.inf:
        what = f"{np.isneginf(shares).sum()} of {len(shares)} held-out positions"
        raise ValueError(UNREACHABLE.format(1.0 - alpha, what))
    return min(found, 1.0)
