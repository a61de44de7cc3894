"""Chunks in labels, such as noun phrases or names, and the schemes that write them.

A label is ``O``, outside of all chunks, or a prefix and a kind, such as ``B-NP``; where there is one kind of chunks, a
prefix alone. With chunks A A A | A | B, right behind one another:

    iob1    I-A I-A I-A B-A I-B     B only where a chunk follows one of its kind
    iob2    B-A I-A I-A B-A B-B     B begins every chunk
    ioe1    I-A I-A E-A I-A I-B     E only where a chunk of its kind follows
    ioe2    I-A I-A E-A E-A E-B     E ends every chunk
    bioes   B-A I-A E-A S-A S-B     S is a chunk of one token
    bilou   B-A I-A L-A U-A U-B     the same with other letters
    bmes    B-A M-A E-A S-A S-B
    bmewo   B-A M-A E-A W-A W-B

``chunks`` reads these strictly: a chunk that is not written as its scheme wants does not count. The scheme "conll"
reads them all, and whatever a tagger may invent: a token goes on with the chunk of the token before if that is B or I
(M) of the same kind, and it is I (M) or E (L) itself; any other token with a prefix begins a chunk. On labels with
B, I, O or I, O, E this is what the script conlleval of the shared tasks counts. ``repair`` writes what is read so as a
scheme wants it.

All tokens of all sequences are read at once, as arrays of prefixes and kinds.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, chain, pairwise
from operator import ne
from typing import NamedTuple

import numpy as np

from m3n.io.sentences import numbered

OUTSIDE, BEGIN, INSIDE, END, SINGLE = range(5)
MEANING = {
    "O": OUTSIDE, "B": BEGIN, "I": INSIDE, "M": INSIDE, "E": END, "L": END, "S": SINGLE, "U": SINGLE, "W": SINGLE,
}  # fmt: skip
WITH_ENDS = {"bioes": "OBIES", "bilou": "OBILU", "bmes": "OBMES", "bmewo": "OBMEW"}  # every chunk shows both its ends
WRITTEN = {"iob1": "OBI", "iob2": "OBI", "ioe1": "OIE", "ioe2": "OIE", **WITH_ENDS}
READ = {"conll": "".join(MEANING), **WRITTEN}


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


class Repaired(NamedTuple):
    """Labels as a scheme wants them.

    Attributes
    ----------
    labels : list of lists of str
        The labels of every sequence.
    sequences : int
        How many sequences were written otherwise.
    positions : int
        How many labels were.
    """

    labels: list[list[str]]
    sequences: int
    positions: int


class LabelError(ValueError):
    """A label breaks a scheme, or other constraints.

    Parameters
    ----------
    sequence, position : int
        Where, counted from 0.
    what : str
        What is wrong there.
    remedy : str
        What can be done.

    Attributes
    ----------
    sequence, position, what
        As given.
    """

    def __init__(self, sequence: int, position: int, what: str, remedy: str):
        super().__init__(f"sequence {sequence}, position {position} of y: {what}; {remedy}")
        self.sequence, self.position, self.what = sequence, position, what


def chunks(labels: Sequence[str], scheme: str = "conll") -> list[Chunk]:
    """The chunks of one sequence.

    Parameters
    ----------
    labels : sequence of str
        Its labels.
    scheme : {"conll", "iob1", "iob2", "ioe1", "ioe2", "bioes", "bilou", "bmes", "bmewo"}
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
    source : {"iob1", "iob2", "ioe1", "ioe2", "bioes", "bilou", "bmes", "bmewo", "conll"}
        Their scheme; "conll" takes labels of any scheme, and mends those that none allows.
    target : {"iob1", "iob2", "ioe1", "ioe2", "bioes", "bilou", "bmes", "bmewo"}
        The wanted scheme.

    Examples
    --------
    >>> convert(["I-NP", "I-NP", "B-NP", "O"], "iob1", "bioes")
    ['B-NP', 'E-NP', 'S-NP', 'O']
    """
    _check_written(target)
    tags, kinds = _read([labels], source)
    found = spans(tags, source)
    expected = prefixes_of(found, tags.first, source) if source in WRITTEN else tags.prefixes
    wrong = np.flatnonzero(expected != tags.prefixes)
    if wrong.size:
        t, remedy = int(wrong[0]), 'source="conll" reads whatever there is'
        raise ValueError(f"position {t}: {labels[t]!r} is not what {source} writes here; {remedy}")
    return _labels(prefixes_of(found, tags.first, target), tags.kinds, kinds, target)


def repair(sequences: Sequence[Sequence[str]], scheme: str) -> Repaired:
    """Labels as a scheme wants them: the chunks that "conll" (conlleval) reads, written anew.

    Parameters
    ----------
    sequences : sequences of labels
        The labels of every sequence, of any scheme, valid or not.
    scheme : {"iob1", "iob2", "ioe1", "ioe2", "bioes", "bilou", "bmes", "bmewo"}
        The wanted scheme.

    Examples
    --------
    >>> repair([["O", "I-NP", "I-NP", "I-VP"], ["B-NP"]], "iob2")
    Repaired(labels=[['O', 'B-NP', 'I-NP', 'B-VP'], ['B-NP']], sequences=1, positions=2)
    """
    _check_written(scheme)
    for i, sequence in enumerate(sequences):
        for t, label in enumerate(sequence):
            if not _readable(label, READ["conll"]):
                raise LabelError(i, t, f"{label!r} is no label of chunks", "mend it, or do without a scheme")
    tags, kinds = _read(sequences, "conll")
    written = _labels(prefixes_of(spans(tags, "conll"), tags.first, scheme), tags.kinds, kinds, scheme)
    ends = list(accumulate(map(len, sequences), initial=0))
    labels = [written[low:high] for low, high in pairwise(ends)]
    changed = [sum(map(ne, old, new)) for old, new in zip(sequences, labels, strict=True)]
    return Repaired(labels, sum(map(bool, changed)), sum(changed))


def detect_scheme(sequences: Sequence[Sequence[str]]) -> str | None:
    """Name the scheme of labels, or None if there are no chunks or no scheme allows them all.

    Where several do, it is the first of iob1, iob2, ioe1, ioe2, bioes, bilou, bmes and bmewo.

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
        if not _readable(label, READ[scheme]):
            *others, last = (f"{prefix}-" for prefix in READ[scheme][1:])
            allowed = f"O, or {', '.join(others)} or {last} and a kind, such as {READ[scheme][1]}-NP"
            raise ValueError(f"{label!r} is no label of the scheme {scheme}: {allowed}")
    pairs = [label.partition("-")[::2] for label in labels]
    prefixes = np.array([MEANING[prefix] for prefix, _ in pairs], dtype=np.int8)
    codes, kinds = numbered((kind for _, kind in pairs), len(pairs))
    return prefixes, codes, kinds


