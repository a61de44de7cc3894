import pickle

import numpy as np
import pytest
from sklearn.base import clone

import m3n
from m3n.estimators.projective import crossing
from m3n.io import read_conllu
from m3n.losses import PartLoss
from m3n.scores import attachment_scores
from m3n.solvers import LBFGS, BlockFrankWolfe, DualAscent, ExcessiveGap, SequentialDual
from tests.estimators.trees import heads_of, sentences

SETTINGS = {"bits": 14, "rtol": 0.05, "n_jobs": 1}


@pytest.fixture(scope="module")
def data():
    return sentences(0, 40)


@pytest.fixture(scope="module")
def parser(data):
    return m3n.DependencyParser(**SETTINGS).fit(*data)


@pytest.fixture(scope="module")
def second(data):
    return m3n.DependencyParser(order=2, **SETTINGS).fit(*data)


@pytest.fixture(scope="module")
def unlabelled(data):
    X, y = data
    return m3n.DependencyParser(**SETTINGS).fit(X, heads_of(y))


def test_trees_are_found(data, parser):
    X, y = sentences(1, 30)
    assert parser.certificate_.gap <= 0.05 * parser.certificate_.primal
    assert parser.score(*data) == 1.0
    assert parser.score(X, y) > 0.97
    assert parser.classes_.tolist() == ["advmod", "amod", "det", "nsubj", "obj", "root"]
    assert parser.lam_ == pytest.approx(30 / len(data[0]))
    assert parser.lifted_ == 0
    assert parser.predict([]) == parser.predict_marginals([]) == parser.predict_k_best([], 2) == []


def test_second_order_trees_are_found(second):
    X, y = sentences(1, 30)
    assert second.sibling_coef_.any()
    assert second.grandchild_coef_.any()
    assert second.score(X, y) > 0.97
    only = clone(second).set_params(second_order="siblings").fit(X, y)
    assert only.sibling_coef_.any()
    assert not only.grandchild_coef_.size
    assert only.score(X, y) == 1.0


def test_trees_without_labels(data, unlabelled):
    X, y = data
    assert unlabelled.predict(X) == heads_of(y)
    assert unlabelled.score(X, heads_of(y)) == 1.0
    assert not unlabelled.label_coef_.size
    assert unlabelled.predict_min_risk(X[:3], temperature=0.1) == heads_of(y[:3])


def test_crossing_arcs_need_trees_that_may_cross():
    data, unseen = sentences(0, 60, crossing=True), sentences(1, 40, crossing=True)
    assert any(crossing(heads) for heads in heads_of(data[1]))
    free = m3n.DependencyParser(projective=False, **SETTINGS).fit(*data)
    drawn = m3n.DependencyParser(**SETTINGS).fit(*data)
    assert free.lifted_ == 0
    assert drawn.lifted_ == sum(bool(crossing(heads)) for heads in heads_of(data[1]))
    assert not any(crossing(heads) for heads in heads_of(drawn.predict(unseen[0])))
    assert free.score(*unseen) > drawn.score(*unseen) + 0.03
    assert free.score(*unseen) > 0.95


@pytest.mark.parametrize("name", ["parser", "second", "unlabelled"])
def test_a_model_comes_back_from_its_file(data, name, request, tmp_path):
    model, path = request.getfixturevalue(name), tmp_path / "parser.m3n"
    model.save(path)
    loaded = m3n.load(path)
    assert loaded.predict(data[0]) == model.predict(data[0])
    assert repr(loaded) == repr(model)
    assert pickle.loads(pickle.dumps(model)).predict(data[0]) == model.predict(data[0])
    for old, new in zip(model.predict_marginals(data[0][:3]), loaded.predict_marginals(data[0][:3]), strict=True):
        np.testing.assert_array_equal(old, new)


@pytest.mark.parametrize("name", ["parser", "second", "unlabelled"])
def test_k_best_trees_add_up_to_the_marginals(name, request):
    """All trees of a short sentence, ranked: their probabilities are those of the exp-oracle."""
    model = request.getfixturevalue(name)
    sentence = [("the", "DET"), ("dog", "NOUN"), ("sees", "VERB")]
    ranked = model.predict_k_best([sentence], 2000)[0]
    scores = np.array([score for _, score in ranked])
    assert (np.diff(scores) <= 1e-12).all()
    assert ranked[0][0] == model.predict([sentence])[0]
    assert len({str(tree) for tree, _ in ranked}) == len(ranked) < 2000
    share = np.exp(scores - scores.max()) / np.exp(scores - scores.max()).sum()
    table = np.zeros((3, 4))
    for (tree, _), p in zip(ranked, share, strict=True):
        for word, entry in enumerate(tree):
            table[word, entry if name == "unlabelled" else entry[0]] += p
    np.testing.assert_allclose(model.predict_marginals([sentence])[0], table, atol=1e-9)


