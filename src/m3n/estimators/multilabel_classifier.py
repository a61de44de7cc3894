"""Several labels per example: an M3N or CRF over binary variables, with a scikit-learn interface."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from m3n import losses
from m3n.estimators import multilabel_files
from m3n.estimators.decoding import check_temperature
from m3n.estimators.indicators import add_ones, read_inputs, read_outputs
from m3n.estimators.kernel_scores import KernelSettings
from m3n.estimators.trained import Trained
from m3n.estimators.training import read_weights, resolve_strengths
from m3n.features import BinaryLabels, FeatureMap, Scaled, Stack, Table
from m3n.packed import Threads
from m3n.packed.threads import single_threaded_blas
from m3n.problem import Problem
from m3n.solvers import Solver
from m3n.structures import Multilabel, Parts, multilabel_pairs

GROUPS = ("attributes", "pairs")


class MultilabelClassifier(Trained):
    """Any number of labels for every example, chosen together, trained to a certified optimum.

    Every label that an example has scores <x, W[:, l]>, and every pair of labels scores by whether they are on or off.

    Parameters
    ----------
    pairs : {"full", "tree", "none"}
        Which pairs of labels have scores: all, which takes time exponential in the number of labels; a tree of the
        pairs that say most about one another (Chow and Liu); or none, that is one classifier per label.
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
        Stop when the duality gap is at most this.
    loss : {"hamming", "normalized_hamming"} or Loss
        Label loss of every objective but "crf": wrong labels, wrong labels / number of labels, or an object of
        ``m3n.losses`` that speaks of the values 0 and 1.
    max_passes : float or None
        Stop after so many passes over the data.
    max_seconds : float or None
        Stop after this much time.
    rtol : float
        Stop when the duality gap is at most this part of the objective, if that comes before ``tol``.
    n_jobs : int or None
        Threads; None takes every core.
    random_state : int
        Seed of a solver that draws random numbers, if it is given by its name.
    verbose : bool
        Show a progress bar.
    intercept : bool
        Whether every label has a score that does not depend on x, regularised like the weight of an attribute.
    C : float or None
        Another way to give ``lam``: C = 1/(lam n), as in support vector machines.
    l1 : float
        Weight of the penalty l1 |w|_1, which makes weights exactly zero. For ``objective="crf"`` and "softmax_margin".
    strengths : mapping from str to float, or None
        How strongly groups of weights are regularised, relative to ``lam``: "attributes" (with the intercept) and
        "pairs", each 1 if it is not named. An l1 penalty counts sqrt(strength) times.
    kernel : str, callable or None
        A kernel on the inputs, as in ``SequenceTagger``; it takes the place of ``intercept``, too.
    degree, gamma, coef0 : float
        Of the kernel.
    kernel_params : mapping or None
        Further arguments of the kernel.
    approximation : {"nystroem", "random"}, transformer or None
        Approximate features of the kernel.
    components : int
        How many.
    support_tol : float
        What a kernel model may forget, relative to the norm of its weights.
    checkpoint : path or None
        A file to which training is saved every minute, and when it stops early. A fit that finds the file goes on
        there; one that reaches its tolerance removes it.

    Attributes
    ----------
    classes_ : array (labels,)
        The labels, sorted; 0, 1, ... if Y was an indicator matrix.
    coef_ : array (attributes, labels)
        Weights of the attributes. Not there with a kernel.
    kernel_model_ : Support or Transformed
        With a kernel: what prediction keeps.
    intercept_ : array (labels,)
        Scores of the labels that do not depend on x.
    pairs_ : array of int (m, 2)
        Pairs of labels that have scores.
    tables_ : array (m, 2, 2)
        Their scores: [value of the first, value of the second].
    certificate_ : Certificate
        primal, dual and gap of the training objective. No weights can be better by more than the gap.
    trace_ : list of Record
        How the certificate came about.
    status_ : Status
        Why training stopped.
    solver_ : Solver
        The solver that was used.
    reason_ : str
        Why ``solver="auto"`` chose it.
    lam_ : float
        The regularisation that was used.
    n_features_in_ : int
        Number of attributes.

    Examples
    --------
    >>> from m3n.estimators import MultilabelClassifier
    >>> X = [[1.0, 0.0], [1.0, 0.2], [0.0, 1.0], [0.1, 1.0]]
    >>> Y = [{"sea", "sky"}, {"sea", "sky"}, {"town"}, {"sky", "town"}]
    >>> model = MultilabelClassifier(pairs="tree", lam=0.01).fit(X, Y)
    >>> model.classes_.tolist()
    ['sea', 'sky', 'town']
    >>> model.predict([[0.9, 0.1]])
    array([[1, 1, 0]])
    """

    _estimator_type = "classifier"  # for scikit-learn before 1.6

    def __init__(
        self,
        pairs: str = "full",
        objective: str = "margin",
        solver: str | Solver[Any] = "auto",
        lam: float | None = None,
        tol: float = 1e-3,
        loss: str | losses.Loss = "hamming",
        max_passes: float | None = None,
        max_seconds: float | None = None,
        rtol: float = 0.0,
        n_jobs: int | None = None,
        random_state: int = 0,
        verbose: bool = False,
        intercept: bool = True,
        C: float | None = None,
        l1: float = 0.0,
        strengths: Mapping[str, float] | None = None,
        kernel: str | Callable[..., Any] | None = None,
        degree: float = 3,
        gamma: float | str = "scale",
        coef0: float = 1.0,
        kernel_params: Mapping[str, Any] | None = None,
        approximation: Any = None,
        components: int = 500,
        support_tol: float = 1e-6,
        checkpoint: str | os.PathLike[str] | None = None,
    ):
        self.pairs = pairs
        self.objective = objective
        self.solver = solver
        self.lam = lam
        self.tol = tol
        self.loss = loss
        self.max_passes = max_passes
        self.max_seconds = max_seconds
        self.rtol = rtol
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.intercept = intercept
        self.C = C
        self.l1 = l1
        self.strengths = strengths
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.approximation = approximation
        self.components = components
        self.support_tol = support_tol
        self.checkpoint = checkpoint

    def fit(self, X: Any, Y: Any, sample_weight: Any = None) -> MultilabelClassifier:
        """Train on labelled examples.

        Ctrl-C ends training early; the model then holds the best weights so far, with their certificate.

        Parameters
        ----------
        X : array or sparse matrix (examples, attributes)
            Inputs.
        Y : array or sparse matrix (examples, labels), or sets of labels
            Zeros and ones, or for every example the labels that it has.
        sample_weight : array (examples,), optional
            How often every example counts: 2 is the same as the example twice, 0 leaves it out.

        Returns
        -------
        MultilabelClassifier
            The fitted estimator itself.
        """
        self._check_words()
        kernel, factors = self._kernel_settings(), resolve_strengths(self.strengths, GROUPS)
        matrix = read_inputs(X)
        classes, indicator = read_outputs(Y, matrix.shape[0])
        width, weights = matrix.shape[1], read_weights(sample_weight, len(indicator), "example")
        if weights is not None:
            kept = weights > 0.0
            matrix, indicator, weights = matrix[kept], indicator[kept], weights[kept]
        pairs = multilabel_pairs(indicator, self.pairs, weights)
        structure = Multilabel(len(indicator), len(classes), pairs)
        node, transformer = self._attribute_map(
            kernel, add_ones(matrix) if self.intercept and kernel is None else matrix, len(classes)
        )
        features = _features(node, len(pairs), factors)
        count = len(indicator) if weights is None else float(weights.sum())
        settings = self._settings(np.arange(2), weights, count)
        problem = Problem(structure, features, indicator, l1=self.l1, **settings)
        result = self._minimize(problem)
        self.classes_, self.pairs_, self.n_features_in_ = classes, pairs, width
        self._set_weights(features, result.w, kernel, node, transformer)
        self._keep(problem, result)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """The labels with the highest score together, as an indicator matrix (examples, labels) of integers.

        Parameters
        ----------
        X : array or sparse matrix (examples, attributes)
            Inputs.
        """
        structure, theta, threads = self._scores(X)
        return structure.hard(theta, threads)[1].reshape(-1, len(self.classes_)) if structure else self._nothing(int)

    def predict_sets(self, X: Any) -> list[set[Any]]:
        """The same labels by their names, one set per example.

        Parameters
        ----------
        X : array or sparse matrix (examples, attributes)
            Inputs.
        """
        return [set(self.classes_[row > 0].tolist()) for row in self.predict(X)]

    def predict_proba(self, X: Any, temperature: float = 1.0) -> np.ndarray:
        """Probability of every label under exp(score / temperature), shape (examples, labels).

        Parameters
        ----------
        X : array or sparse matrix (examples, attributes)
            Inputs.
        temperature : float
            Small values sharpen the distribution towards the prediction, large ones flatten it.
        """
        check_temperature(temperature)
        structure, theta, threads = self._scores(X)
        if structure is None:
            return self._nothing(float)
        _, (node, *_) = structure.soft(theta, temperature, threads)
        return node[:, 1].reshape(-1, len(self.classes_)).copy()

    def decision_function(self, X: Any) -> np.ndarray:
        """By how much the best labels with a label on score above the best with it off, shape (examples, labels).

        Positive where ``predict`` says 1. It takes one prediction per label.

        Parameters
        ----------
        X : array or sparse matrix (examples, attributes)
            Inputs.
        """
        structure, theta, threads = self._scores(X)
        if structure is None:
            return self._nothing(float)
        best, labelling = structure.hard(theta, threads)
        node, chosen = theta[0].reshape(len(best), -1, 2), labelling.reshape(len(best), -1)
        margins, everyone = np.empty(chosen.shape), np.arange(len(best))
        for label in range(chosen.shape[1]):
            kept = node[:, label].copy()
            node[everyone, label, chosen[:, label]] = -np.inf
            margins[:, label] = best - structure.hard(theta, threads)[0]
            node[:, label] = kept
        return np.where(chosen == 1, margins, -margins)

    def score(self, X: Any, Y: Any, sample_weight: Any = None) -> float:
        """Share of examples of which all labels are right, as scikit-learn's multilabel classifiers have it.

        Parameters
        ----------
        X : array or sparse matrix (examples, attributes)
            Inputs.
        Y : array or sparse matrix (examples, labels), or sets of labels
            The right labels.
        sample_weight : array (examples,), optional
            How often every example counts.
        """
        predicted = self.predict(X)
        _, gold = read_outputs(Y, len(predicted), self.classes_)
        return float(np.average((predicted == gold).all(axis=1), weights=sample_weight))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file that ``m3n.load`` reads.

        Parameters
        ----------
        path : path
            Where to; an existing file is replaced in one step.
        """
        self._check_fitted()
        multilabel_files.save(self, path)

    def __sklearn_tags__(self) -> Any:
        """scikit-learn's description of an estimator: a classifier with several labels."""
        from sklearn.utils import ClassifierTags

        tags = super().__sklearn_tags__()
        tags.estimator_type = "classifier"
        tags.classifier_tags = ClassifierTags(multi_class=False, multi_label=True)
        tags.target_tags.required = True
        tags.input_tags.sparse = True
        return tags

    def _scores(self, X: Any) -> tuple[Multilabel | None, Parts, Threads]:
        """The scores of some examples; no structure if there are none."""
        self._check_fitted()
        matrix, threads = read_inputs(X, self.n_features_in_), Threads(self.n_jobs)
        if not matrix.shape[0]:
            return None, (), threads
        structure = Multilabel(matrix.shape[0], len(self.classes_), self.pairs_)
        node = np.zeros(structure.shapes[0])
        with single_threaded_blas():
            node[:, 1] = (self._attribute_scores(matrix, threads) + self.intercept_).ravel()
        return structure, (node, *self.tables_.copy()), threads

    def _set_weights(
        self, features: Stack, w: np.ndarray, kernel: KernelSettings | None, node: FeatureMap, transformer: Any
    ) -> None:
        own, *tables = (
            part.weights(piece) if isinstance(part, Scaled) else piece
            for part, piece in zip(features.maps, features.split(w), strict=True)
        )
        labels = len(self.classes_)
        self.intercept_ = np.zeros(labels)
        if kernel is None and self.intercept:
            own, self.intercept_ = own[:-labels], own[-labels:].copy()
        self._set_attribute_weights(kernel, node, transformer, own)
        self.tables_ = np.array(tables).reshape(-1, 2, 2)

    def _nothing(self, kind: type) -> np.ndarray:
        return np.empty((0, len(self.classes_)), kind)


def _features(node: FeatureMap, pairs: int, factors: Mapping[str, float]) -> Stack:
    """Attributes, and a table per pair."""
    groups: list[tuple[FeatureMap, str]] = [(BinaryLabels(node), "attributes")]
    groups += [(Table(2, 2), "pairs") for _ in range(pairs)]
    return Stack(*(part if factors[name] == 1.0 else Scaled(part, factors[name]) for part, name in groups))
