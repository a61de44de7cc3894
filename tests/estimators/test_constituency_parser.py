import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import m3n
from m3n.checks import total_score
from m3n.estimators.constituency_parser import nearest
from m3n.grammars import NotDerivable, TreebankGrammar, Vocabulary
from m3n.io import ParseTree, model_file
from m3n.losses import SpanLoss
from m3n.scores import bracket_scores
from tests.grammars.trees import TREEBANK

SETTINGS = {"rare_words": 1, "rtol": 0.0, "tol": 1e-2, "lam": 0.1, "n_jobs": 1}
NOUNS, VERBS = ("dog", "cat", "hat", "house"), ("sees", "likes", "has")


def noun_phrase(random, depth=0):
    phrase = f"(NP (DT {random.choice(['the', 'a'])}) (NN {random.choice(NOUNS)}))"
    if depth < 2 and random.random() < 0.4:
        return f"(NP {phrase} (PP (IN of) {noun_phrase(random, depth + 1)}))"
    return phrase


def sentences(random, count):
    """Who sees what, with whom: "of" belongs to the noun before it, "with" to the verb."""
    trees = []
    for _ in range(count):
        subject = "(NP (PRP she))" if random.random() < 0.3 else noun_phrase(random)
        rest = f" (PP (IN with) {noun_phrase(random)})" if random.random() < 0.5 else ""
        trees.append(
            ParseTree.parse(f"(S {subject} (VP (VBZ {random.choice(VERBS)}) {noun_phrase(random)}{rest}) (. .))")
        )
    return [tree.words() for tree in trees], trees


@pytest.fixture(scope="module")
def data():
    return sentences(np.random.default_rng(0), 40)


@pytest.fixture(scope="module", params=["rules", "spans"])
def parser(request, data):
    return m3n.ConstituencyParser(features=request.param, **SETTINGS).fit(*data)


@pytest.mark.parametrize(
    ("features", "objective", "strength"),
    [("rules", "margin", 1.0), ("rules", "crf", 1.0), ("spans", "margin", 15.0), ("spans", "crf", 8.0)],
)
def test_the_usual_strength(features, objective, strength, data):
    X, y = data[0][:10], data[1][:10]
    parser = m3n.ConstituencyParser(features=features, objective=objective, rare_words=1, rtol=0.5, n_jobs=1)
    assert parser.fit(X, y).lam_ == pytest.approx(strength / 10)


def test_trees_are_found(parser, data):
    X, y = sentences(np.random.default_rng(1), 30)
    assert parser.certificate_.gap <= 1e-2
    assert parser.score(*data) > 0.9
    assert parser.score(X, y) > 0.9
    assert parser.score(X, y) == bracket_scores(y, parser.predict(X)).f1
    assert parser.classes_.tolist() == sorted(["DT", "NN", "IN", "PRP", "VBZ", "."])
    assert parser.labels_ == ["NP", "PP", "S", "VP"]
    assert parser.predict_brackets(X) == [str(tree) for tree in parser.predict(X)]
    assert [tree.words() for tree in parser.predict(X)] == X
    assert parser.predict([]) == parser.predict_k_best([]) == parser.predict_marginals([]) == []


def test_surface_weights_see_what_rules_cannot(data):
    """Where "of" and "with" attach is no matter of rules."""
    X, y = sentences(np.random.default_rng(1), 30)
    rules, spans = (m3n.ConstituencyParser(features=name, **SETTINGS).fit(*data) for name in ("rules", "spans"))
    assert spans.score(X, y) > rules.score(X, y)
    assert spans.score(X, y) > 0.99


def test_trees_may_be_given_in_brackets_or_as_pairs(parser, data):
    X, y = data
    brackets = clone(parser).fit(y, [str(tree) for tree in y])  # trees are sentences, too
    pairs = clone(parser).fit(X, [nested(tree) for tree in y])
    assert brackets.predict(X) == pairs.predict(X) == parser.predict(X)


