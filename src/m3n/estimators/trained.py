"""What all estimators do alike: the parameters that they share, training, and what becomes of it.

An estimator says how inputs and outputs are read (``_read``), which structure and features they make (``_setup``), and
what the weights are called (``_named_weights``). The rest is here: ``fit`` goes through these steps and gives the
object all of its attributes at once, at the very end, so that a fit that fails changes nothing.
"""

from __future__ import annotations

import copy
import os
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse

import m3n
from m3n import losses
from m3n.cluster import Backend, placed, resolve_backend
from m3n.estimators import files
from m3n.estimators.declaration import Declared, learnt
from m3n.estimators.forms import SEQUENCES, Form
from m3n.estimators.going_on import check_prior
from m3n.estimators.held_out import Score, read_validation, share_to_reach
from m3n.estimators.kernel_scores import KernelSettings, Support, Transformed, prediction_model, training_map
from m3n.estimators.matrices import Matrix, linear_map, linear_scores, observed_scores
from m3n.estimators.partial_labels import train_in_rounds
from m3n.estimators.training import (
    Examples,
    Prepared,
    Setup,
    check_no_loss,
    resolve_lam,
    resolve_objective,
    resolve_strengths,
    weighted_loss,
)
from m3n.estimators.warm_start import Earlier, Start, begin
from m3n.features import Stack
from m3n.packed import Threads
from m3n.problem import Objective, Problem, Sharded
from m3n.run.callbacks import HeldOut, ProgressBar, UntilFinal
from m3n.run.certificate import Certificate, Record
from m3n.run.checkpoint import Checkpoint
from m3n.run.loop import Result, Status, minimize
from m3n.run.radius import plain_radius
from m3n.shards import Shards
from m3n.solvers import Solver, resolve_solver
from m3n.solvers.base import seed_of

USUAL_RTOL = 0.01  # held-out scores stay within 0.1 of those at a tenth of it: docs/choosing.md
# parameters in their places, between which estimators have their own
TRAINING = (
    "objective", "solver", "lam", "tol", "loss", "max_passes", "max_seconds", "rtol", "n_jobs", "random_state",
    "verbose",
)  # fmt: skip
KERNEL = (
    "kernel", "degree", "gamma", "coef0", "kernel_params", "approximation", "components", "support_tol", "checkpoint",
    "backend",
)  # fmt: skip
# what may change between two fits of which the second begins where the first one ended
FREE = (
    "solver", "lam", "C", "tol", "rtol", "max_passes", "max_seconds", "n_jobs", "random_state", "verbose", "warm_start",
    "checkpoint", "backend", "validation", "patience", "stop",
)  # fmt: skip


