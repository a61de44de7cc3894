"""Word alignment without labelled data: translation probabilities from sentence pairs, and what follows from them."""

from m3n.alignment.symmetrization import symmetrize

__all__ = ["symmetrize"]
