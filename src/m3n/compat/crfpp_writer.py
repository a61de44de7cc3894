"""Taggers with templates as the text models of CRF++, of which ``crf_learn -C model.txt model`` makes a binary one.

``m3n.compat.crfpp`` says what such a file looks like. An attribute is a text there, whatever template made it: where
two attributes of ours are the same text, they must have the same weights. Scores of the first and of the last label
become weights of ``Ufirst:%x[-1,0]`` and ``Ulast:%x[1,0]`` where these look beyond the sentence.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import scipy.sparse

from m3n.compat.imported import ExportError
from m3n.estimators import SequenceTagger
from m3n.features import Templates

VERSION = 100
ENDS = {"start_": ("Ufirst:%x[-1,0]", "Ufirst:_B-1"), "end_": ("Ulast:%x[1,0]", "Ulast:_B+1")}
SPACES = frozenset(" \t\r\n")


class _Entry(NamedTuple):
    text: str  # an attribute
    weights: np.ndarray  # (labels,), or (labels, labels) for an attribute of pairs


def text_model(model: SequenceTagger) -> str:
    """The text model of a tagger.

    Parameters
    ----------
    model : SequenceTagger
        Fitted with templates.
    """
    templates = model.reader_.vectorizer
    patterns = _patterns(templates)
    ends = [name for name in ENDS if getattr(model, name).any()]
    entries = _distinct([*_ends(model, ends), *_attributes(model, templates, patterns)])
    weights = np.concatenate([entry.weights.ravel() for entry in entries])
    begins = np.cumsum([0, *(entry.weights.size for entry in entries)])[:-1].tolist()
    columns = model.reader_.columns or 1 + max(column for t in templates.parsed for _, column in t.macros)
    unigrams = [pattern for pattern in patterns if pattern[0] == "U"] + [ENDS[name][0] for name in ends]
    parts = [
        [f"version: {VERSION}", "cost-factor: 1", f"maxid: {len(weights)}", f"xsize: {columns}"],
        _words(model.classes_.tolist(), "label"),
        [*unigrams, "B", *(pattern for pattern in patterns if pattern[0] == "B")],
        [f"{begin} {entry.text}" for begin, entry in zip(begins, entries, strict=True)],
        list(map(repr, weights.tolist())),
    ]
    return "\n".join("".join(f"{line}\n" for line in part) for part in parts)


def _patterns(templates: Templates) -> list[str]:
    """The templates in CRF++'s words: those of single labels begin with a U."""
    if templates.padding != "symbols":
        raise ExportError(f'CRF++ has no padding={templates.padding!r}: train with Templates(..., padding="symbols")')
    for pattern, template in zip(templates.patterns, templates.parsed, strict=True):
        forms = [column for _, column in template.macros if isinstance(column, str)]
        if forms:
            number, _, form = forms[0].partition(":")
            raise ExportError(f"template {pattern!r} asks for the form {form!r} of column {number}; CRF++ has no forms")
    return [
        pattern if template.pair or pattern.startswith("U") else f"U{pattern}"
        for pattern, template in zip(templates.patterns, templates.parsed, strict=True)
    ]


def _ends(model: SequenceTagger, names: list[str]) -> Iterator[_Entry]:
    """Transitions, and the scores of the first and of the last label."""
    yield _Entry("B", model.transitions_)
    yield from (_Entry(ENDS[name][1], getattr(model, name)) for name in names)


def _attributes(model: SequenceTagger, templates: Templates, patterns: list[str]) -> Iterator[_Entry]:
    """All attributes with their weights, in the order of the model's columns."""
    size, prefixes = len(model.classes_), _prefixes(templates, patterns)
    coef = model.coef_.toarray() if scipy.sparse.issparse(model.coef_) else model.coef_
    for prefix, name, row in zip(prefixes, _words(templates.names, "attribute"), coef, strict=True):
        yield _Entry(prefix + name, row)
    if templates.has_pairs:
        edges = model.edge_coef_.toarray() if scipy.sparse.issparse(model.edge_coef_) else model.edge_coef_
        names = _words(templates.pair_names, "attribute")
        yield from map(_Entry, names, edges.reshape(len(names), size, size))


def _prefixes(templates: Templates, patterns: list[str]) -> list[str]:
    """What stands before the name of every attribute of single labels."""
    both = zip(templates.patterns, patterns, templates.parsed, templates.attributes, strict=True)
    return [new.removesuffix(old) for old, new, template, own in both if not template.pair for _ in range(len(own))]


def _words(names: list[str], what: str) -> list[str]:
    for name in names:
        if not name or not SPACES.isdisjoint(name):
            raise ExportError(f"the {what} {name!r:.60} is empty or has a space, which separates columns in CRF++")
    return names


def _distinct(entries: list[_Entry]) -> list[_Entry]:
    """Every text once."""
    found: dict[str, _Entry] = {}
    for entry in entries:
        known = found.setdefault(entry.text, entry)
        if not np.array_equal(known.weights, entry.weights):
            raise ExportError(
                f"two attributes with different weights are {entry.text!r:.60} for CRF++; rename a template"
            )
    return list(found.values())
