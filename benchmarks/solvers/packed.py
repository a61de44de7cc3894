"""Data in the form in which m3n trains on it, and the chain problem made of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np

from benchmarks.datasets import Chunking, Dataset, Sequences
from benchmarks.datasets.chunking import TEMPLATES
from benchmarks.datasets.ocr import arrays
from benchmarks.objectives import CRF, Objective
from benchmarks.solvers.base import Unsuitable
from benchmarks.weights import Weights

Rows = tuple[Any, np.ndarray]  # matrix with a row per position, lengths of the sequences


@dataclass(frozen=True)
class Packed:
    """Training sequences as one matrix and numbers.

    Attributes
    ----------
    X, lengths, gold : arrays
        Inputs, lengths of the sequences, label numbers of all positions.
    classes : list of str
        The labels.
    read : callable
        From a file to the rows of other sequences.
    names : callable
        The attributes as text.
    """

    X: Any
    lengths: np.ndarray
    gold: np.ndarray
    classes: list[str]
    read: Callable[[str], Rows]
    names: Callable[[], list[str]]

    @property
    def labels(self) -> int:
        """How many there are."""
        return len(self.classes)

    def problem(self, objective: Objective, features: Any, jobs: int) -> Any:
        """What ``minimize`` takes."""
        from m3n import Problem, losses
        from m3n.structures import Chain

        n, temperature = len(self.lengths), objective.temperature
        loss = None if isinstance(objective, CRF) else losses.BY_NAME[objective.loss]()
        gold = np.split(self.gold, np.cumsum(self.lengths)[:-1])
        structure = Chain(self.lengths, self.labels)
        strength = {"lam": objective.lam(n)} | ({"l1": objective.l1(n)} if objective.l1(n) else {})
        return Problem(structure, features, gold, loss=loss, **strength, temperature=temperature, n_jobs=jobs)

    def features(self, objective: Objective, X: Any) -> Any:
        """The feature map of training or test rows. Attributes of columns mark the ends themselves, pixels do not."""
        from m3n import features

        labels = self.labels
        if isinstance(X, np.ndarray):
            return features.chain_features(features.Dense(X, labels), labels)
        if not hasattr(features, "Observed"):
            raise Unsuitable("this version of m3n gives the ends of sequences weights that the rivals do not have")
        none = features.ObservedTable(np.zeros(labels, bool))
        if objective.states == "all":
            return features.Stack(features.Sparse(X, labels), features.Table(labels, labels), none, none)
        pairs, follows = self._observed
        return features.Stack(features.Observed(X, pairs), features.ObservedTable(follows), none, none)

    def without_rows(self) -> Packed:
        """The rest, once the feature map has made its own of the matrix; estimators let go of it, too."""
        rest = replace(self, X=None)
        rest.__dict__.update({name: value for name, value in self.__dict__.items() if name == "_observed"})
        return rest

    @cached_property
    def _observed(self) -> tuple[Any, np.ndarray]:
        """Which attribute occurs with which label, and which label after which, in training."""
        from m3n.features import observed_pairs, observed_transitions

        pairs = observed_pairs(self.X, self.gold, self.labels)
        return pairs, observed_transitions(self.gold, self.lengths, self.labels)

    def tag(self, features: Any, lengths: np.ndarray, w: np.ndarray, jobs: int) -> Sequences:
        """Best labels of sequences whose feature map is ready."""
        from m3n.packed import Threads
        from m3n.structures import Chain

        structure, threads = Chain(lengths, self.labels), Threads(jobs)
        labelling = structure.hard(features.scores(w, structure.empty(), threads), threads)[1]
        flat = list(map(self.classes.__getitem__, labelling.tolist()))
        ends = np.cumsum(lengths).tolist()
        return [flat[low:high] for low, high in zip([0, *ends], ends, strict=False)]

    def weights(self, features: Any, w: np.ndarray) -> Weights:
        """By name, for the judge."""
        node, transitions, start, end = features.split(w)
        part = features.maps[0]
        sparse = part.coefficients(node).tocoo() if hasattr(part, "coefficients") else None
        if sparse is None:
            attribute, label = (k.ravel() for k in np.indices((len(node) // self.labels, self.labels)))
        else:
            (attribute, label), node = sparse.coords, sparse.data
        names, classes = np.array(self.names(), dtype=object), np.array(self.classes, dtype=object)
        used = np.flatnonzero(node)
        states = dict(zip(zip(names[attribute[used]], classes[label[used]], strict=True), node[used], strict=True))
        for name, table in (("first", start), ("last", end)):
            states |= {(name, c): float(v) for c, v in zip(self.classes, table, strict=True) if v}
        table = transitions.reshape(self.labels, self.labels)
        return Weights(
            states, {(a, b): float(table[i, j]) for i, a in enumerate(classes) for j, b in enumerate(classes)}
        )


def ingest(dataset: Dataset) -> Packed:
    """From the file to the matrix, the way that this version of m3n does it fastest."""
    if not isinstance(dataset, Chunking):
        return _images(dataset)
    from m3n import features

    return _templates(dataset) if hasattr(features, "Templates") else _lists(dataset)


def _images(dataset: Dataset) -> Packed:
    X, y = arrays(dataset.train)
    names = [*(f"p{k}" for k in range(X[0].shape[1] - 1)), "bias"]
    gold = np.concatenate(y)
    numbers = np.unique(gold)
    lengths = np.array([*map(len, y)])
    labels = np.searchsorted(numbers, gold)
    return Packed(np.concatenate(X), lengths, labels, list(map(str, numbers)), _read_images, lambda: names)


def _read_images(path: str) -> Rows:
    X, y = arrays(path)
    return np.concatenate(X), np.array([*map(len, y)])


def _templates(dataset: Dataset) -> Packed:
    from m3n.features import Templates
    from m3n.io import read_columns

    def read(path: str) -> Rows:
        sentences = read_columns(path)
        return templates.transform(sentences), sentences.lengths

    templates = Templates([_pattern(*template) for template in TEMPLATES], padding="marks")
    sentences = read_columns(dataset.train)
    X, label = templates.fit_transform(sentences), sentences.label
    order = sorted(range(len(label.values)), key=label.values.__getitem__)
    rank = np.argsort(order)
    classes = [label.values[k] for k in order]
    return Packed(X, sentences.lengths, rank[label.codes], classes, read, lambda: templates.names)


def _pattern(prefix: str, column: int, window: tuple[int, ...]) -> str:
    """Our template as text: ``w[-1]|w[0]=%x[-1,0]|%x[0,0]``."""
    return prefix + "|".join(f"%x[{offset},{column}]" for offset in window)


def _lists(dataset: Dataset) -> Packed:
    """From lists of strings, for versions of m3n that do not read templates."""
    from m3n.features import AttributeVectorizer

    def read(path: str) -> Rows:
        lists = [attributes for attributes, _ in dataset.sentences(path)]
        return vectorizer.transform(lists), np.array([*map(len, lists)])

    vectorizer = AttributeVectorizer()
    sentences = list(dataset.sentences(dataset.train))
    X = vectorizer.fit_transform([attributes for attributes, _ in sentences])
    flat = list(chain.from_iterable(labels for _, labels in sentences))
    classes = sorted(set(flat))
    gold = np.array(list(map({label: k for k, label in enumerate(classes)}.__getitem__, flat)))
    lengths = np.array([len(labels) for _, labels in sentences])
    return Packed(X, lengths, gold, classes, read, lambda: vectorizer.names)
