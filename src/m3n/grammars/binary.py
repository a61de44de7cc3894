"""Trees as derivations of a binary grammar with one layer of unary rules, and back, without a loss.

*Binary.* X -> A B C D becomes X -> A @X, @X -> B @X, @X -> C D. The intermediate symbol remembers its label and the
``horizontal`` labels that stand to the left of what it has still to say: with horizontal = 1 it reads @X[A], then
@X[B]. With horizontal = 0 there is one for every label (X-bar style). More memory makes more rules and rarer ones.

*Unary.* A chain SBAR -> S -> VP becomes one rule SBAR -> VP that knows what lies between. So every phrase has at most
one unary rule above it, and there are no cycles; NP -> NP is a rule like any other. Every tree gets a root symbol of
its own, TOP, above its label.

*Vertical.* With vertical = 2 a label knows the label above it, NP[S], with vertical = 3 that one's too. Parts of speech
and TOP do not.

A derivation is the list of its rules in the order in which they rewrite the leftmost symbol; as every tree has exactly
one, counting rules in trees is maximum likelihood.

Reference: Klein, Manning, "Accurate unlexicalized parsing", 2003.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from m3n.io.brackets import ParseTree

TOP = "TOP"


class Symbol(NamedTuple):
    """A phrase, or the rest of one."""

    label: str
    above: tuple[str, ...] = ()  # labels of the phrases around it, from inside to outside
    beside: tuple[str, ...] | None = None  # of the rest of a phrase: labels to its left; None for a whole phrase
    tag: bool = False  # whether it is a part of speech

    def __str__(self) -> str:
        """Such as NP[S], @NP[DT] or NN."""
        context = [*self.above, *(self.beside or ())]
        return ("@" if self.beside is not None else "") + self.label + (f"[{' '.join(context)}]" if context else "")


class Rule(NamedTuple):
    """How a symbol is rewritten: by two others, by one, or by a word if there is none."""

    parent: Symbol
    children: tuple[Symbol, ...]
    between: tuple[str, ...] = ()  # labels that a unary rule passes through


@dataclass(frozen=True)
class Binarisation:
    """How much symbols remember.

    Parameters
    ----------
    vertical : int
        Labels of a phrase and of those around it, 1 or more.
    horizontal : int
        Labels to the left of the rest of a phrase, 0 or more.

    Examples
    --------
    >>> from m3n.io import ParseTree
    >>> tree = ParseTree.parse("(NP (DT the) (JJ big) (NN dog))")
    >>> for rule in Binarisation(horizontal=1).derivation(tree):
    ...     print(rule.parent, "->", *rule.children)
    TOP -> NP
    NP -> DT @NP[DT]
    DT ->
    @NP[DT] -> JJ NN
    JJ ->
    NN ->
    """

    vertical: int = 1
    horizontal: int = 0

    def __post_init__(self) -> None:
        if self.vertical < 1 or self.horizontal < 0:
            raise ValueError(
                f"vertical must be at least 1 and horizontal at least 0, got {self.vertical} and {self.horizontal}"
            )

    def derivation(self, tree: ParseTree) -> list[Rule]:
        """The rules that make a tree, in leftmost order."""
        rules, pieces = [], [_Piece((ParseTree(TOP, (tree,)),))]
        while pieces:
            rule, below = self._rewritten(pieces.pop())
            rules.append(rule)
            pieces.extend(reversed(below))
        return rules

    def _rewritten(self, piece: _Piece) -> tuple[Rule, list[_Piece]]:
        """How the symbol of a piece is rewritten, and the pieces that it becomes."""
        symbol = self._symbol(piece)
        if piece.rest_of is not None:
            return self._split(symbol, piece)
        tree = piece.trees[0]
        if tree.is_tag:
            return Rule(symbol, ()), []
        inside = (tree.label, *piece.above)
        if len(tree.children) > 1:
            return self._split(symbol, _Piece(tree.children, inside, tree.label))
        below = piece
        while len(below.trees[0].children) == 1 and not below.trees[0].is_tag:
            below = _Piece(below.trees[0].children, (below.trees[0].label, *below.above))
        between = below.above[: len(below.above) - len(inside)]
        return Rule(symbol, (self._symbol(below),), between[::-1]), [below]

    def _split(self, symbol: Symbol, piece: _Piece) -> tuple[Rule, list[_Piece]]:
        """The first child, and the others as the rest of the phrase."""
        first, others = _Piece(piece.trees[:1], piece.above), piece.trees[1:]
        passed = (*piece.passed, piece.trees[0].label)
        rest = _Piece(others, piece.above, piece.rest_of, passed) if len(others) > 1 else _Piece(others, piece.above)
        return Rule(symbol, (self._symbol(first), self._symbol(rest))), [first, rest]

    def _symbol(self, piece: _Piece) -> Symbol:
        if piece.rest_of is not None:
            beside = piece.passed[-self.horizontal :] if self.horizontal else ()
            return Symbol(piece.rest_of, piece.above[1 : self.vertical], beside)
        tree = piece.trees[0]
        return Symbol(tree.label, tag=True) if tree.is_tag else Symbol(tree.label, piece.above[: self.vertical - 1])


class _Piece(NamedTuple):
    """A tree, or the last children of one, that must still be derived."""

    trees: tuple[ParseTree, ...]
    above: tuple[str, ...] = ()  # labels of the phrases around, from inside to outside
    rest_of: str | None = None  # label of the phrase that the trees are the rest of
    passed: tuple[str, ...] = ()  # labels to their left


def rebuilt(rules: Sequence[Rule], words: Sequence[str]) -> ParseTree:
    """The tree of a derivation, without its root symbol.

    Parameters
    ----------
    rules : sequence of Rule
        In leftmost order.
    words : sequence of str
        The words.
    """
    stack, remaining = list[tuple[ParseTree, ...]](), list(words)
    for rule in reversed(rules):  # so what a symbol becomes is there before the symbol
        parts: list[Any] = [tree for _ in rule.children for tree in stack.pop()] or [remaining.pop()]
        for label in reversed(rule.between):
            parts = [ParseTree(label, tuple(parts))]
        whole = rule.parent.beside is None
        stack.append((ParseTree(rule.parent.label, tuple(parts)),) if whole else tuple(parts))
    ((root,),) = stack
    return root.children[0]
