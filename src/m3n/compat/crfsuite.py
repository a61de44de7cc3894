"""Models that CRFsuite has trained, from its model file or from its text dump.

The model file is binary and made for being mapped into memory. All numbers are little-endian:

    header     "lCRF", size, type, version, -, labels, attributes, then where features, labels and attributes begin
    features   "FEAT", size, number, then per feature: kind (0 attribute and label, 1 label and label), from, to, weight
    names      "CQDB", size, flag, byte order, number, where a table is, which says where name k is: k, length, text

Weights are exact there. The text dump, which ``crfsuite dump`` and ``pycrfsuite.Tagger.dump`` write, has them with six
decimals, in sections LABELS = { ... } with one entry per line:

    FILEHEADER            magic: lCRF
    LABELS, ATTRIBUTES    0: word:dog                       number and name
    TRANSITIONS           (1) D --> N: 0.567000             two neighbouring labels
    STATE_FEATURES        (0) word:dog --> N: 1.234000      an attribute and a label

Names may hold anything, arrows and line ends too: an entry goes on until the next one begins, and an arrow separates
two names if the model knows both. What has no weight scores 0.
"""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import scipy.sparse

from m3n.compat.imported import ImportedModelError, attribute_reader, tagger_of
from m3n.estimators import SequenceTagger

SECTIONS = ("FILEHEADER", "LABELS", "ATTRIBUTES", "TRANSITIONS", "STATE_FEATURES")
OPENING = re.compile(rf"({'|'.join(SECTIONS)}) = \{{")
NAME = re.compile(r" *(\d+): (.*)", flags=re.DOTALL)
WEIGHT = re.compile(r" *\(\d\) (.*): ([+-]?\d+\.\d+)", flags=re.DOTALL)
ARROW = " --> "
__all__ = ["load_dump"]

MAGIC = b"lCRF"
HEADER = struct.Struct("<4sI4s9I")
FEATURE = np.dtype([("kind", "<u4"), ("source", "<u4"), ("target", "<u4"), ("weight", "<f8")])
TRANSITION = 1  # a feature's kind


@dataclass
class Weights:
    """What a CRFsuite model consists of.

    Attributes
    ----------
    labels, attributes : list of str
        By number.
    states, transitions : list of (int, int, float)
        Attribute and label, or label and label, with their weight.
    """

    labels: list[str] = field(default_factory=list)
    attributes: list[str] = field(default_factory=list)
    states: list[tuple[int, int, float]] = field(default_factory=list)
    transitions: list[tuple[int, int, float]] = field(default_factory=list)

    def tagger(self) -> SequenceTagger:
        """The tagger with these weights."""
        shape = len(self.attributes), len(self.labels)
        rows, columns, values = np.array(self.states, dtype=np.float64).reshape(-1, 3).T
        places = rows.astype(np.int64), columns.astype(np.int64)
        coef = scipy.sparse.csr_array((values, places), shape=shape)
        transitions = np.zeros((shape[1], shape[1]))
        for source, target, weight in self.transitions:
            transitions[source, target] = weight
        return tagger_of(self.labels, attribute_reader(self.attributes), coef, transitions)


def parse_dump(text: str, name: str) -> Weights:
    """The weights in a text dump.

    Parameters
    ----------
    text : str
        The dump.
    name : str
        Where it comes from, for errors.
    """
    lines = text.split("\n")  # not splitlines: attributes may hold other characters that end a line
    if lines[0].endswith("\r"):
        lines = [line.removesuffix("\r") for line in lines]
    reader = _Reader(name)
    for number, line in enumerate(lines, start=1):
        reader.feed(number, line)
    reader.finish(len(lines))
    return reader.found


def dump_of(weights: Weights) -> str:
    """The text dump of some weights.

    Parameters
    ----------
    weights : Weights
        A model.
    """
    labels, attributes = weights.labels, weights.attributes
    header = {"magic": "lCRF", "type": "FOMC", "num_labels": len(labels), "num_attrs": len(attributes)}
    entries = (
        [f"  {key}: {value}" for key, value in header.items()],
        [f"  {k:5d}: {label}" for k, label in enumerate(labels)],
        [f"  {k:5d}: {attribute}" for k, attribute in enumerate(attributes)],
        [f"  (1) {labels[i]}{ARROW}{labels[j]}: {weight:f}" for i, j, weight in weights.transitions],
        [f"  (0) {attributes[a]}{ARROW}{labels[j]}: {weight:f}" for a, j, weight in weights.states],
    )
    return "".join(
        f"{section} = {{\n" + "".join(f"{line}\n" for line in lines) + "}\n\n"
        for section, lines in zip(SECTIONS, entries, strict=True)
    )


