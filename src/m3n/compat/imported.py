"""Taggers from the weights of another programme.

Such a tagger predicts like any other, and ``save`` writes it. It has no certificate: whoever trained it did not say how
far from the optimum it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import scipy.sparse

from m3n.estimators import SequenceTagger
from m3n.estimators.inputs import SequenceReader
from m3n.estimators.matrices import Matrix
from m3n.features import AttributeVectorizer, Templates
from m3n.io.files import DataFileError

SEPARATOR = ":"  # CRFsuite's, between the name and the value of an attribute


class ImportedModelError(DataFileError):
    """A model of another programme cannot be read; the message names the file and the place."""


class ExportError(ValueError):
    """A model cannot be written for another programme; the message says what that has no place for."""


def attribute_reader(attributes: Iterable[str]) -> SequenceReader:
    """Reads tokens as CRFsuite does, for attributes that are known by their texts.

    Parameters
    ----------
    attributes : iterable of str
        The attributes, column by column.
    """
    vectorizer = AttributeVectorizer(SEPARATOR)
    vectorizer.vocabulary = {attribute: k for k, attribute in enumerate(attributes)}
    return SequenceReader("attributes", len(vectorizer.vocabulary), vectorizer)


def tagger_of(
    classes: Sequence[Any],
    reader: SequenceReader,
    coef: Matrix,
    transitions: np.ndarray,
    edge_coef: Any = None,
    **settings: Any,
) -> SequenceTagger:
    """A tagger with these weights, and none for the first and the last label.

    Parameters
    ----------
    classes : sequence of labels
        In the order of the model. Programmes that prefer the first label where several are equally good then agree.
    reader : SequenceReader
        What makes attributes of tokens.
    coef : array or sparse matrix (attributes, labels)
        Weights of the attributes.
    transitions : array (labels, labels)
        Scores of neighbouring labels.
    edge_coef : array (attributes of pairs, labels, labels) or None
        Weights of attributes of neighbouring labels, if templates make any; or a sparse matrix with the last two axes
        joined.
    **settings
        Parameters of ``SequenceTagger``.
    """
    templates = reader.vectorizer.unfitted() if isinstance(reader.vectorizer, Templates) else None
    sparse = scipy.sparse.issparse(coef)
    words = {"objective": "crf", "observed_only": sparse, "boundaries": False, "templates": templates}
    tagger = SequenceTagger(**(words | settings))
    nothing = np.zeros(len(classes))
    weights = {"coef_": coef, "edge_coef_": edge_coef, "start_": nothing, "end_": nothing.copy()}
    weights["transitions_"] = np.array(transitions, dtype=np.float64)
    unknown: dict[str, Any] = {"lam_": None, "certificate_": None, "status_": None, "trace_": []}  # what training says
    known = {"classes_": np.array(classes), "reader_": reader, "n_features_in_": reader.width, "constraints_": None}
    vars(tagger).update(known | weights | unknown)
    return tagger
