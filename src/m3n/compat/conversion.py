"""Which programme has written a model, and the tagger that predicts the same."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from m3n.compat.crfpp import load_text_model
from m3n.compat.crfsuite import MAGIC, load_dump
from m3n.compat.imported import ImportedModelError
from m3n.estimators import SequenceTagger

PICKLE = b"\x80"  # the first byte of every pickle of today


def convert(path: Any) -> SequenceTagger:
    """A tagger from a model that another programme has trained.

    Parameters
    ----------
    path : path, or sklearn_crfsuite.CRF
        A CRFsuite model, binary or its text dump, or the text model of ``crf_learn -t`` of CRF++; or a fitted CRF of
        sklearn-crfsuite, which may have been pickled.

    Returns
    -------
    SequenceTagger
        Predicts what the programme predicts; ``save`` makes an m3n model of it. Its ``certificate_`` is None.
    """
    name = os.fsdecode(path if isinstance(path, (str, bytes, os.PathLike)) else _file_of(path))
    if not Path(name).is_file():
        raise FileNotFoundError(f"there is no model file {name!r}")
    with Path(name).open("rb") as file:
        start = file.read(64).lstrip()
    if start.startswith((MAGIC, b"FILEHEADER")):
        return load_dump(name)
    if start.startswith(b"version:"):
        return load_text_model(name)
    if start.startswith(PICKLE):
        raise ImportedModelError(f"{name} is a pickle, which may hold any code: unpickle it and convert the CRF")
    known = "a CRFsuite model, its text dump, and the text model (.txt) that crf_learn -t of CRF++ writes"
    raise ImportedModelError(f"{name} is not a model that can be converted; these are: {known}")


def _file_of(crf: Any) -> str:
    """The model file that a CRF of sklearn-crfsuite keeps; one that was pickled has written it again."""
    if not hasattr(crf, "modelfile"):
        raise TypeError(f"give a model file or a fitted sklearn_crfsuite.CRF, not a {type(crf).__name__}")
    name = crf.modelfile.name
    if name is None:
        raise ImportedModelError("this CRF is not fitted: there is no model to convert")
    if not Path(name).is_file():
        raise FileNotFoundError(f"the CRF keeps its model in {name!r}, which is not there; bring the file back")
    return os.fspath(name)
