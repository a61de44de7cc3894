"""Outputs with one label per position: from what users write to one labelling, and back."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from m3n.structures.base import check_labels


class Words(NamedTuple):
    """What the parts of an output are called in messages."""

    example: str = "sequence"
    positions: str = "positions"
    outputs: str = "label sequences"


def join_labels(outputs: Sequence[Any] | np.ndarray, lengths: np.ndarray, labels: int, words: Words) -> np.ndarray:
    """The labels of all examples, one after another, after checking how many they are and that they exist."""
    if len(outputs) != len(lengths):
        raise ValueError(f"{len(lengths)} {words.example}s but {len(outputs)} {words.outputs}")
    for i, (output, length) in enumerate(zip(outputs, lengths, strict=True)):
        if len(output) != length:
            raise ValueError(f"{words.example} {i} has {length} {words.positions} but {len(output)} labels")
    return np.concatenate([check_labels(np.asarray(y), labels, f"{words.example} {i}") for i, y in enumerate(outputs)])


def cut_labels(labelling: np.ndarray, offsets: np.ndarray) -> list[Any]:
    """One list of labels per example."""
    labels = labelling.tolist()
    return [labels[a:b] for a, b in itertools.pairwise(offsets.tolist())]
