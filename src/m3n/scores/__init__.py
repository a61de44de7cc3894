"""Scores of predictions: tokens, chunks, sets, whole sequences, which label is taken for which; trees; alignments."""

from m3n.scores.alignment import AlignmentScores, alignment_scores
from m3n.scores.attachment import AttachmentScores, attachment_rows, attachment_scores
from m3n.scores.brackets import BracketScores, bracket_rows, bracket_scores
from m3n.scores.labels import chunk_scores, confusion, set_scores, token_scores
from m3n.scores.table import Row, Scores

__all__ = [
    "AlignmentScores", "AttachmentScores", "BracketScores", "Row", "Scores", "alignment_scores", "attachment_rows",
    "attachment_scores", "bracket_rows", "bracket_scores", "chunk_scores", "confusion", "set_scores", "token_scores",
]  # fmt: skip
