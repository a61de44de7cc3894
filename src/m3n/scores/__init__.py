"""Scores of predicted labels: tokens, chunks, sets, whole sequences, and which label is taken for which."""

from m3n.scores.labels import chunk_scores, confusion, set_scores, token_scores
from m3n.scores.table import Row, Scores

__all__ = ["Row", "Scores", "chunk_scores", "confusion", "set_scores", "token_scores"]
