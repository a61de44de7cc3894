"""How far approximate kernel features are from the kernel: both are trained on a part of the data that both can afford.

The kernel k and the features z define two convex problems on the same examples, J over the kernel's feature space and
J~ over the weights of z. Each training brackets its optimum between dual and primal value, so the difference of the
optima is known up to the two gaps. Nystroem features span a part of the kernel's space and keep its norm: there J~ is
J on fewer weights, and the excess min J~ - min J >= 0 is exactly what the approximation costs.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from m3n.estimators.chains import chain_weights
from m3n.estimators.inputs import Inputs
from m3n.estimators.kernel_scores import KernelSettings, prediction_model, transformed
from m3n.estimators.training import Examples
from m3n.features import Dense, Kernel
from m3n.run.certificate import Certificate

if TYPE_CHECKING:
    from m3n.estimators.sequence_tagger import SequenceTagger


@dataclass(frozen=True)
class ApproximationReport:
    """The exact kernel and approximate features on the same sequences.

    Attributes
    ----------
    sequences, positions : int
        What both were trained on.
    exact, approximate : Certificate
        Primal, dual and gap of the two objectives.
    gram_error : float
        \\|K - Z Z'\\| / \\|K\\| in the Frobenius norm, on these positions.
    agreement : float
        Share of the other positions at which both predict the same label; nan if there are none.
    exact_score, approximate_score : float
        Share of the other positions that are labelled correctly.
    """

    sequences: int
    positions: int
    exact: Certificate
    approximate: Certificate
    gram_error: float
    agreement: float
    exact_score: float
    approximate_score: float

    @property
    def excess(self) -> tuple[float, float]:
        """Bounds on the difference of the optima, approximate minus exact."""
        return self.approximate.dual - self.exact.primal, self.approximate.primal - self.exact.dual

    def __str__(self) -> str:
        """A few lines."""
        low, high = self.excess
        return "\n".join(
            [
                f"exact kernel:         {self.exact}",
                f"approximate features: {self.approximate}",
                f"on {self.sequences} sequences, {self.positions} positions; the approximate optimum lies above the "
                f"exact one by {low:.3g} to {high:.3g}",
                f"kernel values off by {self.gram_error:.1%} (Frobenius norm)",
                f"elsewhere the predictions agree at {self.agreement:.1%} of the positions; right at "
                f"{self.exact_score:.1%} (exact) and {self.approximate_score:.1%} (approximate)",
            ]
        )


def compare_with_kernel(
    tagger: SequenceTagger, settings: KernelSettings, examples: Examples, sequences: int
) -> ApproximationReport:
    """Train the exact kernel and its approximation on some of the sequences, and compare them on the others."""
    matrix, labels = examples.inputs.matrix, len(tagger.classes_)
    order = np.random.default_rng(settings.seed).permutation(len(examples.outputs))
    chosen, others = examples.only(order[:sequences]), examples.only(order[sequences:])
    function, transformer = settings.function.fitted(matrix), settings.transformer(matrix)
    features = transformed(transformer, chosen.inputs.matrix)
    certificates, found = [], []
    for node in (Kernel(chosen.inputs.matrix, labels, function), Dense(features, labels)):
        setup = tagger._setup(chosen, node)
        result = tagger._minimize(tagger._problem(chosen, setup).with_lam(tagger.lam_))
        certificates.append(result.certificate)
        weights = chain_weights(setup.features, result.w)
        weights["kernel_model_"] = prediction_model(settings, node, transformer, weights.pop("coef_"), 0.0)
        found.append(_predict(tagger, weights, others.inputs))
    gold = np.concatenate(others.outputs) if others.outputs else np.empty(0, np.int64)
    return ApproximationReport(
        len(chosen.outputs),
        int(chosen.inputs.lengths.sum()),
        certificates[0],
        certificates[1],
        gram_error(function(chosen.inputs.matrix, chosen.inputs.matrix), features),
        _share(found[0], found[1]),
        _share(found[0], gold),
        _share(found[1], gold),
    )


def _predict(tagger: SequenceTagger, weights: dict[str, Any], inputs: Inputs) -> np.ndarray:
    """What the tagger would say with these weights."""
    if not len(inputs.lengths):
        return np.empty(0, np.int64)
    other = copy.copy(tagger)
    vars(other).update(weights)
    scored = other._scores_of(inputs, None, np.arange(len(inputs.lengths)))
    return scored.structure.hard(scored.theta, scored.threads)[1]


def gram_error(kernel: np.ndarray, features: np.ndarray) -> float:
    """The relative distance of Z Z' to K."""
    size = float(np.linalg.norm(kernel))
    return float(np.linalg.norm(kernel - features @ features.T)) / size if size else 0.0


def _share(first: np.ndarray, second: np.ndarray) -> float:
    """Of equal labels."""
    return float(np.mean(first == second)) if len(first) else float("nan")
