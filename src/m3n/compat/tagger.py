"""What scripts ask of ``pycrfsuite.Tagger``, answered by a ``SequenceTagger``."""

from __future__ import annotations

import math
import os
import sys
import tempfile
from dataclasses import dataclass
from functools import cached_property
from operator import index
from pathlib import Path
from typing import Any

import numpy as np

from m3n.compat.conversion import convert
from m3n.compat.crfsuite import MAGIC, Weights, dump_of, parse_binary
from m3n.compat.crfsuite_writer import VERSION, size_of
from m3n.compat.exports import weights_of
from m3n.compat.imported import ImportedModelError
from m3n.compat.items import listed, plain_label, plain_labels, reading
from m3n.estimators import SequenceTagger, load
from m3n.io.files import DataFileError
from m3n.io.model_file import ModelFileError


@dataclass(frozen=True)
class ModelInfo:
    """A model in plain dicts, as ``pycrfsuite.Tagger.info`` has it.

    Attributes
    ----------
    header : dict of str
        Sizes.
    labels, attributes : dict
        From names to numbers, which are strings.
    transitions : dict
        From (label, label) to weight.
    state_features : dict
        From (attribute, label) to weight.
    """

    header: dict[str, str]
    labels: dict[str, str]
    attributes: dict[str, str]
    transitions: dict[tuple[str, str], float]
    state_features: dict[tuple[str, str], float]


class UnknownLabel(ValueError, RuntimeError):
    """A label that the model does not have; python-crfsuite raises a RuntimeError."""


class Tagger:
    """Labels one sequence at a time; as a context manager, it is closed at the end.

    Parameters
    ----------
    model : SequenceTagger or None
        A fitted model; None if ``open`` is to bring one.
    """

    def __init__(self, model: SequenceTagger | None = None):
        self._model = model
        self._sequence: list[Any] | None = None

    def __enter__(self) -> Tagger:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @property
    def model(self) -> SequenceTagger:
        """The model."""
        if self._model is None:
            raise ValueError("this Tagger has no model, or is closed; call open(path) first")
        return self._model

    def open(self, name: str | bytes | os.PathLike[str]) -> Tagger:
        """Take the model of a file.

        Parameters
        ----------
        name : path
            What ``SequenceTagger.save`` wrote, or a model that ``m3n.compat.convert`` reads.
        """
        return self._take(read_model(os.fsdecode(name)))

    def open_inmemory(self, value: bytes) -> Tagger:
        """Take a model from its bytes.

        Parameters
        ----------
        value : bytes
            The content of a file that ``open`` takes.
        """
        if not isinstance(value, bytes):
            raise TypeError(f"give the bytes of a model, not a {type(value).__name__}; open(path) takes a file")
        if value.startswith(MAGIC):
            return self._take(parse_binary(value, "the model").tagger())
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "model")
            path.write_bytes(value)
            try:
                return self._take(read_model(path))
            except DataFileError as error:
                raise ImportedModelError(str(error).replace(os.fspath(path), "the model")) from None

    def close(self) -> None:
        """Forget the model; what needs one raises until ``open`` brings another."""
        self._take(None)

    def labels(self) -> list[Any]:
        """The labels of the model."""
        return self.model.classes_.tolist()

    def set(self, xseq: Any) -> None:
        """Take a sequence, about which the other methods then speak.

        Parameters
        ----------
        xseq : list of dicts or of lists of strings
            The tokens.
        """
        if self._model is None:
            raise ValueError("this Tagger has no model, or is closed; call open(path) first")
        self._sequence = listed(xseq)
        vars(self).pop("_marginals", None)

    def tag(self, xseq: Any = None) -> list[Any]:
        """The best labels.

        Parameters
        ----------
        xseq : list of tokens, optional
            The sequence; None for that of ``set``.
        """
        if xseq is not None:
            self.set(xseq)
        return reading(self.model.predict, [self._current])[0] if self._current else []

    def probability(self, yseq: Any) -> float:
        """The probability of labels for the current sequence.

        Parameters
        ----------
        yseq : list of labels
            One per token.
        """
        model, X, given = self.model, [self._current], list(plain_labels(yseq))
        if len(given) != len(self._current):
            raise ValueError(f"the sequence has {len(self._current)} tokens, but there are {len(given)} labels")
        for label in given:
            self._number(label)
        if not given:
            return 1.0
        (_, best, share), *_ = reading(lambda x: model.predict_k_best(x, 1, probabilities=True), X)[0]
        (_, score), *_ = reading(lambda x: model.predict_k_best(x, 1, fixed=[given]), X)[0]
        return share * math.exp(score - best)

    def marginal(self, y: Any, pos: int) -> float:
        """The probability of a label at a position of the current sequence.

        Parameters
        ----------
        y : label
            Which.
        pos : int
            Where.
        """
        label, length, pos = self._number(plain_label(y)), len(self._current), index(pos)
        if not 0 <= pos < length:
            raise ValueError(f"the sequence has {length} tokens; there is no position {pos}")
        return float(self._marginals[pos, label])

    def info(self) -> ModelInfo:
        """The model in plain dicts."""
        weights = self.weights
        labels, attributes = weights.labels, weights.attributes
        return ModelInfo(
            {
                "magic": MAGIC.decode(),
                "type": "FOMC",
                "version": str(VERSION),
                "size": str(size_of(weights)),
                "num_features": str(len(weights.states) + len(weights.transitions)),
                "num_labels": str(len(labels)),
                "num_attrs": str(len(attributes)),
            },
            {label: str(k) for k, label in enumerate(labels)},
            {attribute: str(k) for k, attribute in enumerate(attributes)},
            {(labels[i], labels[j]): weight for i, j, weight in weights.transitions},
            {(attributes[a], labels[j]): weight for a, j, weight in weights.states},
        )

    def dump(self, filename: str | os.PathLike[str] | None = None) -> None:
        """Write the model as CRFsuite's text dump, which ``m3n.compat.convert`` reads.

        Parameters
        ----------
        filename : path, optional
            Where to; None for standard output.
        """
        text = dump_of(self.weights)
        if filename is None:
            sys.stdout.write(text)
        else:
            Path(filename).write_text(text, encoding="utf-8", newline="")

    @cached_property
    def weights(self) -> Weights:
        """The weights that are not 0, with the attributes that have some."""
        if self._model is None:
            raise RuntimeError("this Tagger has no model, or is closed; call open(path) first")
        return weights_of(self._model)

    def _take(self, model: SequenceTagger | None) -> Tagger:
        """Change the model."""
        self._model, self._sequence = model, None
        for kept in ("weights", "_marginals"):  # of another model
            vars(self).pop(kept, None)
        return self

    def _number(self, label: Any) -> int:
        labels = self.labels()
        if label not in labels:
            raise UnknownLabel(f"the model does not know the label {label!r}; it knows {labels!r:.300}")
        return labels.index(label)

    @property
    def _current(self) -> list[Any]:
        if self._sequence is None:
            raise ValueError("there is no sequence yet; call set(xseq) or tag(xseq) first")
        return self._sequence

    @cached_property
    def _marginals(self) -> np.ndarray:
        return reading(self.model.predict_marginals, [self._current])[0]


def read_model(name: str | os.PathLike[str]) -> SequenceTagger:
    """A tagger from a file of ours or of another programme.

    Parameters
    ----------
    name : path
        The file.
    """
    try:
        model = load(name)
    except ModelFileError:
        return convert(name)
    if not isinstance(model, SequenceTagger):
        raise ModelFileError(f"{os.fspath(name)!r} holds a {type(model).__name__}, not a SequenceTagger")
    return model
