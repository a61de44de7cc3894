import math

import numpy as np
import pytest
from hypothesis import strategies as st

from m3n.checks import check_problem, total_score
from m3n.features import Dense, Stack, Table
from m3n.losses import PartLoss, SpanLoss
from m3n.problem import Problem
from m3n.structures import Chain, Grammar, NoParse, Rules
from m3n.structures.grammar import derivable
from tests.structures.agreement import blocks_agree, solvers_find_the_optimum, weights_count_examples
from tests.structures.template import StructureTemplate, draw_theta


def random_rules(random, tags, phrases, *, labels=True, classes=0):
    """A grammar in which symbol ``tags`` derives every sentence; the last symbol is the root."""
    symbols = tags + phrases + 1
    root, anything = symbols - 1, tags
    pairs = [(anything, a, b) for a in (0, anything) for b in (0, anything)]
    others = [(p, a, b) for p in range(tags, root) for a in range(root) for b in range(root)]
    chosen = [rule for rule in others if random.random() < 0.25 and rule not in pairs]
    unary = [(root, anything), (root, 0)]
    unary += [(p, c) for p in range(tags, root) for c in range(root) if random.random() < 0.4]
    order = random.permutation(len(pairs) + len(chosen))
    binary = np.array(pairs + chosen)[order]
    label = np.full(symbols, -1)
    chains = [[] for _ in unary]
    if labels:
        label[tags:root] = random.integers(-1, 3, size=phrases)
        chains = [[k for k in range(3) if random.random() < 0.4 and k != label[child]] for _, child in unary]
    given = random.integers(classes, size=(len(binary) + len(unary), 2)) if classes else None
    return Rules(symbols, tags, root, binary, unary, label if labels else None, chains if labels else (), given)


@st.composite
def grammars(draw):
    random = np.random.default_rng(draw(st.integers(0, 1000)))
    tags, phrases = draw(st.integers(1, 2)), draw(st.integers(1, 2))
    rules = random_rules(random, tags, phrases, labels=draw(st.booleans()), classes=draw(st.sampled_from([0, 3])))
    lengths = draw(st.lists(st.integers(1, 3), min_size=1, max_size=3))
    allowed = [random.random((length, tags)) < 0.6 for length in lengths]
    for mask in allowed:
        mask[:, 0] = True  # so that there is a derivation
    return Grammar(allowed, rules)


class TestGrammar(StructureTemplate):
    instances = grammars()

    def test_branches_divide_the_outputs(self):
        def check(structure, draw):
            alone, _ = structure.select(np.array([draw(st.integers(0, structure.n - 1))]))
            outputs = list(alone.enumerate(0))
            encoded = [alone.encode(y) for y in outputs]
            for y, parts in zip(outputs, encoded, strict=True):
                np.testing.assert_array_equal(parts[0], np.eye(parts[0].shape[1])[alone.labels_of(y)])
            one, other = (draw(st.integers(0, len(outputs) - 1)) for _ in range(2))
            masks = alone.branches(outputs[one], outputs[other])
            sets = [[(a > 0).tobytes() for a in encoded[k]] for k in (one, other)]
            assert bool(masks) == (sets[0] != sets[1])
            if masks:
                inside = np.array(
                    [[parts[k][mask].any() == required for parts in encoded] for k, mask, required in masks]
                )
                np.testing.assert_array_equal(inside.sum(axis=0), 1)
                assert inside[0, one] != inside[0, other]

        self.for_all(check)

    def test_k_best_agree_with_enumeration(self):
        def check(structure, draw):
            theta, k = draw_theta(draw, structure), draw(st.sampled_from([1, 3, 200]))
            values, packed = structure.k_best(theta, k)
            ranks = list(zip(*map(structure.unpack, packed), strict=True))
            for i in range(structure.n):
                found = [(steps, score) for steps, score in zip(ranks[i], values[i], strict=True) if steps]
                assert np.isfinite(values[i]).sum() == len(found)
                alone, rows = structure.select(np.array([i]))
                mine = tuple(a if row is None else a[row] for a, row in zip(theta, rows, strict=True))
                scores = sorted((total_score(mine, alone.encode(y)) for y in alone.enumerate(0)), reverse=True)
                scores = [score for score in scores if score > -np.inf][:k]
                np.testing.assert_allclose([score for _, score in found], scores, atol=1e-9)
                assert len({tuple(steps) for steps, _ in found}) == len(scores)
                for steps, score in found:
                    assert total_score(mine, alone.encode(alone.pack([steps]))) == pytest.approx(score, abs=1e-9)

        self.for_all(check)


