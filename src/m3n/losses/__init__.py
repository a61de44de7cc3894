"""Losses: a constant and costs of parts."""

from m3n.losses.base import Cost, Loss, Sum
from m3n.losses.edges import EdgeHamming
from m3n.losses.hamming import Hamming, NoLoss, NormalizedHamming
from m3n.losses.matrix import CostMatrix
from m3n.losses.parts import PartLoss

BY_NAME: dict[str, type[Loss]] = {"hamming": Hamming, "normalized_hamming": NormalizedHamming}

__all__ = [
    "BY_NAME",
    "Cost",
    "CostMatrix",
    "EdgeHamming",
    "Hamming",
    "Loss",
    "NoLoss",
    "NormalizedHamming",
    "PartLoss",
    "Sum",
]
