import itertools

import numpy as np
import pytest

from m3n.checks import total_score
from m3n.grammars import PCFG, Binarisation, NotDerivable, TreebankGrammar, Vocabulary
from m3n.grammars.pcfg import rule_scores
from m3n.io import ParseTree
from m3n.structures import Grammar
from tests.grammars.trees import TREEBANK


@pytest.fixture
def grammar():
    return TreebankGrammar.read(TREEBANK, Binarisation(1, 1), Vocabulary(2, 2))


def test_rules_and_their_counts(grammar):
    found = {
        (str(rule.parent), *map(str, rule.children)): n for rule, n in zip(grammar.rules, grammar.counts, strict=True)
    }
    assert found["NP", "DT", "NN"] == 5
    assert found["NP", "PRP"] == 3
    assert found["TOP", "S"] == 6
    assert found["NN",] == 8
    assert sum(n for name, n in found.items() if len(name) == 1) == sum(len(tree.words()) for tree in TREEBANK)
    assert grammar.labels == sorted({"ADVP", "NP", "PP", "S", "SBAR", "VP", "X"})


def test_labels_of_spans_are_those_of_the_trees(grammar):
    """What the parts of a derivation say about spans, against the tree itself; a label twice on a span counts once."""
    structure = Grammar([grammar.allowed(tree.words()) for tree in TREEBANK], grammar.plain())
    packed = structure.pack([grammar.steps(tree) for tree in TREEBANK])
    cells, span = structure.cells(), structure.encode(packed)[-1]
    assert set(np.unique(span)) == {0.0, 1.0}
    found = [set() for _ in TREEBANK]
    for row, label in np.argwhere(span):
        i, begin, end = cells[row]
        found[i].add((grammar.labels[label], begin, end))
    assert found == [set(spans(tree)) for tree in TREEBANK]


def spans(tree, begin=0):
    if tree.is_tag:
        return
    end = begin
    for child in tree.children:
        yield from spans(child, end)
        end += len(child.words())
    yield tree.label, begin, end


def test_rare_rules_are_left_out():
    grammar = TreebankGrammar.read(TREEBANK, Binarisation(1, 0), least=2)
    assert min(grammar.counts[: grammar.count]) >= 2
    with pytest.raises(NotDerivable, match="the grammar has no rule TOP -> UH"):
        grammar.steps(TREEBANK[-1])


def test_sentences_without_a_derivation():
    """More tags for one, a flat tree for the other."""
    grammar = TreebankGrammar.read(TREEBANK[:1], vocabulary=Vocabulary(1))
    rules = grammar.plain()
    charts = grammar.charts([["the", "dog", "barks", "."], ["dog", "the", "barks", "."], ["dog", "the"]], rules)
    assert [part.tolist() for part in charts[1:]] == [[0, 1], [1], [2]]
    assert charts.structure.n == 2
    assert str(grammar.flat(["dog", "the"])) == "(S (NN dog) (DT the))"
    nothing = grammar.charts([["dog"]], rules)
    assert (nothing.structure, nothing.missing.tolist()) == (None, [0])
    assert grammar.charts([], rules).structure is None
    assert [str(tree) for tree in PCFG(grammar).parse([["dog"], ["the", "dog", "barks", "."]])] == [
        "(S (NN dog))", str(TREEBANK[0])
    ]  # fmt: skip


def test_signatures():
    words = Vocabulary(2, 2).fit([["walking", "talking", "the", "the"], ["a-b", "the"]])
    assert words.words == {"the"}
    assert {"ing", "king"} <= words.suffixes
    assert words.seen(["the", "Barking", "3rd", "NATO", "x-y", "zzz"]) == [
        "the", "<Xl>king", "<dl>", "<C>", "<hl>", "<l>"
    ]  # fmt: skip
    assert words.signature("Barking", first=True) == "<clf>king"
    assert [words.ending(word) for word in ("the", "baking", "zzz")] == ["the", "-king", "-"]


def test_probabilities_add_up(grammar):
    """Of all ways to rewrite a phrase: unary rules, or none and a binary one; below a unary rule only binary ones."""
    rules, counts = grammar.plain(labels=False), grammar.counts[: grammar.count]
    scores = rule_scores(rules, counts)
    binary, unary = np.exp(scores[: len(rules.binary)]), scores[len(rules.binary) :]
    by_binary = np.bincount(rules.binary[:, 0], binary, rules.symbols)  # P(none) times one, where none occurs
    none = np.where(by_binary > 0.0, by_binary, 1.0)
    below = np.exp(unary) * none[rules.unary[:, 1]]
    by_unary = np.bincount(rules.unary[:, 0], below, rules.symbols)
    rewritten = np.unique([*rules.binary[:, 0], *rules.unary[:, 0]])
    np.testing.assert_allclose((by_binary + by_unary)[rewritten], 1.0)


def test_most_likely_trees_by_enumeration(grammar):
    parser, words = PCFG(grammar), ["she", "sees", "the", "dog", "."]
    structure = Grammar([grammar.allowed(words)], parser.rules)
    theta = (parser.tag_scores(words), parser.scores, *(np.zeros(shape) for shape in structure.shapes[2:]))
    outputs = list(structure.enumerate(0))
    best = max(outputs, key=lambda y: total_score(theta, structure.encode(y)))
    assert len(outputs) > 1
    assert parser.parse([words]) == [grammar.tree(structure.unpack(best)[0], words)]


def test_relative_frequencies_are_the_most_likely_ones():
    """Probabilities from other counts make the treebank less likely, where a symbol has a choice of rules."""
    texts = ("(A (A (X a) (X a)) (X a))", "(A (X a) (A (X a) (X a)))", "(A (B (X a) (X a)))", "(B (X a) (X a))")
    grammar = TreebankGrammar.read([ParseTree.parse(text) for text in texts])
    rules, counts = grammar.plain(labels=False), grammar.counts[: grammar.count]
    likelihood, parents = counts @ rule_scores(rules, counts), rules.binary[:, 0].tolist()
    for rule, more in itertools.product(range(len(rules.binary)), (0.5, 1.0, 3.0)):
        other = counts.astype(float)
        other[rule] += more
        found = counts @ rule_scores(rules, other)
        assert found < likelihood - 1e-3 if parents.count(parents[rule]) > 1 else found == pytest.approx(likelihood)


def test_a_parser_of_its_own_training_trees():
    parser = PCFG(TreebankGrammar.read(TREEBANK, Binarisation(2, 2), Vocabulary(1)))
    found = parser.parse([tree.words() for tree in TREEBANK])
    assert sum(a == b for a, b in zip(found, TREEBANK, strict=True)) >= 7
