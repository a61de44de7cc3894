"""Which settings: a search along paths over lam, and what it proves about every lam in between."""

from m3n.tuning.guarantee import Guarantee, Piece, Solved, relative_radius
from m3n.tuning.result import Row, Tuning
from m3n.tuning.search import tune

__all__ = ["Guarantee", "Piece", "Row", "Solved", "Tuning", "relative_radius", "tune"]