class Trained(Declared, ABC):
    """An estimator that minimises an objective of the family, with a certificate.

    Parameters
    ----------
    objective : {"margin", "crf", "softmax_margin", "slack"}
        Training objective: the max-margin Markov network (structural SVM); the conditional random field, that is the
        mean negative log-likelihood; the same with the loss in the exponent; or the structural SVM with rescaled
        slacks, in which the loss multiplies the margin instead of being the margin.
    solver : str or Solver
        "auto", a solver's name, or a solver object.
    lam : float or None
        Weight of the regulariser lam/2 |w|^2 against the mean loss; None means 1/n. The sum of sample weights, if there
        are any, takes the place of n.
    tol : float
        Stop when the duality gap is at most this, if that comes before ``rtol``.
    loss : {"hamming", "normalized_hamming"} or Loss
        Label loss of every objective but "crf": wrong labels, wrong labels / length, or an object of ``m3n.losses``,
        which may speak of labels by their names. Another one than the default is refused with "crf".
    max_passes : float or None
        Stop after so many passes over the data.
    max_seconds : float or None
        Stop after this much time; compilation does not count.
    rtol : float or None
        Stop when the duality gap is at most this part of the objective, if that comes before ``tol``. None means 0.01
        beside the usual ``tol``: no weights are better by more than 1 %. Beside another ``tol`` it means 0: whoever
        names a gap gets that gap.
    n_jobs : int or None
        Threads; None takes every core.
    random_state : int, RandomState, Generator or None
        Seed of approximations, and of a solver that draws random numbers, if it is given by its name. Every fit draws
        another one from a generator of NumPy, and from the system for None.
    verbose : bool
        Show a progress bar.
    C : float or None
        Another way to give ``lam``: C = 1/(lam n), as in support vector machines.
    l1 : float
        Weight of the penalty l1 |w|_1, which makes weights exactly zero. For ``objective="crf"`` and "softmax_margin".
    strengths : mapping from str to float, or None
        How strongly groups of weights are regularised, relative to ``lam``, each 1 if it is not named. An l1 penalty
        counts sqrt(strength) times.
    warm_start : bool
        Whether a further ``fit`` on the same data goes on with the last one, or with another ``lam`` begins where that
        ended; the objective is never above that of the weights it begins with. On other data, or with another
        objective, it begins anew, which ``reason_`` and the log tell.
    kernel : str, callable or None
        None for scores that are linear in the attributes. Else a kernel on the inputs of a position: "linear", "poly",
        "rbf", one of scikit-learn's pairwise kernels, a function of two matrices that returns the matrix of kernel
        values, or "precomputed": every position of X then holds its kernel values with all training positions.
    degree, gamma, coef0 : float
        Of "poly" and "rbf": (gamma <x, z> + coef0)^degree and exp(-gamma \\|x - z\\|^2). gamma may be "scale", which
        is 1 / (attributes * variance of the inputs), or "auto", 1 / attributes.
    kernel_params : mapping or None
        Further arguments of one of scikit-learn's kernels, or of the function.
    approximation : {"nystroem", "random"}, transformer or None
        None trains with the exact kernel. For more data: Nystroem features or random features of the kernel ("rbf" and
        "poly"), or a transformer of scikit-learn's kind, which takes the place of the kernel.
    components : int
        How many features an approximation has.
    support_tol : float
        A kernel model keeps the inputs that count. Those with the smallest coefficients are left out as long as that
        changes the weights by no more than this part of their norm.
    class_weight : mapping, "balanced" or None
        What an error costs by the right label, as in ``m3n.losses.Hamming``: with "hamming" and "normalized_hamming",
        whose part it becomes, and not with "crf", which has no loss.
    checkpoint : path or None
        A file to which training is saved every minute, and when it stops early. A fit that finds the file goes on
        there; one that reaches its tolerance removes it.
    backend : {"threads", "ray"}, Backend or None
        Where training runs: on threads of this process, which None means too, or on workers of a Ray cluster, as
        ``m3n.Ray`` says.
    prior : Trained or None
        A fitted model of the same kind to go on from: lam/2 |w - w0|^2 takes the place of lam/2 |w|^2, where w0 are its
        weights, found by the names of attributes and labels. Its attributes and labels are kept, whether the new data
        have them or not; new ones begin at 0. Not with a kernel, ``l1``, "slack", shards or workers elsewhere.
    validation : pair (X, y), float or None
        Examples on which ``score`` is watched after every certificate, or the share of the training examples that is
        held out for that, drawn by ``random_state``. The weights with the best score are kept, and ``certificate_`` is
        theirs. The trace has the scores, as ``metrics["held_out"]``.
    patience : int
        With ``validation``: training stops after so many scores in a row that are not better than the best one.
    stop : {"gap", "predictions"} or float
        With "predictions" training goes on, whatever the gap is, until ``certify`` proves 99 % of the predictions for
        ``validation`` to be those of the exact optimum, or another share that is given as a number. The score does not
        matter then, and y of ``validation`` is not used.

    Attributes
    ----------
    classes_ : array (labels,)
        The labels, sorted.
    coef_ : array (attributes, labels)
        Weights of the attributes. Not there with a kernel.
    kernel_model_ : Support or Transformed
        With a kernel: the inputs that count with their coefficients, ``inputs``, ``coefficients``, ``size``, ``cost``
        of a prediction and ``error`` of leaving others out; or the transformer and the weights of its features.
    certificate_ : Certificate
        primal, dual and gap of the training objective, whichever it is: J by an exact pass, and the dual value of a
        feasible point, at a positive temperature with its entropy. No weights can be better by more than the gap. None
        for a model that another programme has trained (``m3n.compat``).
    trace_ : list of Record
        How the certificate came about.
    status_ : Status
        Why training stopped.
    solver_ : Solver
        The solver that was used.
    reason_ : str
        Why ``solver="auto"`` chose it, and how a warm start began.
    radius_ : float
        The optimal weights are at most so far from those of the model, in the norm of the regulariser.
    lam_ : float
        The regularisation that was used.
    n_features_in_ : int
        Number of attributes.
    """

    objective: str = "margin"
    solver: str | Solver[Any] = "auto"
    lam: float | None = None
    tol: float = 1e-3
    loss: str | losses.Loss = "hamming"
    max_passes: float | None = None
    max_seconds: float | None = None
    rtol: float | None = None
    n_jobs: int | None = None
    random_state: int | np.random.RandomState | np.random.Generator | None = 0
    verbose: bool = False
    C: float | None = None
    l1: float = 0.0
    strengths: Mapping[str, float] | None = None
    warm_start: bool = False
    kernel: str | Callable[..., Any] | None = None
    degree: float = 3
    gamma: float | str = "scale"
    coef0: float = 1.0
    kernel_params: Mapping[str, Any] | None = None
    approximation: Any = None
    components: int = 500
    support_tol: float = 1e-6
    class_weight: Mapping[Any, float] | str | None = None
    checkpoint: str | os.PathLike[str] | None = None
    backend: str | Backend | None = None
    prior: Any = None
    validation: Any = None
    patience: int = 5
    stop: str | float = "gap"

    classes_: np.ndarray = learnt()
    coef_: Any = learnt("attributes", "labels", weights=True)
    kernel_model_: Support | Transformed = learnt()
    reader_: Any = learnt()
    n_features_in_: int = learnt()
    lam_: float = learnt()
    certificate_: Certificate = learnt()
    trace_: list[Record] = learnt()
    status_: Status = learnt()
    solver_: Solver[Any] = learnt()
    reason_: str = learnt()
    radius_: float = learnt()
    origin_: dict[str, str] = learnt()

    _form: ClassVar[Form] = SEQUENCES
    _has_weights: ClassVar[bool] = True
    _holding_data = ("validation", "prior")
    _has_names: ClassVar[bool] = True  # of attributes, beside its weights
    _reader: ClassVar[Any]  # the class of what reads X
    _groups: ClassVar[tuple[str, ...]] = ()  # of weights, for ``strengths``
    _strength: ClassVar[float] = 1.0  # lam in units of 1/n, where none is given
    _outputs: ClassVar[np.ndarray | None] = None  # the labels of a position, where these are not the classes
    _last: Earlier | None = None  # where a warm start begins

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file that ``m3n.load`` reads; what is code in it is refused.

        Parameters
        ----------
        path : path
            Where to; an existing file is replaced in one step.
        """
        self._check_fitted()
        files.save(self, path)

    def _repr_html_(self) -> str:
        """For notebooks: parameters and, once there is a model, what it is and how well it was trained."""
        from m3n.estimators.notebook import estimator_page

        return estimator_page(self)

    def __sklearn_tags__(self) -> Any:
        """scikit-learn's description of an estimator: it needs y, and takes lists of structures, not one matrix."""
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags

    def __sklearn_clone__(self) -> Self:
        """A new estimator with the same parameters; the model to go on from stays as it is."""
        from sklearn.base import BaseEstimator

        made: Self = BaseEstimator.__sklearn_clone__(self)
        made.prior = self.prior
        return made

    def problem(self, X: Any, y: Any = None) -> Objective:
        """What ``fit`` would minimise, for ``m3n.minimize`` and ``m3n.path``.

        Parameters
        ----------
        X : examples, or Shards
            As in ``fit``. The problem of shards has workers, or threads, which end with it: use it in a ``with`` block.
        y : outputs
            As in ``fit``; shards have their own.

        Returns
        -------
        Objective
            ``Problem``, or for shards an objective that reads them.
        """
        if not isinstance(X, Shards):
            problem = self._training_problem(X, y)
            problem.backend = self.backend
            return problem
        self._check_words()
        return self._sharded(self._source(X)[0])

    # what an estimator must say, or may

    @abstractmethod
    def _read(self, reader: Any, X: Any, y: Any) -> Examples:
        """The examples, read by a new reader."""

    @abstractmethod
    def _setup(self, examples: Examples, node: Any) -> Setup:
        """Structure and features of examples, around the map that ``_attribute_map`` made."""

    @abstractmethod
    def _named_weights(self, features: Stack, w: np.ndarray) -> dict[str, Any]:
        """Weights by the names of attributes; those of the map of attributes, as they are, as ``coef_``."""

    def _placed_weights(self, features: Stack, w: np.ndarray) -> dict[str, Any]:
        """The same arrays with every weight as it is at its own place; another one where names share weights."""
        return self._named_weights(features, w)

    def _packed(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """What a file must hold besides parameters, reader and declared arrays; refuses what it cannot hold."""
        return {}, {}

    def _unpacked(self, content: files.Content) -> dict[str, Any]:
        """Attributes from what ``_packed`` wrote, after checking what declarations cannot say."""
        return {}

    # training

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> Self:
        self._check_words()
        if isinstance(X, Shards):
            return self._fit_shards(X, y, sample_weight)
        kernel, reader = self._kernel_settings(), self._reader()
        examples = self._read(reader, X, y).weighted(sample_weight, self._form.example)
        examples, score = self._hold_out(examples, reader)
        known = self._known(examples, reader.width) if self.warm_start else None
        if examples.allowed is not None:
            return self._fit_in_rounds(examples, reader)
        prepared = self._prepare(kernel, reader, examples)
        del examples  # observed pairs have made their own of it
        watch = [self._watch(prepared, score)] if score else []
        result = self._minimize(prepared.problem, self._start(prepared.problem, known), prepared.setup.scale, watch)
        last = None if known is None else Earlier(known, result)
        return self._became(self._learnt_from(prepared, result), _scaled(result, prepared.setup.scale), last)

    def _watch(self, prepared: Prepared, score: Score) -> HeldOut | UntilFinal:
        """What looks at held-out data on the way."""

        def share(w: np.ndarray, radius: float) -> float:
            return score(self._with(self._learnt_at(prepared, w) | {"radius_": radius}))

        enough = share_to_reach(self.stop, self.validation, self)
        if enough is not None:
            return UntilFinal(prepared.problem, share, enough)
        return HeldOut(lambda w: score(self._with(self._learnt_at(prepared, w))), self.patience)

    def _prepare(self, kernel: KernelSettings | None, reader: Any, examples: Examples) -> Prepared:
        """Everything before minimisation."""
        node, transformer = self._attribute_map(kernel, examples)
        setup = self._setup(examples, node)
        problem = self._problem(examples, setup)
        return Prepared(problem, setup, kernel, node, transformer, _known_before(reader, examples, setup))

    def _learnt_from(self, prepared: Prepared, result: Result, lam: float | None = None) -> dict[str, Any]:
        """What a model has learnt once the problem, or that of another lam, is minimised."""
        lam = prepared.problem.lam if lam is None else lam
        return self._learnt_at(prepared, result.w) | {"lam_": lam * prepared.setup.scale}

    def _learnt_at(self, prepared: Prepared, w: np.ndarray) -> dict[str, Any]:
        """The same but for lam, with any weights."""
        w = prepared.problem.absolute(w)
        fitted = prepared.learnt | self._named_weights(prepared.setup.features, w)
        coef = fitted.pop("coef_")
        return fitted | self._attribute_weights(prepared.kernel, prepared.node, prepared.transformer, coef)

    def _prepared(self, X: Any, y: Any) -> Prepared:
        """The training problem of examples in memory, and what turns weights for it into models."""
        self._check_words()
        kernel, reader = self._kernel_settings(), self._reader()
        examples = self._read(reader, X, y).weighted(None, self._form.example)
        if examples.allowed is not None:
            raise ValueError("y has unknown labels, of which fit makes several problems: there is no single one")
        return self._prepare(kernel, reader, examples)

    def _trained(self, prepared: Prepared, result: Result, lam: float) -> Self:
        """A model of its own from the outcome of a run at some lam, in the units of the problem."""
        model = copy.copy(self)
        return model._became(self._learnt_from(prepared, result, lam), _scaled(result, prepared.setup.scale), None)

    def _fit_in_rounds(self, examples: Examples, reader: Any) -> Self:
        """The same where some labels are unknown: the best that a few convex problems, one after another, lead to."""
        node, _ = self._attribute_map(None, examples)
        setup = self._setup(examples, node)
        result, w, rounds = train_in_rounds(self, examples, setup)
        fitted = _known_before(reader, examples, setup) | self._named_weights(setup.features, w)
        return self._became(fitted | {"lam_": self._lam_of(examples), "rounds_": rounds}, result, None)

    def _fit_shards(self, shards: Shards, y: Any, sample_weight: Any) -> Self:
        """The same with examples that stay in shards."""
        if y is not None or sample_weight is not None:
            raise ValueError("shards have labels and weights of their own: leave y and sample_weight away")
        if self.prior is not None:
            raise ValueError("prior is for data in memory: shards number their attributes themselves")
        if self.validation is not None:
            raise ValueError("validation is for data in memory, not for shards: leave it away")
        source, fitted = self._source(shards)
        with self._sharded(source) as problem:
            known = self._known_shards(shards) if self.warm_start else None
            result = self._minimize(problem, self._start(problem, known))
            fitted |= {"lam_": problem.lam} | self._named_weights(source.features, result.w)
        fitted |= self._attribute_weights(None, source.node, None, fitted.pop("coef_"))
        return self._became(fitted, result, None if known is None else Earlier(known, result))

    def _sharded(self, source: Any) -> Sharded:
        engine = resolve_backend(self.backend).engine(lambda lanes: source, self.n_jobs)
        lam = resolve_lam(self.lam, self.C, source.weight_sum)
        return Sharded(engine, lam, l1=self.l1, n_jobs=self.n_jobs)

    def _became(self, fitted: dict[str, Any], result: Result, last: Earlier | None) -> Self:
        """Take over, all at once, what was learnt."""
        self._take(fitted | history(result))
        self._last = last
        return self

    def _take(self, fitted: dict[str, Any]) -> None:
        for name in ("coef_", "kernel_model_", "feature_names_in_"):  # what another fit has left
            vars(self).pop(name, None)
        vars(self).update(fitted)

    def _with(self, fitted: dict[str, Any]) -> Self:
        """A model on trial."""
        model = copy.copy(self)
        model._take(fitted)
        return model

    def _hold_out(self, examples: Examples, reader: Any) -> tuple[Examples, Score | None]:
        """The examples to learn from, and the score of a model on those that are held out, if there are any."""
        given = read_validation(self.validation, self.patience)
        if given is None:
            return examples, None
        if isinstance(given, float):
            raise ValueError(f"validation={given:g} is for a SequenceTagger; give a pair (X, y) that is held out")
        if share_to_reach(self.stop, self.validation, self) is not None:
            return examples, lambda model: model.certify(given[0], model.radius_).share
        return examples, lambda model: model.score(*given)

    def _source(self, shards: Shards) -> tuple[Any, dict[str, Any]]:
        """The examples of shards, for estimators that can be trained on them, and what is learnt by reading alone."""
        raise TypeError(f"{type(self).__name__} cannot be trained on shards; SequenceTagger can")

    def _training_problem(self, X: Any, y: Any) -> Problem:
        """What ``fit`` minimises on these examples, in memory."""
        return self._prepared(X, y).problem

    def _check_words(self) -> None:
        """Refuse wrong names and contradictions before the data are read."""
        if resolve_objective(self.objective).has_loss:
            weighted_loss(self.loss, self.class_weight)
        else:
            check_no_loss(self.objective, self.loss, type(self).loss, self.class_weight)
        check_prior(self)
        read_validation(self.validation, self.patience)
        share_to_reach(self.stop, self.validation, self)
        resolve_lam(self.lam, self.C, 1.0)
        resolve_solver(self.solver)
        resolve_strengths(self.strengths, self._groups)

    def _kernel_settings(self) -> KernelSettings | None:
        """What the parameters say about a kernel, checked; None for linear models."""
        if self.kernel is None and self.approximation is None:
            return None
        if not 0.0 <= self.support_tol < 1.0:
            raise ValueError(f"support_tol must be at least 0 and below 1, got {self.support_tol}")
        if self.kernel is None and isinstance(self.approximation, str):
            raise ValueError(f"approximation={self.approximation!r} of which kernel? give kernel='rbf', for example")
        return KernelSettings(
            self.kernel, self.degree, self.gamma, self.coef0, self.kernel_params, self.approximation, self.components,
            seed=seed_of(self.random_state),
        )  # fmt: skip

    def _attribute_map(self, kernel: KernelSettings | None, examples: Examples) -> tuple[Any, Any]:
        """The map of attributes, linear or with a kernel, and the fitted transformer of an approximation.

        None instead of a map if ``_setup`` makes one of the pairs that occur.
        """
        matrix, labels = examples.inputs.matrix, len(examples.classes)
        return (linear_map(matrix, labels), None) if kernel is None else training_map(kernel, matrix, labels)

    def _bound_loss(self, classes: np.ndarray) -> losses.Loss | None:
        """The label loss with label numbers for names, if the objective has one."""
        if not resolve_objective(self.objective).has_loss:
            return None
        return weighted_loss(self.loss, self.class_weight).bind(
            (classes if self._outputs is None else self._outputs).tolist()
        )

    def _lam_of(self, examples: Examples) -> float:
        """The regularisation of these examples."""
        lam = resolve_lam(self.lam, self.C, examples.count)
        return self._usual_strength() / examples.count if lam is None else lam

    def _problem(self, examples: Examples, setup: Setup, pull: np.ndarray | None = None) -> Problem:
        """What is minimised; ``pull`` takes the place of the prior."""
        objective, lam = resolve_objective(self.objective), self._lam_of(examples)
        if pull is None and examples.old is not None:
            pull = examples.old.weights(self._placed_weights, setup.features)
        return Problem(
            setup.structure,
            setup.features,
            examples.outputs if setup.outputs is None else setup.outputs,
            loss=self._bound_loss(examples.classes) if setup.loss is None or not objective.has_loss else setup.loss,
            lam=lam / setup.scale,
            l1=self.l1,
            sample_weight=examples.weights if setup.weights is None else setup.weights,
            temperature=objective.temperature,
            rescale=objective.rescale,
            n_jobs=self.n_jobs,
            prior=pull,
        )

    def _usual_strength(self) -> float:
        """lam in units of 1/n, where none is given."""
        return self._strength

    def _relative(self) -> float:
        """rtol, or what its absence means."""
        if self.stop != "gap":
            return 0.0
        if self.rtol is not None:
            return self.rtol
        return USUAL_RTOL if self.tol == type(self).tol else 0.0

    @property
    def _absolute(self) -> float:
        """tol, unless the gap is not what ends training."""
        return self.tol if self.stop == "gap" else 0.0

    def _known(self, examples: Examples, width: int) -> dict[str, Any]:
        """What a warm start must find unchanged: the data, and every parameter that shapes the dual problem."""
        data = {"labels": examples.classes.tolist(), "attributes": width, "examples": len(examples.outputs)}
        return data | {"data": examples.fingerprint()} | self._shaping

    def _known_shards(self, shards: Shards) -> dict[str, Any]:
        data = {"labels": shards.classes.tolist(), "attributes": shards.width, "examples": int(shards.sequences.sum())}
        return data | {"data": shards.digest} | self._shaping

    @property
    def _shaping(self) -> dict[str, Any]:
        """The parameters that shape the dual problem."""
        return {name: value for name, value in self.get_params(deep=False).items() if name not in FREE}

    def _start(self, problem: Objective, known: dict[str, Any] | None) -> Start:
        """Where this fit begins."""
        if known is None or self._last is None:
            return Start(self.solver)
        solver = resolve_solver(self.solver, self.random_state, problem, self._absolute, self._relative()).solver
        return begin(self._last, known, problem, self.solver, solver)

    def _minimize(
        self,
        problem: Objective,
        start: Start | None = None,
        scale: float = 1.0,
        watch: Sequence[HeldOut | UntilFinal] = (),
    ) -> Result:
        """Train, and warn if that ended before the tolerance was reached; the objective is ``scale`` times J."""
        start = Start(self.solver) if start is None else start
        saved = Checkpoint(self.checkpoint) if self.checkpoint is not None else None
        with ExitStack() as stack:
            there = stack.enter_context(placed(problem, self.backend if isinstance(problem, Problem) else None))
            earlier = saved.load(there) if saved else None
            callbacks: list[Any] = [stack.enter_context(ProgressBar())] if self.verbose else []
            result = minimize(
                there,
                self.solver if earlier else start.solver,
                tol=self._absolute / scale,
                rtol=self._relative(),
                seed=self.random_state,
                max_passes=self.max_passes,
                max_seconds=self.max_seconds,
                callbacks=[*callbacks, *([saved] if saved else []), *watch],
                start=None if earlier else start.start,
                resume=earlier or start.resume,
            )
        if saved:
            saved.close(result)
        result = result if earlier else start.explained(result)
        if result.status not in (Status.TOLERANCE, Status.HELD_OUT, Status.FINAL):
            from sklearn.exceptions import ConvergenceWarning

            text = f"{result.status} at a gap of {scale * result.certificate.gap:.3g}, "
            text += f"above tol={self.tol:g}" if self.stop == "gap" else "before enough predictions were final"
            text += f" and rtol={self._relative():g} of the objective" if self._relative() else ""
            warnings.warn(f"training stopped early: {text}", ConvergenceWarning, stacklevel=4)
        return result

    def _attribute_weights(self, kernel: KernelSettings | None, node: Any, transformer: Any, w: Any) -> dict[str, Any]:
        """What scores attributes: ``coef_``, or ``kernel_model_``."""
        if node is None:  # pairs that occur are a matrix already
            return {"coef_": w}
        coef = w.reshape(-1, node.shapes[0][1]) if node.euclidean else w
        if kernel is None:
            return {"coef_": coef}
        return {"kernel_model_": prediction_model(kernel, node, transformer, coef, self.support_tol)}

    # prediction

    def _answers(
        self, X: Any, marginals: bool, temperature: float | None = None
    ) -> tuple[list[list[Any]], list[np.ndarray]]:
        """The labels of every example as files have them and, if asked for, the probabilities of all classes."""
        model: Any = self
        warmth = 1.0 if temperature is None else temperature
        return self._form.predicted(self, X), model.predict_marginals(X, warmth) if marginals else []

    @property
    def _linear(self) -> bool:
        """Whether attributes have weights; a kernel compares inputs instead."""
        return "coef_" in vars(self)

    def _known_radius(self) -> float:
        """How far the optimum can be from the weights; refused where nothing is known."""
        if self.certificate_ is None:
            raise ValueError("another programme has trained this model: there is no certificate, and nothing is proven")
        if self.certificate_.of:
            raise ValueError(f"nothing can be proven, as the certificate is one of {self.certificate_.of} only")
        known = vars(self).get("radius_")
        radius = plain_radius(self.certificate_, self.lam_) if known is None else known
        if not np.isfinite(radius):
            raise ValueError(f"nothing can be proven with lam={self.lam_:g}: the optimum may be anywhere")
        return radius

    def _attribute_scores(self, matrix: Matrix, threads: Threads) -> np.ndarray:
        """Scores of all labels at all rows."""
        if not self._linear:
            return self.kernel_model_.scores(matrix, threads)
        scores = observed_scores if scipy.sparse.issparse(self.coef_) else linear_scores
        return scores(matrix, self.coef_, threads)


def _known_before(reader: Any, examples: Examples, setup: Setup) -> dict[str, Any]:
    """What a model has learnt before there are weights."""
    return {"classes_": examples.classes} | files.known_inputs(reader) | {**examples.learnt, **setup.learnt}


def history(result: Result) -> dict[str, Any]:
    """How training went, under the names that all estimators share."""
    return {
        "certificate_": result.certificate,
        "trace_": result.trace,
        "status_": result.status,
        "solver_": result.solver,
        "reason_": result.reason,
        "radius_": result.radius,
        "origin_": {"m3n": m3n.__version__, "solver": type(result.solver).__name__},  # goes into model files
    }


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