def test_every_word_has_one_head(data, parser):
    for words, table in zip(data[0], parser.predict_marginals(data[0], temperature=5.0), strict=True):
        assert table.shape == (len(words), len(words) + 1)
        np.testing.assert_allclose(table.sum(axis=1), 1.0)
        assert table[:, 0].sum() == pytest.approx(1.0)  # a single root
        assert not np.diag(table[:, 1:]).any()


def test_minimum_risk_is_the_best_of_all_trees(parser):
    sentence, t = [("the", "DET"), ("cat", "NOUN"), ("eats", "VERB")], 30.0
    ranked = parser.predict_k_best([sentence], 2000)[0]
    share = np.exp(np.array([score for _, score in ranked]) / t)
    share /= share.sum()
    right = [sum(p * sum(map(tuple.__eq__, tree, other)) for p, (other, _) in zip(share, ranked, strict=True))
             for tree, _ in ranked]  # fmt: skip
    found = parser.predict_min_risk([sentence], temperature=t)[0]
    assert right[[tree for tree, _ in ranked].index(found)] == pytest.approx(max(right))


@pytest.mark.parametrize("name", ["parser", "second", "unlabelled"])
def test_explanations_add_up(data, name, request):
    """Words add up to the score of the tree; the other tree of a word is the best of all that differ there."""
    model, sentence = request.getfixturevalue(name), [("the", "DET"), ("dog", "NOUN"), ("sees", "VERB")]
    model = clone(model).set_params(filter=0.0).fit(*data)  # so every word has several heads
    ranked = model.predict_k_best([sentence], 2000)[0]
    explained = model.explain(sentence)
    assert explained.labels == ranked[0][0]
    assert explained.rival == ranked[1][0]
    assert explained.score == pytest.approx(ranked[0][1])
    assert explained.margin == pytest.approx(ranked[0][1] - ranked[1][1])
    assert sum(word.score for word in explained.positions) == pytest.approx(explained.score)
    for t, word in enumerate(explained.positions):
        other, score = next((tree, score) for tree, score in ranked if tree[t] != ranked[0][0][t])
        assert (word.number, word.other) == (t + 1, other[t])
        assert word.margin == pytest.approx(ranked[0][1] - score)
        terms = [*word.contributions, *word.after]
        assert sum(term.difference for term in terms) == pytest.approx(word.margin)
        assert sum(term.score for term in word.contributions) == pytest.approx(word.score)
    text = str(explained)
    assert "word 2 'dog'" in text
    assert "h.upos=VERB d.upos=NOUN" in str(model.explain(sentence, top=None))
    third = model.explain(sentence, ranked[2][0], top=0)
    assert third.margin == pytest.approx(ranked[2][1] - ranked[0][1])
    assert third.rival == ranked[0][0]


def test_what_cannot_be_explained(parser):
    sentence = [("the", "DET"), ("dog", "NOUN"), ("sees", "VERB")]
    with pytest.raises(ValueError, match="does not know the label 'xyz'"):
        parser.explain(sentence, [(2, "xyz"), (3, "nsubj"), (0, "root")])
    with pytest.raises(ValueError, match="heads alone"):
        parser.explain(sentence, [2, 3, 0])
    with pytest.raises(ValueError, match="filter"):
        parser.explain(sentence, [(2, "root"), (3, "nsubj"), (0, "root")])
    with pytest.raises(ValueError, match="top must be"):
        parser.explain(sentence, top=-1)


def test_weights_count_sentences(data):
    X, y = data[0][:8], data[1][:8]
    settings = {"bits": 12, "tol": 1e-4, "rtol": 0.0, "n_jobs": 1, "lam": 0.5, "filter": 0.0}
    weights = np.array([2, 1, 1, 0, 1, 1, 1, 1])
    weighted = m3n.DependencyParser(**settings).fit(X, y, sample_weight=weights)
    repeated = m3n.DependencyParser(**settings).fit([X[0], *X[:3], *X[4:]], [y[0], *y[:3], *y[4:]])
    assert weighted.certificate_.primal == pytest.approx(repeated.certificate_.primal, abs=2e-4)


@pytest.mark.parametrize(
    ("objective", "solvers"),
    [("margin", [ExcessiveGap(), BlockFrankWolfe(), SequentialDual()]), ("crf", [LBFGS(), DualAscent()])],
)
@pytest.mark.parametrize("settings", [{}, {"order": 2}, {"projective": False}], ids=["first", "second", "crossing"])
def test_solvers_agree(objective, solvers, settings):
    """The certificates of all solvers enclose the same optimum, on a problem with all arcs and labels."""
    X, y = sentences(3, 3, crossing=True)
    shared = {"bits": 10, "tol": 1e-3, "rtol": 0.0, "n_jobs": 1, "lam": 1.0, "filter": 0.0, "objective": objective}
    found = [m3n.DependencyParser(solver=solver, **shared, **settings).fit(X, y).certificate_ for solver in solvers]
    assert all(certificate.gap <= 1e-3 for certificate in found)
    assert max(c.dual for c in found) <= min(c.primal for c in found) + 1e-9


