"""The OCR words of Kassel and Taskar: the file ``letter.data``, plain or gzipped.

One letter per line, 134 columns between tabs: id, letter (a to z), id of the next letter of the word (-1 at its end),
number of the word, position in the word, fold (0 to 9), and the 16 x 8 pixels, each 0 or 1. Ids only link lines, and
the order of the lines says the same, so they are not read.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from m3n.io.files import DataFileError, Source, name_of, reading

PIXELS = 128
COLUMNS = 6 + PIXELS
ALPHABET = "abcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True)
class Letters:
    """Handwritten words.

    Attributes
    ----------
    pixels : array of uint8 (letters, 128)
        The images, one row per letter, word after word.
    labels : array of int (letters,)
        0 for a, ..., 25 for z.
    offsets : array of int (words + 1,)
        Word i has the letters offsets[i] to offsets[i + 1].
    folds : array of int (words,)
        The fold of every word.
    """

    pixels: np.ndarray
    labels: np.ndarray
    offsets: np.ndarray
    folds: np.ndarray

    @property
    def lengths(self) -> np.ndarray:
        """Letters of every word."""
        return np.diff(self.offsets)

    @property
    def words(self) -> list[list[int]]:
        """The labels of every word."""
        return [word.tolist() for word in np.split(self.labels, self.offsets[1:-1])]

    def only(self, folds: Collection[int]) -> Letters:
        """The words of some folds."""
        kept = np.isin(self.folds, list(folds))
        rows = np.repeat(kept, self.lengths)
        offsets = np.concatenate([[0], np.cumsum(self.lengths[kept])])
        return Letters(self.pixels[rows], self.labels[rows], offsets, self.folds[kept])


@dataclass(frozen=True)
class _Line:
    letter: str
    word: str
    position: int
    fold: int
    pixels: bytes


def read_letters(path: Source, folds: Collection[int] | None = None) -> Letters:
    """Read a file ``letter.data``.

    Parameters
    ----------
    path : path
        The file; ``-`` is standard input.
    folds : collection of int, optional
        Which folds to keep; the default is all.
    """
    letters, pixels, starts, fold_of_word = bytearray(), bytearray(), list[int](), list[int]()
    finished, last = set[str](), _Line("", "", 0, 0, b"")
    with reading(path) as lines:
        for line in map(_parse, filter(None, lines)):
            if line.word == last.word:
                _check_order(line, last)
            elif line.word in finished:
                raise ValueError(f"word {line.word} goes on here after other words have come between")
            else:
                starts.append(len(letters))
                fold_of_word.append(line.fold)
                finished.add(line.word)
            letters += line.letter.encode()
            pixels += line.pixels
            last = line
    if not starts:
        raise DataFileError.empty(path, "letter")
    read = Letters(
        np.frombuffer(bytes(pixels), dtype=np.uint8).reshape(-1, PIXELS) - ord("0"),
        np.frombuffer(bytes(letters), dtype=np.uint8).astype(np.int64) - ord("a"),
        np.array([*starts, len(letters)]),
        np.array(fold_of_word),
    )
    return read if folds is None else _kept(read, folds, path)


def _parse(text: str) -> _Line:
    fields = text.rstrip("\t").split("\t", 6)
    values = fields[6].replace("\t", "") if len(fields) == 7 else ""
    if len(fields) < 7 or fields[6].count("\t") != PIXELS - 1:
        found = len(text.rstrip("\t").split("\t"))
        raise ValueError(f"expected {COLUMNS} columns between tabs, found {found}")
    if len(values) != PIXELS or not set(values) <= {"0", "1"}:
        raise ValueError("the last 128 columns are pixels and must be 0 or 1")
    letter, word, position, fold = fields[1], *fields[3:6]
    if letter not in ALPHABET or len(letter) != 1:
        raise ValueError(f"column 2 must be a letter from a to z, got {letter!r}")
    if not (position.isdecimal() and fold.isdecimal()):
        raise ValueError(f"position and fold must be numbers, got {position!r} and {fold!r}")
    return _Line(letter, word, int(position), int(fold), values.encode())


def _check_order(line: _Line, last: _Line) -> None:
    """A word's letters follow one another and share a fold."""
    if line.position != last.position + 1:
        where = f"position {line.position} of word {line.word}"
        raise ValueError(f"{where} follows position {last.position}; a letter is missing")
    if line.fold != last.fold:
        raise ValueError(f"word {line.word} is in fold {last.fold} and in fold {line.fold}; a word must be in one")


def _kept(letters: Letters, folds: Collection[int], path: Source) -> Letters:
    missing = sorted(set(folds) - set(letters.folds.tolist()))
    if missing or not folds:
        present = sorted(set(letters.folds.tolist()))
        raise DataFileError(f"{name_of(path)} has no words in fold {missing}; its folds are {present}")
    return letters.only(folds)
