"""What writers of sequences check before they write."""

from __future__ import annotations

from collections.abc import Sequence, Sized
from typing import Any


def check_counts(X: Sequence[Any], y: Sequence[Sized] | None) -> None:
    """Refuse labels for more or fewer sequences than there are.

    Parameters
    ----------
    X : sequences
        Lists of tokens, or matrices with a row per token.
    y : sequences of labels, or None
        The labels, if there are any.
    """
    if y is not None and len(X) != len(y):
        raise ValueError(f"X has {len(X)} sequences but y has {len(y)}")


def check_lengths(X: Sequence[Any], y: Sequence[Sized] | None) -> None:
    """Refuse empty sequences, and labels that do not fit; X and y as in ``check_counts``."""
    check_counts(X, y)
    for i, sequence in enumerate(X):
        length = sequence.shape[0] if hasattr(sequence, "shape") else len(sequence)
        if not length:
            raise ValueError(f"sequence {i} is empty, which this format cannot say; leave it out")
        if y is not None and len(y[i]) != length:
            raise ValueError(f"sequence {i} has {length} positions in X but {len(y[i])} labels in y")
