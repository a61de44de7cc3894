"""Drawings of trees: every word and arc is there, and what is wrong is marked."""

import re

import pytest

import m3n
from m3n.reports.trees import drawings
from tests.estimators.trees import sentences
from tests.grammars.trees import TREEBANK


@pytest.fixture(scope="module")
def parser():
    return m3n.DependencyParser(bits=14, n_jobs=1).fit(*sentences(0, 12))


def shapes(html, kind):
    return len(re.findall(f'<g class="{kind}">', html))


def test_right_trees_have_an_arc_for_every_word(parser):
    X, y = sentences(0, 3)
    html = drawings(parser, X, y)
    assert "Every tree is right" in html
    assert shapes(html, "right") == sum(map(len, X))
    assert not shapes(html, "wrong")
    assert html.count("<svg") == 3


def test_wrong_arcs_are_marked_and_missed_ones_drawn_below(parser):
    X, y = sentences(0, 3)
    changed = [[(head, "dep" if label == "det" else label) for head, label in tree] for tree in y]
    wrong = sum(label == "dep" for tree in changed for _, label in tree)
    html = drawings(parser, X, changed)
    assert shapes(html, "wrong") == shapes(html, "missed") == wrong
    assert html.count("✗ det") == wrong


def test_phrases_of_wrong_trees():
    parser = m3n.ConstituencyParser(features="rules", n_jobs=1).fit([t.words() for t in TREEBANK], TREEBANK)
    right = m3n.report(None, parser, [TREEBANK[0].words()], [TREEBANK[0]]).html
    assert 'id="trees"' in right
    assert 'class="phrase wrong"' not in right
    other = m3n.io.ParseTree.parse("(S (X (DT the) (NN dog)) (VP (VBZ barks)) (. .))")
    html = drawings(parser, [other.words()], [other])
    assert html.count('class="phrase wrong"') == 1
    assert "missed: X over “the dog”" in html


def test_words_are_text_and_nothing_else(parser):
    html = drawings(parser, [[("<b>", "NOUN"), ("&", "VERB")]], [[(2, "nsubj"), (0, "root")]])
    assert "<b>" not in html
    assert "&lt;b&gt;" in html
