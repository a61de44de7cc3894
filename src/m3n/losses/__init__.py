"""Losses: a constant and costs of parts."""

from m3n.losses.base import Cost, Loss, Sum
from m3n.losses.labels import CostMatrix, Hamming, NoLoss, NormalizedHamming
from m3n.losses.parts import EdgeHamming, PartLoss
from m3n.losses.spans import SpanLoss

BY_NAME: dict[str, type[Loss]] = {"hamming": Hamming, "normalized_hamming": NormalizedHamming}

__all__ = [
    "BY_NAME", "Cost", "CostMatrix", "EdgeHamming", "Hamming", "Loss", "NoLoss", "NormalizedHamming", "PartLoss",
    "SpanLoss", "Sum",
]  # fmt: skip
