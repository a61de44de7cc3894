"""Output spaces: one file each."""

from m3n.structures.base import Parts, Structure
from m3n.structures.chain import Chain
from m3n.structures.multiclass import Multiclass

__all__ = ["Chain", "Multiclass", "Parts", "Structure"]
