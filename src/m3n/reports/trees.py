"""Trees drawn as SVG: arcs above a sentence, phrases above their words; what is wrong stands out.

Arcs nest: an arc is one level above the highest arc below it. Predicted arcs are above the words, those that are wrong
in the colour of errors; right arcs that were not predicted are below, dashed. Of phrases, wrong ones have the colour of
errors, and missed ones are listed. Colour only repeats what dashes, places and words say.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from m3n.estimators.forms import ARCS, form_of
from m3n.io.brackets import ParseTree
from m3n.reports.markup import Markup, count, joined, tag
from m3n.scores.brackets import phrases, words_that_count

MOST = 8  # trees that are drawn
LETTER, GAP, LEAST = 7.6, 16.0, 34.0  # width of a letter, between words, of a word
LEVEL, LINE = 24.0, 18.0  # height of a level of arcs or phrases, and of a line of text
Arc = tuple[int, int, str]  # head, dependent, label


@dataclass(frozen=True)
class Drawn:
    """A tree beside the right one."""

    number: int
    errors: int
    picture: Markup
    note: str


def drawings(model: Any, X: Any, y: Any) -> Markup:
    """The trees with most errors; if all are right, the first ones.

    Parameters
    ----------
    model : estimator
        A fitted parser.
    X : sentences
        As its ``predict`` wants them.
    y : trees
        The right ones.
    """
    form, found = form_of(model), model.predict(X)
    right = form.given(y, len(found))
    compare = _arcs_wrong if form is ARCS else _phrases_wrong
    errors = np.array([compare(a, b) for a, b in zip(right, found, strict=True)])
    chosen = np.argsort(-errors, kind="stable")[:MOST].tolist()
    texts = {i: form.texts(X, i, [], model) for i in chosen}
    draw = _dependencies if form is ARCS else _phrases
    shown = [Drawn(i, int(errors[i]), *draw(texts[i], right[i], found[i])) for i in chosen]
    return joined(tag("p", _summary(errors, len(shown), form is ARCS)), [_figure(one) for one in shown])


def _summary(errors: np.ndarray, shown: int, arcs: bool) -> str:
    wrong = int((errors > 0).sum())
    if not wrong:
        return f"Every tree is right; here are {shown} of them." if len(errors) else "There are no sentences."
    what = (
        "Predicted arcs are above the words, wrong ones thick and marked ✗; missed arcs are below, dashed."
        if arcs
        else "Wrong phrases are marked ✗; those that were missed are listed below a tree."
    )
    return f"{count(wrong, 'tree')} of {len(errors)} differ from the right ones; those with most errors first. {what}"


def _figure(one: Drawn) -> Markup:
    heading = f"sentence {one.number}: " + (count(one.errors, "error") if one.errors else "right")
    note = tag("figcaption", one.note) if one.note else None
    return tag("figure", tag("h3", heading), tag("div", one.picture, class_="wide", tabindex="0"), note, class_="tree")


# dependency trees


def _arcs_of(tree: Sequence[Any]) -> set[Arc]:
    pairs = [entry if isinstance(entry, tuple | list) else (entry, "") for entry in tree]
    return {(int(head), t, str(label)) for t, (head, label) in enumerate(pairs, start=1)}


def _arcs_wrong(gold: Sequence[Any], found: Sequence[Any]) -> int:
    return len(_arcs_of(found) - _arcs_of(gold))


def _dependencies(words: Sequence[str], gold: Sequence[Any], found: Sequence[Any]) -> tuple[Markup, str]:
    right, predicted = _arcs_of(gold), _arcs_of(found)
    missed = right - predicted
    widths = [_width(word) for word in words]
    for _, dependent, label in right | predicted:  # room for the labels of short arcs
        widths[dependent - 1] = max(widths[dependent - 1], 0.8 * _width(label))
    middles, total = _middles(widths)
    above, below = _levels(predicted), _levels(missed)
    top = LEVEL * (max(above.values(), default=0) + 1.2)
    bottom = top + LINE + LEVEL * (max(below.values(), default=0) + 1.0) * bool(missed)
    pieces = [
        _arc(arc, above[arc], middles, top, -1.0, "right" if arc in right else "wrong") for arc in sorted(predicted)
    ]
    pieces += [_arc(arc, below[arc], middles, top + LINE, 1.0, "missed") for arc in sorted(missed)]
    pieces += [_word(word, x, top + 13.0) for word, x in zip(words, middles, strict=True)]
    said = "; ".join(
        f"{words[d - 1]} depends on {words[h - 1] if h else 'the root'} {label}" for h, d, label in predicted
    )
    return _svg(total, bottom + 6.0, f"dependency tree: {said}", pieces), ""


def _levels(arcs: set[Arc]) -> dict[Arc, int]:
    """How high arcs are drawn: above all that they span; arcs of the root, which are straight, above everything."""
    found: dict[Arc, int] = {}
    for arc in sorted((a for a in arcs if a[0]), key=lambda a: abs(a[0] - a[1])):
        low, high = sorted(arc[:2])
        inside = [level for (h, d, _), level in found.items() if low <= min(h, d) and max(h, d) <= high]
        found[arc] = 1 + max(inside, default=0)
    highest = max(found.values(), default=0)
    return found | {arc: highest + 1 for arc in arcs if not arc[0]}


def _arc(arc: Arc, level: int, middles: list[float], base: float, way: float, kind: str) -> Markup:
    """An arc with its label; ``way`` is -1 upwards and 1 downwards."""
    head, dependent, label = arc
    x, height = middles[dependent - 1], base + way * LEVEL * level
    mark = "✗ " if kind == "wrong" else ""
    if not head:
        path, at = f"M{x:.1f},{height:.1f}V{base + way * 5:.1f}", x
    else:
        begin = middles[head - 1] + (5.0 if dependent > head else -5.0)
        bend = min(10.0, abs(x - begin) / 2.0) * (1.0 if x > begin else -1.0)
        path = (
            f"M{begin:.1f},{base:.1f}V{height - way * 8:.1f}Q{begin:.1f},{height:.1f} {begin + bend:.1f},{height:.1f}"
            f"H{x - bend:.1f}Q{x:.1f},{height:.1f} {x:.1f},{height - way * 8:.1f}V{base + way * 5:.1f}"
        )
        at = (begin + x) / 2.0
    tip = f"M{x - 3.5:.1f},{base + way * 6:.1f}L{x + 3.5:.1f},{base + way * 6:.1f}L{x:.1f},{base:.1f}Z"
    lines = (tag("path", d=path, class_="line"), tag("path", d=tip, class_="tip"))
    name = f"{mark}{label or ('root' if not head else '')}".strip()
    return tag("g", *lines, tag("text", name, x=f"{at:.1f}", y=f"{height + 3.5:.1f}") if name else None, class_=kind)


# phrase structure


def _phrases_wrong(gold: ParseTree, found: ParseTree) -> int:
    wrong, missed = _differences(gold, found)
    return wrong.total() + missed.total()


def _differences(gold: ParseTree, found: ParseTree) -> tuple[Counter[Any], Counter[Any]]:
    """Brackets of the predicted tree that are wrong, and right ones that it lacks."""
    counted = words_that_count(gold)
    one, other = (Counter(p.bracket for p in phrases(tree, counted) if p.bracket) for tree in (gold, found))
    return other - one, one - other


def _phrases(words: Sequence[str], gold: ParseTree, found: ParseTree) -> tuple[Markup, str]:
    wrong, missed = _differences(gold, found)
    tags = list(found.tags())
    middles, total = _middles([max(_width(w), _width(t.label)) for w, t in zip(words, tags, strict=True)])
    base = LEVEL * 1.6 * (_height(found) + 0.4)
    pieces: list[Markup] = []
    marks = [(p.label, p.begin, p.end) for p in phrases(found, words_that_count(gold)) if p.bracket in wrong]
    _draw(found, 0, middles, base, Counter(marks), pieces)
    pieces += [_word(word, x, base + LINE) for word, x in zip(words, middles, strict=True)]
    lacking = [p for p in phrases(gold, words_that_count(gold)) if p.bracket in missed]
    note = "; ".join(f"{p.label} over “{' '.join(words[p.begin : p.end])}”" for p in lacking)
    return _svg(total, base + LINE + 8.0, f"phrase structure: {found}", pieces), f"missed: {note}" if note else ""


def _height(tree: ParseTree) -> int:
    return 0 if tree.is_tag else 1 + max(map(_height, tree.children))


def _draw(
    tree: ParseTree, begin: int, middles: list[float], base: float, marks: Counter[Any], pieces: list[Markup]
) -> tuple[float, int]:
    """Add a tree to the picture; where its top is, and the word behind it."""
    if tree.is_tag:
        pieces.append(_node(tree.label, middles[begin], base, "tag"))
        return middles[begin], begin + 1
    y, end, places = base - LEVEL * 1.6 * _height(tree), begin, []
    for child in tree.children:
        x, end = _draw(child, end, middles, base, marks, pieces)
        places.append((x, base - LEVEL * 1.6 * _height(child)))
    middle = (places[0][0] + places[-1][0]) / 2.0
    edges = f"M{middle:.1f},{y + 5:.1f}v6" + "".join(
        f"M{middle:.1f},{y + 11:.1f}H{x:.1f}V{low - 11:.1f}" for x, low in places
    )
    key = (tree.label, begin, end)
    wrong = marks[key] > 0
    marks[key] -= wrong
    pieces.append(tag("path", d=edges, class_="line"))
    pieces.append(_node(f"✗ {tree.label}" if wrong else tree.label, middle, y, "wrong" if wrong else "right"))
    return middle, end


def _node(label: str, x: float, y: float, kind: str) -> Markup:
    return tag("g", tag("text", label, x=f"{x:.1f}", y=f"{y:.1f}"), class_=f"phrase {kind}")


# both


def _width(text: str) -> float:
    return max(LEAST, LETTER * len(text))


def _middles(widths: Sequence[float]) -> tuple[list[float], float]:
    """Where the middles of words are, and how wide all are together."""
    ends = np.cumsum(np.asarray(widths) + GAP)
    return (ends - (np.asarray(widths) + GAP) / 2.0).tolist(), float(ends[-1])


def _word(word: str, x: float, y: float) -> Markup:
    return tag("text", word, x=f"{x:.1f}", y=f"{y:.1f}", class_="word")


def _svg(width: float, height: float, title: str, pieces: Sequence[Markup]) -> Markup:
    size = {"width": f"{width:.0f}", "height": f"{height:.0f}", "viewBox": f"0 0 {width:.0f} {height:.0f}"}
    return tag("svg", *pieces, class_="tree", role="img", aria_label=title, **size)
