"""Alignments in a report: every link has its mark, scores are those of the library, words are only text."""

import re

import numpy as np
import pytest

import m3n
from m3n.io import Alignment
from m3n.reports.alignments import MOST, grids, scores
from tests.cli.aligners import HMMAligner, WordAligner
from tests.reports.pages import Page

X = [(["the", "house"], ["la", "maison"]), (["it", "rains"], ["il", "pleut", "fort"])]
GOLD = [Alignment(frozenset({(0, 0), (1, 1)})), Alignment(frozenset({(0, 0), (1, 2)}), frozenset({(0, 1), (1, 1)}))]
FOUND = [[(0, 0), (1, 1)], [(0, 0), (1, 1), (1, 0)]]


class Mute:
    """An aligner without probabilities."""


def marks(html):
    kinds = re.findall('<g class="([a-z]+)">', html)
    return {kind: kinds.count(kind) for kind in set(kinds)}


def test_every_link_has_its_mark():
    html = grids(Mute(), X, GOLD, FOUND)
    assert marks(html) == {"right": 3, "allowed": 1, "wrong": 1, "missed": 1, "possible": 1}
    page = Page(html)
    assert page.texts("h3") == ["pair 1: 2 errors", "pair 0: right"]  # most errors first
    assert page.texts("title")[:2] == ["it – il: sure, predicted", "it – pleut: possible, not predicted"]
    assert len(page.all("path", "cross")) == 1
    assert [len(page.all("svg", kind)) for kind in ("words", "cells")] == [4, 2]
    assert "1 of 2 pairs have errors" in html
    assert "darker" not in html


def test_marks_are_where_the_words_are():
    html = grids(Mute(), [(["a"] * 3, ["b"] * 5)], [Alignment(frozenset({(2, 4)}))], [[(2, 4)]])
    mark = next(e for e in Page(html).all("rect"))["attributes"]
    assert (float(mark["x"]) // 22.0, float(mark["y"]) // 22.0) == (4.0, 2.0)


def test_probabilities_shade_the_cells():
    model = WordAligner()
    html = grids(model, X, GOLD, model.predict(X))
    shades = [float(e["attributes"]["fill-opacity"]) for e in Page(html).all("rect", "shade")]
    assert len(shades) == 4 + 6
    assert max(shades) == pytest.approx(6 * min(shades), rel=0.02)  # 0.75 and 0.125
    assert "probability 0.75" in html and "The darker a cell" in html


def test_pairs_without_links_and_without_errors():
    html = grids(Mute(), X[:1], [Alignment(frozenset())], [[]])
    assert "No pair has an error; here are 1 of 1." in html and 'aria-label="links: none"' in html
    assert "There are no sentence pairs." in grids(WordAligner(), [], [], [])
    assert "There are no sentence pairs to score." in scores([], [])


def test_only_some_of_many_pairs_are_drawn():
    many = 3 * MOST
    found = [[(0, 1)] if k == many - 1 else [(0, 0)] for k in range(many)]
    html = grids(Mute(), X[:1] * many, [Alignment(frozenset({(0, 0)}))] * many, found)
    assert Page(html).texts("h3")[0] == f"pair {many - 1}: 2 errors"
    assert html.count("<figure") == MOST


def test_long_words_are_cut_and_evil_ones_are_text():
    html = grids(Mute(), [(["<b>x</b>", "w" * 80], ["&"])], [Alignment(frozenset({(0, 0)}))], [[(1, 0)]])
    assert "<b>" not in html and "&lt;b&gt;x&lt;/b&gt;" in html
    assert "w" * 21 + "…" in Page(html).texts("text")[2]
    assert "w" * 80 in Page(html).texts("title")


def test_a_whole_report():
    model = WordAligner().fit(X, GOLD)
    page = Page(m3n.report(None, model, X, [alignment.sure for alignment in GOLD]).html)
    names = [e["attributes"]["id"] for e in page.all("section")]
    assert names == ["convergence", "scores", "weights", "alignments", "settings"]
    tiles = [text.split("%")[0].strip() for text in page.texts("li") if "%" in text]
    assert tiles == ["25.0", "75.0", "75.0", "50.0"]  # of A and S 4 links each, of which 3 are in both
    assert "2 pairs, 4 links" in page.texts("td")
    without = HMMAligner()
    names = [e["attributes"]["id"] for e in Page(m3n.report(None, without, X, GOLD).html).all("section")]
    assert names == ["convergence", "scores", "alignments", "settings"]


def test_what_is_missing():
    model = WordAligner().fit(X, GOLD)
    with pytest.raises(ValueError, match="y is missing: a report compares the right links"):
        m3n.report(None, model, X, None)
    with pytest.raises(ValueError, match="X has 2 pairs but y has 1"):
        m3n.report(None, model, X, GOLD[:1])


def test_probabilities_may_be_numbers_of_any_kind():
    class Single(WordAligner):
        def predict_marginals(self, X):
            return [np.ones((len(source), len(target)), dtype=np.float32) for source, target in X]

    assert 'fill-opacity="0.450"' in grids(Single(), X, GOLD, FOUND)
