"""Saving and loading segment taggers."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np

from m3n.estimators import model_parts
from m3n.estimators.inputs import SequenceReader
from m3n.estimators.tagger_files import vectorizer_of, vocabulary_of
from m3n.io import model_file

if TYPE_CHECKING:
    from m3n.estimators.segment_tagger import SegmentTagger

ARRAYS = ("segment_coef_", "transitions_", "start_", "end_", "max_lengths_")


def save(tagger: SegmentTagger, path: str | os.PathLike[str]) -> None:
    """Write a fitted tagger.

    Parameters
    ----------
    tagger : SegmentTagger
        The fitted model.
    path : path
        Where to.
    """
    if tagger.segment_features is not None:
        raise TypeError(
            f"segment_features is the function {tagger.segment_features!r:.60}, and model files never hold code: "
            "use pickle for this model"
        )
    reader = tagger.reader_
    weights, described = model_parts.packed_weights(tagger)
    meta = model_parts.described(tagger) | described | {"reader": reader.described()}
    tensors = weights | {name: np.ascontiguousarray(getattr(tagger, name)) for name in ARRAYS}
    model_file.write(path, "SegmentTagger", meta, tensors | vocabulary_of(reader.vectorizer))


def restore(meta: dict[str, Any], tensors: dict[str, np.ndarray]) -> SegmentTagger:
    """A tagger from the contents of a file."""
    from m3n.estimators.segment_tagger import SegmentTagger

    tagger = SegmentTagger(**model_parts.restored_params(meta))
    model_parts.restore(tagger, meta)
    labels, width = len(tagger.classes_), meta["reader"]["width"]
    most = int(tensors["max_lengths_"].max())
    shapes = (most, labels), (labels, labels), (labels,), (labels,), (labels,)
    for name, shape in zip(ARRAYS, shapes, strict=True):
        model_parts.check_shape(name, tensors[name], shape)
        setattr(tagger, name, tensors[name])
    model_parts.restore_weights(tagger, meta, tensors, (width, labels))
    tagger.n_features_in_, tagger.segment_vectorizer_ = width, None
    tagger.reader_ = SequenceReader(**meta["reader"], vectorizer=vectorizer_of(tensors, tagger.templates))
    return tagger
