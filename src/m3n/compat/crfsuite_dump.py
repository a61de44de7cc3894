"""The text that ``crfsuite dump`` and ``pycrfsuite.Tagger.dump`` write, read and written.

Sections of lines, LABELS = { ... }, with one entry per line; weights have six decimals:

    FILEHEADER            magic: lCRF
    LABELS, ATTRIBUTES    0: word:dog                       number and name
    TRANSITIONS           (1) D --> N: 0.567000             two neighbouring labels
    STATE_FEATURES        (0) word:dog --> N: 1.234000      an attribute and a label

Names may hold anything, arrows and line ends too: an entry goes on until the next one begins, and an arrow separates
two names if the model knows both.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import scipy.sparse

from m3n.compat.imported import ImportedModelError, attribute_reader, tagger_of
from m3n.estimators import SequenceTagger

SECTIONS = ("FILEHEADER", "LABELS", "ATTRIBUTES", "TRANSITIONS", "STATE_FEATURES")
OPENING = re.compile(rf"({'|'.join(SECTIONS)}) = \{{")
NAME = re.compile(r" *(\d+): (.*)", flags=re.DOTALL)
WEIGHT = re.compile(r" *\(\d\) (.*): ([+-]?\d+\.\d+)", flags=re.DOTALL)
ARROW = " --> "


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
            self._close()
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

    def _close(self) -> None:
        if self.pending:
            self._complain()
        self.section = ""
        self.labels = {label: k for k, label in enumerate(self.found.labels)}
        self.attributes = {attribute: k for k, attribute in enumerate(self.found.attributes)}

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
