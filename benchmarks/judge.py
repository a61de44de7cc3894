"""J of anybody's weights, computed by one exact piece of code outside of every timed region."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from benchmarks.datasets import Dataset
from benchmarks.objectives import CRF, Objective
from benchmarks.weights import Weights
from m3n import Problem, losses
from m3n.features import AttributeVectorizer, Sparse, chain_features
from m3n.structures import Chain


class Judge:
    """Evaluates objectives on the training data of a data set.

    A weight that a model does not have is zero here, which leaves J as it is: one problem with all pairs of attributes
    and labels serves models with any subset of them.
    """

    def __init__(self, dataset: Dataset):
        self.sentences = list(dataset.sentences(dataset.train))
        self.classes = sorted({label for _, labels in self.sentences for label in labels})
        self.number = {label: k for k, label in enumerate(self.classes)}

    def objective(self, objective: Objective, weights: Weights) -> float:
        """J at the weights."""
        y = [[self.number[label] for label in labels] for _, labels in self.sentences]
        loss = None if isinstance(objective, CRF) else losses.BY_NAME[objective.loss]()
        structure = Chain([len(labels) for labels in y], len(self.classes))
        features = chain_features(self._node, len(self.classes))
        strength = {"lam": objective.lam(len(y)), "l1": objective.l1(len(y))}
        problem = Problem(structure, features, y, loss=loss, **strength, temperature=objective.temperature, n_jobs=1)
        return problem.primal(self._vector(weights))

    @cached_property
    def _node(self) -> Sparse:
        self.vectorizer = AttributeVectorizer()
        return Sparse(self.vectorizer.fit_transform([rows for rows, _ in self.sentences]), len(self.classes))

    def _vector(self, weights: Weights) -> np.ndarray:
        node = self._node
        states, labels = np.zeros((node.X.shape[1], len(self.classes))), len(self.classes)
        vocabulary, number = self.vectorizer.vocabulary, self.number
        for (attribute, label), value in weights.states.items():
            states[vocabulary[attribute], number[label]] = value
        transitions = np.zeros((labels, labels))
        for (before, after), value in weights.transitions.items():
            transitions[number[before], number[after]] = value
        return np.concatenate([states.ravel(), transitions.ravel(), np.zeros(2 * labels)])
