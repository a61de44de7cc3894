"""Word alignment without labelled data: translation probabilities from sentence pairs, and what follows from them."""
