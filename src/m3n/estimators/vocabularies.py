"""The vocabularies of vectorisers in model files: millions of strings at times, so bytes in a tensor."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from m3n.features import AttributeVectorizer, Templates


def packed_vocabulary(vectorizer: AttributeVectorizer | Templates | None) -> dict[str, np.ndarray]:
    """What a vectoriser has learnt."""
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


def restored_vectorizer(
    tensors: Mapping[str, np.ndarray], templates: Templates | None, separator: str | None = None
) -> AttributeVectorizer | Templates | None:
    """The vectoriser again."""
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


def _packed(entries: list[Any]) -> np.ndarray:
    return np.frombuffer(json.dumps(entries, ensure_ascii=False).encode("utf-8", "surrogatepass"), dtype=np.uint8)
