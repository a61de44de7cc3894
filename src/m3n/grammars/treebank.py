"""A grammar read from a treebank: its symbols, rules and tags, how often each occurs, and trees as its derivations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from m3n.grammars.binary import TOP, Binarisation, Rule, Symbol, rebuilt
from m3n.grammars.words import Vocabulary
from m3n.io.brackets import ParseTree
from m3n.structures.grammar import Grammar, NoParse, derivable
from m3n.structures.rules import Rules


class NotDerivable(ValueError):
    """A tree needs a rule, or a word a tag, that a grammar does not have."""


class Charts(NamedTuple):
    """Output spaces of sentences."""

    structure: Grammar | None  # of the sentences that have a derivation; None if there is none
    kept: np.ndarray  # their numbers
    relaxed: np.ndarray  # sentences that have one only if their words may have any tag
    missing: np.ndarray  # sentences without one


@dataclass(eq=False)
class TreebankGrammar:
    """The rules of some trees.

    ``TreebankGrammar.read`` makes one.

    Parameters
    ----------
    binarisation : Binarisation
        How trees become derivations.
    vocabulary : Vocabulary
        How words are seen.
    rules : list of Rule
        Binary rules, then unary ones, then tags.
    counts : array of int
        How often every one of them occurs.
    lexicon : dict from str to dict from int to int
        For words as the vocabulary sees them how often they have which tag.
    known : dict from str to list of int
        The tags of rare words of the treebank.
    """

    binarisation: Binarisation
    vocabulary: Vocabulary
    rules: list[Rule]
    counts: np.ndarray
    lexicon: dict[str, dict[int, int]]
    known: dict[str, list[int]]

    @classmethod
    def read(
        cls,
        trees: Sequence[ParseTree],
        binarisation: Binarisation | None = None,
        vocabulary: Vocabulary | None = None,
        least: int = 1,
    ) -> TreebankGrammar:
        """The grammar of some trees.

        Parameters
        ----------
        trees : sequence of ParseTree
            The treebank.
        binarisation : Binarisation, optional
            How trees become derivations.
        vocabulary : Vocabulary, optional
            How words are seen; it is fitted to the trees.
        least : int
            Binary and unary rules that occur less often are left out.
        """
        binarisation, vocabulary = binarisation or Binarisation(), vocabulary or Vocabulary()
        vocabulary.fit(tree.words() for tree in trees)
        counts = Counter(rule for tree in trees for rule in binarisation.derivation(tree))
        kept = [rule for rule, count in counts.items() if count >= least or not rule.children]
        kept.sort(key=lambda rule: (-len(rule.children), _name(rule)))  # tags have no children: they come last
        number = {rule.parent.label: k for k, rule in enumerate(rule for rule in kept if not rule.children)}
        lexicon, known = _lexicon(trees, vocabulary, number)
        return cls(binarisation, vocabulary, kept, np.array([counts[rule] for rule in kept]), lexicon, known)

    @cached_property
    def number(self) -> dict[Rule, int]:
        """The number of every rule."""
        return {rule: k for k, rule in enumerate(self.rules)}

    @cached_property
    def count(self) -> int:
        """Number of binary and unary rules."""
        return sum(bool(rule.children) for rule in self.rules)

    @cached_property
    def symbols(self) -> list[Symbol]:
        """Tags first, in the order of the rules that write words."""
        tags = [rule.parent for rule in self.rules[self.count :]]
        found = {symbol for rule in self.rules[: self.count] for symbol in (rule.parent, *rule.children)}
        return tags + sorted((s for s in found if not s.tag), key=str)

    @cached_property
    def tags(self) -> list[str]:
        """The parts of speech."""
        return [symbol.label for symbol in self.symbols if symbol.tag]

    @cached_property
    def labels(self) -> list[str]:
        """The labels of phrases, without the root's."""
        found = {s.label for s in self.symbols if not s.tag} | {b for rule in self.rules for b in rule.between}
        return sorted(found - {TOP})

    def plain(self, classes: np.ndarray | None = None, labels: bool = True) -> Rules:
        """The rules as numbers.

        Parameters
        ----------
        classes : array of int, optional
            Classes of rules for surface scores.
        labels : bool
            Whether spans have labels.
        """
        place = {symbol: k for k, symbol in enumerate(self.symbols)}
        rows = [[place[rule.parent], *(place[child] for child in rule.children)] for rule in self.rules[: self.count]]
        binary, unary = ([row for row in rows if len(row) == size] for size in (3, 2))
        chains = [self._chain(rule) for rule in self.rules[: self.count] if len(rule.children) == 1]
        return Rules(
            symbols=len(self.symbols), tags=len(self.tags), root=place[Symbol(TOP)], binary=np.array(binary),
            unary=np.array(unary), label=np.array([self._label(s) for s in self.symbols]) if labels else None,
            chains=chains if labels else (), classes=classes,
        )  # fmt: skip

    def steps(self, tree: ParseTree) -> list[int]:
        """The derivation of a tree, as ``m3n.structures.Grammar`` takes it.

        Parameters
        ----------
        tree : ParseTree
            A tree.
        """
        steps = [self.number.get(rule, -1) for rule in self.binarisation.derivation(tree)]
        if -1 in steps:
            rule = self.binarisation.derivation(tree)[steps.index(-1)]
            raise NotDerivable(f"the grammar has no rule {rule.parent} -> {' '.join(map(str, rule.children))}")
        return steps

    def tree(self, steps: Iterable[int], words: Sequence[str]) -> ParseTree:
        """The tree of a derivation.

        Parameters
        ----------
        steps : iterable of int
            The derivation.
        words : sequence of str
            The words.
        """
        return rebuilt([self.rules[step] for step in steps], words)

    def allowed(self, words: Sequence[str]) -> np.ndarray:
        """Which tags words may have, (length, tags).

        Parameters
        ----------
        words : sequence of str
            A sentence.
        """
        mask = np.zeros((len(words), len(self.tags)), bool)
        for k, (word, seen) in enumerate(zip(words, self.vocabulary.seen(words), strict=True)):
            mask[k, list(self.lexicon.get(seen, self.open_tags))] = True
            mask[k, self.known.get(word, [])] = True
        return mask

    def charts(self, sentences: Sequence[Sequence[str]], rules: Rules) -> Charts:
        """Output spaces of sentences; those without a derivation get more tags, or are left out.

        Parameters
        ----------
        sentences : sequence of sequences of str
            Words.
        rules : Rules
            This grammar as numbers.
        """
        masks, everyone, nobody = [self.allowed(words) for words in sentences], np.arange(len(sentences)), np.arange(0)
        try:
            return Charts(Grammar(masks, rules) if masks else None, everyone, nobody, nobody)
        except NoParse:  # rare: only then is every sentence looked at twice
            relaxed = np.flatnonzero(~derivable(masks, rules))
        for i in relaxed:
            masks[i][:] = True
        missing = relaxed[~derivable([masks[i] for i in relaxed], rules)]
        kept = np.setdiff1d(everyone, missing)
        structure = Grammar([masks[i] for i in kept], rules) if len(kept) else None
        return Charts(structure, kept, np.setdiff1d(relaxed, missing), missing)

    def flat(self, words: Sequence[str]) -> ParseTree:
        """A tree for a sentence that has none: all words below the most frequent label, with their usual tags.

        Parameters
        ----------
        words : sequence of str
            A sentence.
        """
        leaves = (ParseTree(tag, (word,)) for tag, word in zip(self.usual_tags(words), words, strict=True))
        return ParseTree(self._top_label, tuple(leaves))

    def usual_tags(self, words: Sequence[str]) -> list[str]:
        """The tag that each word has most often.

        Parameters
        ----------
        words : sequence of str
            A sentence.
        """
        return [self.tags[self._usual.get(seen, self._usual[""])] for seen in self.vocabulary.seen(words)]

    @cached_property
    def _usual(self) -> dict[str, int]:
        """The most frequent tag of what is seen of words; that of unknown signatures under the empty text."""
        rare = Counter[int]()
        for seen, tags in self.lexicon.items():
            if seen not in self.vocabulary.words:
                rare.update(tags)
        usual = {seen: max(tags, key=lambda tag: (tags[tag], -tag)) for seen, tags in self.lexicon.items()}
        return usual | {"": rare.most_common(1)[0][0] if rare else int(self.counts[self.count :].argmax())}

    @cached_property
    def _top_label(self) -> str:
        """The most frequent label of whole sentences."""
        tops = [(self.counts[k], rule) for k, rule in enumerate(self.rules[: self.count]) if rule.parent.label == TOP]
        _, rule = max(tops, key=lambda pair: pair[0])
        return (*rule.between, rule.children[0].label)[0]

    @cached_property
    def open_tags(self) -> list[int]:
        """Tags of rare words of any signature."""
        found = Counter(tag for seen, tags in self.lexicon.items() if seen not in self.vocabulary.words for tag in tags)
        return sorted(found) or list(range(len(self.tags)))

    def _label(self, symbol: Symbol) -> int:
        counted = not symbol.tag and symbol.beside is None and symbol.label != TOP
        return self.labels.index(symbol.label) if counted else -1

    def _chain(self, rule: Rule) -> list[int]:
        """The labels that a unary rule adds to a span; what its child or a lower one has said counts once."""
        names = {rule.parent.label, *rule.between} - {TOP}
        return sorted({self.labels.index(name) for name in names} - {self._label(rule.children[0])})


def _name(rule: Rule) -> tuple[str, ...]:
    return (str(rule.parent), *map(str, rule.children), *rule.between)


def _lexicon(
    trees: Iterable[ParseTree], vocabulary: Vocabulary, number: dict[str, int]
) -> tuple[dict[str, dict[int, int]], dict[str, list[int]]]:
    """Tags of words as they are seen, with counts, and tags of rare words."""
    lexicon: dict[str, Counter[int]] = {}
    known: dict[str, set[int]] = {}
    for tree in trees:
        tags, words = [number[tag.label] for tag in tree.tags()], tree.words()
        for word, seen, tag in zip(words, vocabulary.seen(words), tags, strict=True):
            lexicon.setdefault(seen, Counter())[tag] += 1
            if seen != word:
                known.setdefault(word, set()).add(tag)
    return {seen: dict(tags) for seen, tags in lexicon.items()}, {word: sorted(tags) for word, tags in known.items()}
