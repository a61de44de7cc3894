"""Label losses that decompose over parts."""

from m3n.losses.base import Cost, Loss
from m3n.losses.hamming import Hamming, NoLoss, NormalizedHamming

BY_NAME: dict[str, type[Loss]] = {"hamming": Hamming, "normalized_hamming": NormalizedHamming}

__all__ = ["BY_NAME", "Cost", "Hamming", "Loss", "NoLoss", "NormalizedHamming"]
