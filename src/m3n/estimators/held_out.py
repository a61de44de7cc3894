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
