"""What lines of templates mean, in the syntaxes of CRF++ and Wapiti and in our own.

    crf++     U... makes attributes of one label, B... of a label and the one before; # begins lines that are comments
    wapiti    the same in small letters, too; *... does both; comments begin at any #
    m3n       any text, so that attributes have names such as w=the; B and a colon or digits (B01:...) is for pairs

Macros stand for values of the token that is ``row`` places further; rows with ``@`` count from the first (@1) or the
last token (@-1) of the sentence, wherever the template is used:

    %x[row,column]          the value
    %x[row,column:form]     a form of it, such as suffix3 (m3n.features.word_forms); %X is the form lower
    %t[row,column,"re"]     true or false: whether a regular expression of Wapiti's matches somewhere
    %m[row,column,"re"]     what it matches; %M the same in small letters
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

SYNTAXES = ("crf++", "wapiti", "m3n")
Row = int | str  # a distance, or a place in the sentence such as "@1"
Key = int | str  # a column, or a form of one such as "0:lower" and '0:t"re"'

MACRO = re.compile(
    r"""
    %(?P<kind>[xXtTmM])\[
    \s*(?P<at>@?)\s*(?P<row>[+-]?\d+)
    \s*,\s*(?P<column>\d+)\s*
    (?: :\s*(?P<form>\w+)\s* | ,\s*"(?P<pattern>(?:\\.|[^"\\])*)"\s* )?
    \]""",
    re.VERBOSE,
)
TRIED = re.compile(r"%(?:\w*\[[^\]]*\]?|.?)")
COLUMN_OFFSET = re.compile(r"%\w\[\s*\*")  # of Wapiti
UNKNOWN = re.compile(r"%[a-zA-Z]\[")
NAMED_PAIR = re.compile(r"B\w*:|B\d+(?!\w)")  # m3n
NAMED_TRANSITIONS = re.compile(r"B\d*:?")
BOTH = "*"


class Template(NamedTuple):
    """A parsed template.

    Attributes
    ----------
    macros : tuple of pairs
        (row, column) of every macro; a row such as "@1" is a place in the sentence, a form of a column is a text such
        as "0:lower".
    texts : tuple of str
        What stands before, between and after them.
    pair : bool
        Whether its attributes are those of a pair of neighbouring labels.
    pattern : str
        The line that it comes from.
    """

    macros: tuple[tuple[Row, Key], ...]
    texts: tuple[str, ...]
    pair: bool
    pattern: str = ""


def syntax_of(lines: Sequence[str], text: bool) -> str:
    """The syntax of lines without comments.

    Parameters
    ----------
    lines : sequence of str
        The lines.
    text : bool
        Whether they come from a file, and not from a list, in which our own names may begin with any letter.
    """
    kinds = {line[0] for line in lines}
    strange = any(macro["kind"] != "x" or macro["at"] for line in lines for macro in MACRO.finditer(line))
    if kinds <= set("UB") and not strange:
        return "crf++"
    wapiti = kinds <= set("UuBb" + BOTH) and (text or BOTH in kinds or kinds <= set("UB"))
    return "wapiti" if wapiti else "m3n"


def read_lines(lines: Iterable[str], text: bool, syntax: str | None = None) -> tuple[list[str], str]:
    """The lines that count, without comments, and their syntax.

    Parameters
    ----------
    lines : iterable of str
        All of them.
    text : bool
        As in ``syntax_of``.
    syntax : {"crf++", "wapiti", "m3n"}, optional
        Their syntax; the default is to look at them.
    """
    kept = [line for line in map(str.strip, lines) if line and line[0] != "#"]
    syntax = syntax or syntax_of(kept, text)
    return kept if syntax != "wapiti" else [line for line in map(without_comment, kept) if line], syntax


def without_comment(line: str) -> str:
    """A line of Wapiti's without what stands behind a #.

    Parameters
    ----------
    line : str
        The line.
    """
    return line.partition("#")[0].rstrip()


def asks_for_transitions(line: str, syntax: str) -> bool:
    """Whether a line asks for transitions and nothing else: one of pairs without a macro.

    Parameters
    ----------
    line : str
        The line.
    syntax : {"crf++", "wapiti", "m3n"}
        Its syntax.
    """
    if syntax == "m3n":
        return NAMED_TRANSITIONS.fullmatch(line) is not None
    return line[0] in "Bb" and not MACRO.search(line)


def templates_of(line: str, syntax: str) -> Iterator[Template]:
    """The templates of a line: one, or in Wapiti's syntax perhaps one of tokens and one of pairs.

    Parameters
    ----------
    line : str
        The line.
    syntax : {"crf++", "wapiti", "m3n"}
        Its syntax.
    """
    found = list(MACRO.finditer(line))
    ends = [0, *(place for macro in found for place in macro.span()), len(line)]
    texts = tuple(line[low:high] for low, high in zip(ends[::2], ends[1::2], strict=True))
    if any(map(UNKNOWN.search, texts)):
        raise ValueError(f"template {line!r} has a macro that is not of the form %x[row,column], such as %x[-1,0]")
    macros = tuple((_row(macro), _key(macro, line)) for macro in found)
    if syntax == "m3n":
        yield Template(macros, texts, NAMED_PAIR.match(line) is not None, line)
        return
    if line[0] not in "Bb":
        yield Template(macros, texts, False, line)
    if line[0] in "Bb" or (line[0] == BOTH and macros):  # without macros the pairs are transitions
        yield Template(macros, texts, True, line)


def _row(macro: re.Match[str]) -> Row:
    return f"@{int(macro['row'])}" if macro["at"] else int(macro["row"])


def _key(macro: re.Match[str], line: str) -> Key:
    """A column, or a form of it."""
    kind, column, form, pattern = macro["kind"], int(macro["column"]), macro["form"], macro["pattern"]
    if kind in "xX":
        if pattern is not None or (kind == "X" and form):
            raise ValueError(f"template {line!r}: %{kind} takes row and column, not {macro.group()!r}")
        form = "lower" if kind == "X" else form
        return f"{column}:{form}" if form else column
    if pattern is None:
        example = f'%{kind}[0,0,"^\\u"]'
        raise ValueError(f"template {line!r}: %{kind} needs a regular expression in quotes, such as {example}")
    return f'{column}:{"t" if kind in "tT" else kind}"{pattern}"'
