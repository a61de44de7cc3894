"""Examples that are kept from training, to stop it when weights get no better on them: ``validation`` of estimators.

They are given as a pair (X, y), or as a share of the training examples, drawn by ``random_state``. An estimator says
what its score on them is; the run then keeps the weights with the best one, see ``m3n.callbacks.HeldOut``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from m3n.solvers.base import at_least, seed_of

if TYPE_CHECKING:
    from m3n.estimators.training import Examples

Score = Callable[[Any], float]  # of a model


USUAL_FINAL = 0.99  # of the held-out labels


class Pair(NamedTuple):
    """Examples that were given beside those of training."""

    X: Any
    y: Any


def read_validation(validation: Any, patience: int) -> Pair | float | None:
    """What a user has said, checked.

    Parameters
    ----------
    validation : pair, float or None
        As estimators have it.
    patience : int
        The same.
    """
    at_least(1, patience=patience)
    if validation is None:
        return None
    if isinstance(validation, (tuple, list)) and len(validation) == 2:
        return Pair(*validation)
    number = isinstance(validation, (int, float, np.number)) and not isinstance(validation, bool)
    if number and 0.0 < validation < 1.0:
        return float(validation)
    raise ValueError(
        f"validation must be a pair (X, y), a share of the training examples such as 0.1, or None, "
        f"got {validation!r:.60}"
    )


def divided(examples: Examples, share: float, random_state: Any) -> tuple[Examples, Examples]:
    """Examples to learn from, and about so large a share of them to hold out; both have one at least.

    Parameters
    ----------
    examples : Examples
        All of them.
    share : float
        Between 0 and 1.
    random_state : int, RandomState, Generator or None
        What draws them.
    """
    count = len(examples.outputs)
    if count < 2:
        raise ValueError(f"validation={share:g} holds out a part of the examples, but there is only {count}")
    kept_out = min(max(round(share * count), 1), count - 1)
    order = np.random.default_rng(seed_of(random_state)).permutation(count)
    return examples.only(np.sort(order[kept_out:])), examples.only(np.sort(order[:kept_out]))


def share_to_reach(stop: Any, validation: Any, estimator: Any) -> float | None:
    """The share of final predictions that ends training; None if the gap does, or held-out scores.

    Parameters
    ----------
    stop : str or float
        As estimators have it.
    validation : pair, float or None
        The same.
    estimator : Trained
        Whose they are.
    """
    if isinstance(stop, str) and stop == "gap":
        return None
    number = isinstance(stop, (int, float, np.number)) and not isinstance(stop, bool)
    if not (stop == "predictions" if isinstance(stop, str) else number and 0.0 < stop <= 1.0):
        raise ValueError(f'stop must be "gap", "predictions" or a share of predictions such as 0.9, got {stop!r:.60}')
    if not hasattr(estimator, "certify"):
        raise ValueError(f"stop={stop!r}: {type(estimator).__name__} cannot prove predictions; leave it away")
    if validation is None:
        raise ValueError(f"stop={stop!r} is about held-out predictions: give validation=(X, y), or a share such as 0.1")
    return USUAL_FINAL if stop == "predictions" else float(stop)
