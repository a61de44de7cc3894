"""Cutting sequences into labelled segments: a semi-Markov M3N or CRF with a scikit-learn interface."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse

from m3n.estimators.chains import check_temperature
from m3n.estimators.declaration import learnt
from m3n.estimators.files import Content
from m3n.estimators.forms import SEGMENTS
from m3n.estimators.going_on import GoesOn, Old
from m3n.estimators.inputs import Inputs, SequenceReader
from m3n.estimators.matrices import Matrix, linear_scores
from m3n.estimators.predictions import Predictions
from m3n.estimators.segments import Segment, filled, read_segments, to_iob
from m3n.estimators.sequence_tagger import SequenceModel
from m3n.estimators.trained import KERNEL, TRAINING
from m3n.estimators.training import Examples, Setup, read_weights
from m3n.features import AttributeVectorizer, Sparse, Stack, Table
from m3n.packed import Threads
from m3n.packed.threads import single_threaded_blas
from m3n.structures import SemiMarkov

Scores = tuple[SemiMarkov | None, tuple[np.ndarray, ...], Threads]


class SegmentTagger(SequenceModel, GoesOn):
    """Labelled segments of sequences, such as names in a text, trained to a certified optimum.

    The score of a segmentation is the sum over its positions of x W[:, label], over its segments of a score of their
    label and length and of what ``segment_features`` says about them, and over neighbouring segments of a table of
    their labels. Unlike a tagger of IOB labels it sees a segment as a whole.

    Parameters
    ----------
    objective : {"margin", "crf", "softmax_margin", "slack"}
        Training objective, as in ``SequenceTagger``. The oracle of "slack" is an exact search of a few calls of the
        max-oracle, which gives up after 2000 (``m3n.structures.InexactOracle``).
    loss : {"hamming", "normalized_hamming"} or Loss
        Label loss of every objective but "crf": it counts positions with a wrong label.
    max_length : int or None
        Most positions of a segment; None takes, label by label, the longest one of the training data.
    outside : str, int or None
        The label of positions without a segment, which then are segments of one position each. It is neither given
        nor predicted.
    segment_features : callable or None
        A function of a sequence as it was given, begin and end of a segment (exclusive) that returns its attributes as
        a list of strings or a dict. It is called for every possible segment.

    Attributes
    ----------
    classes_ : array (labels,)
        The labels; the one of positions without a segment comes first.
    segment_coef_ : array (lengths and attributes, labels)
        Scores of lengths 1, 2, ..., and weights of the attributes of segments.
    transitions_ : array (labels, labels)
        Scores of the labels of neighbouring segments.
    start_, end_ : array (labels,)
        Scores of the labels of the first and the last segment.
    max_lengths_ : array of int (labels,)
        Most positions of a segment of every label.
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

    max_length: int | None = None
    outside: str | int | None = "O"
    segment_features: Callable[[Any, int, int], Any] | None = None

    segment_coef_: np.ndarray = learnt("lengths", "labels", weights=True)
    max_lengths_: np.ndarray = learnt("labels", limits=(1, None))
    segment_vectorizer_: AttributeVectorizer | None = learnt()

    _parameters = (
        *TRAINING, "max_length", "outside", "segment_features", "templates", "C", *KERNEL, "class_weight", "prior",
        "validation", "patience",
    )  # fmt: skip
    _form = SEGMENTS

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> SegmentTagger:
        """Train on segmented sequences.

        Parameters
        ----------
        X : sequences
            As in ``SequenceTagger``.
        y : sequences of segments
            For every sequence a list of (begin, end, label), end exclusive, or IOB labels, one per position.
        sample_weight : array (sequences,), optional
            How often every sequence counts: 2 is the same as the sequence twice, 0 leaves it out.

        Returns
        -------
        SegmentTagger
            The fitted estimator itself.
        """
        return self._fit(X, y, sample_weight)

    def predict(self, X: Any) -> list[list[Segment]]:
        """The segments with the highest score together: for every sequence a list of (begin, end, label).

        Parameters
        ----------
        X : sequences
            As in ``fit``.
        """
        return Predictions(self._found(X)[0])

    def predict_iob(self, X: Any) -> list[list[str]]:
        """The same as IOB labels, one per position.

        Parameters
        ----------
        X : sequences
            As in ``fit``.
        """
        return Predictions(self._answers(X, False)[0])

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
        return self._marginals(*self._scores(X), temperature)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """F1 of whole segments: right ones have begin, end and label right.

        Parameters
        ----------
        X : sequences
            As in ``fit``.
        y : sequences of segments
            The right segments, or IOB labels.
        sample_weight : array (sequences,), optional
            How often the segments of every sequence count.
        """
        found, lengths, _ = self._found(X)
        gold, weights = read_segments(y, lengths), read_weights(sample_weight, len(found))
        counts = [(len(set(a) & set(b)), len(a) + len(b)) for a, b in zip(found, gold, strict=True)]
        right, total = np.array(counts, float).reshape(-1, 2).T @ (np.ones(len(found)) if weights is None else weights)
        return float(2.0 * right / total) if total else 1.0

    def _check_words(self) -> None:
        super()._check_words()
        if self.prior is not None and (self.segment_features or self.prior.segment_features):
            raise ValueError("prior is for segment taggers without segment_features")
        if self.prior is not None and self.prior.outside != self.outside:
            raise ValueError(f"prior was trained with outside={self.prior.outside!r}, not {self.outside!r}")
        if self.max_length is not None and not self.max_length >= 1:
            raise ValueError(f"max_length must be at least 1, got {self.max_length}")

    def _read(self, reader: SequenceReader, X: Any, y: Any) -> Examples:
        inputs = reader.fit(X, self.templates, 1, None if self.prior is None else self.prior.reader_)
        if inputs.pairs is not None:
            raise ValueError(
                "a SegmentTagger has no attributes of label pairs; leave out templates such as B01:%x[0,0]"
            )
        segments = [
            filled(given, int(length), self.outside)
            for given, length in zip(read_segments(y, inputs.lengths), inputs.lengths, strict=True)
        ]
        classes = self._classes(segments)
        number = {label: k for k, label in enumerate(classes)}
        gold = [[(begin, end, number[label]) for begin, end, label in given] for given in segments]
        longest, old = self._longest(gold, len(classes)), Old.of(self.prior, reader, np.array(classes))
        if old is not None:
            np.maximum.at(longest, old.places["labels"], self.prior.max_lengths_)
        given, usable = list(X) if self.segment_features else None, inputs.lengths > 0
        learnt = {"max_lengths_": longest}
        return Examples(inputs, np.array(classes), gold, learnt=learnt, given=given, usable=usable, old=old)

    def _setup(self, examples: Examples, node: Any) -> Setup:
        labels, longest = len(examples.classes), examples.learnt["max_lengths_"]
        structure = SemiMarkov(examples.inputs.lengths, labels, longest)
        vectorizer = AttributeVectorizer() if self.segment_features else None
        described = self._described(examples.given, structure)
        spans = _span_matrix(structure, longest, vectorizer.fit_transform(described) if vectorizer else None)
        features = Stack(node, Table(labels, labels), Table(labels), Table(labels), Sparse(spans, labels))
        return Setup(structure, features, {"segment_vectorizer_": vectorizer})

    def _named_weights(self, features: Stack, w: np.ndarray) -> dict[str, Any]:
        pieces = features.split(w)
        labels = len(pieces[2])
        tables = {"transitions_": pieces[1].reshape(labels, labels), "start_": pieces[2], "end_": pieces[3]}
        return {"coef_": pieces[0], "segment_coef_": pieces[4].reshape(-1, labels)} | tables

    def _packed(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        if self.segment_features is not None:
            raise TypeError(
                f"segment_features is the function {self.segment_features!r:.60}, and model files never hold code: "
                "use pickle for this model"
            )
        return {}, {}

    def _unpacked(self, content: Content) -> dict[str, Any]:
        most, scored = int(content.fitted["max_lengths_"].max()), len(content.fitted["segment_coef_"])
        if most != scored:
            raise ValueError(f"segment_coef_ has scores for {scored} lengths, and max_lengths_ allows {most}")
        return {"segment_vectorizer_": None}

    def _classes(self, segments: list[list[Segment]]) -> list[Any]:
        """The label of positions without a segment if there are any, then the others, sorted."""
        found = {label for given in segments for _, _, label in given} | set(self._known_labels)
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

    def _described(self, sequences: Any, structure: SemiMarkov) -> list[list[Any]]:
        """What ``segment_features`` says about all possible segments, sequence by sequence."""
        if self.segment_features is None:
            return []
        described: list[list[Any]] = [[] for _ in sequences]
        for i, begin, length in structure.segments().tolist():
            described[i].append(self.segment_features(sequences[i], begin, begin + length))
        return described

    def _found(self, X: Any) -> tuple[list[list[Segment]], np.ndarray, Scores]:
        """Segments, the lengths of the sequences, and the scores behind them."""
        lengths, scores = self._scores(X)
        structure, theta, threads = scores
        if structure is None:
            return [[] for _ in lengths], lengths, scores
        names = self.classes_.tolist()
        found = (
            [(begin, end, names[k]) for begin, end, k in given if self.outside is None or names[k] != self.outside]
            for given in structure.unpack(structure.hard(theta, threads)[1])
        )
        return [next(found) if length else [] for length in lengths], lengths, scores

    def _answers(
        self, X: Any, marginals: bool, temperature: float | None = None
    ) -> tuple[list[list[Any]], list[np.ndarray]]:
        """IOB labels and, if asked for, marginals of the classes, from scores that are computed once."""
        found, lengths, scores = self._found(X)
        labels = [to_iob(given, length) for given, length in zip(found, lengths.tolist(), strict=True)]
        warmth = 1.0 if temperature is None else temperature
        return labels, self._marginals(lengths, scores, warmth) if marginals else []

    def _scores(self, X: Any) -> tuple[np.ndarray, Scores]:
        """The lengths of some sequences, and the scores of those that are not empty; no structure if there are none."""
        self._check_fitted()
        inputs: Inputs = self.reader_.read(X)
        threads, vectorizer, lengths = Threads(self.n_jobs), self.segment_vectorizer_, inputs.lengths
        if not lengths.any():
            return lengths, (None, (), threads)
        structure = SemiMarkov(lengths[lengths > 0], len(self.classes_), self.max_lengths_)
        sequences = [x for x, length in zip(X, lengths, strict=True) if length] if vectorizer else []
        attributes = vectorizer.transform(self._described(sequences, structure)) if vectorizer else None
        spans = _span_matrix(structure, self.max_lengths_, attributes)
        with single_threaded_blas():
            node = self._attribute_scores(inputs.matrix, threads)
            segment = linear_scores(spans, self.segment_coef_, threads)
        return lengths, (structure, (node, *self._tables(), segment), threads)

    def _marginals(self, lengths: np.ndarray, scores: Scores, temperature: float) -> list[np.ndarray]:
        """Probabilities of labels, an array per sequence."""
        structure, theta, threads = scores
        if structure is None:
            return [np.empty((0, len(self.classes_))) for _ in lengths]
        _, marginals = structure.soft(theta, temperature, threads)
        return np.split(marginals[0], np.cumsum(lengths)[:-1])


def _span_matrix(structure: SemiMarkov, longest: np.ndarray, attributes: Matrix | None) -> Matrix:
    """Lengths and attributes of all possible segments, a row each."""
    spans = structure.segments()
    rows, shape = np.arange(len(spans)), (len(spans), int(longest.max()))
    lengths = scipy.sparse.csr_array((np.ones(len(spans)), (rows, spans[:, 2] - 1)), shape=shape)
    return lengths if attributes is None else scipy.sparse.hstack([lengths, attributes], format="csr")
