"""Saving and loading sequence taggers."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import numpy as np

from m3n.estimators import model_parts
from m3n.estimators.inputs import SequenceReader
from m3n.features import AttributeVectorizer, Templates
from m3n.io import model_file
from m3n.structures import Transitions

if TYPE_CHECKING:
    from m3n.estimators.sequence_tagger import SequenceTagger

MASKS = ("forbidden", "forbidden_start", "forbidden_end")  # of constraints_; a model without them has none


def save(tagger: SequenceTagger, path: str | os.PathLike[str]) -> None:
    """Write a fitted tagger.

    Parameters
    ----------
    tagger : SequenceTagger
        The fitted model.
    path : path
        Where to.
    """
    reader = tagger.reader_
    weights, described = model_parts.packed_weights(tagger)  # first: it refuses what a file cannot hold
    described |= {"reader": reader.described() | _separator(reader.vectorizer)}
    meta = model_parts.described(tagger) | described
    tables = {"transitions_": tagger.transitions_, "start_": tagger.start_, "end_": tagger.end_}
    tensors = tables | weights | vocabulary_of(reader.vectorizer)
    if tagger.edge_coef_ is not None:
        tensors |= model_parts.packed_matrix("edge_coef_", tagger.edge_coef_)
    if tagger.constraints_ is not None:
        tensors |= {f"constraints_{name}": getattr(tagger.constraints_, name).astype(np.uint8) for name in MASKS}
    model_file.write(path, "SequenceTagger", meta, tensors)


def restore(meta: dict[str, Any], tensors: dict[str, np.ndarray]) -> SequenceTagger:
    """A tagger from the contents of a file."""
    from m3n.estimators.sequence_tagger import SequenceTagger

    tagger = SequenceTagger(**model_parts.restored_params(meta))
    model_parts.restore(tagger, meta)
    labels, width = len(tagger.classes_), meta["reader"]["width"]
    for name, shape in (("transitions_", (labels, labels)), ("start_", (labels,)), ("end_", (labels,))):
        model_parts.check_shape(name, tensors[name], shape)
        setattr(tagger, name, tensors[name])
    model_parts.restore_weights(tagger, meta, tensors, (width, labels))
    tagger.constraints_ = None
    if "constraints_forbidden" in tensors:
        masks = (tensors[f"constraints_{name}"] for name in MASKS)
        tagger.constraints_ = Transitions(tuple(meta["classes"]), *masks)
    tagger.n_features_in_ = width
    reader = dict(meta["reader"])
    vectorizer = vectorizer_of(tensors, tagger.templates, reader.pop("separator", None))
    tagger.reader_ = SequenceReader(**reader, vectorizer=vectorizer)
    tagger.edge_coef_ = None
    if isinstance(vectorizer, Templates) and vectorizer.has_pairs:
        tagger.edge_coef_ = model_parts.restored_matrix("edge_coef_", tensors, (vectorizer.pair_width, labels, labels))
    return tagger


def vocabulary_of(vectorizer: AttributeVectorizer | Templates | None) -> dict[str, np.ndarray]:
    """What a vectoriser has learnt. That may be millions of strings: bytes in a tensor, not in the header."""
    if vectorizer is None:
        return {}
    if isinstance(vectorizer, AttributeVectorizer):
        return {"vocabulary": _packed(list(vectorizer.vocabulary))}
    tables = [(j, table) for j, own in enumerate(vectorizer.attributes) for table in own.tables]
    return {
        "vocabulary": _packed([[column, values] for column, values in vectorizer.values.items()]),
        "keys": np.concatenate([table for _, table in tables]),
        "key_tables": np.array([(j, len(table)) for j, table in tables]),  # which template's, how long
    }


def vectorizer_of(
    tensors: dict[str, np.ndarray], templates: Templates | None, separator: str | None = None
) -> AttributeVectorizer | Templates | None:
    if "vocabulary" not in tensors:
        return None
    entries = json.loads(tensors["vocabulary"].tobytes().decode("utf-8", "surrogatepass"))
    if templates is None:
        vectorizer = AttributeVectorizer(separator)
        attributes = [entry if isinstance(entry, str) else (entry[0], entry[1]) for entry in entries]
        vectorizer.vocabulary = {attribute: k for k, attribute in enumerate(attributes)}
        return vectorizer
    owners, lengths = tensors["key_tables"].T
    tables = list(zip(owners, np.split(tensors["keys"], np.cumsum(lengths)[:-1]), strict=True))
    restored = templates.unfitted()
    restored.restore(dict(entries), [[t for j, t in tables if j == k] for k in range(len(restored.parsed))])
    return restored


def _separator(vectorizer: AttributeVectorizer | Templates | None) -> dict[str, str]:
    """How names and values are joined, if they are."""
    separator = getattr(vectorizer, "separator", None)
    return {} if separator is None else {"separator": separator}


def _packed(entries: list[Any]) -> np.ndarray:
    return np.frombuffer(json.dumps(entries, ensure_ascii=False).encode("utf-8", "surrogatepass"), dtype=np.uint8)
