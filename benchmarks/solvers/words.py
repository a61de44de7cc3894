"""The chain on images in NumPy: what rivals that ask for an oracle, or for padded arrays, are given."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmarks.datasets import Dataset, Sequences
from benchmarks.datasets.ocr import PIXELS, arrays
from benchmarks.solvers.base import Unsuitable
from benchmarks.weights import Weights


@dataclass(frozen=True)
class Words:
    """Training words: images, label numbers, and the label of every number."""

    X: list[np.ndarray]
    y: list[np.ndarray]
    classes: list[str]


@dataclass(frozen=True)
class Model:
    """A weight vector in its four parts: pixels and a constant, transitions, first and last letter."""

    node: np.ndarray
    transitions: np.ndarray
    start: np.ndarray
    end: np.ndarray

    @classmethod
    def of(cls, w: np.ndarray, labels: int) -> Model:
        """Cut a vector of ``size(labels)`` numbers (views)."""
        cuts = np.cumsum([(PIXELS + 1) * labels, labels * labels, labels])
        node, transitions, start, end = np.split(w, cuts)
        return cls(node.reshape(-1, labels), transitions.reshape(labels, labels), start, end)

    def best(self, image: np.ndarray, cost: np.ndarray | float = 0.0) -> np.ndarray:
        """The letters with the highest score plus cost (positions, labels): Viterbi's recursion."""
        theta = image @ self.node + cost
        theta[0] += self.start
        theta[-1] += self.end
        value, back = theta[0], []
        for row in theta[1:]:
            paths = value[:, None] + self.transitions
            back.append(paths.argmax(axis=0))
            value = paths.max(axis=0) + row
        letters = [int(value.argmax())]
        for pointers in reversed(back):
            letters.append(int(pointers[letters[-1]]))
        return np.array(letters[::-1])

    def tag(self, images: list[np.ndarray], classes: list[str]) -> Sequences:
        """The best letters of every word, as text."""
        return [[classes[k] for k in self.best(image)] for image in images]

    def weights(self, classes: list[str]) -> Weights:
        """By the names that the data set gives to attributes."""
        rows = {f"p{k}": row for k, row in enumerate(self.node)}
        rows |= {"bias": rows.pop(f"p{PIXELS}"), "first": self.start, "last": self.end}
        states = {(name, classes[k]): float(v) for name, row in rows.items() for k, v in enumerate(row)}
        follows = {(classes[a], classes[b]): float(v) for (a, b), v in np.ndenumerate(self.transitions)}
        return Weights(states, follows)


def size(labels: int) -> int:
    """How many weights there are: 4082 for 26 letters."""
    return (PIXELS + 1 + labels + 2) * labels


def features(image: np.ndarray, letters: np.ndarray, labels: int) -> np.ndarray:
    """phi(x, y) as a vector."""
    phi = np.zeros(size(labels))
    model = Model.of(phi, labels)
    np.add.at(model.node.T, letters, image)
    np.add.at(model.transitions, (letters[:-1], letters[1:]), 1.0)
    model.start[letters[0]] = model.end[letters[-1]] = 1.0
    return phi


def training_words(dataset: Dataset) -> Words:
    """The training words, if the data set has any; only letters that occur are labels, as everywhere."""
    X, y = images(dataset, dataset.train)
    found, flat = np.unique(np.concatenate(y), return_inverse=True)
    return Words(X, np.split(flat, np.cumsum([*map(len, y)])[:-1]), list(map(str, found)))


def images(dataset: Dataset, path: str) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Images and letters of a file."""
    if not path.endswith(".npz"):
        raise Unsuitable(f"takes dense arrays only, and {dataset.name} is sparse")
    return arrays(path)
