"""Dependency trees in CoNLL-U files, the format of Universal Dependencies: ten columns between tabs.

The ``conllu`` package reads and writes the lines of a sentence, with comments, multiword tokens (``3-4``) and empty
nodes (``8.1``), which all stay in their places. *Words* are the other lines: they are what a parser sees, and their
heads and relations are what it predicts. Here sentences are found, what is wrong with them is said with its line,
and words become tokens with the attributes ``form``, ``lemma``, ``upos``, ``xpos`` and ``feats``."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

from m3n.io.files import DataFileError, Source, lines_of, write_text

ATTRIBUTES = ("form", "lemma", "upos", "xpos", "feats")
COLUMNS = 10
AS_THEY_ARE = {name: lambda line, i: line[i] for name in ("head", "feats", "deps", "misc")}  # texts, not parsed

Token = dict[str, str]
Tree = list[tuple[int, str]]


class Treebank(Sequence[list[Token]]):
    """Sentences of a CoNLL-U file; as a sequence, lists of words, each a dict of its attributes.

    Parameters
    ----------
    sentences : list of conllu.TokenList
        The sentences as the ``conllu`` package has read them.

    Attributes
    ----------
    sentences : list of conllu.TokenList
        All lines, comments among them.
    """

    def __init__(self, sentences: list[Any]):
        self.sentences = sentences
        self._tokens = [[{name: _text(word[name]) for name in ATTRIBUTES} for word in _words(s)] for s in sentences]

    def __len__(self) -> int:
        return len(self.sentences)

    def __getitem__(self, i: Any) -> Any:
        return Treebank(self.sentences[i]) if isinstance(i, slice) else self._tokens[i]

    def __iter__(self) -> Iterator[list[Token]]:
        return iter(self._tokens)

    @property
    def trees(self) -> list[Tree]:
        """For every word of every sentence its head, 0 for the root, and its relation."""
        return [[(word["head"], _text(word["deprel"])) for word in _words(s)] for s in self.sentences]

    @property
    def has_trees(self) -> bool:
        """Whether every word has a head."""
        return all(word["head"] is not None for s in self.sentences for word in _words(s))

    def with_trees(self, trees: Sequence[Sequence[Any]]) -> Treebank:
        """The same sentences with other trees: for every word its head, or its head and its relation.

        Parameters
        ----------
        trees : sequence of sequences
            As ``trees``, or as a parser without labels predicts them.
        """
        if len(trees) != len(self):
            raise ValueError(f"{len(self)} sentences but {len(trees)} trees")
        return Treebank([_changed(s, tree, i) for i, (s, tree) in enumerate(zip(self.sentences, trees, strict=True))])

    def texts(self) -> Iterator[str]:
        """The sentences as a file has them."""
        return (sentence.serialize() for sentence in self.sentences)


def read_conllu(path: Source, *, trees: bool = True, single_root: bool = True) -> Treebank:
    """Read a CoNLL-U file.

    Parameters
    ----------
    path : path
        The file, gzipped or not; ``-`` is standard input.
    trees : bool
        Whether heads and relations must be there, and form trees; else these columns are not looked at.
    single_root : bool
        Whether a sentence with several roots is refused.
    """
    sentences = [_sentence(path, number, lines, trees, single_root) for number, lines in _blocks(path)]
    if not sentences:
        raise DataFileError.empty(path, "sentence")
    return Treebank(sentences)


def write_conllu(path: str | os.PathLike[str], treebank: Treebank) -> None:
    """Write a CoNLL-U file in one step.

    Parameters
    ----------
    path : path
        Where to; packed by gzip if the name ends in ``.gz``. ``-`` is standard output.
    treebank : Treebank
        The sentences.
    """
    write_text(path, treebank.texts())


def _blocks(path: Source) -> Iterator[tuple[int, list[str]]]:
    """The lines of every sentence, and the number of the first of them."""
    lines: list[str] = []
    number = 0
    for number, text in lines_of(path):
        if text.strip():
            lines.append(text)
        elif lines:
            yield number - len(lines), lines
            lines = []
    if lines:
        yield number + 1 - len(lines), lines


def _sentence(path: Source, first: int, lines: list[str], trees: bool, single_root: bool) -> Any:
    """One sentence, checked."""
    import conllu

    numbers = [number for number, line in enumerate(lines, first) if not line.startswith("#")]
    for number in numbers:
        columns = lines[number - first].count("\t") + 1
        if columns != COLUMNS:
            what = f"{columns} columns between tabs, but CoNLL-U has {COLUMNS}; an empty line ends a sentence"
            raise DataFileError.at(path, number, what)
    try:
        found = conllu.parse("\n".join(lines) + "\n\n", field_parsers=AS_THEY_ARE)[0]
    except (conllu.exceptions.ParseException, ValueError, IndexError) as error:
        raise DataFileError.at(path, first, f"this sentence is not CoNLL-U: {error}") from None
    words = _words(found)
    places = [number for number, token in zip(numbers, found, strict=True) if isinstance(token["id"], int)]
    for k, (number, word) in enumerate(zip(places, words, strict=True), start=1):
        if word["id"] != k:
            raise DataFileError.at(path, number, f"word {word['id']} stands where word {k} should be")
        word["head"] = _head(path, number, word["head"], len(words)) if trees else None
    if not words:
        raise DataFileError.at(path, first, "this sentence has no words")
    if trees:
        _check_tree(path, [word["head"] for word in words], places, single_root)
    return found


def _head(path: Source, number: int, text: str, length: int) -> int:
    """The head of a word of a sentence of some length."""
    if not text.isdecimal() or int(text) > length:
        what = "has no head" if text == "_" else f"has the head {text!r}"
        raise DataFileError.at(path, number, f"this word {what}; it must be 0 for the root, or a word 1..{length}")
    return int(text)


def _check_tree(path: Source, heads: list[int], places: list[int], single_root: bool) -> None:
    """Refuse words that do not hang on the root, and a second root."""
    circle = find_circle(heads)
    if circle:
        what = f"word {circle[0]} is its own head, through {' -> '.join(map(str, [*circle, circle[0]]))}: no tree"
        raise DataFileError.at(path, places[circle[0] - 1], what)
    roots = [word for word, head in enumerate(heads, start=1) if head == 0]
    if single_root and len(roots) > 1:
        what = (
            f"word {roots[1]} is a second root beside word {roots[0]}; single_root=False (--no-single-root) allows that"
        )
        raise DataFileError.at(path, places[roots[1] - 1], what)


def find_circle(heads: Sequence[int]) -> list[int]:
    """Words that are above themselves, each followed by its head; none in a tree.

    Parameters
    ----------
    heads : sequence of int
        For every word its head, 0 for the root.
    """
    safe = {0}
    for word in range(1, len(heads) + 1):
        trail: list[int] = []
        while word not in safe and word not in trail:
            trail.append(word)
            word = heads[word - 1]
        if word not in safe:
            return trail[trail.index(word) :]
        safe.update(trail)
    return []


def _words(sentence: Any) -> list[Any]:
    """The lines that are words, neither multiword tokens nor empty nodes."""
    return [token for token in sentence if isinstance(token["id"], int)]


def _text(value: str | None) -> str:
    return "_" if value is None else value


def _changed(sentence: Any, tree: Sequence[Any], i: int) -> Any:
    """A copy of a sentence with another tree."""
    found = sentence.copy()
    found[:] = [token.copy() for token in sentence]
    words = _words(found)
    if len(words) != len(tree):
        raise ValueError(f"sentence {i} has {len(words)} words, but its tree has {len(tree)}")
    for word, entry in zip(words, tree, strict=True):
        word["head"], word["deprel"] = (entry[0], entry[1]) if isinstance(entry, tuple | list) else (entry, "_")
    return found
