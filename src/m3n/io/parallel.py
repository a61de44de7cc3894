"""Parallel text: sentences and their translations, with or without the links between their words.

    the house ||| la maison               source and target, as fast_align reads them
    the house ||| la maison ||| 0-0 1-1   with links, as ``m3n.io.alignments`` describes them

Words stand between blanks. The two sides may also be two files with a sentence on every line. What cannot be aligned, a
side without words, is refused and not left out: a file of links counts lines, too.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import Any

from m3n.io.alignments import Alignment, check_links, links_of, pharaoh_text
from m3n.io.files import STANDARD, DataFileError, Source, lines_of, name_of, reading, write_text

BETWEEN = "|||"
WORD = re.compile(r"[^ \t\r\n\f\v]+")  # a no-break space belongs to its word
REMEDY = f"a line is: source words {BETWEEN} target words, with blanks around {BETWEEN}"
Pair = tuple[list[str], list[str]]


def read_parallel(path: Source, target: Source | None = None) -> tuple[list[Pair], list[Alignment] | None]:
    """Read sentence pairs: source words and target words, and the links of every pair, or None if there are none.

    Parameters
    ----------
    path : path
        The file, which may be gzipped; ``-`` is standard input.
    target : path, optional
        Sentences of the target, line by line; then ``path`` has only those of the source.
    """
    if target is not None:
        return _read_sides(path, target), None
    pairs, links = list[Pair](), list[Alignment | None]()
    with reading(path) as lines:
        for text in lines:
            pair, found = _pair(text)
            pairs.append(pair)
            links.append(found)
            if (found is None) != (links[0] is None):
                raise ValueError("some lines have links in a third field, others have none; an empty field is one")
    if not pairs:
        raise DataFileError.empty(path, "sentence pair")
    return pairs, None if links[0] is None else [found for found in links if found is not None]


def write_parallel(
    path: str | os.PathLike[str], pairs: Iterable[Sequence[Sequence[str]]], links: Sequence[Any] | None = None
) -> None:
    """Write sentence pairs in one step, a line each.

    Parameters
    ----------
    path : path
        Where to; packed by gzip if the name ends in ``.gz``. ``-`` is standard output.
    pairs : iterable of (source words, target words)
        The sentences.
    links : sequence of Alignment, optional
        Or of other links, pairs of numbers: the third field of every line.
    """
    fields = [[_sentence(side, k) for side in pair] for k, pair in enumerate(pairs)]
    if links is not None:
        if len(links) != len(fields):
            raise ValueError(f"{len(fields)} sentence pairs, but {len(links)} alignments")
        fields = [[*sides, pharaoh_text(Alignment.of(found))] for sides, found in zip(fields, links, strict=True)]
    write_text(path, [f" {BETWEEN} ".join(texts).rstrip() + "\n" for texts in fields])


def sizes_of(pairs: Iterable[Sequence[Sequence[str]]]) -> list[tuple[int, int]]:
    """How many words source and target of every pair have.

    Parameters
    ----------
    pairs : iterable of (source words, target words)
        The sentences.
    """
    return [(len(source), len(target)) for source, target in pairs]


def _pair(text: str) -> tuple[Pair, Alignment | None]:
    """The words of a line, and its links if it has a third field."""
    words = WORD.findall(text)
    places = [k for k, word in enumerate(words) if word == BETWEEN]
    if not places:
        raise ValueError(_without(text))
    if len(places) > 2:
        raise ValueError(f"{len(places)} times {BETWEEN}; a line has source, target and, if there are any, links")
    end = places[1] if len(places) == 2 else len(words)
    pair = words[: places[0]], words[places[0] + 1 : end]
    for name, side in zip(("source", "target"), pair, strict=True):
        if not side:
            raise ValueError(f"the {name} is empty; take the pair out, and its line out of a file of links")
    if len(places) == 1:
        return pair, None
    links = links_of(" ".join(words[end + 1 :]))
    check_links(links, (len(pair[0]), len(pair[1])))
    return pair, links


def _without(text: str) -> str:
    """What is wrong with a line that has no separator."""
    if not text.strip():
        return f"this line is empty, and a sentence pair needs words on both sides; {REMEDY}"
    words = WORD.findall(text)
    seen = {"a tab": text.count("\t") == 1, "||": "||" in words, "|": "|" in words}
    seen = {f"a {BETWEEN} without blanks around it": BETWEEN in text, **seen}
    instead = next((f", but {name}" for name, there in seen.items() if there), "")
    return f"there is no {BETWEEN} between blanks in this line{instead}; {REMEDY}, or give the two sides as two files"


def _read_sides(path: Source, target: Source) -> list[Pair]:
    if path == target and name_of(path) == name_of(STANDARD):
        raise ValueError("standard input can be read only once; give one of the two sides as a file")
    pairs: list[Pair] = []
    for one, other in zip_longest(_side(path), _side(target)):
        if one is None or other is None:
            short, long = (path, target) if one is None else (target, path)
            what = f"{name_of(short)} ends after {len(pairs)} lines, but {name_of(long)} has more"
            raise DataFileError(f"{what}: line i of one file must be the translation of line i of the other")
        pairs.append((one, other))
    if not pairs:
        raise DataFileError.empty(path, "sentence")
    return pairs


def _side(path: Source) -> Iterator[list[str]]:
    for number, text in lines_of(path):
        words = WORD.findall(text)
        if not words:
            what = "this line is empty, and words cannot be aligned with nothing"
            raise DataFileError.at(path, number, f"{what}; take the line out of both files, and of a file of links")
        if BETWEEN in words:
            raise DataFileError.at(path, number, f"this line has both sides ({BETWEEN}); give this file alone")
        yield words


def _sentence(words: Sequence[str], k: int) -> str:
    wrong = [word for word in words if not WORD.fullmatch(word) or word == BETWEEN]
    if wrong or not words:
        what = f"the word {wrong[0]!r} cannot be written" if wrong else "one side has no words"
        raise ValueError(f"sentence pair {k}: {what}; words are not empty, have no blanks and are not {BETWEEN}")
    return " ".join(words)
