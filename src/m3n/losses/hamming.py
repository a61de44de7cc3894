"""Hamming loss: the number of wrong labels, or their share; and no loss at all."""

from __future__ import annotations

import numpy as np

from m3n.losses.base import Cost, Loss
from m3n.structures.base import Structure


class Hamming(Loss):
    """Number of positions with a wrong label."""

    def cost(self, structure: Structure, gold: np.ndarray) -> Cost:
        labels = structure.shapes[0][1]
        return Cost(gold, np.ones(len(gold)), 1.0 - np.eye(labels))


class NormalizedHamming(Loss):
    """Share of positions with a wrong label, between 0 and 1 for every example."""

    def cost(self, structure: Structure, gold: np.ndarray) -> Cost:
        labels = structure.shapes[0][1]
        lengths = np.array([len(np.atleast_1d(y)) for y in structure.unpack(gold)])
        return Cost(gold, np.repeat(1.0 / lengths, lengths), 1.0 - np.eye(labels))


class NoLoss(Loss):
    """Zero everywhere: the conditional random field's loss."""

    def cost(self, structure: Structure, gold: np.ndarray) -> Cost:
        labels = structure.shapes[0][1]
        return Cost(gold, np.zeros(len(gold)), np.zeros((labels, labels)))
