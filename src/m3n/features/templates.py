"""From tokens in columns to sparse rows, by templates.

A template is a text with macros ``%x[row,column]``: the value of a column in the token that stands ``row`` places
further. The template ``w[-1]|w[0]=%x[-1,0]|%x[0,0]`` gives "dog" after "the" the attribute ``w[-1]|w[0]=the|dog``. The
lines of template files of CRF++ (``U05:%x[-1,0]/%x[0,0]``) and Wapiti are such texts. Some make attributes of the
*pair* of labels of a token and of the one before it; which they are, and other macros, is in ``io.template_syntax``.

No attribute is spelled out in order to be numbered: the columns come as integer codes, a template joins the shifted
codes of its macros to one number per token (``JointCodes``), and the numbers of all templates are the CSR matrix.
Templates take ranges of attributes in the order in which they are given, so rows are sorted and without duplicates.

Two attributes of a template are the same if all of their values are, whatever their texts look like: ``a/b`` + ``c``
and ``a`` + ``b/c`` differ.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
import scipy.sparse

from m3n.compiled.maps.templates import FIRST, LAST
from m3n.features import wapiti
from m3n.features.joint_codes import ABSENT, JointCodes
from m3n.features.template_lookup import Learnt, TemplateLookup
from m3n.features.window import MARKS, Window
from m3n.features.word_forms import FORMS
from m3n.io.sentences import Column, Sentences
from m3n.io.template_syntax import (
    SYNTAXES,
    Key,
    Row,
    Template,
    asks_for_transitions,
    read_lines,
    templates_of,
)

WINDOW = range(-2, 3)
PADDINGS = ("symbols", "marks", "none")
MATCHED = re.compile(r'([tmM])"(.*)"', re.DOTALL)  # a form that is made by a regular expression
FARTHEST = 5  # Wapiti calls all places beyond the sentence alike that are so far away, or farther


@dataclass
class Templates:
    """Numbers the attributes that templates make at ``fit_transform``, leaves out unseen ones at ``transform``.

    Parameters
    ----------
    patterns : sequence of str, or str
        The templates, or the text of a template file: one per line; empty lines and lines that begin with ``#`` do not
        count. Lines such as ``B01:%x[0,0]`` make attributes of pairs of labels; a line that is just ``B`` asks for
        transitions, which a tagger always has.
    padding : {"symbols", "marks", "none"}
        What a macro that points beyond the sentence does. "symbols": it gives ``_B-1``, ``_B-2``, ... before and
        ``_B+1``, ... after the sentence, as in CRF++. "none": the token does not have that attribute. "marks": the
        same, but the first token has the attribute ``__BOS__`` and the last ``__EOS__``, as in CRFsuite's examples.
    syntax : {"crf++", "wapiti", "m3n"}, optional
        What lines mean. "crf++": those that begin with B are for pairs of labels, all others for single ones. "wapiti":
        also those with b; those with ``*`` are for both; symbols beyond the sentence are ``_x-1``, ... "m3n": lines may
        be any text, and only ``B``, a name and a colon, or digits (``B01:``), is for pairs. The default is CRF++'s if
        all lines begin with U or B, Wapiti's if all begin with its letters and it is the text of a file or has a ``*``.

    Attributes
    ----------
    values : dict
        From a column, or form of one, that the templates use to its distinct values in training.
    attributes : list of JointCodes
        For every template, and every mark, what it has learnt.
    parsed : tuple of Template
        The templates, and the marks.

    Examples
    --------
    >>> from m3n.io import Sentences
    >>> templates = Templates(["w=%x[0,0]", "before=%x[-1,0]"], padding="none")
    >>> templates.fit_transform(Sentences.of([[("the",), ("dog",)]])).toarray().tolist()
    [[1.0, 0.0, 0.0], [0.0, 1.0, 1.0]]
    >>> templates.names
    ['w=the', 'w=dog', 'before=the']
    """

    patterns: Sequence[str]
    padding: str = "symbols"
    syntax: str | None = None

    def __post_init__(self) -> None:
        if self.padding not in PADDINGS:
            raise ValueError(f"unknown padding {self.padding!r}; choose one of {PADDINGS}")
        if self.syntax not in (None, *SYNTAXES):
            raise ValueError(f"unknown syntax {self.syntax!r}; choose one of {SYNTAXES}")
        text = isinstance(self.patterns, str)
        given = self.patterns.splitlines() if isinstance(self.patterns, str) else self.patterns
        lines, self.syntax = read_lines(given, text, self.syntax)
        self.patterns = tuple(line for line in lines if not asks_for_transitions(line, self.syntax))
        marks = [Template((), (mark,), False, mark) for mark in (MARKS if self.padding == "marks" else ())]
        self.parsed = (*(found for line in self.patterns for found in templates_of(line, self.syntax)), *marks)
        _check_forms(self.parsed)
        texts = [(template.pattern, template.pair) for template in self.parsed]
        if len(set(texts)) < len(texts) or all(template.pair for template in self.parsed):
            raise ValueError("there must be at least one template of single tokens, and no template may come twice")
        self.values: dict[Key, list[str]] = {}
        self.attributes: list[JointCodes] = []
        self._lookup: TemplateLookup | None = None

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_lookup": None}

    @property
    def width(self) -> int:
        """How many attributes of tokens there are."""
        return sum(len(attributes) for _, attributes in self._own(pair=False))

    @property
    def pair_width(self) -> int:
        """How many attributes of pairs of labels there are."""
        return sum(len(attributes) for _, attributes in self._own(pair=True))

    @property
    def has_pairs(self) -> bool:
        """Whether some templates make attributes of pairs of labels."""
        return any(template.pair for template in self.parsed)

    @property
    def names(self) -> list[str]:
        """The attributes of tokens as text, column by column."""
        return self._names(pair=False)

    @property
    def pair_names(self) -> list[str]:
        """The attributes of pairs of labels as text, column by column."""
        return self._names(pair=True)

    def unfitted(self) -> Templates:
        """The same templates without what they have learnt."""
        return Templates(self.patterns, self.padding, self.syntax)

    def restore(self, values: dict[Key, list[str]], tables: Sequence[Sequence[np.ndarray]]) -> None:
        """Take over what ``fit_transform`` has learnt elsewhere: ``values``, and the tables of all ``attributes``.

        Parameters
        ----------
        values : dict
            As the attribute of this name.
        tables : sequence of sequences of arrays
            For every one of ``attributes`` its tables.
        """
        self.values = values
        self._numbers: dict[Key, dict[str, int]] = {}
        self._lookup = None
        sizes = {column: len(self.words(column)) for column in values}
        self.attributes = [
            JointCodes([sizes[column] for _, column in template.macros] or [1], own)
            for template, own in zip(self.parsed, tables, strict=True)
        ]

    def fit_transform(
        self, sentences: Sentences, min_freq: int = 1, known: Templates | None = None
    ) -> scipy.sparse.csr_array:
        """Learn the attributes and return one row per token of all sentences.

        Parameters
        ----------
        sentences : Sentences
            Tokens in columns.
        min_freq : int
            Attributes that occur less often are left out.
        known : Templates, optional
            The same templates with what they have learnt elsewhere: these attributes stay, however often they occur.
        """
        used, earlier = self._used_columns(sentences), {} if known is None else known.values
        values = {key: list(dict.fromkeys([*earlier.get(key, ()), *column.values])) for key, column in used.items()}
        self.restore({key: self.with_symbols(key, own) for key, own in values.items()}, [()] * len(self.parsed))
        if known is None:
            codes, learn = (
                {key: column.codes for key, column in used.items()},
                partial(JointCodes.learn, least=min_freq),
            )
        else:
            codes, learn = self._codes(sentences), partial(_learn_more, min_freq, self._translated(known))
        if self.has_pairs:
            self._matrix(codes, sentences.offsets, learn, pair=True)
        return self._matrix(codes, sentences.offsets, learn, pair=False)

    def places_of(self, known: Templates, *, pair: bool = False) -> np.ndarray:
        """The columns of the attributes of other templates that ``fit_transform`` was given.

        Parameters
        ----------
        known : Templates
            The others.
        pair : bool
            Whether attributes of pairs of labels are meant.
        """
        translated, places, width = self._translated(known), list[np.ndarray](), 0
        for _, attributes in self._own(pair):
            places.append(width + attributes.find(translated[id(attributes)]))
            width += len(attributes)
        return np.concatenate(places)

    def _translated(self, known: Templates) -> dict[int, list[np.ndarray]]:
        """The tuples that others have learnt, in our codes, by the identity of what is to learn them here."""
        codes = {key: self._codes_of(key, known) for key in known.values}
        found = {}
        for template, own, other in zip(self.parsed, self.attributes, known.attributes, strict=True):
            keys = [key for _, key in template.macros]
            tuples = other.split()
            found[id(own)] = [codes[key][part] for key, part in zip(keys, tuples, strict=True)] if keys else tuples
        return found

    def _codes_of(self, key: Key, known: Templates) -> np.ndarray:
        """Our codes of the words of others, the symbols beyond the sentence among them."""
        numbers = self._numbers_of(key)
        values = np.array([numbers[value] for value in known.values[key]], dtype=np.int64)
        symbols = len(known.words(key)) - len(values)
        return np.concatenate([values, len(numbers) + np.arange(symbols)])

    def transform(self, sentences: Sentences) -> scipy.sparse.csr_array:
        """One row per token of all sentences; attributes that ``fit_transform`` did not see are left out.

        Parameters
        ----------
        sentences : Sentences
            Tokens in columns.
        """
        return self._matrix(self._codes(sentences), sentences.offsets, JointCodes.find, pair=False)

    def transform_pairs(self, sentences: Sentences) -> scipy.sparse.csr_array:
        """One row per pair of neighbouring tokens, with the attributes that the templates of pairs make.

        Parameters
        ----------
        sentences : Sentences
            Tokens in columns.
        """
        return self._matrix(self._codes(sentences), sentences.offsets, JointCodes.find, pair=True)

    def _codes(self, sentences: Sentences) -> dict[Key, np.ndarray]:
        """The columns that the templates use, in the codes of training."""
        if not self.attributes:
            raise ValueError("these templates have no attributes yet: call fit_transform first")
        return {key: self._known_codes(key, column) for key, column in self._used_columns(sentences).items()}

    def _own(self, pair: bool) -> list[tuple[Template, JointCodes]]:
        """The templates of tokens, or of pairs, with what they have learnt."""
        both = zip(self.parsed, self.attributes, strict=False)
        return [(template, attributes) for template, attributes in both if template.pair == pair]

    def _names(self, pair: bool) -> list[str]:
        words = {column: np.array(self.words(column), dtype=object) for column in self.values}
        names = list[str]()
        for template, attributes in self._own(pair):
            joined = np.full(len(attributes), template.texts[0], dtype=object)
            for (_, column), codes, text in zip(template.macros, attributes.split(), template.texts[1:], strict=False):
                joined = joined + words[column][codes] + text
            names += joined.tolist()
        return names

    def check(self, sentences: Sentences) -> None:
        """Refuse sentences without a column that a template reads.

        Parameters
        ----------
        sentences : Sentences
            Tokens in columns.
        """
        width = len(sentences.columns)
        for template in self.parsed:
            for _, key in template.macros:
                if _place(key)[0] >= width:
                    what = f"reads column {_place(key)[0]}, but the columns of the tokens are 0 to {width - 1}"
                    raise ValueError(f"template {template.pattern!r} {what}")

    def _used_columns(self, sentences: Sentences) -> dict[Key, Column]:
        """The columns and their forms that the templates use, after checking that the sentences have them."""
        self.check(sentences)
        keys = sorted({key for template in self.parsed for _, key in template.macros}, key=_place)
        return {key: _column(sentences, *_place(key)) for key in keys}

    def _known_codes(self, column: Key, given: Column) -> np.ndarray:
        """A column in the codes of training: one look-up per distinct value."""
        get, (used, codes) = self._numbers_of(column).get, given.used()
        return np.array([get(value, ABSENT) for value in used], dtype=np.int64)[codes]

    def _numbers_of(self, column: Key) -> dict[str, int]:
        """The codes of a column's values."""
        if column not in self._numbers:
            self._numbers[column] = {value: code for code, value in enumerate(self.values[column])}
        return self._numbers[column]

    def lookup(self) -> TemplateLookup:
        """What finds the attributes of new tokens by compiled code, prepared once."""
        known: TemplateLookup | None = vars(self).get("_lookup")  # pickles of earlier versions have none
        if known is None:
            own = self._own(pair=False)
            keys = sorted({key for template, _ in own for _, key in template.macros}, key=_place)
            forms = {
                key: (_place(key)[0], _function(_place(key)[1]), self._numbers_of(key), self._beyond(key))
                for key in keys
            }
            known = self._lookup = TemplateLookup(Learnt(own, forms, dict(zip(MARKS, (FIRST, LAST), strict=True))))
        return known

    def words(self, column: Key) -> list[str]:
        """The texts of a column's codes: its values and, with symbols, what stands beyond the sentence.

        Parameters
        ----------
        column : int or str
            Which column, or form of one.
        """
        return self.values[column] if _expression(column) else self.values[column] + self._symbols()

    def _symbols(self) -> list[str]:
        """The texts of what stands beyond the sentence, before it from near to far, then behind it."""
        distances = [str(k + 1) for k in range(self._reach)]
        if self.syntax == "wapiti":
            distances[FARTHEST - 1 :] = ["#"] * (len(distances) >= FARTHEST)
        name = "_x" if self.syntax == "wapiti" else "_B"
        return [f"{name}{side}{distance}" for side in "-+" for distance in distances]

    def with_symbols(self, key: Key, values: list[str]) -> list[str]:
        """Values of a form with those of the symbols beyond the sentence, if it is made of these like of any text.

        Parameters
        ----------
        key : int or str
            Which column, or form of one.
        values : list of str
            Its values.
        """
        if not _expression(key):
            return values
        function = _function(_place(key)[1])
        return list(dict.fromkeys([*values, *map(function, self._symbols())]))

    def _beyond(self, key: Key) -> np.ndarray:
        """The codes of the symbols beyond the sentence."""
        if not _expression(key):
            return len(self.values[key]) + np.arange(2 * self._reach)
        function, codes = _function(_place(key)[1]), {value: k for k, value in enumerate(self.values[key])}
        return np.array([codes[function(symbol)] for symbol in self._symbols()], dtype=np.int64)

    @property
    def _reach(self) -> int:
        """How many symbols each side needs."""
        if self.padding != "symbols":
            return 0
        rows = [_farthest(row) for template in self.parsed for row, _ in template.macros]
        reach = max(rows, default=0)
        return min(reach, FARTHEST) if self.syntax == "wapiti" else reach

    def _matrix(
        self, codes: dict[Key, np.ndarray], offsets: np.ndarray, number: Numbering, *, pair: bool
    ) -> scipy.sparse.csr_array:
        window, own = Window(offsets, self._reach), self._own(pair)
        rows = np.flatnonzero(window.place > 0) if pair else slice(None)  # a pair belongs to its second token

        @cache
        def shifted(row: Row, column: Key) -> np.ndarray:
            return window.shift(codes[column], row, self._beyond(column))[rows]

        columns, width = np.full((len(window.place[rows]), len(own)), ABSENT), 0
        for j, (template, attributes) in enumerate(own):
            parts = [shifted(*macro) for macro in template.macros] or [window.constant(template.texts[0])[rows]]
            numbers = number(attributes, parts)
            columns[:, j] = np.where(numbers < 0, ABSENT, numbers + width)
            width += len(attributes)
        return _csr(columns, width)


