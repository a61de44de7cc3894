"""Scores of predicted labels: tokens, chunks, sets, whole sequences, and which label is taken for which."""

from m3n.scores.chunks import chunk_scores
from m3n.scores.table import Row, Scores
from m3n.scores.tokens import confusion, set_scores, token_scores

__all__ = ["Row", "Scores", "chunk_scores", "confusion", "set_scores", "token_scores"]
