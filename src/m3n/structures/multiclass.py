"""One label out of a fixed set per example: the simplest output space.

theta is one array (n, labels). Both oracles cost O(labels) per example. |Y| = labels.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from m3n.compiled.oracles.multiclass_block import MulticlassSpace
from m3n.compiled.primitives import rows
from m3n.packed import SERIAL, Threads
from m3n.structures.base import Examples, Parts, Selection, Structure
from m3n.structures.labels import LabelStructure, check_labels


class Multiclass(LabelStructure):
    """Independent examples, each with one of ``labels`` labels.

    Parameters
    ----------
    n : int
        Number of examples.
    labels : int
        Number of labels.
    """

    oracles: ClassVar[frozenset[str]] = frozenset({"hard", "soft", "support"})

    def __init__(self, n: int, labels: int):
        if n < 1 or labels < 1:
            raise ValueError(f"Multiclass needs at least one example and one label, got n={n}, labels={labels}")
        self.n = n
        self.labels = labels
        self.shapes = ((n, labels),)

    def hard(self, theta: Parts, threads: Threads = SERIAL) -> tuple[np.ndarray, np.ndarray]:
        labelling = theta[0].argmax(axis=1)
        return theta[0][np.arange(self.n), labelling], labelling

    def soft(
        self, theta: Parts, mu: float, threads: Threads = SERIAL, weights: np.ndarray | None = None
    ) -> tuple[np.ndarray, Parts]:
        values = np.empty(self.n)
        threads.run(lambda low, high: rows.soft(theta[0], low, high, mu, values), threads.rows(self.n))
        if weights is not None:
            theta[0][:] *= weights[:, None]
        return values, theta

    def slack(
        self, theta: Parts, gold: np.ndarray, cost: Any, threads: Threads = SERIAL
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        losses, everyone = np.zeros(self.shapes[0]), np.arange(self.n)
        cost.add_to((losses,), 1.0, threads)
        products = 1.0 + theta[0] - theta[0][everyone, gold][:, None]
        products *= np.where(losses > 0.0, losses, 1.0)
        products[losses == 0.0] = 0.0
        labelling = products.argmax(axis=1)
        labelling = np.where(products[everyone, labelling] == 0.0, gold, labelling)
        return products[everyone, labelling], labelling, losses[everyone, labelling]

    def loss_units(self, cost: Any) -> tuple[np.ndarray, np.ndarray]:
        return np.ones(self.n), np.ones(self.n, np.int64)  # labels are tried one by one, whatever they cost

    def log_size(self) -> np.ndarray:
        return np.full(self.n, np.log(self.labels))

    def radius(self, norms: Parts) -> float:
        # |x (e_gold - e_y)| = sqrt(2) |x|, exactly
        return float(np.sqrt(2.0) * norms[0].max()) if self.labels > 1 else 0.0

    def pack(self, outputs: Sequence[Any] | np.ndarray) -> np.ndarray:
        if len(outputs) != self.n:
            raise ValueError(f"{self.n} examples but {len(outputs)} outputs")
        return check_labels(np.asarray(outputs), self.labels, "y")

    def unpack(self, labelling: np.ndarray) -> list[Any]:
        return labelling.tolist()

    def score(self, theta: Parts, packed: np.ndarray, threads: Threads = SERIAL) -> np.ndarray:
        return theta[0][np.arange(self.n), packed]

    def select(self, examples: Examples) -> tuple[Structure, tuple[Selection, ...]]:
        return Multiclass(len(np.arange(self.n)[examples]), self.labels), self.rows_of(examples)

    def spans(self) -> tuple[np.ndarray | None, ...]:
        return (np.arange(self.n + 1),)

    def most_parts(self) -> np.ndarray:
        return np.ones(self.n, np.int64)

    def space(self) -> MulticlassSpace:
        return MulticlassSpace(self.labels)

    def enumerate(self, example: int) -> Iterator[np.ndarray]:
        for label in range(self.labels):
            yield np.array([label])
