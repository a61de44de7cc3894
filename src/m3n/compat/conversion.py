"""Which programme has written a model, and the tagger that predicts the same."""

from __future__ import annotations

import os
from pathlib import Path

from m3n.compat.crfpp import load_text_model
from m3n.compat.crfsuite import MAGIC, load_dump
from m3n.compat.imported import ImportedModelError
from m3n.estimators import SequenceTagger


def convert(path: str | os.PathLike[str]) -> SequenceTagger:
    """A tagger from a model that another programme has trained.

    Parameters
    ----------
    path : path
        A CRFsuite model, binary or its text dump, or the text model of ``crf_learn -t`` of CRF++.

    Returns
    -------
    SequenceTagger
        Predicts what the programme predicts; ``save`` makes an m3n model of it. Its ``certificate_`` is None.
    """
    name = os.fspath(path)
    if not Path(name).is_file():
        raise FileNotFoundError(f"there is no model file {name!r}")
    with Path(name).open("rb") as file:
        start = file.read(64).lstrip()
    if start.startswith((MAGIC, b"FILEHEADER")):
        return load_dump(path)
    if start.startswith(b"version:"):
        return load_text_model(path)
    known = "a CRFsuite model, its text dump, and the text model (.txt) that crf_learn -t of CRF++ writes"
    raise ImportedModelError(f"{name} is not a model that can be converted; these are: {known}")
