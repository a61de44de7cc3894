"""Reading what users pass to a parser: sentences and trees, by a grammar that the trees have settled."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from m3n.estimators.inputs import chosen_rows
from m3n.estimators.matrices import Matrix
from m3n.estimators.model_parts import packed_vocabulary, restored_vectorizer
from m3n.grammars.binary import Binarisation, Rule, Symbol
from m3n.grammars.surface import Matrices, Surface
from m3n.grammars.treebank import TreebankGrammar
from m3n.grammars.words import Vocabulary
from m3n.io.brackets import ParseTree

Sentence = Sequence[str]


@dataclass(frozen=True)
class ParserInputs:
    """Sentences with their attributes.

    Attributes
    ----------
    sentences : list of lists of str
        Words.
    matrices : Matrices
        Attributes of words, positions and spans.
    """

    sentences: list[Sentence]
    matrices: Matrices

    @property
    def matrix(self) -> Matrix:
        """Attributes of words."""
        return self.matrices.tag

    def only(self, chosen: np.ndarray) -> ParserInputs:
        """Some of the sentences, in the given order."""
        lengths = np.array([len(words) for words in self.sentences])
        rows, cells = (chosen_rows(sizes, chosen) for sizes in (lengths, lengths * (lengths + 1) // 2))
        tag, *others = self.matrices
        places = (rows, rows, rows, cells)
        begin, split, end, span = (None if a is None else a[at] for a, at in zip(others, places, strict=True))
        return ParserInputs([self.sentences[i] for i in chosen], Matrices(tag[rows], begin, split, end, span))

    def arrays(self) -> Iterator[Any]:
        """What tells these inputs from others."""
        yield from (matrix for matrix in self.matrices if matrix is not None)


@dataclass(eq=False)
class TreeReader:
    """Turns sentences into attributes and trees into derivations.

    Attributes
    ----------
    grammar : TreebankGrammar
        The rules of the training trees.
    surface : Surface
        The attributes of their words.
    """

    grammar: Any = None
    surface: Any = None
    pair_width = None

    @property
    def width(self) -> int:
        """Attributes of a word."""
        return self.surface.width

    @property
    def vectorizer(self) -> Any:
        """Knows the names of the attributes of words."""
        return self.surface

    def fit(self, sentences: list[Sentence], grammar: TreebankGrammar, spans: bool) -> ParserInputs:
        """Learn the attributes of sentences."""
        self.grammar, self.surface = grammar, Surface(grammar, spans)
        return ParserInputs(sentences, self.surface.fit_transform(sentences))

    def read(self, sentences: list[Sentence]) -> ParserInputs:
        """The attributes of other sentences."""
        return ParserInputs(sentences, self.surface.transform(sentences))

    def packed(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """What a model file holds of it, as plain values and arrays."""
        tensors = {"grammar": _bytes(_plain_grammar(self.grammar)), "rule_counts": np.asarray(self.grammar.counts)}
        for k, templates in enumerate(self.surface.templates):
            tensors |= {f"{name}_{k}": array for name, array in packed_vocabulary(templates).items()}
            tensors[f"kept_{k}"] = self.surface.kept[k]
        return {"spans": self.surface.spans}, tensors

    @classmethod
    def unpacked(cls, plain: Mapping[str, Any], tensors: Mapping[str, np.ndarray], templates: Any) -> TreeReader:
        """The reader that ``packed`` has written."""
        del templates  # of its own making
        known = json.loads(tensors["grammar"].tobytes().decode("utf-8", "surrogatepass"))
        grammar = _restored_grammar(known, tensors["rule_counts"])
        surface = Surface(grammar, bool(plain["spans"]))
        for k, made in enumerate(surface.templates):
            own = {name.rpartition("_")[0]: array for name, array in tensors.items() if name.endswith(f"_{k}")}
            restored: Any = restored_vectorizer(own, made)  # templates again
            surface.templates[k] = restored
            surface.kept.append(own["kept"])
        return cls(grammar, surface)


def read_sentences(X: Iterable[Any]) -> list[Sentence]:
    """Lists of words: given as such, or as trees whose words count.

    Parameters
    ----------
    X : iterable
        Sentences.
    """
    found: list[Sentence] = []
    for i, given in enumerate(X):
        words = given.words() if isinstance(given, ParseTree) else given
        if isinstance(words, str):
            raise ValueError(f"sentence {i} is the text {words!r:.40}; give a list of words, text.split() for example")
        words = list(words)
        if not words or not all(isinstance(word, str) and word for word in words):
            raise ValueError(f"sentence {i} must be a list of words that are not empty, got {words!r:.60}")
        found.append(words)
    return found


def read_trees(y: Iterable[Any], sentences: Sequence[Sentence]) -> list[ParseTree]:
    """Trees of sentences: given as such, in brackets, or as nested pairs of a label and children.

    Parameters
    ----------
    y : iterable
        The trees.
    sentences : sequence of lists of str
        The words that they must have.
    """
    trees = [_tree(given, i) for i, given in enumerate(y)]
    if len(trees) != len(sentences):
        raise ValueError(f"X has {len(sentences)} sentences but y has {len(trees)} trees")
    for i, (tree, words) in enumerate(zip(trees, sentences, strict=True)):
        if tree.words() != list(words):
            raise ValueError(f"the words of tree {i} are not those of sentence {i}: {tree.words()!r:.60}")
    return trees


def _tree(given: Any, i: int) -> ParseTree:
    try:
        return ParseTree.of(given)
    except (TypeError, ValueError) as error:
        raise ValueError(f"tree {i}: {error}") from None


def _bytes(content: Any) -> np.ndarray:
    text = json.dumps(content, ensure_ascii=False)
    return np.frombuffer(text.encode("utf-8", "surrogatepass"), dtype=np.uint8)


def _plain_grammar(grammar: TreebankGrammar) -> dict[str, Any]:
    vocabulary = grammar.vocabulary
    return {
        "binarisation": vars(grammar.binarisation),
        "vocabulary": [vocabulary.frequent, vocabulary.endings, sorted(vocabulary.words), sorted(vocabulary.suffixes)],
        "rules": grammar.rules,
        "lexicon": {seen: list(tags.items()) for seen, tags in grammar.lexicon.items()},
        "known": grammar.known,
    }


def _restored_grammar(known: dict[str, Any], counts: np.ndarray) -> TreebankGrammar:
    frequent, endings, words, suffixes = known["vocabulary"]
    rules = [
        Rule(_symbol(parent), tuple(map(_symbol, children)), tuple(between))
        for parent, children, between in known["rules"]
    ]
    if len(rules) != len(counts):
        raise ValueError(f"{len(rules)} rules with {len(counts)} counts")
    return TreebankGrammar(
        Binarisation(**known["binarisation"]), Vocabulary(frequent, endings, set(words), set(suffixes)), rules, counts,
        {seen: dict(map(tuple, tags)) for seen, tags in known["lexicon"].items()}, known["known"],
    )  # fmt: skip


def _symbol(plain: list[Any]) -> Symbol:
    label, above, beside, tag = plain
    return Symbol(label, tuple(above), None if beside is None else tuple(beside), tag)