def nested(tree):
    return (tree.label, tree.children[0] if tree.is_tag else [nested(child) for child in tree.children])


def test_k_best_trees(parser):
    """Against all derivations, scored one by one."""
    words = ["she", "sees", "the", "dog", "of", "a", "cat"]
    scored = parser._scored([words])
    structure, grammar = scored.charts.structure, parser.reader_.grammar
    every = {str(grammar.tree(structure.unpack(y)[0], words)): total_score(scored.theta, structure.encode(y))
             for y in structure.enumerate(0)}  # fmt: skip
    ((found),) = parser.predict_k_best([words], k=4)
    assert len(found) == min(4, len(every)) > 1
    np.testing.assert_allclose([score for _, score in found], sorted(every.values(), reverse=True)[:4])
    assert all(every[str(tree)] == pytest.approx(score) for tree, score in found)
    assert found[0][0] == parser.predict([words])[0]
    assert len(parser.predict_k_best([words], k=10**3)[0]) == len(every)


@pytest.mark.parametrize("temperature", [0.5, 1.0])
def test_marginals_are_those_of_all_trees(parser, temperature):
    words = ["the", "dog", "sees", "a", "cat", "with", "a", "hat"]
    every = parser.predict_k_best([words], k=10**4)[0]
    scores = np.array([score for _, score in every]) / temperature
    shares = np.exp(scores - scores.max())
    expected: dict = {}
    for (tree, _), share in zip(every, shares / shares.sum(), strict=True):
        for span in set(labelled_spans(tree)):
            expected[span] = expected.get(span, 0.0) + share
    (found,) = parser.predict_marginals([words], temperature, least=0.0)
    for span, probability in expected.items():
        assert found[span] == pytest.approx(probability, abs=1e-9)
    assert sum(found.values()) == pytest.approx(sum(expected.values()))
    few = parser.predict_marginals([words], temperature, least=0.5)[0]
    assert few == {span: p for span, p in found.items() if p >= 0.5}


def labelled_spans(tree, begin=0):
    if not tree.is_tag:
        end = begin
        for child in tree.children:
            yield from labelled_spans(child, end)
            end += len(child.words())
        yield begin, end, tree.label


def test_decoding_with_the_least_risk(parser, data):
    """Against the expected number of missed and spurious spans and wrong tags of every tree."""
    words = ["a", "dog", "of", "a", "cat", "likes", "the", "hat"]
    careful = pickle.loads(pickle.dumps(parser)).set_params(decode="risk")
    every = [tree for tree, _ in parser.predict_k_best([words], k=10**4)[0]]
    (spans,), (tags,) = parser.predict_marginals([words], least=0.0), parser._answers([words], True)[1]

    def gain(tree):
        right = sum(2.0 * spans[span] - 1.0 for span in set(labelled_spans(tree)))
        names = [tag.label for tag in tree.tags()]
        return right + sum(tags[k, parser.classes_.tolist().index(name)] for k, name in enumerate(names))

    (found,) = careful.predict([words])
    assert gain(found) == pytest.approx(max(map(gain, every)))


@pytest.mark.parametrize("objective", ["crf", "softmax_margin"])
def test_objectives(objective, data):
    parser = m3n.ConstituencyParser(features="rules", objective=objective, **SETTINGS).fit(*data)
    assert parser.certificate_.gap <= 1e-2
    assert parser.score(*data) > 0.9


@pytest.mark.parametrize(
    ("objective", "solvers"),
    [
        ("margin", ["excessive_gap", "block_frank_wolfe", "sequential_dual", "bmrm"]),
        ("crf", ["lbfgs", "dual_ascent", "exponentiated_gradient"]),
    ],
)
def test_solvers_agree(objective, solvers, data):
    """Their certificates overlap: each encloses the same optimum."""
    X, y = (given[:12] for given in data)
    found = [
        m3n.ConstituencyParser(objective=objective, solver=solver, **SETTINGS).fit(X, y).certificate_
        for solver in solvers
    ]
    assert max(c.dual for c in found) <= min(c.primal for c in found) + 1e-9
    assert max(c.gap for c in found) <= 1e-2