def binary_trees(lengths, **more):
    """One tag, one phrase, all ways to put brackets: Catalan numbers. The root is above the phrase."""
    pairs = [[1, a, b] for a in (0, 1) for b in (0, 1)]
    rules = Rules(symbols=3, tags=1, root=2, binary=pairs, unary=[[2, 1], [2, 0]], label=[-1, 0, -1], **more)
    return Grammar([np.ones((length, 1), bool) for length in lengths], rules)


def test_numbers_of_trees_are_catalan_numbers():
    lengths = [1, 2, 3, 4, 7, 12, 70]
    catalan = [math.comb(2 * n - 2, n - 1) / n for n in lengths]
    np.testing.assert_allclose(binary_trees(lengths).log_size(), np.log(catalan), rtol=1e-12)
    assert [sum(1 for _ in binary_trees([n]).enumerate(0)) for n in (1, 2, 3, 4)] == [1, 1, 2, 5]


def test_every_span_of_more_than_two_words_is_divided_once():
    """The children of a span: its splits have its probability, and so have its children on either side together."""
    structure = binary_trees([9], classes=np.zeros(6, int))
    random = np.random.default_rng(0)
    theta = tuple(random.normal(size=shape) for shape in structure.shapes)
    _, (tag, rule, begin, split, end, span) = structure.soft(theta, 0.7)
    np.testing.assert_allclose(tag, 1.0)
    assert rule[:4].sum() == pytest.approx(8)  # binary rules of nine words
    for array, total in ((begin, 9), (split, 8), (end, 9), (span, 8)):  # one rule is unary
        assert array.sum() == pytest.approx(total)
    cells = structure.cells()
    np.testing.assert_allclose(split[1:, 0], 1.0)  # whatever the tree, two words are parted exactly once
    for t in range(9):  # of the spans that begin at a word some end behind it, unless it stands alone on the right
        assert span[cells[:, 1] == t].sum() == pytest.approx(begin[t, 0] - (t == 0))


def test_a_right_branching_grammar_is_a_chain():
    """X_a -> a X_b: the tags of a chain, its transitions being rules."""
    random, s, lengths = np.random.default_rng(0), 3, [2, 3, 5]
    root = 2 * s
    binary = [[s + a, a, s + b] for a in range(s) for b in range(s)] + [
        [s + a, a, b] for a in range(s) for b in range(s)
    ]
    rules = Rules(symbols=root + 1, tags=s, root=root, binary=binary, unary=[[root, s + a] for a in range(s)])
    grammar, chain = Grammar([np.ones((n, s), bool) for n in lengths], rules), Chain(lengths, s)
    node, pair, start = random.normal(size=(10, s)), random.normal(size=(s, s)), random.normal(size=s)
    rule = np.concatenate([pair.ravel(), pair.ravel(), start])
    theirs = chain.soft((node.copy(), pair.copy(), start.copy(), np.zeros(s)), 0.3)
    ours = grammar.soft((node.copy(), rule.copy(), *grammar.empty()[2:]), 0.3)
    np.testing.assert_allclose(ours[0], theirs[0], rtol=1e-12)
    np.testing.assert_allclose(ours[1][0], theirs[1][0], atol=1e-12)
    np.testing.assert_allclose(ours[1][1][: s * s] + ours[1][1][s * s : 2 * s * s], theirs[1][1].ravel(), atol=1e-12)
    labels = grammar.labels_of(grammar.hard((node, rule, *grammar.empty()[2:]))[1])
    np.testing.assert_array_equal(labels, chain.hard((node, pair, start, np.zeros(s)))[1])


