"""Saving and loading multilabel classifiers."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np

from m3n.estimators import model_parts
from m3n.io import model_file

if TYPE_CHECKING:
    from m3n.estimators.multilabel_classifier import MultilabelClassifier

ARRAYS = ("intercept_", "pairs_", "tables_")


def save(classifier: MultilabelClassifier, path: str | os.PathLike[str]) -> None:
    """Write a fitted classifier.

    Parameters
    ----------
    classifier : MultilabelClassifier
        The fitted model.
    path : path
        Where to.
    """
    weights, described = model_parts.packed_weights(classifier)
    meta = model_parts.described(classifier) | described | {"width": classifier.n_features_in_}
    tensors = weights | {name: np.ascontiguousarray(getattr(classifier, name)) for name in ARRAYS}
    model_file.write(path, "MultilabelClassifier", meta, tensors)


def restore(meta: dict[str, Any], tensors: dict[str, np.ndarray]) -> MultilabelClassifier:
    """A classifier from the contents of a file."""
    from m3n.estimators.multilabel_classifier import MultilabelClassifier

    classifier = MultilabelClassifier(**model_parts.restored_params(meta))
    model_parts.restore(classifier, meta)
    labels, pairs, width = len(classifier.classes_), len(tensors["pairs_"]), meta["width"]
    shapes = (labels,), (pairs, 2), (pairs, 2, 2)
    for name, shape in zip(ARRAYS, shapes, strict=True):
        model_parts.check_shape(name, tensors[name], shape)
        setattr(classifier, name, tensors[name])
    if pairs and not (classifier.pairs_.min() >= 0 and classifier.pairs_.max() < labels):
        raise ValueError(f"pairs_ names labels outside of 0..{labels - 1}")
    model_parts.restore_weights(classifier, meta, tensors, (width, labels))
    classifier.n_features_in_ = width
    return classifier