def test_weights_count_sentences(data):
    X, y = (given[:10] for given in data)
    weights = 1.0 + np.arange(len(X)) % 2
    twice = [k for k in range(len(X)) for _ in range(int(weights[k]))]
    settings = SETTINGS | {"features": "rules"}
    weighed = m3n.ConstituencyParser(**settings).fit(X, y, weights)
    repeated = m3n.ConstituencyParser(**settings).fit([X[k] for k in twice], [y[k] for k in twice])
    assert weighed.certificate_.dual <= repeated.certificate_.primal
    assert repeated.certificate_.dual <= weighed.certificate_.primal


def test_a_weight_of_0_takes_rules_and_words_away(data):
    X, y = [[*given] for given in data]
    odd = ParseTree.parse("(X (UH oh) (UH well))")
    parser = m3n.ConstituencyParser(features="rules", **SETTINGS).fit([*X, odd.words()], [*y, odd], [1.0] * 40 + [0.0])
    assert "X" not in parser.labels_
    assert "UH" not in parser.classes_
    with pytest.raises(ValueError, match="sample_weight must have one number per sentence"):
        m3n.ConstituencyParser().fit(X, y, [1.0])


def test_prices_of_missed_and_spurious_spans(data):
    """With missed spans at a high price there are more brackets, with spurious ones fewer."""
    X, y = data
    random = np.random.default_rng(2)
    mixed = [y[i] for i in random.permutation(len(y))]
    flat = [ParseTree("S", tuple(tree.tags())) if i % 2 else tree for i, tree in enumerate(mixed)]
    words, sizes = [tree.words() for tree in flat], []
    for loss in (SpanLoss(missed=4.0, spurious=0.5), SpanLoss(missed=0.5, spurious=4.0)):
        parser = m3n.ConstituencyParser(features="rules", **SETTINGS | {"loss": loss}).fit(words, flat)
        sizes.append(sum(len(list(labelled_spans(tree))) for tree in parser.predict(X)))
    assert sizes[0] > sizes[1]
    same = m3n.ConstituencyParser(features="rules", **SETTINGS | {"loss": "normalized_hamming"}).fit(X, y)
    assert same.certificate_.gap <= 1e-2


def test_files(parser, data, tmp_path):
    X, _ = data
    parser.save(tmp_path / "model.m3n")
    again = m3n.load(tmp_path / "model.m3n")
    assert again.predict(X) == parser.predict(X)
    assert again.predict_marginals(X) == parser.predict_marginals(X)
    assert again.certificate_ == parser.certificate_
    assert again.replaced_ == 0
    assert again.get_params() == parser.get_params()
    assert pickle.loads(pickle.dumps(parser)).predict(X) == parser.predict(X)
    kind, meta, tensors = model_file.read(tmp_path / "model.m3n")
    model_file.write(tmp_path / "broken.m3n", kind, meta, {**tensors, "rules_": tensors["rules_"][1:]})
    with pytest.raises(model_file.ModelFileError, match="rules_ has shape"):
        m3n.load(tmp_path / "broken.m3n")


def test_words_that_were_never_seen():
    X, y = sentences(np.random.default_rng(0), 40)
    parser = m3n.ConstituencyParser(**SETTINGS | {"rare_words": 40}).fit(X, y)
    (tree,) = parser.predict([["the", "unicorn", "sees", "a", "hat", "."]])
    assert str(tree) == "(S (NP (DT the) (NN unicorn)) (VP (VBZ sees) (NP (DT a) (NN hat))) (. .))"


