"""Packed sequences as inputs of a fitted model, shard by shard.

Attributes have the numbers of the packed data's own dictionary. A model with the same one takes them as they are; for
any other model the number of every attribute is found by its name, once, and attributes that it does not know are left
out: as if it had read the sequences themselves. Attributes that packing has left out (``min_freq``) are not there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse

from m3n.estimators.inputs import Inputs, SequenceReader
from m3n.features import AttributeVectorizer, HashedTemplates, Templates
from m3n.features.joint_codes import ABSENT
from m3n.io.matrices import renumbered
from m3n.io.template_syntax import Key, Template
from m3n.shards import Shard, Shards

NUMBERS = ("dense", "sparse")  # kinds without names


class PackedInputs:
    """What a model reads of shards.

    Parameters
    ----------
    shards : Shards
        The packed data.
    reader : SequenceReader
        That of the model.
    """

    def __init__(self, shards: Shards, reader: SequenceReader):
        self.shards, self.reader = shards, reader
        self._maps = _maps(shards, reader)

    def __len__(self) -> int:
        return len(self.shards)

    def __iter__(self) -> Iterator[Inputs]:
        return (self.inputs(self.shards.open(i)) for i in range(len(self)))

    def inputs(self, shard: Shard) -> Inputs:
        """The sequences of a shard.

        Parameters
        ----------
        shard : Shard
            The shard.
        """
        wanted = self.reader.pair_width
        matrix = _mapped(shard.matrix, self._maps[0], self.reader.width)
        pairs = None if wanted is None else _mapped(shard.pairs, self._maps[1], wanted)
        return Inputs(matrix, shard.lengths, pairs)

    def labels(self, shard: Shard) -> list[list[Any]]:
        """The labels of a shard, as they were given.

        Parameters
        ----------
        shard : Shard
            The shard.
        """
        names = self.shards.classes.tolist()
        ends = np.cumsum(shard.lengths)[:-1]
        return [[names[k] for k in part.tolist()] for part in np.split(shard.labels, ends)]


def _mapped(matrix: Any, numbers: np.ndarray | None, width: int) -> Any:
    return matrix if numbers is None or not scipy.sparse.issparse(matrix) else renumbered(matrix, numbers, width)


def _maps(shards: Shards, reader: SequenceReader) -> tuple[np.ndarray | None, np.ndarray | None]:
    """The model's number of every attribute of tokens and of pairs, negative for none; None: they are the same."""
    _check_kind(shards, reader)
    known, vectorizer = shards.manifest.settings, reader.vectorizer
    if vectorizer is None:
        return None, None
    bits = getattr(vectorizer, "bits", None)
    if bits != known["hash_bits"]:
        raise ValueError(
            f"{shards!r} has attributes that are {_numbered(known['hash_bits'])}, and the model's are "
            f"{_numbered(bits)}: pack again as the model was trained"
        )
    if isinstance(vectorizer, Templates):
        return _of_templates(shards, vectorizer)
    return (None if bits is not None else _of_names(shards, vectorizer)), None


def _check_kind(shards: Shards, reader: SequenceReader) -> None:
    """Refuse data of another kind than those that the model was trained on."""
    if shards.kind != reader.kind and not (shards.kind in NUMBERS and reader.kind in NUMBERS):
        raise ValueError(f"{shards!r} holds sequences of {shards.kind}, but the model was trained on {reader.kind}")
    if shards.kind in NUMBERS and shards.width != reader.width:
        raise ValueError(
            f"{shards!r} has {shards.width} attributes per position, but the model was trained with {reader.width}"
        )


def _numbered(bits: int | None) -> str:
    return "numbered by a dictionary" if bits is None else f"hashed to {bits} bits"


def _of_names(shards: Shards, vectorizer: AttributeVectorizer) -> np.ndarray | None:
    """By the names of attributes."""
    attributes, between, vocabulary = shards.attributes(), vectorizer.separator, vectorizer.vocabulary
    if between is not None:
        attributes = [one if isinstance(one, str) else between.join(one) for one in attributes]
    if attributes == list(vocabulary):
        return None
    return np.array([vocabulary.get(attribute, ABSENT) for attribute in attributes], np.int32)


def _of_templates(shards: Shards, model: Templates) -> tuple[np.ndarray | None, np.ndarray | None]:
    """By templates and the values that their macros saw."""
    packed = shards.reader().vectorizer
    assert isinstance(packed, Templates)
    there = {template: j for j, template in enumerate(packed.parsed)}
    missing = [template.pattern for template in model.parsed if template not in there]
    if missing or packed.padding != model.padding:
        what = f"without the template {missing[0]!r}" if missing else f"with padding={packed.padding!r}"
        raise ValueError(f"{shards!r} was packed {what}, which is not how the model was trained; pack again")
    if isinstance(model, HashedTemplates):
        if packed.parsed != model.parsed:
            raise ValueError(f"{shards!r} was packed with other templates than the model was trained with; pack again")
        return None, None
    codes = {key: _codes(packed, model, key) for key in packed.values}
    first, second = (_unless_same(_tuples(packed, model, codes, pair), model, pair) for pair in (False, True))
    return first, second


def _unless_same(numbers: np.ndarray, model: Templates, pair: bool) -> np.ndarray | None:
    width = model.pair_width if pair else model.width
    return None if np.array_equal(numbers, np.arange(width)) else numbers


def _codes(packed: Templates, model: Templates, key: Key) -> np.ndarray:
    """The model's code of every word of a column, and at the end that of ABSENT."""
    if key not in model.values:
        return np.full(len(packed.words(key)) + 1, ABSENT)
    values, known = packed.values[key], {value: code for code, value in enumerate(model.values[key])}
    own = {word: code + len(known) for code, word in enumerate(model.words(key)[len(known) :])}
    beyond = [own.get(word, ABSENT) for word in packed.words(key)[len(values) :]]
    return np.array([*(known.get(value, ABSENT) for value in values), *beyond, ABSENT], np.int64)


def _tuples(packed: Templates, model: Templates, codes: dict[Key, np.ndarray], pair: bool) -> np.ndarray:
    """The model's number of every attribute of tokens or of pairs."""
    begins, width = dict[Template, int](), 0
    for template, made in zip(model.parsed, model.attributes, strict=True):
        if template.pair == pair:
            begins[template] = width
            width += len(made)
    learnt = dict(zip(model.parsed, model.attributes, strict=True))
    found = [np.empty(0, np.int32)]
    for template, made in zip(packed.parsed, packed.attributes, strict=True):
        if template.pair != pair:
            continue
        if template not in begins:
            found.append(np.full(len(made), ABSENT, np.int32))
            continue
        keys = [key for _, key in template.macros]
        parts = [codes[key][part] for key, part in zip(keys, made.split(), strict=False)] or made.split()
        numbers = learnt[template].find(parts)
        found.append(np.where(numbers < 0, ABSENT, numbers + begins[template]).astype(np.int32))
    return np.concatenate(found)
