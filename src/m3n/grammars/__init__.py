"""Grammars read from treebanks: binary rules, words, their most likely probabilities, the surface of sentences."""

from m3n.grammars.binary import Binarisation, Rule, Symbol
from m3n.grammars.pcfg import PCFG
from m3n.grammars.surface import Surface, rule_classes
from m3n.grammars.treebank import NotDerivable, TreebankGrammar
from m3n.grammars.words import Vocabulary

__all__ = [
    "PCFG", "Binarisation", "NotDerivable", "Rule", "Surface", "Symbol", "TreebankGrammar", "Vocabulary",
    "rule_classes",
]  # fmt: skip
