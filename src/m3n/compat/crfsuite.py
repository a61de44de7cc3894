"""Models that CRFsuite has trained.

Its model file is binary and made for being mapped into memory. All numbers are little-endian:

    header     "lCRF", size, type, version, -, labels, attributes, then where features, labels and attributes begin
    features   "FEAT", size, number, then per feature: kind (0 attribute and label, 1 label and label), from, to, weight
    names      "CQDB", size, flag, byte order, number, where a table is, which says where name k is: k, length, text

Weights are exact there. A text dump has them with six decimals. What has no weight scores 0.
"""

from __future__ import annotations

import os
import struct
from pathlib import Path

import numpy as np

from m3n.compat.crfsuite_dump import Weights, parse_dump
from m3n.compat.imported import ImportedModelError
from m3n.estimators import SequenceTagger

__all__ = ["load_dump"]

MAGIC = b"lCRF"
HEADER = struct.Struct("<4sI4s9I")
FEATURE = np.dtype([("kind", "<u4"), ("source", "<u4"), ("target", "<u4"), ("weight", "<f8")])
TRANSITION = 1  # a feature's kind


def load_dump(path_or_text: str | os.PathLike[str]) -> SequenceTagger:
    """A tagger from a model of CRFsuite.

    It reads tokens as python-crfsuite does: dicts whose text values become ``name:value``, with nested dicts, lists and
    sets, or lists of strings. ``classes_`` has the order of the model, and there is no certificate.

    Parameters
    ----------
    path_or_text : path or str
        A text dump, that is the file or its content, or a binary model file.

    Returns
    -------
    SequenceTagger
        Predicts what CRFsuite predicts.
    """
    if isinstance(path_or_text, str) and "FILEHEADER" in path_or_text:
        return parse_dump(path_or_text, "the dump").tagger()
    name = os.fspath(path_or_text)
    if not Path(name).is_file():
        raise FileNotFoundError(f"there is no model file {name!r}")
    content = Path(name).read_bytes()
    if content.startswith(MAGIC):
        return parse_binary(content, name).tagger()
    try:
        return parse_dump(content.decode(), name).tagger()
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise ImportedModelError.at(name, line, "this is not UTF-8 text; write the dump again") from None


def parse_binary(content: bytes, name: str) -> Weights:
    """The weights in a binary model.

    Parameters
    ----------
    content : bytes
        The whole file.
    name : str
        Its name, for errors.
    """
    try:
        _, size, kind, _, _, labels, attributes, features, at_labels, at_attributes, _, _ = HEADER.unpack_from(content)
        if size > len(content) or kind != b"FOMC":
            raise ValueError(f"it should have {size} bytes of type FOMC")
        found = Weights(_names(content, at_labels, labels), _names(content, at_attributes, attributes))
        count = struct.unpack_from("<I", content, features + 8)[0]
        table = np.frombuffer(content, FEATURE, count, features + 12)
    except (struct.error, ValueError) as error:
        message = f"{name} is damaged or incomplete ({error}); copy or train the model again"
        raise ImportedModelError(message) from None
    for role, source, target, weight in table.tolist():
        (found.transitions if role == TRANSITION else found.states).append((source, target, weight))
    return found


def _names(content: bytes, begin: int, count: int) -> list[str]:
    """The names of a table, by number."""
    magic, _, _, _, size, table = struct.unpack_from("<4s5I", content, begin)
    if magic != b"CQDB" or size < count:
        raise ValueError("a table of names is missing")
    names = []
    for place in struct.unpack_from(f"<{count}I", content, begin + table):
        length = struct.unpack_from("<I", content, begin + place + 4)[0]
        names.append(content[begin + place + 8 : begin + place + 7 + length].decode())  # without the final 0
    return names
