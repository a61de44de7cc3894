"""Labelled sequences as numbers, and the tagger that comes out of training on them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse

from m3n.compat.crf_training import Plan, Task
from m3n.compat.imported import SEPARATOR, tagger_of
from m3n.compat.items import listed, plain_labels, reading
from m3n.estimators import SequenceTagger
from m3n.estimators.inputs import SequenceReader, label_codes
from m3n.estimators.labels import side_by_side
from m3n.estimators.sequences import Blocks
from m3n.features import AttributeVectorizer
from m3n.features.vectorizer import GrowingRows


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
            As python-crfsuite takes them. They are read once, and let go of when they are numbers.
        y : sequences of labels
            One label per token.
        """
        X, y = side_by_side(X, map(plain_labels, y) if isinstance(y, Iterable) else y)
        blocks, rows = Blocks(map(listed, X)), GrowingRows(SEPARATOR)
        for begin, block in blocks:
            reading(partial(rows.add, begin=begin), block, begin)
        codes, labels = label_codes(y, blocks.lengths)
        if not labels:
            raise ValueError("there is nothing to train on: X has no tokens")
        lengths = blocks.lengths[blocks.lengths > 0]
        gold = np.split(codes.astype(np.int64), np.cumsum(lengths)[:-1])
        vectorizer = AttributeVectorizer(SEPARATOR)
        return cls(vectorizer.take(rows), gold, labels, vectorizer)

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