Numbering = Callable[[JointCodes, list[np.ndarray]], np.ndarray]


def _learn_more(
    least: int, known: dict[int, list[np.ndarray]], attributes: JointCodes, parts: list[np.ndarray]
) -> np.ndarray:
    """Learn what occurs so often, besides what is known."""
    return attributes.learn(parts, least, known[id(attributes)])


def _check_forms(templates: Sequence[Template]) -> None:
    """Refuse forms that nobody knows, and regular expressions that are none."""
    for template in templates:
        for form in (_place(key)[1] for _, key in template.macros):
            if form and not MATCHED.fullmatch(form) and form not in FORMS:
                what = f"asks for the form {form!r}; choose one of {', '.join(FORMS)}"
                raise ValueError(f"template {template.pattern!r} {what}")
            try:
                _function(form)
            except ValueError as error:
                raise ValueError(f"template {template.pattern!r}: {error}") from None


def _function(form: str) -> Callable[[str], str]:
    """What a form makes of a value."""
    matched = MATCHED.fullmatch(form)
    return wapiti.form_of(*matched.groups()) if matched else FORMS.get(form, str)


def _expression(key: Key) -> bool:
    """Whether a form is made by a regular expression, which reads symbols beyond the sentence like any text."""
    return MATCHED.fullmatch(_place(key)[1]) is not None


