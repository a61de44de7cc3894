"""What all estimators do alike: read the words of an objective, train, warn, and keep what training found."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import numpy as np

import m3n
from m3n import losses
from m3n.estimators.base import Estimator
from m3n.estimators.inputs import Matrix, linear_map, linear_scores
from m3n.estimators.kernel_scores import KernelSettings, Support, Transformed, prediction_model, training_map
from m3n.estimators.training import resolve_lam, resolve_loss, resolve_objective
from m3n.features import FeatureMap
from m3n.packed import Threads
from m3n.problem import Problem
from m3n.run.callbacks import ProgressBar
from m3n.run.certificate import Certificate, Record
from m3n.run.checkpoint import Checkpoint
from m3n.run.loop import Result, Status, minimize
from m3n.solvers import Solver, resolve_solver


class Trained(Estimator):
    """An estimator that minimises an objective of the family, with a certificate.

    The constructor of a subclass has the parameters below, under these names.
    """

    objective: str
    solver: str | Solver[Any]
    lam: float | None
    C: float | None
    tol: float
    rtol: float
    loss: str | losses.Loss
    max_passes: float | None
    max_seconds: float | None
    n_jobs: int | None
    random_state: int
    verbose: bool
    kernel: str | Callable[..., Any] | None
    approximation: Any
    support_tol: float
    checkpoint: str | os.PathLike[str] | None

    classes_: np.ndarray
    coef_: Any
    kernel_model_: Support | Transformed
    lam_: float
    certificate_: Certificate
    trace_: list[Record]
    status_: Status
    solver_: Solver[Any]
    reason_: str
    origin_: dict[str, str]

    def _check_words(self) -> None:
        """Refuse wrong names and contradictions before the data are read."""
        objective = resolve_objective(self.objective)
        if objective.has_loss:
            resolve_loss(self.loss)
        resolve_lam(self.lam, self.C, 1.0)
        resolve_solver(self.solver)

    def _kernel_settings(self) -> KernelSettings | None:
        """What the parameters say about a kernel, checked; None for linear models."""
        if self.kernel is None and self.approximation is None:
            return None
        if not 0.0 <= self.support_tol < 1.0:
            raise ValueError(f"support_tol must be at least 0 and below 1, got {self.support_tol}")
        if self.kernel is None and isinstance(self.approximation, str):
            raise ValueError(f"approximation={self.approximation!r} of which kernel? give kernel='rbf', for example")
        names = ("kernel", "degree", "gamma", "coef0", "kernel_params", "approximation", "components", "random_state")
        return KernelSettings(*(getattr(self, name) for name in names))

    def _attribute_map(self, kernel: KernelSettings | None, matrix: Matrix, labels: int) -> tuple[FeatureMap, Any]:
        """The map of attributes, linear or with a kernel, and the fitted transformer of an approximation."""
        return (linear_map(matrix, labels), None) if kernel is None else training_map(kernel, matrix, labels)

    def _set_attribute_weights(
        self, kernel: KernelSettings | None, node: FeatureMap, transformer: Any, w: np.ndarray
    ) -> None:
        """Keep what scores attributes: ``coef_``, or ``kernel_model_``; what another fit has left goes."""
        for name in ("coef_", "kernel_model_"):
            vars(self).pop(name, None)
        coef = w.reshape(-1, node.shapes[0][1]) if node.euclidean else w
        if kernel is None:
            self.coef_ = coef
        else:
            self.kernel_model_ = prediction_model(kernel, node, transformer, coef, self.support_tol)

    def _attribute_scores(self, matrix: Matrix, threads: Threads) -> np.ndarray:
        """Scores of all labels at all rows."""
        if hasattr(self, "kernel_model_"):
            return self.kernel_model_.scores(matrix, threads)
        return linear_scores(matrix, self.coef_, threads)

    def _bound_loss(self, classes: np.ndarray) -> losses.Loss | None:
        """The label loss with label numbers for names, if the objective has one."""
        return resolve_loss(self.loss).bind(classes.tolist()) if resolve_objective(self.objective).has_loss else None

    def _settings(self, classes: np.ndarray, weights: np.ndarray | None, count: float) -> dict[str, Any]:
        """Arguments of ``Problem`` besides structure, features and outputs; ``count``: examples, or their weight."""
        objective = resolve_objective(self.objective)
        return {
            "loss": self._bound_loss(classes),
            "lam": resolve_lam(self.lam, self.C, count),
            "sample_weight": weights,
            "temperature": objective.temperature,
            "rescale": objective.rescale,
            "n_jobs": self.n_jobs,
        }

    def _minimize(self, problem: Problem, start: Result | None = None, scale: float = 1.0) -> Result:
        """Train, and warn if that ended before the tolerance was reached; the objective is ``scale`` times J."""
        saved = Checkpoint(self.checkpoint) if self.checkpoint is not None else None
        earlier = saved.load(problem) if saved else None
        with ExitStack() as stack:
            callbacks: list[Any] = [stack.enter_context(ProgressBar())] if self.verbose else []
            result = minimize(
                problem,
                self.solver,
                tol=self.tol / scale,
                rtol=self.rtol,
                seed=self.random_state,
                max_passes=self.max_passes,
                max_seconds=self.max_seconds,
                callbacks=[*callbacks, *([saved] if saved else [])],
                start=None if earlier else start,
                resume=earlier,
            )
        if saved:
            saved.close(result)
        result = _scaled(result, scale)
        if result.status is not Status.TOLERANCE:
            from sklearn.exceptions import ConvergenceWarning

            text = f"{result.status} at a gap of {result.certificate.gap:.3g}, above tol={self.tol:g}"
            text += f" and rtol={self.rtol:g} of the objective" if self.rtol else ""
            warnings.warn(f"training stopped early: {text}", ConvergenceWarning, stacklevel=3)
        return result

    def _keep(self, problem: Problem, result: Result) -> None:
        """How training went, under the names that all estimators share."""
        self.lam_ = problem.lam
        self.certificate_, self.trace_, self.status_ = result.certificate, result.trace, result.status
        self.solver_, self.reason_ = result.solver, result.reason
        self.origin_ = {"m3n": m3n.__version__, "solver": type(result.solver).__name__}  # goes into model files


def _scaled(result: Result, scale: float) -> Result:
    """The result of a problem whose objective is ``scale`` times larger."""
    if scale == 1.0:
        return result
    certificate = result.certificate
    trace = [
        replace(record, primal=scale * record.primal, dual=scale * record.dual, gap=scale * record.gap)
        for record in result.trace
    ]
    certificate = replace(certificate, primal=scale * certificate.primal, dual=scale * certificate.dual)
    return replace(result, certificate=certificate, trace=trace)
