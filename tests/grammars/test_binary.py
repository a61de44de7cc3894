from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from m3n.grammars import Binarisation, TreebankGrammar
from m3n.grammars.binary import rebuilt
from m3n.io import ParseTree
from tests.grammars.trees import TREEBANK, sample, trees

ORDERS = [(1, 0), (1, 1), (1, 2), (2, 0), (2, 1), (3, 3)]


@given(trees(), st.sampled_from(ORDERS))
def test_trees_come_back(tree, order):
    rules = Binarisation(*order).derivation(tree)
    assert rebuilt(rules, tree.words()) == tree
    assert {len(rule.children) for rule in rules} <= {0, 1, 2}
    assert sum(not rule.children for rule in rules) == len(tree.words())


@given(st.lists(trees(), min_size=1, max_size=3), st.sampled_from(ORDERS))
def test_no_unary_rule_follows_another(given_trees, order):
    """So there are no cycles; and every tree has the derivation that its numbers say."""
    grammar = TreebankGrammar.read(given_trees, Binarisation(*order))
    for tree in given_trees:
        steps = grammar.steps(tree)
        rules = [grammar.rules[step] for step in steps]
        for one, two in pairwise(rules):
            assert not (len(one.children) == len(two.children) == 1)
        assert grammar.tree(steps, tree.words()) == tree


def names(tree, *order):
    rules = Binarisation(*order).derivation(ParseTree.parse(tree))
    return [" ".join(map(str, (rule.parent, *rule.children, *rule.between))) for rule in rules if rule.children]


def test_orders_by_hand():
    flat = "(S (A a) (B b) (C c) (D d))"
    assert names(flat, 1, 0) == ["TOP S", "S A @S", "@S B @S", "@S C D"]
    assert names(flat, 1, 1) == ["TOP S", "S A @S[A]", "@S[A] B @S[B]", "@S[B] C D"]
    assert names(flat, 1, 2) == ["TOP S", "S A @S[A]", "@S[A] B @S[A B]", "@S[A B] C D"]
    deep = "(S (NP (NP (A a) (B b)) (C c)) (VP (V v)))"
    assert names(deep, 1, 0) == ["TOP S", "S NP VP", "NP NP C", "NP A B", "VP V"]
    assert names(deep, 2, 0) == ["TOP S[TOP]", "S[TOP] NP[S] VP[S]", "NP[S] NP[NP] C", "NP[NP] A B", "VP[S] V"]
    assert names("(S (NP (A a) (B b) (C c)) (D d))", 2, 0)[2] == "NP[S] A @NP[S]"
    assert names("(SBAR (S (VP (V v) (W w))))", 1, 0) == ["TOP VP SBAR S", "VP V W"]


@pytest.mark.parametrize("orders", [(0, 0), (1, -1)])
def test_bad_orders_are_refused(orders):
    with pytest.raises(ValueError, match="vertical must be at least 1 and horizontal at least 0"):
        Binarisation(*orders)


def test_treebank_comes_back():
    for order in ORDERS:
        for tree in TREEBANK + sample():
            assert rebuilt(Binarisation(*order).derivation(tree), tree.words()) == tree