def test_unary_rules_come_once():
    """A -> A and A -> B -> tag: no symbol has two unary rules above it, and chains that are alike have parts alike."""
    rules = Rules(symbols=4, tags=1, root=3, binary=[], unary=[[3, 0], [3, 0], [3, 1], [1, 0], [2, 1]])
    structure = Grammar([[[True]]], rules)
    assert [structure.unpack(y)[0] for y in structure.enumerate(0)] == [[0, 5], [1, 5]]


def test_what_cannot_be_part_of_a_parse_is_not_looked_at():
    structure = binary_trees([4])
    listed = [structure._listed(0, b, e, layer).tolist() for b, e in ((0, 1), (0, 2), (0, 4)) for layer in (0, 1)]
    assert listed == [[0], [0], [1], [1], [1], [2]]


def test_sentences_of_more_than_64_words():
    """Sets of splits take several words of bits: the same as a closed formula, and as products in another order."""
    structure = binary_trees([130, 3])
    zero = tuple(np.zeros(shape) for shape in structure.shapes)
    theta = (np.full(structure.shapes[0], 0.5), np.array([0.25] * 4 + [0.0, 0.0]), *zero[2:])
    values, packed = structure.hard(theta)
    np.testing.assert_allclose(values, [65.0 + 129 * 0.25, 1.5 + 0.5])
    assert len(structure.unpack(packed)[0]) == 130 + 129 + 1
    catalan = math.lgamma(259) - 2 * math.lgamma(130) - math.log(130)
    np.testing.assert_allclose(structure.soft(theta, 1.0)[0][0], values[0] + catalan, rtol=1e-12)


@pytest.mark.parametrize("temperature", [1e-3, 1.0])
def test_both_ways_of_inside_outside_agree(temperature):
    """A part that scores -inf sends a sentence to logarithms; where it does not matter, nothing changes."""
    random = np.random.default_rng(1)
    rules = random_rules(random, 2, 2, classes=3)
    rules = Rules(
        rules.symbols, rules.tags, rules.root, np.vstack([rules.binary, [[2, 1, 1]]]), rules.unary, rules.label,
        rules.chains, np.vstack([rules.classes[: len(rules.binary)], [[0, 1]], rules.classes[len(rules.binary) :]]),
    )  # fmt: skip
    structure = Grammar([[[True, False]] * 8], rules)  # nobody has tag 1, so the new rule never applies
    theta = tuple(random.normal(size=shape) for shape in structure.shapes)
    forbidden = tuple(array.copy() for array in theta)
    forbidden[1][len(rules.binary) - 1] = -np.inf
    forbidden[0][:, 1] = -np.inf
    plain, logarithms = (structure.soft(scores, temperature) for scores in (theta, forbidden))
    np.testing.assert_allclose(plain[0], logarithms[0], rtol=1e-10)
    for a, b in zip(plain[1], logarithms[1], strict=True):
        np.testing.assert_allclose(a, b, atol=1e-9)


def problem_of_trees(temperature=0.0, loss=None, n_jobs=1):
    """Surface and span features, two classes of a rule, unary rules with labels."""
    random = np.random.default_rng(3)
    rules = random_rules(random, 2, 2, classes=2)
    structure = Grammar([np.ones((length, 2), bool) for length in (1, 3, 2, 2)], rules)
    tokens, classes = structure.shapes[2]
    surface = [Dense(random.normal(size=(tokens, 2)), classes) for _ in range(3)]
    features = Stack(
        Dense(random.normal(size=(tokens, 2)), 2), Table(rules.count), *surface,
        Dense(random.normal(size=(structure.shapes[5][0], 2)), structure.shapes[5][1]),
    )  # fmt: skip
    draw = tuple(random.normal(size=shape) for shape in structure.shapes)
    y = structure.unpack(structure.hard(draw)[1])
    loss = None if temperature else loss or SpanLoss(missed=1.0, spurious=0.5) + PartLoss(arrays=[0])
    return Problem(structure, features, y, lam=0.1, temperature=temperature, loss=loss, n_jobs=n_jobs)


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_solvers_find_the_optimum(temperature):
    solvers_find_the_optimum(problem_of_trees(temperature))


def test_blocks_agree():
    blocks_agree(problem_of_trees)


def test_weights_count_examples():
    weights_count_examples(problem_of_trees().structure)


