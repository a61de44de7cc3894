"""Word alignments: which words of two sentences translate each other, and files of them.

A link is a pair (i, j), counted from 0: word i of the first sentence (the *source*) and word j of the second (the
*target*). Annotators mark links that are *sure*, and some that are *possible*: neither wrong nor needed. Two formats:

    pharaoh   0-0 1-2 2?1       a line per sentence pair, empty if there is no link; from 0; ? or p marks possible links
    naacl     0001 1 3 S 0.93   a line per link: sentence pair, source, target, S or P, confidence; all from 1

Pharaoh links may have a probability (``0-0:0.93``), which is not read. The last two fields of the shared tasks' lines
may be missing; a link to word 0 says that a word has no translation, as words without any link do.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from m3n.io.files import DataFileError, Source, hold, lines_of, name_of, reading, write_text

Link = tuple[int, int]
Size = tuple[int, int]

FORMATS = ("pharaoh", "naacl")
MOST = 100_000_000  # sentence pairs; a higher number is a slip, and would fill the memory with pairs without links
PHARAOH = re.compile(r"([0-9]+)([-?p])([0-9]+)(:\S+)?")
NAACL = re.compile(r"([0-9]+)\s+([0-9]+)\s+([0-9]+)(\s+[SP])?(\s+[-+]?[0-9.]+([eE][-+]?[0-9]+)?)?", re.ASCII)


class Alignment(NamedTuple):
    """The links of a sentence pair as annotators give them.

    Attributes
    ----------
    sure : frozenset of (int, int)
        Links that must be there.
    possible : frozenset of (int, int)
        Links that may be there, without the sure ones.
    """

    sure: frozenset[Link]
    possible: frozenset[Link] = frozenset()

    @classmethod
    def of(cls, links: Any) -> Alignment:
        """An alignment as it is; of other links, pairs of numbers, all are sure.

        Parameters
        ----------
        links : Alignment or iterable of (int, int)
            The links.
        """
        if isinstance(links, Alignment):
            return links
        return cls(frozenset(_pairs(links)))

    @property
    def links(self) -> frozenset[Link]:
        """The sure and the possible ones."""
        return self.sure | self.possible


def _pairs(links: Iterable[Any]) -> Iterable[Link]:
    for link in links:
        i, j = link
        yield int(i), int(j)


def read_alignments(
    path: Source, sizes: Sequence[Size] | None = None, format: str | None = None, *, pairs: int | None = None
) -> list[Alignment]:
    """Read the links of sentence pairs.

    Parameters
    ----------
    path : path
        The file, which may be gzipped; ``-`` is standard input.
    sizes : sequence of (int, int), optional
        How many words source and target of every pair have: other links are refused.
    format : {"pharaoh", "naacl"}, optional
        The format; the default is to look at the first line that is not empty.
    pairs : int, optional
        How many sentence pairs there are, if ``sizes`` does not say it. Without either, the last pair is that of the
        last line, or in the format of the shared tasks the one with the highest number.
    """
    if format is not None and format not in FORMATS:
        raise ValueError(f"unknown format {format!r}; choose one of {', '.join(FORMATS)}")
    source = hold(path)
    read = _read_naacl if (format or _detected(source)) == "naacl" else _read_pharaoh
    return read(source, sizes, pairs if sizes is None else len(sizes))


def write_alignments(
    path: str | os.PathLike[str],
    alignments: Iterable[Any],
    format: str = "pharaoh",
    *,
    probabilities: Sequence[Any] | None = None,
) -> None:
    """Write the links of sentence pairs in one step.

    Parameters
    ----------
    path : path
        Where to; packed by gzip if the name ends in ``.gz``. ``-`` is standard output.
    alignments : iterable of Alignment
        Or of other links, pairs of numbers.
    format : {"pharaoh", "naacl"}
        In the second one, pairs without a link have no line: who reads it must know how many pairs there are.
    probabilities : sequence of arrays (source words, target words), optional
        Written beside every link: ``0-0:0.93``, or as the last field of a line.
    """
    if format not in FORMATS:
        raise ValueError(f"unknown format {format!r}; choose one of {', '.join(FORMATS)}")
    write_text(path, alignment_texts(alignments, format, probabilities))


def alignment_texts(
    alignments: Iterable[Any], format: str = "pharaoh", probabilities: Sequence[Any] | None = None, first: int = 0
) -> Iterator[str]:
    """What ``write_alignments`` writes.

    Parameters
    ----------
    alignments, format, probabilities
        As in ``write_alignments``.
    first : int
        How many sentence pairs have come before.
    """
    for k, alignment in enumerate(map(Alignment.of, alignments)):
        shares = None if probabilities is None else probabilities[k]
        if format == "pharaoh":
            yield pharaoh_text(alignment, shares) + "\n"
        else:
            yield from _naacl(first + k + 1, alignment, shares)


def links_of(text: str) -> Alignment:
    """The links of one line of Pharaoh's format.

    Parameters
    ----------
    text : str
        Such as ``0-0 1?2``.
    """
    sure, possible = set[Link](), set[Link]()
    for field in text.split():
        found = PHARAOH.fullmatch(field)
        if found is None:
            raise ValueError(f"{field!r} is no link; links look like 0-0 1-2 1?3 (source-target, counted from 0)")
        i, kind, j, _ = found.groups()
        (sure if kind == "-" else possible).add((int(i), int(j)))
    return _alignment(sure, possible)


def pharaoh_text(alignment: Alignment, probabilities: Any = None) -> str:
    """A line of Pharaoh's format, without its end.

    Parameters
    ----------
    alignment : Alignment
        The links.
    probabilities : array (source words, target words), optional
        Of all links.
    """
    texts = []
    for i, j in sorted(alignment.links):
        share = "" if probabilities is None else f":{probabilities[i][j]:.6f}"
        texts.append(f"{i}{'-' if (i, j) in alignment.sure else '?'}{j}{share}")
    return " ".join(texts)


def check_links(alignment: Alignment, size: Size, first: int = 0) -> None:
    """Refuse links to words that are not there.

    Parameters
    ----------
    alignment : Alignment
        The links.
    size : (int, int)
        How many words source and target have.
    first : {0, 1}
        The number of the first word in messages.
    """
    for i, j in sorted(alignment.links):
        if i >= size[0] or j >= size[1]:
            what = f"the link of word {i + first} with word {j + first} does not fit"
            has = f"the source has {size[0]} words and the target {size[1]}, counted from {first}"
            raise ValueError(f"{what}: {has}")


def _alignment(sure: Iterable[Link], possible: Iterable[Link]) -> Alignment:
    return Alignment(frozenset(sure), frozenset(possible) - frozenset(sure))


def _detected(source: Source) -> str:
    first = next((text for _, text in lines_of(source) if text.strip()), "")
    return "naacl" if NAACL.fullmatch(first.strip()) else "pharaoh"


def _read_pharaoh(path: Source, sizes: Sequence[Size] | None, pairs: int | None) -> list[Alignment]:
    found: list[Alignment] = []
    with reading(path) as lines:
        for k, text in enumerate(lines):
            if pairs is not None and k >= pairs:
                raise ValueError(f"there are only {pairs} sentence pairs, and this is line {k + 1}")
            found.append(links_of(text))
            if sizes is not None:
                check_links(found[-1], sizes[k])
    if pairs is not None and len(found) < pairs:
        what = f"{name_of(path)} ends after {len(found)} lines, but there are {pairs} sentence pairs"
        raise DataFileError(f"{what}; a pair without links has an empty line")
    if not found:
        raise DataFileError.empty(path, "line of links")
    return found


def _read_naacl(path: Source, sizes: Sequence[Size] | None, pairs: int | None) -> list[Alignment]:
    sure, possible = dict[int, set[Link]](), dict[int, set[Link]]()
    with reading(path) as lines:
        for text in filter(str.strip, lines):
            number, link, kind = _naacl_link(text)
            most = MOST if pairs is None else pairs
            if not 0 < number <= most:
                what = f"there are only {most} sentence pairs" if number else "sentence pairs are counted from 1"
                raise ValueError(f"this is a link of pair {number}, but {what}")
            if link is None:
                continue
            if sizes is not None:
                check_links(Alignment(frozenset([link])), sizes[number - 1], first=1)
            (possible if kind == "P" else sure).setdefault(number, set()).add(link)
    many = max([*sure, *possible], default=0) if pairs is None else pairs
    if not many and pairs is None:
        raise DataFileError.empty(path, "link")
    return [_alignment(sure.get(k, ()), possible.get(k, ())) for k in range(1, many + 1)]


def _naacl_link(text: str) -> tuple[int, Link | None, str]:
    """The number of a pair, a link counted from 0, if it is one, and S or P."""
    found = NAACL.fullmatch(text.strip())
    if found is None:
        example = "such as 0001 1 3 S: sentence pair, source word, target word, S or P, all counted from 1"
        raise ValueError(f"{text[:60]!r} is no line {example}")
    number, i, j = (int(field) for field in found.groups()[:3])
    return number, (i - 1, j - 1) if i and j else None, (found[4] or "S").strip()


def _naacl(number: int, alignment: Alignment, shares: Any) -> Iterator[str]:
    for i, j in sorted(alignment.links):
        share = "" if shares is None else f" {shares[i][j]:.6f}"
        yield f"{number:04d} {i + 1} {j + 1} {'S' if (i, j) in alignment.sure else 'P'}{share}\n"
