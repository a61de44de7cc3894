"""Chunks in labels, such as noun phrases or names, and the schemes that write them.

A label is ``O``, outside of all chunks, or a prefix and a kind, such as ``B-NP``. With chunks A A | A | B, the last
two right behind one another:

    iob1    I-A I-A B-A I-B     B only where a chunk follows one of its kind
    iob2    B-A I-A B-A B-B     B begins every chunk
    bioes   B-A E-A S-A S-B     E ends a chunk, S is a chunk of one token

``chunks`` reads these strictly: a chunk that is not written as its scheme wants does not count. The scheme "conll"
reads them all, and whatever a tagger may invent: a token goes on with the chunk of the token before if that is B or I
of the same kind, and it is I or E itself; any other token with a prefix begins a chunk. On labels with B, I, O or
I, O, E this is what the script conlleval of the shared tasks counts.

All tokens of all sequences are read at once, as arrays of prefixes and kinds.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np

from m3n.io.sentences import numbered

PREFIXES = "OBIES"
OUTSIDE, BEGIN, INSIDE, END, SINGLE = range(len(PREFIXES))
WRITTEN = {"iob1": "OBI", "iob2": "OBI", "bioes": "OBIES"}
READ = {"conll": "OBIES", **WRITTEN}


class Chunk(NamedTuple):
    """A chunk.

    Attributes
    ----------
    kind : str
        Its kind.
    begin : int
        Its first position.
    end : int
        The position behind its last.
    """

    kind: str
    begin: int
    end: int


class Tags(NamedTuple):
    """The labels of all sequences, one after another.

    Attributes
    ----------
    prefixes : array of int (tokens,)
        OUTSIDE, BEGIN, INSIDE, END or SINGLE.
    kinds : array of int (tokens,)
        The numbers of the kinds.
    first : array of bool (tokens,)
        Whether a sequence begins here.
    """

    prefixes: np.ndarray
    kinds: np.ndarray
    first: np.ndarray


class Spans(NamedTuple):
    """Chunks of all sequences.

    Attributes
    ----------
    kinds : array of int (chunks,)
        The numbers of their kinds.
    begins : array of int (chunks,)
        Their first tokens.
    ends : array of int (chunks,)
        The tokens behind their last.
    """

    kinds: np.ndarray
    begins: np.ndarray
    ends: np.ndarray


def chunks(labels: Sequence[str], scheme: str = "conll") -> list[Chunk]:
    """The chunks of one sequence.

    Parameters
    ----------
    labels : sequence of str
        Its labels.
    scheme : {"conll", "iob1", "iob2", "bioes"}
        How they are to be read.

    Examples
    --------
    >>> chunks(["B-NP", "I-NP", "O", "I-VP"])
    [Chunk(kind='NP', begin=0, end=2), Chunk(kind='VP', begin=3, end=4)]
    >>> chunks(["B-NP", "I-NP", "O", "I-VP"], "iob2")
    [Chunk(kind='NP', begin=0, end=2)]
    """
    tags, kinds = _read([labels], scheme)
    found = spans(tags, scheme)
    return [Chunk(kinds[k], begin, end) for k, begin, end in zip(*(part.tolist() for part in found), strict=True)]


def convert(labels: Sequence[str], source: str, target: str) -> list[str]:
    """The labels of one sequence in another scheme.

    Parameters
    ----------
    labels : sequence of str
        The labels.
    source : {"iob1", "iob2", "bioes", "conll"}
        Their scheme; "conll" takes labels of any scheme, and mends those that none allows.
    target : {"iob1", "iob2", "bioes"}
        The wanted scheme.

    Examples
    --------
    >>> convert(["I-NP", "I-NP", "B-NP", "O"], "iob1", "bioes")
    ['B-NP', 'E-NP', 'S-NP', 'O']
    """
    if target not in WRITTEN:
        raise ValueError(f"unknown scheme {target!r}; choose one of {', '.join(WRITTEN)}")
    tags, kinds = _read([labels], source)
    found = spans(tags, source)
    expected = prefixes_of(found, tags.first, source) if source in WRITTEN else tags.prefixes
    wrong = np.flatnonzero(expected != tags.prefixes)
    if wrong.size:
        t, remedy = int(wrong[0]), 'source="conll" reads whatever there is'
        raise ValueError(f"position {t}: {labels[t]!r} is not what {source} writes here; {remedy}")
    written = prefixes_of(found, tags.first, target)
    return [_label(PREFIXES[p], kinds[k]) for p, k in zip(written.tolist(), tags.kinds.tolist(), strict=True)]


def detect_scheme(sequences: Sequence[Sequence[str]]) -> str | None:
    """Name the scheme of labels: "iob1", "iob2", "bioes", or None if there are no chunks or no scheme allows them all.

    Parameters
    ----------
    sequences : sequences of labels
        The labels of every sequence.
    """
    for scheme in WRITTEN:
        try:
            tags, _ = _read(sequences, scheme)
        except ValueError:
            continue
        if tags.prefixes.any() and np.array_equal(prefixes_of(spans(tags, scheme), tags.first, scheme), tags.prefixes):
            return scheme
    return None


def parse(labels: Sequence[str], scheme: str) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """For distinct labels their prefixes and the numbers of their kinds, and the kinds.

    Parameters
    ----------
    labels : sequence of str
        Distinct labels.
    scheme : str
        The scheme that they are to be read by.
    """
    if scheme not in READ:
        raise ValueError(f"unknown scheme {scheme!r}; choose one of {', '.join(READ)}")
    for label in labels:
        if not isinstance(label, str) or label.partition("-")[0] not in [*READ[scheme]]:
            allowed = " or ".join(f"{prefix}-" for prefix in READ[scheme][1:])
            raise ValueError(f"{label!r} is no label of the scheme {scheme}: O, or {allowed} and a kind, such as B-NP")
    pairs = [label.partition("-")[::2] for label in labels]
    prefixes = np.array([PREFIXES.index(prefix) for prefix, _ in pairs], dtype=np.int8)
    codes, kinds = numbered((kind for _, kind in pairs), len(pairs))
    return prefixes, codes, kinds


def spans(tags: Tags, scheme: str) -> Spans:
    """All chunks that count.

    Parameters
    ----------
    tags : Tags
        The labels.
    scheme : {"conll", "iob1", "iob2", "bioes"}
        How they are to be read.
    """
    prefixes, kinds, first = tags
    before = np.where(first, OUTSIDE, np.roll(prefixes, 1))
    same = (before != OUTSIDE) & (prefixes != OUTSIDE) & (kinds == np.roll(kinds, 1))
    needless = (prefixes == BEGIN) & ~same  # iob1: no chunk of this kind comes before
    goes_on = same & np.isin(before, (BEGIN, INSIDE)) & np.isin(prefixes, (INSIDE, END))
    if scheme == "iob1":
        goes_on &= ~np.roll(needless, 1)
    begins = np.flatnonzero((prefixes != OUTSIDE) & ~goes_on)
    ends = np.flatnonzero((prefixes != OUTSIDE) & ~np.append(goes_on[1:], False)) + 1
    start, last = prefixes[begins], prefixes[ends - 1]
    if scheme == "iob1":
        other = np.append(needless & (before != OUTSIDE), False)[ends]  # B of another kind: no end of a lone B
        counts = ~needless[begins] & ~((last == BEGIN) & other)
    elif scheme == "iob2":
        counts = start == BEGIN
    elif scheme == "bioes":
        counts = (start == SINGLE) | ((start == BEGIN) & (last == END))
    else:
        counts = np.ones(len(begins), dtype=bool)
    return Spans(kinds[begins[counts]], begins[counts], ends[counts])


def prefixes_of(found: Spans, first: np.ndarray, scheme: str) -> np.ndarray:
    """How a scheme writes chunks: the prefix of every token.

    Parameters
    ----------
    found : Spans
        The chunks.
    first : array of bool (tokens,)
        Where sequences begin.
    scheme : {"iob1", "iob2", "bioes"}
        The scheme.
    """
    kinds, begins, ends = found
    change = np.zeros(len(first) + 1, dtype=np.int64)
    np.add.at(change, begins, 1)
    np.add.at(change, ends, -1)
    written = np.where(np.cumsum(change[:-1]) > 0, INSIDE, OUTSIDE)
    if scheme == "iob1":
        behind = np.flatnonzero((begins[1:] == ends[:-1]) & (kinds[1:] == kinds[:-1])) + 1
        begins = begins[behind]
        begins = begins[~first[begins]]
    written[begins] = BEGIN
    if scheme == "bioes":
        written[ends - 1] = END
        written[begins[ends - begins == 1]] = SINGLE
    return written


def first_of(lengths: np.ndarray) -> np.ndarray:
    """Where sequences of these lengths begin.

    Parameters
    ----------
    lengths : array of int (sequences,)
        Tokens of every sequence.
    """
    first = np.zeros(int(lengths.sum()), dtype=bool)
    first[(np.cumsum(lengths) - lengths)[lengths > 0]] = True
    return first


def _read(sequences: Sequence[Sequence[str]], scheme: str) -> tuple[Tags, list[str]]:
    lengths = np.fromiter(map(len, sequences), np.int64, len(sequences))
    codes, distinct = numbered(chain.from_iterable(sequences), int(lengths.sum()))
    prefixes, numbers, kinds = parse(distinct, scheme)
    return Tags(prefixes[codes], numbers[codes], first_of(lengths)), kinds


def _label(prefix: str, kind: str) -> str:
    return prefix if prefix == "O" or not kind else f"{prefix}-{kind}"