def spans(tags: Tags, scheme: str) -> Spans:
    """All chunks that count.

    Parameters
    ----------
    tags : Tags
        The labels.
    scheme : {"conll", "iob1", "iob2", "ioe1", "ioe2", "bioes", "bilou", "bmes", "bmewo"}
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
    elif scheme == "ioe1":
        counts = (last == INSIDE) | np.append(same, False)[ends]  # E is needless where no chunk of its kind follows
    elif scheme == "ioe2":
        counts = last == END
    elif scheme in WITH_ENDS:
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
    scheme : {"iob1", "iob2", "ioe1", "ioe2", "bioes", "bilou", "bmes", "bmewo"}
        The scheme.
    """
    kinds, begins, ends = found
    change = np.zeros(len(first) + 1, dtype=np.int64)
    np.add.at(change, begins, 1)
    np.add.at(change, ends, -1)
    written = np.where(np.cumsum(change[:-1]) > 0, INSIDE, OUTSIDE)
    if scheme in ("iob1", "ioe1"):
        behind = np.flatnonzero((begins[1:] == ends[:-1]) & (kinds[1:] == kinds[:-1])) + 1
        behind = behind[~first[begins[behind]]]
        begins, ends = begins[behind], ends[behind - 1]
    if scheme[:3] != "ioe":
        written[begins] = BEGIN
    if scheme[:3] != "iob":
        written[ends - 1] = END
    if scheme in WITH_ENDS:
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


def _readable(label: object, letters: str) -> bool:
    """Whether a label begins with one of the letters and, if there is more, a dash."""
    return isinstance(label, str) and label.partition("-")[0] in [*letters]


def _check_written(scheme: str) -> None:
    if scheme not in WRITTEN:
        raise ValueError(f"unknown scheme {scheme!r}; choose one of {', '.join(WRITTEN)}")


def _labels(prefixes: np.ndarray, numbers: np.ndarray, kinds: list[str], scheme: str) -> list[str]:
    """Prefixes and kinds as texts, in the letters of a scheme."""
    letters = {MEANING[letter]: letter for letter in WRITTEN[scheme]}
    return [_label(letters[p], kinds[k]) for p, k in zip(prefixes.tolist(), numbers.tolist(), strict=True)]


def _label(prefix: str, kind: str) -> str:
    return prefix if prefix == "O" or not kind else f"{prefix}-{kind}"
