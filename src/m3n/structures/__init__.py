"""Output spaces: one file each."""

from m3n.structures.base import Parts, Structure
from m3n.structures.chain import Chain
from m3n.structures.multiclass import Multiclass
from m3n.structures.slack import InexactOracle
from m3n.structures.transitions import Transitions

__all__ = ["Chain", "InexactOracle", "Multiclass", "Parts", "Structure", "Transitions"]
