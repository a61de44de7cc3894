"""Saving and loading graph labellers."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np

from m3n.estimators import model_parts
from m3n.estimators.graph_inputs import GraphReader
from m3n.io import model_file

if TYPE_CHECKING:
    from m3n.estimators.graph_labeler import GraphLabeler


def save(labeler: GraphLabeler, path: str | os.PathLike[str]) -> None:
    """Write a fitted labeller.

    Parameters
    ----------
    labeler : GraphLabeler
        The fitted model.
    path : path
        Where to.
    """
    weights, described = model_parts.packed_weights(labeler)
    meta = model_parts.described(labeler) | described
    meta |= {"reader": vars(labeler.reader_), "relaxed": labeler.relaxed_}
    tensors = weights | {"pairs_": labeler.pairs_}
    if labeler.edge_coef_ is not None:
        tensors["edge_coef_"] = labeler.edge_coef_
    model_file.write(path, "GraphLabeler", meta, tensors)


def restore(meta: dict[str, Any], tensors: dict[str, np.ndarray]) -> GraphLabeler:
    """A labeller from the contents of a file."""
    from m3n.estimators.graph_labeler import GraphLabeler

    labeler = GraphLabeler(**model_parts.restored_params(meta))
    model_parts.restore(labeler, meta)
    labeler.reader_, labeler.relaxed_ = GraphReader(**meta["reader"]), meta["relaxed"]
    labeler.multipliers_ = None
    labels, width = len(labeler.classes_), labeler.reader_.width
    labeler.n_features_in_ = width
    model_parts.restore_weights(labeler, meta, tensors, (width, labels))
    labeler.pairs_, labeler.edge_coef_ = tensors["pairs_"], tensors.get("edge_coef_")
    model_parts.check_shape("pairs_", labeler.pairs_, (labels, labels))
    if (labeler.edge_coef_ is None) != (labeler.reader_.pair_width is None):
        raise ValueError("edge features without weights, or the other way round")
    if labeler.edge_coef_ is not None:
        model_parts.check_shape("edge_coef_", labeler.edge_coef_, (labeler.reader_.pair_width or 0, labels, labels))
    return labeler
