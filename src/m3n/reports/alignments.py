"""Word alignments in a report: scores, and a grid of every sentence pair, source words down and target words across.

Predicted links are filled squares, those that are wrong crossed and in the colour of errors; sure links that were
missed are dashed, possible ones that were not predicted have a thin outline. The more probable a link, the darker its
cell, where a model has probabilities. Words stay at their sides while a large grid scrolls: they are pictures of their
own in a table of four.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from m3n.io.alignments import Alignment
from m3n.reports.markup import Markup, count, grouped, joined, percent, tag
from m3n.reports.quality import tile
from m3n.scores.alignment import alignment_errors, alignment_scores

MOST = 8  # pairs that are drawn
CELL, LETTER, MARGIN = 22.0, 8.3, 8.0  # sizes of a cell, of a letter, between words and the grid
LONGEST = 22  # letters of a word
SLANT = 55.0  # degrees of target words
VISIBLE = 0.02  # probabilities that give a cell a shade
DARKEST = 0.45  # opacity of a cell whose link is certain
MEANING = {
    "right": "sure, predicted",
    "allowed": "possible, predicted",
    "wrong": "wrong",
    "missed": "sure, missed",
    "possible": "possible, not predicted",
}


@dataclass(frozen=True)
class Compared:
    """The alignment of a sentence pair beside the right one."""

    number: int
    source: Sequence[str]
    target: Sequence[str]
    gold: Alignment
    found: frozenset[tuple[int, int]]
    shares: np.ndarray | None = None  # probabilities of all links

    @property
    def errors(self) -> int:
        """Links that are wrong or missed."""
        return alignment_errors(self.gold, self.found)

    def kinds(self) -> Iterator[tuple[int, int, str]]:
        """What there is to say about links, in the order of reading."""
        for link in sorted(self.found | self.gold.links):
            if link in self.found:
                kind = "right" if link in self.gold.sure else "allowed" if link in self.gold.possible else "wrong"
            else:
                kind = "missed" if link in self.gold.sure else "possible"
            yield *link, kind


def scores(gold: Sequence[Alignment], predicted: Sequence[Any]) -> Markup:
    """The scores at a glance.

    Parameters
    ----------
    gold : sequence of Alignment
        The right links.
    predicted : sequence of links
        Those that were found.
    """
    if not len(gold):
        return tag("p", "There are no sentence pairs to score.", class_="note")
    found = alignment_scores(gold, predicted)
    tiles = [
        tile(percent(found.aer), "alignment error rate"),
        tile(percent(found.precision), f"of {grouped(found.predicted)} predicted links are sure or possible"),
        tile(percent(found.recall), f"of {grouped(found.sure)} sure links are found"),
        tile(percent(found.exact), "of pairs have no error"),
    ]
    words = (
        "The alignment error rate, AER, is 1 − (sure links that are found + predicted links that are sure or possible) "
        f"/ (sure links + predicted links). The {count(found.possible, 'possible link')} are neither wrong nor needed."
    )
    return joined(tag("ul", tiles, class_="tiles"), tag("p", words))


def grids(model: Any, X: Any, gold: Sequence[Alignment], predicted: Sequence[Any]) -> Markup:
    """The pairs with most errors; if all are right, the first ones.

    Parameters
    ----------
    model : estimator
        A fitted aligner.
    X : sentence pairs
        As its ``predict`` wants them.
    gold : sequence of Alignment
        The right links.
    predicted : sequence of links
        Those that it has found.
    """
    errors = np.array([alignment_errors(*links) for links in zip(gold, predicted, strict=True)], dtype=int)
    chosen = np.argsort(-errors, kind="stable")[:MOST].tolist()
    tables = model.predict_marginals([X[k] for k in chosen]) if hasattr(model, "predict_marginals") and chosen else []
    shares = dict(zip(chosen, tables, strict=False))
    shown = [Compared(k, *_texts(X[k]), gold[k], Alignment.of(predicted[k]).links, shares.get(k)) for k in chosen]
    return joined(tag("p", _summary(errors, len(shown), bool(shares))), [_figure(pair) for pair in shown])


def _texts(pair: Any) -> tuple[list[str], list[str]]:
    """The words of both sides, which may be given as one text."""
    source, target = (side.split() if isinstance(side, str) else [str(word) for word in side] for side in pair)
    return source, target


def _summary(errors: np.ndarray, shown: int, shaded: bool) -> str:
    if not len(errors):
        return "There are no sentence pairs."
    wrong = int((errors > 0).sum())
    what = (
        "Filled squares are predicted links, paler if they are only possible; wrong ones are crossed (✗). Dashed "
        "squares are sure links that were missed, thin ones possible links that were not predicted."
    )
    what += " The darker a cell, the more probable the link." if shaded else ""
    if not wrong:
        return f"No pair has an error; here are {shown} of {len(errors)}. {what}"
    return f"{grouped(wrong)} of {count(len(errors), 'pair')} have errors; those with most errors first. {what}"


def _figure(pair: Compared) -> Markup:
    heading = f"pair {pair.number}: " + (count(pair.errors, "error") if pair.errors else "right")
    return tag("figure", tag("h3", heading), tag("div", _table(pair), class_="wide", tabindex="0"), class_="alignment")


def _table(pair: Compared) -> Markup:
    """Target words above the grid, source words beside it."""
    heads, across, width = _heads(pair.target)
    down = CELL * len(pair.source)
    rows = [
        tag("tr", tag("td", class_="above beside"), tag("td", _svg(heads, width, across, "words"), class_="above")),
        tag("tr", tag("td", _rows(pair.source), class_="beside"), tag("td", _grid(pair, width, down))),
    ]
    return tag("table", tag("tbody", rows), role="presentation")


def _heads(words: Sequence[str]) -> tuple[list[Markup], float, float]:
    """Slanted words, how high they are, and how wide with the end of the last one."""
    lean, rise = np.cos(np.radians(SLANT)), np.sin(np.radians(SLANT))
    lengths = [LETTER * len(_short(word)) for word in words]
    height = MARGIN + 12.0 + rise * max(lengths)
    ends = [CELL * (j + 0.8) + lean * length for j, length in enumerate(lengths)]
    pieces = [
        _word(
            word, 0.0, 0.0, transform=f"translate({CELL * (j + 0.62):.1f} {height - MARGIN:.1f}) rotate(-{SLANT:.0f})"
        )
        for j, word in enumerate(words)
    ]
    return pieces, height, max(CELL * len(words), *ends) + MARGIN


def _rows(words: Sequence[str]) -> Markup:
    width = MARGIN + LETTER * max(len(_short(word)) for word in words)
    pieces = [_word(word, width - MARGIN, CELL * (i + 0.5) + 4.5, class_="end") for i, word in enumerate(words)]
    return _svg(pieces, width, CELL * len(words), "words")


def _grid(pair: Compared, width: float, height: float) -> Markup:
    right = CELL * len(pair.target)
    lines = [f"M0,{CELL * i + 0.5:.1f}H{right:.1f}" for i in range(len(pair.source) + 1)]
    lines += [f"M{CELL * j + 0.5:.1f},0V{height:.1f}" for j in range(len(pair.target) + 1)]
    pieces = [*_shades(pair), tag("path", d="".join(lines), class_="lines")]
    pieces += [_link(pair, *link) for link in pair.kinds()]
    said = "; ".join(f"{pair.source[i]} – {pair.target[j]} ({MEANING[kind]})" for i, j, kind in pair.kinds())
    return _svg(pieces, width, height + 1.0, "cells", role="img", aria_label=f"links: {said or 'none'}")


def _shades(pair: Compared) -> Iterator[Markup]:
    if pair.shares is None:
        return
    for i, j in np.argwhere(np.asarray(pair.shares) >= VISIBLE).tolist():
        opacity = f"{DARKEST * min(float(pair.shares[i, j]), 1.0):.3f}"
        yield tag("rect", **_square(i, j, 0.0), class_="shade", fill_opacity=opacity)


def _link(pair: Compared, i: int, j: int, kind: str) -> Markup:
    """A square, what it means, and a cross if it is wrong."""
    share = "" if pair.shares is None else f", probability {float(pair.shares[i, j]):.2f}"
    note = tag("title", f"{pair.source[i]} – {pair.target[j]}: {MEANING[kind]}{share}")
    cross = None
    if kind == "wrong":
        x, y, arm = CELL * (j + 0.5) + 0.5, CELL * (i + 0.5) + 0.5, 4.0
        strokes = f"M{x - arm:.1f},{y - arm:.1f}L{x + arm:.1f},{y + arm:.1f}M{x - arm:.1f},{y + arm:.1f}"
        cross = tag("path", d=f"{strokes}L{x + arm:.1f},{y - arm:.1f}", class_="cross")
    return tag("g", note, tag("rect", **_square(i, j, 4.0), rx="2"), cross, class_=kind)


def _square(i: int, j: int, inset: float) -> dict[str, str]:
    """A cell, or a smaller square within it; lines of the grid are at half points, where they are sharp."""
    size = f"{CELL - 2.0 * inset:.1f}"
    return {"x": f"{CELL * j + 0.5 + inset:.1f}", "y": f"{CELL * i + 0.5 + inset:.1f}", "width": size, "height": size}


def _word(word: str, x: float, y: float, **attributes: Any) -> Markup:
    shown = _short(word)
    note = tag("title", word) if shown != word else None
    return tag("text", note, shown, x=f"{x:.1f}", y=f"{y:.1f}", **attributes)


def _short(word: str) -> str:
    return word if len(word) <= LONGEST else word[: LONGEST - 1] + "…"


def _svg(pieces: Sequence[Markup], width: float, height: float, kind: str, **attributes: Any) -> Markup:
    size = {"width": f"{width:.0f}", "height": f"{height:.0f}", "viewBox": f"0 0 {width:.0f} {height:.0f}"}
    return tag("svg", *pieces, class_=kind, **size, **attributes)
