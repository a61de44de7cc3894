"""Labelled sequences as numbers, and the tagger that comes out of training on them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

from m3n.compat.crf_training import Plan, Task
from m3n.compat.imported import SEPARATOR, tagger_of
from m3n.compat.items import listed, plain_labels, reading
from m3n.estimators import SequenceTagger
from m3n.estimators.inputs import SequenceReader, flat_labels
from m3n.features import AttributeVectorizer
from m3n.io.sentences import numbered


@dataclass(frozen=True)
class TrainingData:
    """Sequences with their labels.

    Attributes
    ----------
    matrix : sparse matrix (tokens, attributes)
        The tokens of all sequences, one after another.
    gold : list of arrays of int
        The labels of every sequence that is not empty.
    labels : list
        The labels, in order of appearance.
    vectorizer : AttributeVectorizer
        The attributes.
    """

    matrix: scipy.sparse.csr_array
    gold: list[np.ndarray]
    labels: list[Any]
    vectorizer: AttributeVectorizer

    @classmethod
    def of(cls, X: Iterable[Any], y: Iterable[Any]) -> TrainingData:
        """What sequences and their labels say.

        Parameters
        ----------
        X : sequences of tokens
            As python-crfsuite takes them.
        y : sequences of labels
            One label per token.
        """
        sequences = [listed(xseq) for xseq in X]
        lengths = np.array([len(xseq) for xseq in sequences], dtype=np.int64)
        flat = flat_labels(y if y is None else [plain_labels(given) for given in y], lengths)
        if not flat:
            raise ValueError("there is nothing to train on: X has no tokens")
        codes, labels = numbered(flat, len(flat))
        if len({isinstance(label, str) for label in labels}) > 1:
            raise ValueError("labels must be all strings or all numbers; found both")
        lengths = lengths[lengths > 0]
        gold = np.split(codes.astype(np.int64), np.cumsum(lengths)[:-1])
        vectorizer = AttributeVectorizer(SEPARATOR)
        return cls(reading(vectorizer.fit_transform, sequences), gold, labels, vectorizer)

    def model(self, task: Task, w: np.ndarray, plan: Plan) -> SequenceTagger:
        """The tagger with some weights.

        Parameters
        ----------
        task : Task
            What the weights mean.
        w : array (dim,)
            All weights.
        plan : Plan
            How they were found.
        """
        reader = SequenceReader("attributes", len(self.vectorizer.vocabulary), self.vectorizer)
        lam, l1 = task.problem.lam, task.problem.l1
        settings = {"objective": plan.objective, "lam": lam, "l1": l1, "tol": 0.0, "rtol": plan.rtol}
        coef, transitions = task.weights(w)
        model = tagger_of(self.labels, reader, coef, transitions, max_passes=plan.max_passes, **settings)
        vars(model).update(lam_=lam)
        return model
