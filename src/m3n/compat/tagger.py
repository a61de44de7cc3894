"""What scripts ask of ``pycrfsuite.Tagger``, answered by a ``SequenceTagger``."""

from __future__ import annotations

import math
import os
import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from m3n.compat.conversion import convert
from m3n.compat.crfsuite import Weights, dump_of
from m3n.estimators import SequenceTagger, load
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


class Tagger:
    """Labels one sequence at a time.

    Parameters
    ----------
    model : SequenceTagger or None
        A fitted model; None if ``open`` is to bring one.
    """

    def __init__(self, model: SequenceTagger | None = None):
        self._model = model
        self._sequence: list[Any] | None = None

    @property
    def model(self) -> SequenceTagger:
        """The model."""
        if self._model is None:
            raise ValueError("this Tagger has no model; call open(path) first")
        return self._model

    def open(self, name: str | os.PathLike[str]) -> Tagger:
        """Take the model of a file.

        Parameters
        ----------
        name : path
            What ``SequenceTagger.save`` wrote, or a model that ``m3n.compat.convert`` reads.
        """
        self._model, self._sequence = read_model(name), None
        for kept in ("weights", "_marginals"):  # of another model
            vars(self).pop(kept, None)
        return self

    def close(self) -> None:
        """Do nothing: no file is open."""

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
        return self.model.predict([self._current])[0] if self._current else []

    def probability(self, yseq: Any) -> float:
        """The probability of labels for the current sequence.

        Parameters
        ----------
        yseq : list of labels
            One per token.
        """
        if not self._current:
            return 1.0
        X, given = [self._current], [list(yseq)]
        (_, best, share), *_ = self.model.predict_k_best(X, 1, probabilities=True)[0]
        (_, score), *_ = self.model.predict_k_best(X, 1, fixed=given)[0]
        return share * math.exp(score - best)

    def marginal(self, y: Any, t: int) -> float:
        """The probability of a label at a position of the current sequence.

        Parameters
        ----------
        y : label
            Which.
        t : int
            Where.
        """
        labels = self.labels()
        if y not in labels:
            raise ValueError(f"the model does not know the label {y!r}; it knows {labels!r:.300}")
        return float(self._marginals[t, labels.index(y)])

    def info(self) -> ModelInfo:
        """The model in plain dicts."""
        weights = self.weights
        labels, attributes = weights.labels, weights.attributes
        return ModelInfo(
            {
                "type": "FOMC",
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
        return weights_of(self.model)

    @property
    def _current(self) -> list[Any]:
        if self._sequence is None:
            raise ValueError("there is no sequence yet; call set(xseq) or tag(xseq) first")
        return self._sequence

    @cached_property
    def _marginals(self) -> np.ndarray:
        return self.model.predict_marginals([self._current])[0]


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


def weights_of(model: SequenceTagger) -> Weights:
    """The weights of a tagger that are not 0.

    Parameters
    ----------
    model : SequenceTagger
        Fitted on attributes, without scores for the first and the last label.
    """
    if model.start_.any() or model.end_.any() or model.edge_coef_ is not None:
        what = "scores of the first or last label, or attributes of label pairs"
        raise ValueError(
            f"this model has {what}, for which CRFsuite has no place; look at SequenceTagger's own attributes"
        )
    coef = scipy.sparse.coo_array(model.coef_)
    kept = coef.data != 0.0
    rows, columns, values = coef.row[kept], coef.col[kept], coef.data[kept]
    used, rows = np.unique(rows, return_inverse=True)
    names = model.reader_.vectorizer.names
    states = list(zip(rows.tolist(), columns.tolist(), values.tolist(), strict=True))
    sources, targets = np.nonzero(model.transitions_)
    weights = model.transitions_[sources, targets]
    transitions = list(zip(sources.tolist(), targets.tolist(), weights.tolist(), strict=True))
    return Weights(model.classes_.tolist(), [names[k] for k in used.tolist()], states, transitions)


def size_of(weights: Weights) -> int:
    """How many bytes a model takes: 20 per weight, as in CRFsuite's files, and the names.

    Parameters
    ----------
    weights : Weights
        A model.
    """
    names = sum(len(str(name).encode("utf-8", "surrogatepass")) + 9 for name in weights.labels + weights.attributes)
    return 20 * (len(weights.states) + len(weights.transitions)) + names


def listed(xseq: Any) -> list[Any]:
    """The tokens of a sequence; ``pycrfsuite.ItemSequence`` hands them out by ``items``.

    Parameters
    ----------
    xseq : iterable of tokens
        The sequence.
    """
    return list(xseq.items() if type(xseq).__name__ == "ItemSequence" else xseq)
