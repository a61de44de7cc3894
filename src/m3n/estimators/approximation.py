"""How far approximate kernel features are from the kernel: both are trained on a part of the data that both can afford.

The kernel k and the features z define two convex problems on the same examples, J over the kernel's feature space and
J~ over the weights of z. Each training brackets its optimum between dual and primal value, so the difference of the
optima is known up to the two gaps. Nystroem features span a part of the kernel's space and keep its norm: there J~ is
J on fewer weights, and the excess min J~ - min J >= 0 is exactly what the approximation costs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import numpy as np

from m3n.estimators.inputs import pair_scores
from m3n.estimators.kernel_scores import KernelSettings, Support, Transformed, prediction_model, transformed
from m3n.estimators.training import Data, Weights, chain_of, split_weights
from m3n.features import Dense, Kernel, Stack
from m3n.packed import Threads
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
    tagger: SequenceTagger, settings: KernelSettings, data: Data, sequences: int
) -> ApproximationReport:
    """Train the exact kernel and its approximation on some of the sequences, and compare them on the others."""
    order = np.random.default_rng(settings.seed).permutation(len(data.lengths))
    chosen, others = data.only(order[:sequences]), data.only(order[sequences:])
    function, transformer = settings.function.fitted(data.matrix), settings.transformer(data.matrix)
    features = transformed(transformer, chosen.matrix)
    labels, certificates, found = len(tagger.classes_), [], []
    for node in (Kernel(chosen.matrix, labels, function), Dense(features, labels)):
        problem = tagger._problem(chosen, tagger.classes_, tagger.constraints_, node).with_lam(tagger.lam_)
        result = tagger._minimize(problem)
        certificates.append(result.certificate)
        weights = split_weights(cast(Stack, problem.features), result.w)
        model = prediction_model(settings, node, transformer, weights.attributes, 0.0)
        found.append(_predict(model, weights, tagger, others))
    gold = np.concatenate(others.labels) if others.labels else np.empty(0, np.int64)
    return ApproximationReport(
        len(chosen.lengths),
        int(chosen.lengths.sum()),
        certificates[0],
        certificates[1],
        gram_error(function(chosen.matrix, chosen.matrix), features),
        _share(found[0], found[1]),
        _share(found[0], gold),
        _share(found[1], gold),
    )


def _predict(model: Support | Transformed, weights: Weights, tagger: SequenceTagger, data: Data) -> np.ndarray:
    if not len(data.lengths):
        return np.empty(0, np.int64)
    threads, labels = Threads(tagger.n_jobs), len(tagger.classes_)
    structure = chain_of(data.lengths, labels, tagger.constraints_, edges=data.pairs is not None)
    theta = [model.scores(data.matrix, threads), weights.transitions, weights.start, weights.end]
    if data.pairs is not None:
        theta.append(pair_scores(data.pairs, weights.pairs, labels, threads))
    return structure.hard(tuple(theta), threads)[1]


def gram_error(kernel: np.ndarray, features: np.ndarray) -> float:
    """The relative distance of Z Z' to K."""
    size = float(np.linalg.norm(kernel))
    return float(np.linalg.norm(kernel - features @ features.T)) / size if size else 0.0


def _share(first: np.ndarray, second: np.ndarray) -> float:
    """Of equal labels."""
    return float(np.mean(first == second)) if len(first) else float("nan")