def _farthest(row: Row) -> int:
    """How far beyond a sentence a macro may look."""
    return abs(row) if isinstance(row, int) else max(abs(int(row.removeprefix("@"))), 1)


def _place(key: Key) -> tuple[int, str]:
    """Column and form."""
    column, _, form = str(key).partition(":")
    return int(column), form


def _column(sentences: Sentences, column: int, form: str) -> Column:
    return sentences.columns[column].map(_function(form)) if form else sentences.columns[column]


def _csr(columns: np.ndarray, width: int) -> scipy.sparse.csr_array:
    """Ones at the columns that every row lists in ascending order, apart from those that are ABSENT."""
    present = columns >= 0
    ends = np.concatenate([[0], np.cumsum(present.sum(axis=1))])
    small = max(width, int(ends[-1])) < 2**31
    kind = np.int32 if small else np.int64
    indices = columns[present].astype(kind)
    matrix = scipy.sparse.csr_array((np.ones(len(indices)), indices, ends.astype(kind)), shape=(len(columns), width))
    matrix.has_canonical_format = True
    return matrix


def _named(name: str, column: Key, rows: Sequence[int], tokens: int = 1) -> list[str]:
    """Templates of so many neighbouring tokens from every row on, such as ``w[-1]|w[0]=%x[-1,0]|%x[0,0]``."""
    windows = [range(row, row + tokens) for row in rows]
    names = ["|".join(f"{name}[{place}]" for place in window) for window in windows]
    macros = ["|".join(f"%x[{place},{column}]" for place in window) for window in windows]
    return [f"{left}={right}" for left, right in zip(names, macros, strict=True)]