@pytest.mark.parametrize("objective", ["crf", "softmax_margin", "slack"])
def test_other_objectives(data, objective):
    X, y = data[0][:12], data[1][:12]
    assert m3n.DependencyParser(objective=objective, **SETTINGS).fit(X, y).score(X, y) > 0.97


def test_losses(data):
    X, y = data
    share = m3n.DependencyParser(loss="normalized_hamming", **SETTINGS).fit(X, y)
    assert share.trace_[0].primal == pytest.approx(1.0)  # without weights all words are wrong at worst
    heads = m3n.DependencyParser(loss=PartLoss(0.0, 1.0, arrays=(0,)), **SETTINGS).fit(X, y)
    assert heads.score(X, y) == 1.0


def test_kinds_of_words(data, parser):
    X, _ = data
    dicts = [[{"form": form, "upos": tag} for form, tag in words] for words in X]
    tuples = [[(form, "_", tag, "_", "_") for form, tag in words] for words in X]
    assert parser.predict(dicts) == parser.predict(tuples) == parser.predict(X)
    forms = m3n.DependencyParser(**SETTINGS).fit([[form for form, _ in words] for words in X], data[1])
    assert forms.score([[form for form, _ in words] for words in X], data[1]) > 0.9


def test_a_treebank_brings_its_trees(tmp_path):
    path = tmp_path / "two.conllu"
    lines = ["1\tdogs\tdog\tNOUN\t_\t_\t2\tnsubj\t_\t_", "2\tbark\tbark\tVERB\t_\t_\t0\troot\t_\t_"]
    path.write_text("\n".join([*lines, "", ""]) * 2)
    bank = read_conllu(path)
    model = m3n.DependencyParser(**SETTINGS).fit(bank)
    assert model.predict(bank) == bank.trees
    assert model.score(bank) == 1.0


def test_a_warm_start_goes_on(data):
    model = m3n.DependencyParser(warm_start=True, lam=0.5, **SETTINGS).fit(*data)
    again = model.set_params(rtol=0.04).fit(*data)
    assert len(again.trace_) <= 3


def test_filters(data):
    """Without a filter all arcs are looked at; with one the right arcs of training stay."""
    X, y = data
    everything = m3n.DependencyParser(**SETTINGS | {"filter": 0.0}).fit(X, y)
    assert not everything.filter_coef_.size
    assert everything.score(X, y) == 1.0
    strict = m3n.DependencyParser(**SETTINGS | {"filter": 0.9}).fit(X, y)
    table = np.concatenate([t.ravel() for t in strict.predict_marginals(X, temperature=1e3)])
    assert (table > 0).mean() < 0.5 * (np.concatenate([t.ravel() for t in everything.predict_marginals(X)]) > 0).mean()


def test_unknown_words_and_tags_have_trees(parser):
    strange = [[("zzz", "X"), ("qqq", "Y"), ("?", "Z")]]
    tree = parser.predict(strange)[0]
    assert sum(head == 0 for head, _ in tree) == 1
    assert attachment_scores([tree], [tree]).uas == 1.0


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([[(2, "a"), (1, "b")]], r"sentence 0, word \d is its own head"),
        ([[(2, "a"), (3, "b")]], "sentence 0, word 2: the head 3 is neither 0"),
        ([[(2, "a"), 0]], "sentence 0, word 2 of y must be a pair"),
        ([[(2, "a")]], "2 words in X but 1 in y"),
        ([], "1 sentences but y has 0"),
    ],
)
def test_bad_trees_are_named(y, message):
    with pytest.raises(ValueError, match=message):
        m3n.DependencyParser().fit([[("dogs", "N"), ("bark", "V")]], y)


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        ([[("a", "b", "c")]], TypeError, "sentence 0, word 1: a word must be"),
        ([[("a", "b")], []], ValueError, "sentence 1 has no words"),
        (["a sentence"], TypeError, r"give \[words\]"),
        ([[{"form": 3}]], TypeError, "form must be a text"),
    ],
)
def test_bad_words_are_named(X, error, message, parser):
    with pytest.raises(error, match=message):
        parser.predict(X)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"order": 3}, "order must be 1 or 2"),
        ({"order": 2, "second_order": "cousins"}, "'cousins'"),
        ({"order": 2, "projective": False}, "order=1 only"),
        ({"filter": 1.0}, "below 1"),
        ({"bits": 0}, "bits must be in 1..30"),
        ({"bits": 3}, "take more bits"),
        ({"solver": "smo"}, "smo|SMO"),
    ],
)
def test_bad_settings_are_named(settings, message, data):
    with pytest.raises((ValueError, m3n.MissingOracle), match=message):
        m3n.DependencyParser(**{"n_jobs": 1} | settings).fit(*data)


def test_two_roots_where_one_is_asked_for(data):
    X, y = data
    with pytest.raises(ValueError, match=r"sentence 0.*root"):
        m3n.DependencyParser(**SETTINGS).fit(X, [[(0, "root")] * len(y[0]), *y[1:]])
    flat = [[(0, "root")] * len(words) for words in X]
    assert m3n.DependencyParser(single_root=False, **SETTINGS).fit(X, flat).predict(X) == flat
