"""Features of the parts of dependency trees: arcs, their labels, neighbouring siblings, grandchildren.

The templates follow those of McDonald, Crammer and Pereira ("Online large-margin training of dependency parsers",
2005): forms, lemmas and tags of head and dependent, alone and together, tags around them and between them. Each
comes as it is, and together with the *way* of the arc: its direction and its length, 1 to 5, up to 10, or more.
Labels have templates of their own, each together with the label. Templates of siblings and grandchildren see three
words.

A *filter* has a few templates, and finds out which arcs are worth a look with all of them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from m3n.compiled.maps.anchored import Places
from m3n.features.anchored import AnchoredTemplates, hashed
from m3n.features.codes import Codes
from m3n.features.words import ATTRIBUTES, WordTable
from m3n.packed import SERIAL, Threads
from m3n.structures import Arcs

FILTER = (
    "h.xpos d.xpos", "h.upos d.upos", "h.lemma d.upos", "h.upos d.lemma", "h.upos h+1.upos d-1.upos d.upos",
    "h-1.upos h.upos d.upos d+1.upos", "h.upos between d.upos", "h.xpos d.xpos d.case", "h.upos d.feats",
)  # fmt: skip
PLAIN_FILTER = ("h.lemma d.lemma",)
ALONE = (
    "", "h.form", "h.lemma", "h.xpos", "h.form h.xpos", "h-1.xpos h.xpos h+1.xpos", "d.form", "d.lemma", "d.xpos",
    "d.form d.xpos", "d-1.xpos d.xpos d+1.xpos", "d.feats",
)  # fmt: skip
PAIRS = (
    "h.upos d.upos", "h.xpos d.xpos", "h.form d.form", "h.lemma d.lemma", "h.form d.xpos", "h.xpos d.form",
    "h.lemma d.upos", "h.upos d.lemma", "h.form h.xpos d.xpos", "h.xpos d.form d.xpos", "h.form h.xpos d.form",
    "h.form d.form d.xpos", "h.form h.xpos d.form d.xpos", "h.prefix d.upos", "h.upos d.prefix", "h.upos d.suffix",
    "h.suffix d.suffix", "h.upos d.feats", "h.feats d.upos", "h.feats d.feats", "h.lemma d.case",
    "h.upos d.upos h.case d.case", "h.upos d.upos h.number d.number h.gender d.gender", "h.verbform d.upos d.case",
    "h.upos between d.upos", "h.xpos between d.xpos",
    "h.xpos h+1.xpos d-1.xpos d.xpos", "h-1.xpos h.xpos d-1.xpos d.xpos", "h.xpos h+1.xpos d.xpos d+1.xpos",
    "h-1.xpos h.xpos d.xpos d+1.xpos", "h.xpos h+1.xpos d.xpos", "h-1.xpos h.xpos d.xpos", "h.xpos d-1.xpos d.xpos",
    "h.xpos d.xpos d+1.xpos", "h.upos h+1.upos d-1.upos d.upos", "h-1.upos h.upos d.upos d+1.upos",
    "h.upos h+1.upos d.upos", "h.upos d-1.upos d.upos", "h.upos d.upos d+1.upos", "h.lemma d-1.lemma d.upos",
    "h.upos d-1.lemma d.upos", "h.upos h+1.lemma d.upos",
)  # fmt: skip
LABELS = (
    "way", "way h.upos d.upos", "direction h.xpos d.xpos", "d.form", "d.lemma", "d.suffix d.upos", "d.feats",
    "direction d.lemma h.upos", "direction d.upos h.lemma", "direction d.xpos h.lemma", "d.lemma h.lemma",
    "direction d.feats h.upos", "d.feats h.lemma", "direction h.feats d.upos", "direction d-1.xpos d.xpos h.upos",
    "direction d.xpos d+1.xpos h.upos", "d-1.lemma d.upos h.upos", "d.upos d+1.lemma h.upos",
    "h.upos h+1.lemma d.upos", "direction d-1.xpos d.xpos d+1.xpos", "direction h-1.xpos h.xpos h+1.xpos d.xpos",
    "d-1.lemma d.case h.upos", "direction d.upos h.upos d.case h.verbform", "direction h.lemma d-1.lemma d.upos",
    "way d.lemma", "way d.xpos h.xpos", "direction h.upos between d.upos",
)  # fmt: skip
SIBLINGS = (
    "side h.upos s.upos d.upos", "side h.xpos s.xpos d.xpos", "side s.upos d.upos", "side s.xpos d.xpos gap",
    "side s.form d.form", "side s.lemma d.lemma", "side s.lemma d.upos", "side s.upos d.lemma",
    "side h.lemma s.upos d.upos", "side h.upos s.lemma d.upos", "side h.upos s.upos d.lemma",
    "side h.upos s.lemma d.lemma", "side h.upos s.upos d.upos gap", "side h.lemma s.lemma d.lemma",
    "side h.xpos s.xpos d.form", "side h.xpos s.form d.xpos", "side h.upos s.case d.case",
    "side h.lemma s.case d.case", "side h.upos s.feats d.feats",
)  # fmt: skip
GRANDCHILDREN = (
    "side g.upos h.upos d.upos", "side g.xpos h.xpos d.xpos", "side g.upos d.upos", "side g.xpos d.xpos",
    "side g.form d.form", "side g.lemma d.lemma", "side g.lemma d.upos", "side g.upos d.lemma",
    "side g.lemma h.upos d.upos", "side g.upos h.lemma d.upos", "side g.upos h.upos d.lemma",
    "side g.upos h.lemma d.lemma", "side g.lemma h.lemma d.upos", "side g.lemma h.lemma d.lemma",
    "side g.upos h.upos d.upos gap", "side g.xpos h.xpos d.form", "side g.xpos h.form d.xpos",
    "side g.lemma h.upos d.lemma",
)  # fmt: skip


SIDES = ("from the root", "to the right", "to the left")
LENGTHS = ("", "1", "2", "3", "4", "5", "6 to 10", "more than 10")


def with_way(templates: Sequence[str], plain: Sequence[str]) -> list[str]:
    """Every template with the way of the arc, and the plain ones without it."""
    return [*(f"{text} way".strip() for text in templates), *plain]


class ArcTemplates:
    """All templates of a parser.

    Parameters
    ----------
    bits : int
        There are 2^bits weights for arcs, and as many for labels, siblings and grandchildren each.
    filter_bits : int
        The same for the filter.
    """

    def __init__(self, bits: int, filter_bits: int = 18):
        pair = (("h", "d"), ATTRIBUTES)
        rich = with_way((*ALONE, *PAIRS), PAIRS)
        self.filter = AnchoredTemplates(with_way(FILTER, (*FILTER, *PLAIN_FILTER)), *pair, ("way",), filter_bits)
        self.arcs = AnchoredTemplates(rich, *pair, ("way",), bits)
        self.labels = AnchoredTemplates(LABELS, *pair, ("way", "direction"), bits)
        triple = (ATTRIBUTES, ("side", "gap"))
        self.siblings = AnchoredTemplates(SIBLINGS, ("h", "d", "s"), *triple, bits)
        self.grandchildren = AnchoredTemplates(GRANDCHILDREN, ("h", "d", "g"), *triple, bits)


def arc_codes(templates: AnchoredTemplates, words: WordTable, arcs: Arcs, threads: Threads = SERIAL) -> Codes:
    """Features of arcs."""
    return templates.codes(arc_places(words, arcs), words.tokens, threads)


def label_codes(
    templates: AnchoredTemplates, words: WordTable, arcs: Arcs, names: Sequence[str], threads: Threads = SERIAL
) -> Codes:
    """Features of labelled arcs; ``names`` are the labels in the order of their numbers."""
    masks = hashed(names)[arcs.part_label]
    return templates.codes(label_places(words, arcs), words.tokens, threads, arcs.part_first, masks)


def sibling_codes(templates: AnchoredTemplates, words: WordTable, arcs: Arcs, threads: Threads = SERIAL) -> Codes:
    """Features of a dependent with the next one towards the head, or with none."""
    return templates.codes(sibling_places(words, arcs), words.tokens, threads)


def grandchild_codes(templates: AnchoredTemplates, words: WordTable, arcs: Arcs, threads: Threads = SERIAL) -> Codes:
    """Features of an arc with the head of its head."""
    return templates.codes(grandchild_places(words, arcs), words.tokens, threads)


def arc_places(words: WordTable, arcs: Arcs) -> Places:
    """Where arcs are: head and dependent, and the way of an arc."""
    return _pairs(words, arcs, _ways(arcs.head, arcs.dependent)[:, None])


def label_places(words: WordTable, arcs: Arcs) -> Places:
    """Where arcs are, with way and direction."""
    extras = np.stack([_ways(arcs.head, arcs.dependent), _directions(arcs.head, arcs.dependent)], axis=1)
    return _pairs(words, arcs, extras)


def sibling_places(words: WordTable, arcs: Arcs) -> Places:
    """Where siblings are: head, dependent and the next dependent towards the head; side and distance of these two."""
    arc, inner = arcs.siblings()
    head, dependent = arcs.head[arc], arcs.dependent[arc]
    third = np.where(inner < 0, -1, arcs.dependent[inner])
    apart = np.where(inner < 0, 0, _lengths(third, dependent))
    return _triples(words, arcs, arc, third, _directions(head, dependent), apart)


def grandchild_places(words: WordTable, arcs: Arcs) -> Places:
    """Where grandchildren are: head, dependent and the head of the head; sides, and the distance of these two."""
    arc, upper = arcs.grandchildren()
    head, dependent, third = arcs.head[arc], arcs.dependent[arc], arcs.head[upper]
    side = 3 * _directions(head, dependent) + _directions(third, head)
    return _triples(words, arcs, arc, third, side, _lengths(third, dependent))


def extra_text(name: str, value: int) -> str:
    """What a number that is known about a part means."""
    value = int(value)
    if name == "way":
        direction, length = divmod(value - 1, 8)
        return f"{SIDES[direction]} {LENGTHS[length]}".strip()
    if name == "direction":
        return SIDES[value]
    if name == "gap":
        return LENGTHS[value - 1]
    upper, lower = divmod(value - 1, 3)
    return SIDES[lower] if upper == 0 else f"{SIDES[lower]} {SIDES[upper]}"


def _triples(
    words: WordTable, arcs: Arcs, arc: np.ndarray, third: np.ndarray, side: np.ndarray, gap: np.ndarray
) -> Places:
    root = words.root[arcs.sentence[arc]]
    anchors = [root + arcs.head[arc], root + arcs.dependent[arc], np.where(third < 0, -1, root + third)]
    nothing = np.zeros(len(arc), np.int64)
    extras = np.stack([side, gap], axis=1).astype(np.uint64) + np.uint64(1)
    return Places(np.stack(anchors, axis=1), extras, nothing, nothing)


def _pairs(words: WordTable, arcs: Arcs, extras: np.ndarray) -> Places:
    anchors = words.root[arcs.sentence][:, None] + np.stack([arcs.head, arcs.dependent], axis=1)
    first, last = anchors.min(axis=1) + 1, anchors.max(axis=1)
    return Places(anchors, np.ascontiguousarray(extras, dtype=np.uint64), first, last)


def _directions(head: np.ndarray, dependent: np.ndarray) -> np.ndarray:
    """0 from the root, 1 to the right, 2 to the left."""
    return np.where(head == 0, 0, np.where(head < dependent, 1, 2))


def _lengths(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """1 to 5, 6 for up to 10, 7 for more."""
    apart = np.abs(one - other)
    return np.where(apart <= 5, apart, np.where(apart <= 10, 6, 7))


def _ways(head: np.ndarray, dependent: np.ndarray) -> np.ndarray:
    """Direction and length of arcs in one number, from 1 on; those of the root have no length."""
    directions = _directions(head, dependent)
    return 1 + 8 * directions + np.where(directions == 0, 0, _lengths(head, dependent))