CHUNKING = Templates(  # of a file with word, part of speech, label
    [
        *_named("w", 0, WINDOW),
        *_named("w", 0, (-1, 0), tokens=2),
        *_named("pos", 1, WINDOW),
        *_named("pos", 1, range(-2, 2), tokens=2),
        *_named("pos", 1, range(-2, 1), tokens=3),
    ],
    padding="marks",
)


def word_templates(columns: int = 1) -> Templates:
    """For tokens whose first column is the word, whatever the task: words, their forms and their neighbours.

    Of the word: itself and its four neighbours, pairs of neighbours, lower case, shapes, prefixes and suffixes of up to
    four letters. Of every other column: the same window, pairs, and the three in the middle.

    Parameters
    ----------
    columns : int
        How many columns there are besides the label.
    """
    patterns = ["bias", *_named("w", 0, WINDOW), *_named("w", 0, (-1, 0), tokens=2)]
    patterns += [*_named("lower", "0:lower", (-1, 0, 1)), *_named("brief", "0:brief", (-1, 0, 1))]
    patterns += _named("brief", "0:brief", (-1,), tokens=3)
    patterns += [f"{side}{k}=%x[0,0:{side}{k}]" for side in ("prefix", "suffix") for k in range(1, 5)]
    for c in range(1, columns):
        own = f"c{c}"
        patterns += [*_named(own, c, WINDOW), *_named(own, c, range(-2, 2), tokens=2), *_named(own, c, (-1,), tokens=3)]
    return Templates(patterns, padding="marks")
