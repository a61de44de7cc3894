"""Phrase structure trees as the Penn Treebank writes them.

    ( (S (NP-SBJ (PRP It)) (VP (VBZ rains)) (. .)) )

A bracket holds a label and either one word or brackets. A tree may go over several lines, and several trees may stand
in one; an outermost bracket without a label is dropped. Labels carry grammatical functions (``NP-SBJ``, ``NP=2``), and
the treebank has empty elements below the label ``-NONE-``: ``plain`` takes both away, with the phrases that are left
without a word.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from m3n.io.files import DataFileError, Source, lines_of, reading, write_text

PIECE = re.compile(r"[()]|[^\s()]+")
EMPTY = "-NONE-"
FUNCTION = re.compile(r"(?<=.)[-=|].*")  # not at the beginning: -LRB- is a label


class ParseTree(NamedTuple):
    """A label above a word or above other trees.

    Attributes
    ----------
    label : str
        Of the phrase, or the part of speech of the word.
    children : tuple
        Other trees, or one word.

    Examples
    --------
    >>> tree = ParseTree.parse("(S (NP (PRP It)) (VP (VBZ rains)))")
    >>> tree.words()
    ['It', 'rains']
    >>> str(tree.children[1])
    '(VP (VBZ rains))'
    """

    label: str
    children: tuple[Any, ...]

    @classmethod
    def parse(cls, text: str) -> ParseTree:
        """The only tree that a text holds."""
        found = _Unfinished()
        trees = [tree for piece in PIECE.findall(text) for tree in found.add(piece, 1)]
        if found.stack or len(trees) != 1:
            what = "a bracket is never closed" if found.stack else f"there are {len(trees)} trees"
            raise ValueError(f"{what} in {text!r:.80}; give one tree")
        return trees[0]

    @classmethod
    def of(cls, given: Any) -> ParseTree:
        """A tree from brackets, or from nested pairs of a label and a sequence of children."""
        if isinstance(given, str):
            return cls.parse(given)
        if isinstance(given, cls):
            return given
        label, children = given
        if isinstance(children, str):
            return cls(label, (children,))
        return cls(label, tuple(child if isinstance(child, str) else cls.of(child) for child in children))

    @property
    def is_tag(self) -> bool:
        """Whether it stands above a word."""
        return len(self.children) == 1 and isinstance(self.children[0], str)

    def tags(self) -> Iterator[ParseTree]:
        """The trees that stand above words, from left to right."""
        stack = [self]
        while stack:
            tree = stack.pop()
            if tree.is_tag:
                yield tree
            else:
                stack.extend(reversed(tree.children))

    def words(self) -> list[str]:
        """The words."""
        return [tag.children[0] for tag in self.tags()]

    def plain(self) -> ParseTree | None:
        """The tree without grammatical functions and empty elements; None if nothing else is in it."""
        if self.is_tag:
            return None if self.label == EMPTY else self
        kept = tuple(child for child in (child.plain() for child in self.children) if child is not None)
        return ParseTree(FUNCTION.sub("", self.label), kept) if kept else None

    def __str__(self) -> str:
        """In brackets, on one line."""
        texts, stack = list[str](), list[Any]([self])
        while stack:
            piece = stack.pop()
            if isinstance(piece, str):
                texts.append(piece)
            else:
                texts.append(f" ({piece.label}")
                stack += [
                    ")",
                    *reversed([f" {child}" if isinstance(child, str) else child for child in piece.children]),
                ]
        return "".join(texts).removeprefix(" ")


def read_brackets(path: Source, *, plain: bool = True) -> list[ParseTree]:
    """Read all trees of a file.

    Parameters
    ----------
    path : path
        The file, which may be gzipped; ``-`` is standard input.
    plain : bool
        Whether to take away grammatical functions and empty elements; trees without any word are then left out.
    """
    trees, found, number = [], _Unfinished(), 0
    with reading(path) as lines:
        for number, line in enumerate(lines, start=1):
            for piece in PIECE.findall(line):
                trees += found.add(piece, number)
    if found.stack:
        raise DataFileError.at(
            path, found.stack[-1].line, f"this bracket is never closed (the file has {number} lines)"
        )
    if not trees:
        raise DataFileError.empty(path, "tree")
    return [tree for tree in (tree.plain() for tree in trees) if tree is not None] if plain else trees


def read_words(path: Source) -> list[list[str]]:
    """Read sentences of a plain text: one a line, with blanks between words; brackets become -LRB- and -RRB-.

    Parameters
    ----------
    path : path
        The file, which may be gzipped; ``-`` is standard input. Empty lines are left out.
    """
    lines = (text.replace("(", "-LRB-").replace(")", "-RRB-").split() for _, text in lines_of(path))
    sentences = [words for words in lines if words]
    if not sentences:
        raise DataFileError.empty(path, "sentence")
    return sentences


def write_brackets(path: str | os.PathLike[str], trees: Iterable[Any]) -> None:
    """Write trees, one a line.

    Parameters
    ----------
    path : path
        Where to; packed by gzip if the name ends in ``.gz``.
    trees : iterable of ParseTree
        Or what ``ParseTree.of`` takes.
    """
    write_text(path, [f"{_checked(ParseTree.of(tree))}\n" for tree in trees])


def _checked(tree: ParseTree) -> ParseTree:
    """The tree, if its words and labels can be read again."""
    stack = [tree]
    while stack:
        node = stack.pop()
        for text in (node.label, *(child for child in node.children if isinstance(child, str))):
            if PIECE.fullmatch(text) is None or text in "()":
                raise ValueError(
                    f"{text!r} cannot be written in brackets: labels and words have neither spaces nor brackets; "
                    "the treebank writes -LRB- and -RRB- for brackets in a text"
                )
        stack.extend(child for child in node.children if not isinstance(child, str))
    return tree


class _Open(NamedTuple):
    """A bracket that is not closed yet."""

    line: int
    content: list[Any]  # the label first, if there is one


class _Unfinished:
    """Brackets that are open, the outermost first."""

    def __init__(self) -> None:
        self.stack: list[_Open] = []

    def add(self, piece: str, line: int) -> list[ParseTree]:
        """Go on with a bracket, a label or a word; the tree that it completes, if it does."""
        if piece == "(":
            self.stack.append(_Open(line, []))
        elif not self.stack:
            what = "a bracket is closed that was never opened" if piece == ")" else f"{piece!r} is in no bracket"
            raise ValueError(f"{what}; trees look like (S (NP (PRP It)) (VP (VBZ rains)))")
        elif piece == ")":
            return self._close()
        else:
            self.stack[-1].content.append(piece)
        return []

    def _close(self) -> list[ParseTree]:
        content = self.stack.pop().content
        if not self.stack and len(content) == 1 and isinstance(content[0], ParseTree):
            return content  # an outermost bracket without a label
        tree = _tree(content)
        if not self.stack:
            return [tree]
        self.stack[-1].content.append(tree)
        return []


def _tree(content: list[Any]) -> ParseTree:
    label, children = (content[0] if content else ""), tuple(content[1:])
    if not isinstance(label, str) or not label:
        raise ValueError(f"the bracket ({_shown(content)}) has no label")
    if not children:
        raise ValueError(f"the bracket ({label}) holds nothing; a word has a bracket of its own, such as (NN {label})")
    words = sum(isinstance(child, str) for child in children)
    if words and len(children) > 1:
        raise ValueError(f"the bracket ({_shown(content)}) must hold either one word or other brackets")
    return ParseTree(label, children)


def _shown(content: list[Any]) -> str:
    return " ".join(map(str, content))[:60]
