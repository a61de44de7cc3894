"""Cutting sequences into labelled segments: a semi-Markov M3N or CRF with a scikit-learn interface."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import scipy.sparse

from m3n import losses
from m3n.estimators import segment_files
from m3n.estimators.decoding import check_temperature
from m3n.estimators.inputs import Matrix, SequenceReader, linear_scores
from m3n.estimators.segments import Segment, filled, read_segments, to_iob
from m3n.estimators.trained import Trained
from m3n.estimators.training import read_weights
from m3n.features import AttributeVectorizer, Sparse, Stack, Table, Templates
from m3n.packed import Threads
from m3n.packed.threads import single_threaded_blas
from m3n.problem import Problem
from m3n.solvers import Solver
from m3n.structures import SemiMarkov


class SegmentTagger(Trained):
    """Labelled segments of sequences, such as names in a text, trained to a certified optimum.

    The score of a segmentation is the sum over its positions of x W[:, label], over its segments of a score of their
    label and length and of what ``segment_features`` says about them, and over neighbouring segments of a table of
    their labels. Unlike a tagger of IOB labels it sees a segment as a whole.

    Parameters
    ----------
    objective : {"margin", "crf", "softmax_margin", "slack"}
        Training objective, as in ``SequenceTagger``. The oracle of "slack" is an exact search of a few calls of the
        max-oracle, which gives up after 2000 (``m3n.structures.InexactOracle``).
    solver : str or Solver
        "auto", a solver's name, or a solver object.
    lam : float or None
        Weight of the regulariser lam/2 |w|^2 against the mean loss; None means 1/n.
    tol : float
        Stop when the duality gap is at most this.
    loss : {"hamming", "normalized_hamming"} or Loss
        Label loss of every objective but "crf": it counts positions with a wrong label.
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
    max_length : int or None
        Most positions of a segment; None takes, label by label, the longest one of the training data.
    outside : str, int or None
        The label of positions without a segment, which then are segments of one position each. It is neither given
        nor predicted.
    segment_features : callable or None
        A function of a sequence as it was given, begin and end of a segment (exclusive) that returns its attributes as
        a list of strings or a dict. It is called for every possible segment.
    templates : Templates or None
        Attributes to make of tokens in columns, as in ``SequenceTagger``.
    C : float or None
        Another way to give ``lam``: C = 1/(lam n).
    kernel : str, callable or None
        A kernel on the attributes of a position, as in ``SequenceTagger``.
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
        The labels; the one of positions without a segment comes first.
    coef_ : array (attributes, labels)
        Weights of the attributes of positions. Not there with a kernel.
    kernel_model_ : Support or Transformed
        With a kernel: what prediction keeps.
    segment_coef_ : array (lengths and attributes, labels)
        Scores of lengths 1, 2, ..., and weights of the attributes of segments.
    transitions_ : array (labels, labels)
        Scores of the labels of neighbouring segments.
    start_, end_ : array (labels,)
        Scores of the labels of the first and the last segment.
    max_lengths_ : array of int (labels,)
        Most positions of a segment of every label.
    certificate_ : Certificate
        primal, dual and gap of the training objective.
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
        Number of attributes of a position.

    Examples
    --------
    >>> import m3n
    >>> X = [[["Ada", "capital"], ["Lovelace", "capital"], ["wrote"]], [["to"], ["Charles", "capital"]]]
    >>> y = [[(0, 2, "name")], [(1, 2, "name")]]
    >>> tagger = m3n.SegmentTagger(lam=0.01).fit(X, y)
    >>> tagger.predict([[["said"], ["Ada", "capital"]]])
    [[(1, 2, 'name')]]
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
        max_length: int | None = None,
        outside: str | int | None = "O",
        segment_features: Callable[[Any, int, int], Any] | None = None,
        templates: Templates | None = None,
        C: float | None = None,
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
        self.loss = loss
        self.max_passes = max_passes
        self.max_seconds = max_seconds
        self.rtol = rtol
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.max_length = max_length
        self.outside = outside
        self.segment_features = segment_features
        self.templates = templates
        self.C = C
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.approximation = approximation
        self.components = components
        self.support_tol = support_tol
        self.checkpoint = checkpoint

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> SegmentTagger:
        """Train on segmented sequences.

        Parameters
        ----------
        X : sequences
            As in ``SequenceTagger``.
        y : sequences of segments
            For every sequence a list of (begin, end, label), end exclusive, or IOB labels, one per position.
        sample_weight : array (sequences,), optional
            How often every sequence counts, positive numbers.

        Returns
        -------
        SegmentTagger
            The fitted estimator itself.
        """
        self._check_words()
        kernel = self._kernel_settings()
        reader = SequenceReader()
        matrix, lengths, pairs = reader.fit(X, self.templates)
        if pairs is not None:
            raise ValueError(
                "a SegmentTagger has no attributes of label pairs; leave out templates such as B01:%x[0,0]"
            )
        segments = [
            filled(given, int(length), self.outside)
            for given, length in zip(read_segments(y, lengths), lengths, strict=True)
        ]
        classes = self._classes(segments)
        number = {label: k for k, label in enumerate(classes)}
        gold = [[(begin, end, number[label]) for begin, end, label in given] for given in segments]
        longest = self._longest(gold, len(classes))
        structure = SemiMarkov(lengths, len(classes), longest)
        vectorizer = AttributeVectorizer() if self.segment_features else None
        spans = self._span_matrix(X, structure, vectorizer, int(longest.max()), learn=True)
        labels = len(classes)
        node, transformer = self._attribute_map(kernel, matrix, labels)
        features = Stack(node, Table(labels, labels), Table(labels), Table(labels), Sparse(spans, labels))
        weights = read_weights(sample_weight, len(lengths))
        count = len(lengths) if weights is None else float(weights.sum())
        self.classes_ = np.array(classes)
        problem = Problem(structure, features, gold, **self._settings(self.classes_, weights, count))
        result = self._minimize(problem)
        self._keep(problem, result)
        self.reader_, self.segment_vectorizer_, self.max_lengths_ = reader, vectorizer, longest
        self.n_features_in_ = reader.width
        pieces = features.split(result.w)
        self._set_attribute_weights(kernel, node, transformer, pieces[0])
        self.segment_coef_ = pieces[4].reshape(-1, labels)
        self.transitions_, self.start_, self.end_ = pieces[1].reshape(labels, labels), pieces[2], pieces[3]
        return self

    def predict(self, X: Any) -> list[list[Segment]]:
        """The segments with the highest score together: for every sequence a list of (begin, end, label).

        Parameters
        ----------
        X : sequences
            As in ``fit``.
        """
        structure, theta, threads = self._scores(X)
        if structure is None:
            return []
        names = self.classes_.tolist()
        found = structure.unpack(structure.hard(theta, threads)[1])
        return [
            [(begin, end, names[k]) for begin, end, k in given if self.outside is None or names[k] != self.outside]
            for given in found
        ]

    def predict_iob(self, X: Any) -> list[list[str]]:
        """The same as IOB labels, one per position.

        Parameters
        ----------
        X : sequences
            As in ``fit``.
        """
        found = self.predict(X)
        lengths = self.reader_.read(X)[1].tolist()
        return [to_iob(given, length) for given, length in zip(found, lengths, strict=True)]

    def predict_marginals(self, X: Any, temperature: float = 1.0) -> list[np.ndarray]:
        """Probability of every label at every position under exp(score / temperature).

        Parameters
        ----------
        X : sequences
            As in ``fit``.
        temperature : float
            Small values sharpen the distribution towards the prediction, large ones flatten it.

        Returns
        -------
        list of arrays (positions, labels)
            Columns in the order of ``classes_``.
        """
        check_temperature(temperature)
        structure, theta, threads = self._scores(X)
        if structure is None:
            return []
        _, marginals = structure.soft(theta, temperature, threads)
        return np.split(marginals[0], structure.offsets[1:-1])

    def score(self, X: Any, y: Any) -> float:
        """F1 of whole segments: right ones have begin, end and label right.

        Parameters
        ----------
        X : sequences
            As in ``fit``.
        y : sequences of segments
            The right segments, or IOB labels.
        """
        found = self.predict(X)
        gold = read_segments(y, self.reader_.read(X)[1])
        right = sum(len(set(a) & set(b)) for a, b in zip(found, gold, strict=True))
        total = sum(map(len, found)) + sum(map(len, gold))
        return 2.0 * right / total if total else 1.0

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file that ``m3n.load`` reads; one with ``segment_features``, which are code, is refused.

        Parameters
        ----------
        path : path
            Where to; an existing file is replaced in one step.
        """
        self._check_fitted()
        segment_files.save(self, path)

    def _check_words(self) -> None:
        super()._check_words()
        if self.max_length is not None and not self.max_length >= 1:
            raise ValueError(f"max_length must be at least 1, got {self.max_length}")

    def _classes(self, segments: list[list[Segment]]) -> list[Any]:
        """The label of positions without a segment if there are any, then the others, sorted."""
        found = {label for given in segments for _, _, label in given}
        if None in found:
            i = next(k for k, given in enumerate(segments) if any(label is None for _, _, label in given))
            raise ValueError(
                f"sequence {i} has positions without a segment: give outside='O', for example, or cover it"
            )
        rest = sorted(found - {self.outside})
        if not rest:
            raise ValueError("y has no segments at all: there is nothing to learn")
        return [self.outside, *rest] if self.outside in found else rest

    def _longest(self, gold: list[list[tuple[int, int, int]]], labels: int) -> np.ndarray:
        """Most positions of a segment of every label."""
        longest = np.ones(labels, np.int64)
        for i, given in enumerate(gold):
            for begin, end, k in given:
                if self.max_length is not None and end - begin > self.max_length:
                    raise ValueError(
                        f"sequence {i}: the segment from {begin} to {end} is longer than max_length={self.max_length}; "
                        "raise it, or cut the segment"
                    )
                longest[k] = max(longest[k], end - begin)
        if self.max_length is not None:
            longest[longest > 1] = self.max_length
        return longest

    def _span_matrix(
        self, X: Any, structure: SemiMarkov, vectorizer: AttributeVectorizer | None, most: int, *, learn: bool
    ) -> Matrix:
        """Lengths and attributes of all possible segments, a row each."""
        spans = structure.segments()
        rows = np.arange(len(spans))
        lengths = scipy.sparse.csr_array((np.ones(len(spans)), (rows, spans[:, 2] - 1)), shape=(len(spans), most))
        if vectorizer is None or self.segment_features is None:
            return lengths
        sequences = list(X)
        described: list[list[Any]] = [[] for _ in sequences]
        for i, begin, length in spans.tolist():
            described[i].append(self.segment_features(sequences[i], begin, begin + length))
        attributes = vectorizer.fit_transform(described) if learn else vectorizer.transform(described)
        return scipy.sparse.hstack([lengths, attributes], format="csr")

    def _scores(self, X: Any) -> tuple[SemiMarkov | None, tuple[np.ndarray, ...], Threads]:
        """The scores of some sequences; no structure if there are none."""
        self._check_fitted()
        matrix, lengths, _ = self.reader_.read(X)
        threads, labels = Threads(self.n_jobs), len(self.classes_)
        if not len(lengths):
            return None, (), threads
        structure = SemiMarkov(lengths, labels, self.max_lengths_)
        most = int(self.max_lengths_.max())
        spans = self._span_matrix(X, structure, self.segment_vectorizer_, most, learn=False)
        with single_threaded_blas():
            node = self._attribute_scores(matrix, threads)
            segment = linear_scores(spans, self.segment_coef_, threads)
        return structure, (node, self.transitions_.copy(), self.start_.copy(), self.end_.copy(), segment), threads
