"""Tagging sequences: a linear chain M3N or CRF with a scikit-learn interface."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from typing import Any

import numpy as np
import scipy.sparse

from m3n import losses
from m3n.estimators import tagger_files
from m3n.estimators.approximation import ApproximationReport, compare_with_kernel
from m3n.estimators.contributions import explain
from m3n.estimators.decoding import (
    Scored,
    check_constraints,
    check_decoding,
    check_temperature,
    learn_constraints,
    read_fixed,
)
from m3n.estimators.explanation import Explanation
from m3n.estimators.inputs import (
    Inputs,
    Matrix,
    SequenceReader,
    flat_labels,
    number_labels,
    observed_scores,
    pair_scores,
    read_labels,
)
from m3n.estimators.kernel_scores import KernelSettings
from m3n.estimators.trained import Trained
from m3n.estimators.training import (
    Data,
    chain_of,
    plain,
    read_weights,
    resolve_strengths,
    split_weights,
    training_features,
)
from m3n.features import FeatureMap, Templates
from m3n.packed import Threads
from m3n.packed.threads import single_threaded_blas
from m3n.problem import Problem
from m3n.run.loop import Result
from m3n.solvers import Solver, resolve_solver
from m3n.structures import Transitions

MOST_SCORES = 1 << 25  # that a prediction holds at a time, 256 MB
# what may change between two fits of which the second begins where the first one ended
FREE = (
    "solver",
    "lam",
    "C",
    "tol",
    "rtol",
    "max_passes",
    "max_seconds",
    "n_jobs",
    "verbose",
    "warm_start",
    "checkpoint",
)


class SequenceTagger(Trained):
    """Labels for every position of a sequence, trained to a certified optimum.

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
        Stop when the duality gap is at most this.
    loss : {"hamming", "normalized_hamming"} or Loss
        Label loss of every objective but "crf": wrong labels, wrong labels / length, or an object of ``m3n.losses``,
        which may speak of labels by their names.
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
    templates : Templates or None
        Attributes to make of tokens in columns, such as ``m3n.features.CHUNKING``; X is then what
        ``m3n.io.read_columns`` returns, or lists of tokens with one string per column.
    observed_only : bool
        Whether only pairs of an attribute and a label, and transitions, that occur in the training data get a weight:
        models of text become many times smaller. For sparse inputs.
    boundaries : bool
        Whether the first and the last label of a sequence have scores of their own.
    constraints : {"iob", "iob1", "bioes", "observed"}, Transitions or None
        Which labels may follow one another, in training and in every prediction: valid chunks of a scheme, what occurs
        in the training data, or what ``m3n.structures.Transitions`` says; None allows everything.
    C : float or None
        Another way to give ``lam``: C = 1/(lam n), as in support vector machines.
    l1 : float
        Weight of the penalty l1 |w|_1, which makes weights exactly zero. For ``objective="crf"`` and "softmax_margin".
    strengths : mapping from str to float, or None
        How strongly groups of weights are regularised, relative to ``lam``: "attributes", "transitions", "boundaries"
        and "pairs" (attributes of pairs), each 1 if it is not named. An l1 penalty counts sqrt(strength) times.
    warm_start : bool
        Whether a further ``fit`` on the same data, with another ``lam`` for example, begins where the last one ended.
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
    checkpoint : path or None
        A file to which training is saved every minute, and when it stops early. A fit that finds the file goes on
        there; one that reaches its tolerance removes it.

    Attributes
    ----------
    classes_ : array (labels,)
        The labels, sorted; those of an imported model in its order.
    coef_ : array (attributes, labels)
        Weights of the attributes; a ``scipy.sparse.csr_array`` with ``observed_only``. Not there with a kernel.
    kernel_model_ : Support or Transformed
        With a kernel: the inputs that count with their coefficients, ``inputs``, ``coefficients``, ``size``, ``cost``
        of a prediction and ``error`` of leaving others out; or the transformer and the weights of its features.
    transitions_ : array (labels, labels)
        Scores of pairs of neighbouring labels.
    edge_coef_ : array (attributes of pairs, labels, labels) or None
        Weights of the attributes that templates such as ``B01:%x[0,0]`` make; with ``observed_only`` a
        ``scipy.sparse.csr_array`` (attributes of pairs, labels * labels).
    start_, end_ : array (labels,)
        Scores of the first and the last label.
    constraints_ : Transitions or None
        The constraints, in the order of ``classes_``.
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
        Why ``solver="auto"`` chose it.
    lam_ : float
        The regularisation that was used.
    n_features_in_ : int
        Number of attributes.

    Examples
    --------
    >>> import m3n
    >>> X = [[["word=the"], ["word=dog"], ["word=barks"]], [["word=dogs"], ["word=bark"]]]
    >>> y = [["D", "N", "V"], ["N", "V"]]
    >>> tagger = m3n.SequenceTagger().fit(X, y)
    >>> tagger.predict([[["word=the"], ["word=dogs"], ["word=bark"]]])
    [['D', 'N', 'V']]
    >>> tagger.certificate_.gap <= 1e-3
    True
    """

    def __init__(
        self,
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
        templates: Templates | None = None,
        observed_only: bool = False,
        boundaries: bool = True,
        constraints: str | Transitions | None = None,
        C: float | None = None,
        l1: float = 0.0,
        strengths: Mapping[str, float] | None = None,
        warm_start: bool = False,
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
        self.objective = objective
        self.solver = solver
        self.lam = lam
        self.tol = tol
        self.rtol = rtol
        self.loss = loss
        self.max_passes = max_passes
        self.max_seconds = max_seconds
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.templates = templates
        self.observed_only = observed_only
        self.boundaries = boundaries
        self.constraints = constraints
        self.C = C
        self.l1 = l1
        self.strengths = strengths
        self.warm_start = warm_start
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.approximation = approximation
        self.components = components
        self.support_tol = support_tol
        self.checkpoint = checkpoint

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> SequenceTagger:
        """Train on labelled sequences.

        Ctrl-C ends training early; the model then holds the best weights so far, with their certificate.

        Parameters
        ----------
        X : sequences
            Each a 2-D array (positions, attributes), a CSR matrix, or a list of tokens; a token is a dict of
            attributes or a list of strings. With ``templates``, tokens in columns.
        y : sequences of labels
            One label per position: strings or numbers.
        sample_weight : array (sequences,), optional
            How often every sequence counts: 2 is the same as the sequence twice, 0 leaves it out.

        Returns
        -------
        SequenceTagger
            The fitted estimator itself.
        """
        self._check_words()
        kernel = self._kernel_settings()
        if kernel is not None and self.observed_only:
            raise ValueError("observed_only=True is for linear models of text; use it without a kernel")
        reader = SequenceReader()
        matrix, lengths, pairs = reader.fit(X, self.templates)
        classes, labels = read_labels(y, lengths)
        constraints = learn_constraints(self.constraints, classes, labels)
        data = Data(matrix, lengths, labels, read_weights(sample_weight, len(lengths)), pairs).without_zeros()
        known = self._known(data) if self.warm_start else None
        if self.observed_only and reader.kind == "dense":
            raise ValueError("observed_only=True is for sparse inputs; dense attributes occur with every label")
        node, transformer = None, None
        if not self.observed_only:
            node, transformer = self._attribute_map(kernel, data.matrix, len(classes))
        problem = self._problem(data, classes, constraints, node)
        del matrix, pairs, data  # observed pairs have made their own of it
        result = self._minimize(problem, self._start(problem, known))
        self._last = (known, result) if self.warm_start else None
        self.reader_ = reader
        self.classes_ = classes
        self.constraints_ = constraints
        self.n_features_in_ = reader.width
        self._set_weights(problem.features, result.w, kernel, transformer)
        self._keep(problem, result)
        return self

    def predict(
        self, X: Any, *, fixed: Any = None, decoding: str = "viterbi", temperature: float = 1.0
    ) -> list[list[Any]]:
        """The best label of every position.

        Parameters
        ----------
        X : sequences
            As in ``fit``; attributes that were not seen in training are ignored.
        fixed : sequences of labels and None, optional
            Labels that are known already, None where one is to be predicted; the others are predicted given these. None
            instead of a list: nothing is known about this sequence.
        decoding : {"viterbi", "posterior"}
            The labels with the highest score together, or those with the least expected number of errors under
            exp(score / temperature), that is the largest sum of marginals; among those that ``constraints`` allow.
        temperature : float
            For ``decoding="posterior"``.

        Returns
        -------
        list of lists
            One list of labels per sequence, always.
        """
        check_decoding(decoding)
        check_temperature(temperature)
        pieces = self._scored(X, fixed)
        found = (piece.best() if decoding == "viterbi" else piece.posterior(temperature) for piece in pieces)
        return list(chain.from_iterable(found))

    def predict_k_best(
        self, X: Any, k: int, *, fixed: Any = None, probabilities: bool = False, temperature: float = 1.0
    ) -> list[list[tuple[Any, ...]]]:
        """The k best label sequences with their scores, best first.

        Parameters
        ----------
        X : sequences
            As in ``fit``.
        k : int
            How many; a sequence has fewer where fewer are possible.
        fixed : sequences of labels and None, optional
            Labels that are known already, as in ``predict``.
        probabilities : bool
            Whether to add the probability of every answer under exp(score / temperature).
        temperature : float
            For ``probabilities``.

        Returns
        -------
        list of lists of tuples
            Per sequence: (labels, score), or (labels, score, probability).
        """
        check_temperature(temperature)
        pieces = self._scored(X, fixed)
        return [best for piece in pieces for best in piece.k_best(k, temperature if probabilities else None)]

    def predict_marginals(self, X: Any, temperature: float = 1.0, fixed: Any = None) -> list[np.ndarray]:
        """Probability of every label at every position under exp(score / temperature).

        Parameters
        ----------
        X : sequences
            As in ``fit``.
        temperature : float
            Small values sharpen the distribution towards the prediction, large ones flatten it.
        fixed : sequences of labels and None, optional
            Labels that are known already, as in ``predict``: probabilities given these.

        Returns
        -------
        list of arrays (positions, labels)
            Columns in the order of ``classes_``.
        """
        check_temperature(temperature)
        pieces = self._scored(X, fixed)
        found = (np.split(piece.marginals(temperature), piece.structure.offsets[1:-1]) for piece in pieces)
        return list(chain.from_iterable(found))

    def explain(self, x: Any, labels: Any = None, *, top: int | None = 10) -> Explanation:
        """Why one sequence has its labels: the contributions of attributes and transitions to their score.

        Parameters
        ----------
        x : sequence
            One sequence, as in ``fit``. Attributes that were not seen in training contribute nothing and are not shown.
        labels : list of labels, optional
            The labels to explain; None explains the prediction.
        top : int or None
            How many attributes to list at a position, those with the largest differences to the best other label; the
            others are added up. None lists them all.

        Returns
        -------
        Explanation
            ``print`` shows it as text, a notebook as a table; ``as_dict()`` is ready for JSON.
        """
        return explain(self, x, labels, top)

    def score(self, X: Any, y: Any) -> float:
        """Share of positions that are labelled correctly.

        Parameters
        ----------
        X : sequences
            As in ``fit``.
        y : sequences of labels
            The right labels.
        """
        predicted = self.predict(X)
        gold = flat_labels(y, np.array([len(sequence) for sequence in predicted]))
        found = [label for sequence in predicted for label in sequence]
        return float(np.mean([a == b for a, b in zip(gold, found, strict=True)]))

    def approximation_report(self, X: Any, y: Any, sequences: int = 200) -> ApproximationReport:
        """How far the approximate features of this model are from the exact kernel, on a part of the data.

        Both are trained on some sequences, drawn by ``random_state``, with this model's features and ``lam_``, and
        compared on the others.

        Parameters
        ----------
        X : sequences
            As in ``fit``; the training data, or others.
        y : sequences of labels
            The right labels.
        sequences : int
            How many to train on. The exact kernel takes time and memory for the square of their positions.
        """
        self._check_fitted()
        settings = self._kernel_settings()
        if settings is None or settings.kernel is None or settings.approximation is None:
            raise ValueError("there is nothing to compare: give a kernel and an approximation, and fit")
        matrix, lengths, pairs = self.reader_.read(X)
        data = Data(matrix, lengths, number_labels(y, lengths, self.classes_), None, pairs)
        plain = copy.copy(self)
        plain.checkpoint = None  # it belongs to the fit
        return compare_with_kernel(plain, settings, data, sequences)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file that ``m3n.load`` reads.

        Parameters
        ----------
        path : path
            Where to; an existing file is replaced in one step.
        """
        self._check_fitted()
        tagger_files.save(self, path)

    def _check_words(self) -> None:
        super()._check_words()
        resolve_strengths(self.strengths)
        check_constraints(self.constraints)

    def _problem(
        self, data: Data, classes: np.ndarray, constraints: Transitions | None, node: FeatureMap | None
    ) -> Problem:
        """The training problem of some data; without a map for the attributes, of the pairs that occur."""
        settings, factors = self._settings(classes, data.weights, data.count), resolve_strengths(self.strengths)
        edges = data.pairs is not None or (settings["loss"] is not None and settings["loss"].needs_edges)
        features = training_features(data, len(classes), node, factors, boundaries=self.boundaries, edges=edges)
        structure = chain_of(data.lengths, len(classes), constraints, edges=edges)
        return Problem(structure, features, data.labels, l1=self.l1, **settings)

    def _known(self, data: Data) -> tuple[Any, ...]:
        """What a warm start must find unchanged: the data, and every parameter that shapes the dual problem."""
        params = self.get_params(deep=False)
        return data.fingerprint(), *((name, value) for name, value in params.items() if name not in FREE)

    def _start(self, problem: Problem, known: tuple[Any, ...] | None) -> Result | None:
        """The last result if this fit can begin there."""
        earlier, result = getattr(self, "_last", None) or (None, None)
        if known is None or result is None or known != earlier:
            return None
        solver = resolve_solver(self.solver, self.random_state, problem, self.tol, self.rtol).solver
        return result if type(solver) is type(result.solver) else None

    def _set_weights(self, features: Any, w: np.ndarray, kernel: KernelSettings | None, transformer: Any) -> None:
        attributes, self.transitions_, self.start_, self.end_, self.edge_coef_ = split_weights(features, w)
        if self.l1 and scipy.sparse.issparse(self.edge_coef_):
            self.edge_coef_.eliminate_zeros()
        if not scipy.sparse.issparse(attributes):
            self._set_attribute_weights(kernel, plain(features.maps[0]), transformer, attributes.ravel())
            return
        vars(self).pop("kernel_model_", None)  # of another fit
        if self.l1:
            attributes.eliminate_zeros()  # a sparse model is a small one
        self.coef_ = attributes

    def _scored(self, X: Any, fixed: Any) -> Iterator[Scored]:
        """Sequences with their scores, as many at a time as memory should hold."""
        self._check_fitted()
        inputs = self.reader_.read(X)
        given = read_fixed(fixed, inputs.lengths, self.classes_)
        width = len(self.classes_) ** (1 if self.edge_coef_ is None else 2)
        for low, high in _pieces(inputs.lengths, max(MOST_SCORES // width, 1)):
            yield self._scores_of(inputs, given, low, high)

    def _scores_of(self, inputs: Inputs, given: np.ndarray | None, low: int, high: int) -> Scored:
        """The scores of sequences low..high-1."""
        threads, lengths = Threads(self.n_jobs), inputs.lengths[low:high]
        offsets = np.concatenate([[0], np.cumsum(inputs.lengths)])
        rows, inner = slice(offsets[low], offsets[high]), slice(offsets[low] - low, offsets[high] - high)
        structure = chain_of(lengths, len(self.classes_), self.constraints_, edges=self.edge_coef_ is not None)
        with single_threaded_blas():
            theta = [self._attribute_scores(_rows(inputs.matrix, rows), threads)]
            theta += [self.transitions_.copy(), self.start_.copy(), self.end_.copy()]
            if self.edge_coef_ is not None:
                theta.append(pair_scores(_rows(inputs.pairs, inner), self.edge_coef_, len(self.classes_), threads))
        return Scored(structure, tuple(theta), self.classes_, None if given is None else given[rows], threads, low)

    def _attribute_scores(self, matrix: Matrix, threads: Threads) -> np.ndarray:
        if hasattr(self, "kernel_model_") or not scipy.sparse.issparse(self.coef_):
            return super()._attribute_scores(matrix, threads)
        return observed_scores(matrix, self.coef_, threads)


def _pieces(lengths: np.ndarray, most: int) -> Iterator[tuple[int, int]]:
    """Ranges of sequences with at most so many positions each, at least one sequence in each."""
    ends, low = np.cumsum(lengths), 0
    while low < len(lengths):
        before = ends[low - 1] if low else 0
        high = max(int(np.searchsorted(ends, before + most, side="right")), low + 1)
        yield low, high
        low = high


def _rows(matrix: Matrix, rows: slice) -> Matrix:
    """Some rows of a matrix; the matrix itself if these are all of them."""
    return matrix if rows == slice(0, matrix.shape[0]) else matrix[rows]
