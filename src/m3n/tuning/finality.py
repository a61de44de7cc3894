"""Which labels the optimum may still choose, for a model whose weights are a known distance away from it.

The bounds are those of ``m3n.estimators.final``: a label stays possible unless every output with it is beaten, whatever
the weights of the ball are.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from m3n.estimators import SequenceTagger
from m3n.estimators.inputs import Inputs


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
    if model.prior is not None:
        return "with a prior the optimum does not scale with lam, so that there are no bounds"
    return "an l1 penalty has no bounds along lam" if model.l1 else ""


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
    found = [(possible, labelling) for _, labelling, possible in model._proven(model._ball(radius), inputs)]
    if not found:
        return np.zeros((0, len(model.classes_)), bool), np.zeros(0, np.int64)
    possible, labellings = zip(*found, strict=True)
    return np.concatenate(possible), np.concatenate(labellings)
