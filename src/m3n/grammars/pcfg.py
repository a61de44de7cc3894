"""The probabilistic grammar of a treebank by maximum likelihood: relative frequencies, without training.

A phrase A is first rewritten by a unary rule or by none, then by a binary rule. The derivation's probability is the
product of

    P(r | A) = c(r) / c(A)   for a unary rule,       P(none | A) = 1 - sum of these,
    P(r | A) = c(r) / c(A rewritten by binary rules),       P(word | tag) = c(word, tag) / c(tag)

which are the relative frequencies of what a layered grammar can choose from, and so the most likely ones. "None" has no
part of its own: log P(none | A) is added to the binary rules of A, and taken off the unary rules that lead to A.

Words enter as the vocabulary sees them. A rare word counts as its signature, in training, too; every signature has at
least a little probability for each tag of rare words.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from m3n.grammars.treebank import TreebankGrammar
from m3n.io.brackets import ParseTree
from m3n.packed import SERIAL, Threads
from m3n.structures.rules import Rules

LITTLE = 0.01  # occurrences of what was never seen: a tag with a signature, a phrase without a unary rule above it


class PCFG:
    """The most likely grammar of a treebank.

    Parameters
    ----------
    grammar : TreebankGrammar
        Rules and their counts.

    Attributes
    ----------
    scores : array (rules,)
        Logarithms of probabilities of rules.
    """

    def __init__(self, grammar: TreebankGrammar):
        self.grammar, self.rules = grammar, grammar.plain(labels=False)
        self.scores = rule_scores(self.rules, grammar.counts[: grammar.count])
        self.tag_counts = grammar.counts[grammar.count :]

    def parse(self, sentences: Sequence[Sequence[str]], threads: Threads = SERIAL) -> list[ParseTree]:
        """The most likely trees.

        Parameters
        ----------
        sentences : sequence of sequences of str
            Words.
        threads : Threads
            To work on.
        """
        charts = self.grammar.charts(sentences, self.rules)
        trees = [self.grammar.flat(words) for words in sentences]
        if charts.structure is not None:
            tag = np.concatenate([self.tag_scores(sentences[i]) for i in charts.kept])
            _, packed = charts.structure.hard((tag, self.scores, *charts.structure.empty()[2:]), threads)
            for i, steps in zip(charts.kept, charts.structure.unpack(packed), strict=True):
                trees[i] = self.grammar.tree(steps, sentences[i])
        return trees

    def tag_scores(self, words: Sequence[str]) -> np.ndarray:
        """Logarithms of the probabilities of words, given their tags: (length, tags).

        Parameters
        ----------
        words : sequence of str
            A sentence.
        """
        counts = np.full((len(words), len(self.tag_counts)), LITTLE)
        for k, seen in enumerate(self.grammar.vocabulary.seen(words)):
            for tag, count in self.grammar.lexicon.get(seen, {}).items():
                counts[k, tag] = count
        return np.log(counts / self.tag_counts)


def rule_scores(rules: Rules, counts: np.ndarray) -> np.ndarray:
    """Logarithms of relative frequencies, see above.

    Parameters
    ----------
    rules : Rules
        The grammar.
    counts : array (rules,)
        How often every rule occurs.
    """
    binary, unary = counts[: len(rules.binary)], counts[len(rules.binary) :]
    upper, lower = rules.unary.T
    parent = rules.binary[:, 0]
    by_binary = np.bincount(parent, binary, rules.symbols)
    by_unary = np.bincount(upper, unary, rules.symbols)
    below = np.bincount(lower, unary, rules.symbols)  # binary rules that follow a unary one
    direct = np.where(by_binary > 0, np.maximum(by_binary - below, LITTLE), 0.0)
    total = by_unary + direct
    none = np.log(np.divide(direct, total, out=np.ones(rules.symbols), where=direct > 0))
    first = np.log(unary / total[upper]) - none[lower]
    second = np.log(binary / by_binary[parent]) + none[parent]
    return np.concatenate([second, first])
