"""Loading estimators: which kind of model a file holds."""

from __future__ import annotations

import os
from typing import Any

from m3n.estimators import graph_files, multilabel_files, segment_files, tagger_files
from m3n.io import model_file

RESTORE = {
    "SequenceTagger": tagger_files.restore,
    "GraphLabeler": graph_files.restore,
    "MultilabelClassifier": multilabel_files.restore,
    "SegmentTagger": segment_files.restore,
}


def load(path: str | os.PathLike[str]) -> Any:
    """Load a model that ``save`` wrote. Nothing in the file is executed.

    Parameters
    ----------
    path : path
        The model file.
    """
    kind, meta, tensors = model_file.read(path)
    if kind not in RESTORE:
        raise model_file.ModelFileError(f"{os.fspath(path)!r} holds a {kind}, which this version cannot load")
    try:
        return RESTORE[kind](meta, tensors)
    except (KeyError, TypeError, ValueError) as error:
        message = f"{os.fspath(path)!r} is damaged: {type(error).__name__}: {error}"
        raise model_file.ModelFileError(message) from None