class _Reader:
    """Takes line after line."""

    def __init__(self, name: str):
        self.name, self.found = name, Weights()
        self.section, self.seen = "", set[str]()
        self.pending, self.begun = "", 0  # lines that are not yet an entry, and where they begin
        self.labels: dict[str, int] = {}
        self.attributes: dict[str, int] = {}

    def feed(self, number: int, line: str) -> None:
        if not self.section:
            self._open(number, line)
        elif line == "}":
            self._close(number)
        elif self.section in ("LABELS", "ATTRIBUTES"):
            self._add_name(number, line)
        elif self.section != "FILEHEADER":
            self._add_weight(number, line)

    def finish(self, number: int) -> None:
        """Refuse a dump that is not complete."""
        missing = [section for section in SECTIONS if section not in self.seen]
        if self.section or missing:
            what = f"the dump ends inside of {self.section}" if self.section else f"the dump has no {missing[0]}"
            raise ImportedModelError.at(self.name, number, f"{what}; write it again")

    def _open(self, number: int, line: str) -> None:
        opening = OPENING.fullmatch(line)
        if opening:
            self.section = opening[1]
            self.seen.add(opening[1])
        elif line.strip():
            raise ImportedModelError.at(self.name, number, f"{line!r:.60} is no part of a CRFsuite dump")

    def _close(self, number: int) -> None:
        if self.pending:
            self._complain()
        self.section = ""
        self.labels = {label: k for k, label in enumerate(self.found.labels)}
        self.attributes = {attribute: k for k, attribute in enumerate(self.found.attributes)}
        for numbers, names in ((self.labels, self.found.labels), (self.attributes, self.found.attributes)):
            if len(numbers) < len(names):
                twice = next(name for k, name in enumerate(names) if numbers[name] != k)
                raise ImportedModelError.at(self.name, number, f"the name {twice!r:.60} comes twice; write it again")

    def _add_name(self, number: int, line: str) -> None:
        names = self.found.labels if self.section == "LABELS" else self.found.attributes
        entry = NAME.fullmatch(line)
        if entry and int(entry[1]) == len(names):
            names.append(entry[2])
        elif names:
            names[-1] += f"\n{line}"
        else:
            raise ImportedModelError.at(self.name, number, f"expected '0: name', found {line!r:.60}")

    def _add_weight(self, number: int, line: str) -> None:
        entry = self._entry(line)
        if self.pending and entry:
            self._complain()
        if not entry and self.pending:
            line = f"{self.pending}\n{line}"
            entry = self._entry(line)
        if entry:
            self.pending = ""
            (self.found.transitions if self.section == "TRANSITIONS" else self.found.states).append(entry)
        else:
            self.begun = self.begun if self.pending else number
            self.pending = line

    def _entry(self, line: str) -> tuple[int, int, float] | None:
        """The numbers of two names and their weight."""
        match = WEIGHT.fullmatch(line)
        sources = self.labels if self.section == "TRANSITIONS" else self.attributes
        for source, target in _splits(match[1]) if match else ():
            if match and source in sources and target in self.labels:
                return sources[source], self.labels[target], float(match[2])
        return None

    def _complain(self) -> None:
        what = f"expected '(0) name{ARROW}label: weight' with names that stand above, found {self.pending!r:.80}"
        raise ImportedModelError.at(self.name, self.begun, what)


def _splits(text: str) -> Iterator[tuple[str, str]]:
    """Every way to cut a text at an arrow."""
    place = text.rfind(ARROW)
    while place >= 0:
        yield text[:place], text[place + len(ARROW) :]
        place = text.rfind(ARROW, 0, place + len(ARROW) - 1)


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
        return _parsed(content)
    except (struct.error, ValueError) as error:
        message = f"{name} is damaged or incomplete ({error}); copy or train the model again"
        raise ImportedModelError(message) from None


def _parsed(content: bytes) -> Weights:
    _, size, kind, _, _, labels, attributes, features, at_labels, at_attributes, _, _ = HEADER.unpack_from(content)
    if size > len(content) or kind != b"FOMC":
        raise ValueError(f"it should have {size} bytes of type FOMC")
    found = Weights(_names(content, at_labels, labels), _names(content, at_attributes, attributes))
    magic, _, count = struct.unpack_from("<4sII", content, features)
    if magic != b"FEAT":
        raise ValueError("the weights are missing")
    table = np.frombuffer(content, FEATURE, count, features + 12)
    sources = np.where(table["kind"] == TRANSITION, labels, attributes)
    if ((table["kind"] > TRANSITION) | (table["source"] >= sources) | (table["target"] >= labels)).any():
        raise ValueError("a weight belongs to no label or attribute")
    if not np.isfinite(table["weight"]).all():
        raise ValueError("a weight is no finite number")
    for role, source, target, weight in table.tolist():
        (found.transitions if role == TRANSITION else found.states).append((source, target, weight))
    return found


def _names(content: bytes, begin: int, count: int) -> list[str]:
    """The names of a table, by number."""
    magic, _, _, _, size, table = struct.unpack_from("<4s5I", content, begin)
    if magic != b"CQDB" or size < count:
        raise ValueError("a table of names is missing")
    places = struct.unpack_from(f"<{count}I", content, begin + table)
    names = [_name(content, begin + place, number) for number, place in enumerate(places)]
    if len(set(names)) < count:
        raise ValueError("a name comes twice")
    return names


def _name(content: bytes, place: int, number: int) -> str:
    """The name in a record."""
    found, length = struct.unpack_from("<II", content, place)
    text = content[place + 8 : place + 8 + length]
    if found != number or len(text) < length or not text.endswith(b"\0"):
        raise ValueError(f"name {number} is missing")
    return text[:-1].decode()
