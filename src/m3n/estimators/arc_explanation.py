"""Why a word depends on another one: the score of a dependency tree taken apart, term by term.

Every part of a tree, an arc, its label, a pair of siblings, an arc below another one, belongs to one word, the
dependent. So the terms of all words add up to the score of the tree. A word is compared with what it has in the best
tree in which that is another one; found by the max-oracle, the word's own part forbidden. Where that tree has other
arcs for further words, too, their terms stand in ``after``, a sum for each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from m3n.compiled.maps.anchored import Places
from m3n.estimators.explanation import Contribution, Position, TreeExplanation
from m3n.features import Codes
from m3n.features.anchored import ATOM, BETWEEN, AnchoredTemplates
from m3n.features.arcs import arc_places, extra_text, grandchild_places, label_places, sibling_places
from m3n.features.words import EDGE, ROOT, WordTable
from m3n.structures import Parts

if TYPE_CHECKING:
    from m3n.estimators.dependency_parser import DependencyParser

PLACES = {"arcs": arc_places, "labels": label_places, "siblings": sibling_places, "grandchildren": grandchild_places}
TERMS = {"arcs": "arc", "labels": "label", "siblings": "sibling", "grandchildren": "grandchild"}
Term = tuple[str, str]  # kind and name


def explain(model: DependencyParser, x: Any, tree: Any, top: int | None) -> TreeExplanation:
    """Take the score of a tree apart; see ``DependencyParser.explain``."""
    if top is not None and not (isinstance(top, (int, np.integer)) and top >= 0):
        raise ValueError(f"top must be None or a whole number that is not negative, got {top!r}")
    sentence = _Sentence(model, x)
    best = sentence.best(sentence.theta)
    assert best is not None
    chosen = best if tree is None else sentence.parts_of(tree)
    second = sentence.second(chosen) if tree is None else best
    rival = None if second is None or sentence.tree(second) == sentence.tree(chosen) else second
    score = sentence.score(chosen)
    total, marginals = sentence.structure.soft(tuple(array.copy() for array in sentence.theta), 1.0)
    return TreeExplanation(
        sentence.tree(chosen),
        score,
        float(np.exp(min(score - total[0], 0.0))),
        None if rival is None else sentence.tree(rival),
        None if rival is None else sentence.score(rival),
        [sentence.position(word, chosen, marginals, top) for word in range(1, sentence.length + 1)],
    )


class _Sentence:
    """Parts, scores and features of a sentence. Trees are tuples of indicators of parts, as ``encode`` gives them."""

    def __init__(self, model: DependencyParser, x: Any):
        self.model = model
        self.structure, self.theta, _ = next(model._scored([x]))
        self.words: WordTable = model.reader_.read([x])
        self.arcs, self.length = self.structure.arcs, int(self.words.lengths[0])
        self.codes: Mapping[str, Codes] = model._codes(self.words, self.arcs, model.classes_, model._threads)
        self.places: dict[str, Places] = {kind: PLACES[kind](self.words, self.arcs) for kind in self.codes}
        self.forms = [ROOT, *(self._text("form", t) for t in range(self.length))]
        arcs_of = {
            "arcs": lambda: np.arange(len(self.arcs.head)), "labels": lambda: self.arcs.part_arc,
            "siblings": lambda: self.arcs.siblings()[0], "grandchildren": lambda: self.arcs.grandchildren()[0],
        }  # fmt: skip
        self.dependents = {kind: self.arcs.dependent[arcs_of[kind]()] for kind in self.codes}
        self.own = 1 if "labels" in self.codes else 0  # the array whose parts are what a word has

    def best(self, theta: Parts) -> Parts | None:
        """The best tree; None if there is none."""
        values, outputs = self.structure.hard(theta)
        return self.structure.encode(outputs) if np.isfinite(values[0]) else None

    def without(self, part: int) -> Parts | None:
        """The best tree without a part of the array of what words have."""
        theta = tuple(array.copy() for array in self.theta)
        theta[self.own][part] = -np.inf
        return self.best(theta)

    def second(self, chosen: Parts) -> Parts | None:
        """The best tree but one."""
        found = [self.without(part) for part in np.flatnonzero(chosen[self.own]).tolist()]
        return max((tree for tree in found if tree is not None), key=self.score, default=None)

    def parts_of(self, tree: Sequence[Any]) -> Parts:
        """The parts of a tree that the user gives."""
        outputs = self.model._numbered(tree, self.length)
        try:
            return self.structure.encode(self.structure.pack([outputs]))
        except ValueError as error:
            raise ValueError(f"{error}; the model's filter leaves out arcs that are hardly ever right") from None

    def score(self, tree: Parts) -> float:
        return float(sum(array[one > 0].sum() for array, one in zip(self.theta, tree, strict=True)))

    def tree(self, tree: Parts) -> list[Any]:
        """With the names of labels."""
        part = np.flatnonzero(tree[self.own])
        arc = self.arcs.part_arc[part] if self.own else part
        heads = self.arcs.head[arc].tolist()
        labels = self.arcs.part_label[part].tolist()
        return self.model._named(list(zip(heads, labels, strict=True)) if self.own else heads)

    def position(self, word: int, chosen: Parts, marginals: Parts, top: int | None) -> Position:
        """The explanation of a word."""
        part = self._part(word, chosen)
        other = self.without(part)
        other_part = None if other is None else self._part(word, other)
        here, there = self._terms(word, chosen), {} if other is None else self._terms(word, other)
        contributions = _shown(here, there, other is not None, top)
        after = [] if other is None else self._changed(word, chosen, other)
        return Position(
            number=word,
            text=self.forms[word],
            label=self.tree(chosen)[word - 1],
            probability=float(marginals[self.own][part]),
            score=float(sum(here.values())),
            other=None if other is None else self.tree(other)[word - 1],
            other_probability=None if other_part is None else float(marginals[self.own][other_part]),
            margin=None if other is None else self.score(chosen) - self.score(other),
            contributions=contributions,
            after=after,
        )

    def _part(self, word: int, tree: Parts) -> int:
        """What a word has, among the parts that tell."""
        kind = list(self.codes)[self.own]
        return int(np.flatnonzero((tree[self.own] > 0) & (self.dependents[kind] == word))[0])

    def _changed(self, word: int, chosen: Parts, other: Parts) -> list[Contribution]:
        """Other words whose terms are not the same in another tree."""
        found = []
        for k in [k for k in range(1, self.length + 1) if k != word]:
            masks = [own == k for own in self.dependents.values()]
            if any((a[m] != b[m]).any() for a, b, m in zip(chosen, other, masks, strict=True)):
                scores = (self._part_scores(tree, masks) for tree in (chosen, other))
                found.append(Contribution("word", f"word {k} {self.forms[k]!r}", None, *scores))
        return found

    def _part_scores(self, tree: Parts, masks: list[np.ndarray]) -> float:
        """The score of some parts of a tree."""
        arrays = zip(self.theta, tree, masks, strict=True)
        return float(sum(array[(one > 0) & mask].sum() for array, one, mask in arrays))

    def _terms(self, word: int, tree: Parts) -> dict[Term, float]:
        """All features of a word in a tree, with their weights."""
        found: dict[Term, float] = {}
        for (kind, codes), one in zip(self.codes.items(), tree, strict=True):
            templates, places = getattr(self.model._templates, kind), self.places[kind]
            weights = getattr(self.model, self.model._weight_names[kind])
            for part in np.flatnonzero((one > 0) & (self.dependents[kind] == word)).tolist():
                row = int(np.searchsorted(codes.firsts, part, side="right")) - 1
                numbers = codes.codes[codes.pointers[row] : codes.pointers[row + 1]] ^ codes.masks[part]
                names = self._names(kind, templates, places, row)
                found |= {(TERMS[kind], name): float(w) for name, w in zip(names, weights[numbers], strict=True)}
        return found

    def _names(self, kind: str, templates: AnchoredTemplates, places: Places, row: int) -> list[str]:
        """The features of a row of codes in words."""
        tokens = self.words.tokens
        tags = self.words.columns["upos"].values
        return [
            " ".join(self._atom(word, tags[tag] if tag >= 0 else "", templates, places, row) for word in text.split())
            or "always"
            for text, tag in templates.seen(places, tokens, row)
        ]

    def _atom(self, word: str, tag: str, templates: AnchoredTemplates, places: Places, row: int) -> str:
        if word == BETWEEN:
            return f"between={tag}"
        if word in templates.extras:
            return f"{word}={extra_text(word, places.extras[row, list(templates.extras).index(word)])}"
        found = ATOM.fullmatch(word)
        assert found is not None
        anchor = int(places.anchors[row, list(templates.anchors).index(found["anchor"])])
        if anchor < 0:
            return f"{word}=none"
        place = anchor + int(found["distance"] or 0) - int(self.words.root[0]) - 1
        return f"{word}={self._text(found['attribute'], place)}"

    def _text(self, attribute: str, place: int) -> str:
        """An attribute of a word, counted from 0; -1 is the root."""
        if place == -1:
            return ROOT
        if not 0 <= place < self.length:
            return EDGE
        column = self.words.column(attribute)
        return column.values[column.codes[place]]


def _shown(here: dict[Term, float], there: dict[Term, float], compared: bool, top: int | None) -> list[Contribution]:
    """The terms that differ most, and the sum of the others."""
    found = [
        Contribution(*term, None, here.get(term, 0.0), there.get(term, 0.0) if compared else None)
        for term in dict.fromkeys([*here, *there])
    ]
    found.sort(key=lambda c: -abs(c.score if c.difference is None else c.difference))
    if top is None or len(found) <= top:
        return found
    others = [c.other for c in found[top:] if c.other is not None]
    rest = Contribution(
        "rest", f"{len(found) - top} others", None, sum(c.score for c in found[top:]), sum(others) if compared else None
    )
    return [*found[:top], rest]