def test_sentences_without_a_derivation_have_flat_trees(parser):
    """A full stop is no sentence; its tree is flat, with the usual tag, and it has no probable spans."""
    good, bad = ["she", "sees", "a", "hat", "."], ["."]
    trees = parser.predict([bad, good])
    assert str(trees[0]) == "(S (. .))"
    assert trees[1] == parser.predict([good])[0]
    assert parser.predict([bad])[0] == trees[0]
    assert parser.predict_k_best([bad])[0] == [(trees[0], -np.inf)]
    assert parser.predict_marginals([bad]) == [{}]
    np.testing.assert_allclose(parser._answers([bad], True)[1][0], 1.0 / len(parser.classes_))


def test_trees_that_are_not_derivable(data):
    """With rare rules left out a tree is refused, or the nearest one takes its place; both are said."""
    X, y = [[*given] for given in data]
    y.append(ParseTree.parse("(S (NP (DT the) (NN dog)) (X (VBZ sees) (NP (DT a) (NN cat))) (. .))"))
    X.append(y[-1].words())
    settings = SETTINGS | {"features": "rules", "rare_rules": 2}
    with pytest.raises(NotDerivable, match=r"tree 40 is not derivable: .* no rule .*underivable='nearest'"):
        m3n.ConstituencyParser(**settings).fit(X, y)
    parser = m3n.ConstituencyParser(**settings, underivable="nearest").fit(X, y)
    assert parser.replaced_ == 1
    assert "X" not in parser.labels_
    y.append(ParseTree.parse("(X (. .))"))
    X.append(y[-1].words())
    with pytest.raises(NotDerivable, match=r"tree 41: no tree of '\.' is derivable; leave it out"):
        m3n.ConstituencyParser(**settings, underivable="nearest").fit(X, y)


def test_the_nearest_tree_has_the_most_spans_in_common():
    grammar = TreebankGrammar.read(TREEBANK[:4], vocabulary=Vocabulary(1))
    tree = ParseTree.parse("(S (NP (DT the) (NN dog)) (X (VBZ sees) (NP (DT a) (NN cat))) (. .))")
    found = grammar.tree(nearest(grammar, tree), tree.words())
    assert str(found) == "(S (NP (DT the) (NN dog)) (VP (VBZ sees) (NP (DT a) (NN cat))) (. .))"


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (["the dog"], ["(S (NN the))"], "sentence 0 is the text 'the dog'; give a list of words"),
        ([["a"], []], ["(S (N a))"] * 2, "sentence 1 must be a list of words that are not empty"),
        ([["a"]], ["(S (N b))"], "the words of tree 0 are not those of sentence 0"),
        ([["a"]], ["(S (N a)"], "tree 0: a bracket is never closed"),
        ([["a"]], [], "X has 1 sentences but y has 0 trees"),
    ],
)
def test_bad_inputs_are_named(X, y, message):
    with pytest.raises(ValueError, match=message):
        m3n.ConstituencyParser().fit(X, y)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"features": "words"}, "features='words' is not available"),
        ({"decode": "worst"}, "decode='worst' is not available"),
        ({"underivable": "skip"}, "underivable='skip' is not available"),
        ({"vertical": 0}, "vertical must be at least 1"),
        ({"loss": "edges"}, "unknown loss 'edges'"),
    ],
)
def test_bad_parameters_are_named(arguments, message, data):
    with pytest.raises(ValueError, match=message):
        m3n.ConstituencyParser(**arguments).fit(*data)


def test_more_memory_makes_more_rules(data):
    small, large = (m3n.ConstituencyParser(features="rules", vertical=v, horizontal=h, **SETTINGS).fit(*data)
                    for v, h in ((1, 0), (2, 1)))  # fmt: skip
    assert len(large.rules_) > len(small.rules_)
    assert large.score(*data) >= small.score(*data)


def test_training_that_is_cut_short_says_so(data):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        m3n.ConstituencyParser(max_passes=2, n_jobs=1).fit(*data)
    assert any(issubclass(w.category, ConvergenceWarning) for w in found)
