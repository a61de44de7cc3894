"""All estimators by their names, and loading what they have saved. A new estimator has its line here."""

from __future__ import annotations

import os
from typing import Any

from m3n.estimators import files
from m3n.estimators.constituency_parser import ConstituencyParser
from m3n.estimators.dependency_parser import DependencyParser
from m3n.estimators.graph_labeler import GraphLabeler
from m3n.estimators.hmm_aligner import HMMAligner
from m3n.estimators.multilabel_classifier import MultilabelClassifier
from m3n.estimators.segment_tagger import SegmentTagger
from m3n.estimators.sequence_tagger import SequenceTagger
from m3n.estimators.trained import Trained
from m3n.estimators.word_aligner import WordAligner
from m3n.io import model_file

KINDS: dict[str, type[Trained]] = {
    kind.__name__: kind
    for kind in (
        ConstituencyParser,
        DependencyParser,
        GraphLabeler,
        MultilabelClassifier,
        SegmentTagger,
        SequenceTagger,
        WordAligner,
    )
}
# those without a certificate, as they minimise no objective of the family
UNCERTIFIED = {"HMMAligner": HMMAligner}


def load(path: str | os.PathLike[str]) -> Any:
    """Load a model that ``save`` wrote. Nothing in the file is executed.

    Parameters
    ----------
    path : path
        The model file.
    """
    kind, meta, tensors = model_file.read(path)
    if kind not in KINDS | UNCERTIFIED:
        raise model_file.ModelFileError(f"{os.fspath(path)!r} holds a {kind}, which this version cannot load")
    try:
        if kind in UNCERTIFIED:
            return UNCERTIFIED[kind]._restored(meta, tensors)
        return files.restore(KINDS[kind], meta, tensors)
    except (KeyError, TypeError, ValueError) as error:
        message = f"{os.fspath(path)!r} is damaged: {type(error).__name__}: {error}"
        raise model_file.ModelFileError(message) from None
