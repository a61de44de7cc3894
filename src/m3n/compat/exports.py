"""Models for other programmes: which weights they have there, and the files.

CRFsuite scores attributes with labels, and pairs of neighbouring labels; CRF++ scores attributes of such pairs too, and
by two templates that only the ends of a sentence meet, the first and the last label. What has no place in a format is
refused, so that a file that is written predicts what the model predicts.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from m3n.compat.crfpp_writer import text_model
from m3n.compat.crfsuite import Weights, dump_of
from m3n.compat.crfsuite_writer import model_bytes
from m3n.compat.imported import SEPARATOR, ExportError
from m3n.estimators import SequenceTagger
from m3n.features import AttributeVectorizer
from m3n.io.files import write_atomically

FORMATS: dict[str, Callable[[SequenceTagger], bytes]] = {
    "crfsuite": lambda model: model_bytes(weights_of(model)),
    "dump": lambda model: dump_of(weights_of(model)).encode(),
    "crfpp": lambda model: text_model(checked(model, "CRF++")).encode(),
}


def export(model: Any, path: str | os.PathLike[str], format: str | None = None) -> None:
    """Write a tagger as a file of CRFsuite or CRF++, which predicts the same there.

    Parameters
    ----------
    model : SequenceTagger, or the drop-in ``CRF``
        Fitted on attributes with names (dicts, lists of strings) for CRFsuite, by templates for CRF++. ``convert`` of
        the file gives the same weights.
    path : path
        Where to; an existing file is replaced in one step.
    format : {"crfsuite", "dump", "crfpp"}, optional
        CRFsuite's model, its text dump (six decimals), or CRF++'s text model, of which ``crf_learn -C`` makes a binary
        one. By default, what the name says: ``.crfsuite``, else ``.txt``, which is CRF++'s for a model with templates,
        and else a dump.
    """
    tagger = tagger_in(model)
    chosen = format or _format_of(tagger, path)
    if chosen not in FORMATS:
        raise ValueError(f"unknown format {chosen!r}; choose one of {tuple(FORMATS)}")
    write_atomically(path, FORMATS[chosen](tagger))


def tagger_in(model: Any) -> SequenceTagger:
    """A fitted tagger, or the one that a drop-in holds.

    Parameters
    ----------
    model : SequenceTagger, or the drop-in ``CRF``
        What may hold one.
    """
    model = model if isinstance(model, SequenceTagger) else getattr(model, "model_", model)
    if not isinstance(model, SequenceTagger):
        raise ExportError(f"CRFsuite and CRF++ label sequences, position by position; this is a {type(model).__name__}")
    model._check_fitted()
    return model


def weights_of(model: SequenceTagger) -> Weights:
    """The weights of a tagger that are not 0, as CRFsuite has them.

    Parameters
    ----------
    model : SequenceTagger
        Fitted on attributes with names, without scores for the first and the last label.
    """
    checked(model, "CRFsuite")
    names = _attribute_texts(model.reader_.vectorizer)
    coef = scipy.sparse.coo_array(model.coef_)
    kept = coef.data != 0.0
    rows, columns, values = coef.row[kept], coef.col[kept], coef.data[kept]
    used, rows = np.unique(rows, return_inverse=True)
    states = list(zip(rows.tolist(), columns.tolist(), values.tolist(), strict=True))
    sources, targets = np.nonzero(model.transitions_)
    weights = model.transitions_[sources, targets]
    transitions = list(zip(sources.tolist(), targets.tolist(), weights.tolist(), strict=True))
    return Weights(model.classes_.tolist(), [names[k] for k in used.tolist()], states, transitions)


def checked(model: SequenceTagger, programme: str) -> SequenceTagger:
    """The model, if a programme has a place for all that it scores.

    Parameters
    ----------
    model : SequenceTagger
        Fitted.
    programme : {"CRFsuite", "CRF++"}
        Which.
    """
    columns = programme == "CRF++"
    ends = model.start_.any() or model.end_.any()
    obstacles = {
        "a kernel": not model._linear,
        "constraints on neighbouring labels": model.constraints_ is not None,
        "labels that depend on more than one label before them": getattr(model, "order", 1) != 1,
        "labels that are no texts": model.classes_.dtype.kind not in "US",
        "attributes of label pairs": not columns and model.edge_coef_ is not None,
        "scores of the first or last label (train it with boundaries=False)": not columns and ends,
        "no templates": columns and model.reader_.kind != "columns",
        "attributes without names": not columns and model.reader_.vectorizer is None,
    }
    for what, found in obstacles.items():
        if found:
            raise ExportError(f"this model has {what}, for which {programme} has no place; keep it as a file of m3n")
    return model


def _attribute_texts(vectorizer: Any) -> list[str]:
    """The attributes as CRFsuite spells them: a text value stands behind the name and a colon."""
    if isinstance(vectorizer, AttributeVectorizer):
        texts = [text if isinstance(text, str) else SEPARATOR.join(text) for text in vectorizer.vocabulary]
    else:
        texts = list(vectorizer.names)
    if len(set(texts)) < len(texts):
        twice = next(text for k, text in enumerate(texts) if text in texts[:k])
        raise ExportError(f"two attributes of this model are the same text {twice!r:.60} for CRFsuite; rename one")
    return texts


def _format_of(model: SequenceTagger, path: str | os.PathLike[str]) -> str:
    """The format that a file's name says."""
    ending = Path(path).suffix.lower()
    if ending == ".crfsuite":
        return "crfsuite"
    if ending == ".txt":
        return "crfpp" if model.reader_.kind == "columns" else "dump"
    raise ValueError(f"{os.fspath(path)!r} does not say which format it should have; choose one of {tuple(FORMATS)}")