@pytest.mark.parametrize("normalized", [False, True])
def test_missed_and_spurious_spans_have_prices(normalized):
    problem = problem_of_trees(loss=SpanLoss(missed=2.0, spurious=0.5, normalized=normalized))
    check_problem(problem)
    for i, right in enumerate(problem.structure.unpack(problem.gold)):
        alone, rows = problem.structure.select(np.array([i]))
        gold = alone.encode(alone.pack([right]))[5] > 0
        scale = max(gold.sum(), 1) if normalized else 1.0
        for y in alone.enumerate(0):
            found = alone.encode(y)[5] > 0
            expected = (2.0 * (gold & ~found).sum() + 0.5 * (found & ~gold).sum()) / scale
            assert problem.cost.select(rows, [i]).expected(alone.encode(y)) == pytest.approx(expected)


def test_slack_rescaling_by_search():
    problem = problem_of_trees()
    slack = Problem(
        problem.structure, problem.features, problem.structure.unpack(problem.gold), loss=SpanLoss(), lam=0.1,
        rescale="slack", n_jobs=1,
    )  # fmt: skip
    w, values = np.random.default_rng(0).normal(size=problem.dim), []
    for i in range(problem.n):
        alone, rows = problem.structure.select(np.array([i]))
        features, cost = problem.features.select(rows), slack.cost.select(rows, np.array([i]))
        gold = features.adjoint(alone.encode(problem.gold[problem.structure.entries_of(np.array([i]))]))
        outputs = [alone.encode(y) for y in alone.enumerate(0)]
        values.append(max(cost.expected(parts) * (1.0 - w @ (gold - features.adjoint(parts))) for parts in outputs))
    assert slack.hard(w).value == pytest.approx(np.mean(values))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"root": 0}, "tags, then other symbols"),
        ({"binary": [[1, 0, 5]]}, "binary rule 0 names a symbol that is not there"),
        ({"unary": [[0, 1]]}, "unary rule 0 rewrites the tag 0"),
        ({"label": [0]}, r"one number per symbol, shape \(3,\)"),
        ({"chains": [[0], [1]]}, "1 unary rules but 2 chains"),
        ({"label": [-1, 0, -1], "chains": [[0]]}, "a span has every label once"),
    ],
)
def test_bad_rules_are_refused(arguments, message):
    given = {"symbols": 3, "tags": 1, "root": 2, "binary": [[1, 0, 0]], "unary": [[2, 1]]} | arguments
    with pytest.raises(ValueError, match=message):
        Rules(**given)


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ([4, 0, 6], "sentence 0 has 2 words, but its derivation ends after 1"),
        ([4, 0, 6, 6, 6], "complete after 4 of 5 rules"),
        ([0, 6, 6], "sentence 0, rule 0: 0 does not rewrite symbol 2"),
        ([4, 4, 6, 6], "sentence 0, rule 1: 4 does not rewrite symbol 1"),
        ([4, 0, 6, 99], "sentence 0, rule 3: 99 does not rewrite symbol 0"),
        ([4, 2, 0, 6, 6, 6], "word 2 cannot have tag 0, or is not there"),
    ],
)
def test_bad_derivations_are_named(output, message):
    with pytest.raises(ValueError, match=message):
        binary_trees([2]).pack([output])


def test_sentences_without_a_derivation_are_named():
    rules = binary_trees([1]).rules
    masks = [np.ones((2, 1), bool), np.zeros((2, 1), bool)]
    assert derivable(masks, rules).tolist() == [True, False]
    with pytest.raises(NoParse, match="sentence 1 has no derivation at all"):
        Grammar(masks, rules)
    with pytest.raises(ValueError, match="at least one sentence"):
        Grammar([], rules)
    with pytest.raises(ValueError, match=r"sentence 0: allowed must have shape \(words, 1\)"):
        Grammar([np.ones((2, 3), bool)], rules)
    with pytest.raises(ValueError, match="1 sentences but 2 derivations"):
        binary_trees([1]).pack([[5, 6], [5, 6]])
    with pytest.raises(ValueError, match="k must be at least 1"):
        binary_trees([1]).k_best(binary_trees([1]).empty(), 0)
