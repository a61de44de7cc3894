"""Word alignment from labelled pairs: structures, prices, possible links, files, and what is refused."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import m3n
from m3n.alignment.grid import Grid
from m3n.estimators.alignments import LinkPrices, link_prices
from m3n.io import Alignment, model_file
from m3n.problem import Problem
from m3n.solvers import BMRM, SMO, BlockFrankWolfe, ExcessiveGap, Extragradient, StructSVM

STRUCTURES = ("matching", "chain", "words")


@pytest.fixture(scope="module")
def data():
    return m3n.datasets.parallel_sentences(300, 80, seed=3, words=60)


@pytest.fixture(scope="module")
def hmm(data):
    return m3n.HMMAligner(n_jobs=1).fit(data[0].pairs)


@pytest.fixture(scope="module")
def labelled(data):
    pairs, alignments = data[1].pairs, data[1].alignments
    return (pairs[:40], alignments[:40]), (pairs[40:], alignments[40:])


@pytest.fixture(scope="module", params=STRUCTURES)
def fitted(request, hmm, labelled):
    return m3n.WordAligner(structure=request.param, translations=hmm, n_jobs=1).fit(*labelled[0])


def problem_of(aligner, X, y):
    """The problem that ``fit`` solves."""
    caught = {}
    original = Problem.__init__

    def keep(self, *given, **words):
        original(self, *given, **words)
        caught["problem"] = self

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Problem, "__init__", keep)
        aligner.fit(X, y)
    return caught["problem"]


def test_better_than_the_model_without_labels(fitted, hmm, labelled):
    X, y = labelled[1]
    without = m3n.scores.alignment_scores(y, hmm.predict(X)).aer
    assert 1.0 - fitted.score(X, y) < 0.9 * without
    assert fitted.certificate_.gap <= 1e-3


def test_certificate_from_scratch(fitted, hmm, labelled):
    """J by the definition: prices of links and scores of outputs, by the max-oracle of the structure."""
    X, y = labelled[0]
    again = m3n.WordAligner(structure=fitted.structure, translations=hmm, n_jobs=1)
    problem = problem_of(again, X, y)
    w = np.concatenate([fitted.coef_.T.ravel(), fitted.null_coef_.T.ravel(), fitted.jumps_])
    structure, theta = problem.structure, problem.structure.empty()
    problem.features.scores(w, theta)
    right = structure.score(theta, problem.gold)
    grid = Grid.of(X)
    prices = link_prices(grid, y, 3.0, 1.0, 0.0)
    both = prices if fitted.structure == "matching" else np.concatenate([prices, prices[grid.turned()[1]]])
    theta[0][:, 0] += both
    costs = tuple(np.zeros(shape) for shape in structure.shapes)
    costs[0][:, 0] = both
    margins = structure.hard(theta)[0] - right - structure.score(costs, problem.gold)
    primal = fitted.lam_ / 2 * w @ w + margins.sum() / len(X)
    assert primal == pytest.approx(fitted.certificate_.primal, rel=1e-9)
    assert fitted.lam_ == pytest.approx(10 / len(X))
    assert fitted.certificate_.dual <= primal


def test_a_loss_counts_links_at_their_prices(labelled):
    pairs, alignments = labelled[0][0][:6], labelled[0][1][:6]
    grid = Grid.of(pairs)
    structure = m3n.structures.Matching(grid.sizes, (9, 9))
    prices = link_prices(grid, alignments, 3.0, 1.0, 0.5)
    gold = structure.pack([sorted(a.sure | a.possible) for a in alignments])
    cost = LinkPrices(prices[:, None]).cost(structure, gold).checked(structure, gold)
    random = np.random.default_rng(0)
    found = [[link for link in np.ndindex(*size) if random.random() < 0.3] for size in grid.sizes.tolist()]
    wanted = 0.0
    for links, right in zip(found, alignments, strict=True):
        links = set(links)
        wanted += 3.0 * len(right.sure - links) + len(links - right.sure - right.possible)
        wanted += 0.5 * len(right.possible - links)
    assert cost.expected(structure.encode(structure.pack(found))) == pytest.approx(wanted)


def test_possible_links_are_neither_learnt_nor_held_against_an_alignment(hmm):
    X = [(["a", "b"], ["x", "y"])]
    y = [Alignment(frozenset({(0, 0)}), frozenset({(1, 1)}))]
    aligner = m3n.WordAligner(translations=hmm, n_jobs=1)
    problem = problem_of(aligner, X, y)
    assert problem.structure.unpack(problem.gold) == [[(0, 0)]]
    learnt = problem_of(aligner.set_params(possible=1.0), X, y)
    assert learnt.structure.unpack(learnt.gold) == [[(0, 0), (1, 1)]]


def test_training_alignments_keep_the_bounds_of_the_structure(hmm):
    """Of links that the structure cannot have together the likeliest stay."""
    X = [(["a"], ["x", "y", "z"])]
    y = [[(0, 0), (0, 1), (0, 2)]]
    for fertility, links in ((1, 1), (2, 1), ((2, 1), 2), ((3, 1), 3)):
        problem = problem_of(m3n.WordAligner(translations=hmm, fertility=fertility, n_jobs=1), X, y)
        (found,) = problem.structure.unpack(problem.gold)
        assert len(found) == (links if fertility != 2 else 2) and set(found) <= set(y[0])
    problem = problem_of(m3n.WordAligner("words", translations=hmm, n_jobs=1), X, y)
    forward, backward = problem.structure.unpack(problem.gold)
    assert len(forward) == 1 and len(backward) == 3  # one choice of the source word, one of every target word


def test_predictions_keep_fertility(hmm, labelled):
    X, y = labelled[0]
    for most in (1, 2):
        for links in m3n.WordAligner(translations=hmm, fertility=most, n_jobs=1).fit(X, y).predict(X):
            for side in (0, 1):
                counts = np.bincount([link[side] for link in links]) if links else np.zeros(1)
                assert counts.max() <= most


def test_probabilities_of_links(fitted, labelled):
    X, _ = labelled[1]
    found = fitted.predict_marginals(X)
    most = 2.0 if fitted.structure == "matching" else 1.0
    for (source, target), table in zip(X, found, strict=True):
        assert table.shape == (len(source), len(target))
        assert table.min() >= 0.0 and table.max() <= 1.0 + 1e-9
        if fitted.structure == "matching":
            assert table.sum(axis=0).max() <= most + 1e-9 and table.sum(axis=1).max() <= most + 1e-9
    cold = fitted.predict_marginals(X, temperature=1e-3)
    if fitted.structure == "matching":
        same = [
            {(int(i), int(j)) for i, j in np.argwhere(t > 0.5)} == set(y)
            for t, y in zip(cold, fitted.predict(X), strict=True)
        ]
        assert np.mean(same) > 0.9  # but for ties
    with pytest.raises(ValueError, match="temperature"):
        fitted.predict_marginals(X, temperature=0.0)


def test_predictions_do_not_depend_on_what_is_looked_at_together(fitted, labelled, monkeypatch):
    X, _ = labelled[1]
    links, shares = fitted.predict(X), fitted.predict_marginals(X)
    monkeypatch.setattr("m3n.estimators.word_aligner.AT_ONCE", 60)
    assert fitted.predict(X) == links
    assert all(np.allclose(a, b) for a, b in zip(fitted.predict_marginals(X), shares, strict=True))


def test_solvers_agree(hmm, labelled):
    X, y = labelled[0][0][:15], labelled[0][1][:15]
    solvers = ("auto", BlockFrankWolfe(), BMRM(), StructSVM(), SMO(), ExcessiveGap(), Extragradient())
    bounds = []
    for solver in solvers:
        aligner = m3n.WordAligner(solver=solver, translations=hmm, fertility=1, lam=1.0, tol=0.02, n_jobs=1)
        known = aligner.fit(X, y).certificate_
        assert known.gap <= 0.02
        bounds.append((known.dual, known.primal))
    duals, primals = zip(*bounds, strict=True)
    assert max(duals) <= min(primals) + 1e-9


def test_matchings_have_no_crf(hmm, labelled):
    with pytest.raises(ValueError, match='take structure="chain" or "words"'):
        m3n.WordAligner(objective="crf", translations=hmm, n_jobs=1).fit(*labelled[0])
    chain = m3n.WordAligner("chain", objective="crf", translations=hmm, n_jobs=1).fit(*labelled[0])
    assert chain.certificate_.gap <= 1e-3


def test_jumps_are_learnt(hmm, labelled):
    chain = m3n.WordAligner("chain", translations=hmm, reach=3, n_jobs=1).fit(*labelled[0])
    assert chain.jumps_.shape == (7,) and chain.jumps_.any()
    assert m3n.WordAligner("words", translations=hmm, n_jobs=1).fit(*labelled[0]).jumps_.shape == (0,)


def test_two_models_without_labels_by_default(data, labelled):
    (X, y), (X_new, y_new) = labelled
    aligner = m3n.WordAligner(n_jobs=1).fit(X, y, unlabelled=data[0].pairs)
    whole, beginnings = aligner.translations_
    assert whole.joint and whole.letters is None and not beginnings.joint and beginnings.letters == 4
    assert aligner.score(X_new, y_new) > 0.9
    assert "both (2)" in aligner.reader_.names
    given = m3n.WordAligner(n_jobs=1, translations=aligner.translations_).fit(X, y)
    assert np.array_equal(given.coef_, aligner.coef_)


def test_files_and_pickles(fitted, labelled, tmp_path):
    X, _ = labelled[1]
    fitted.save(tmp_path / "aligner.m3n")
    for other in (m3n.load(tmp_path / "aligner.m3n"), pickle.loads(pickle.dumps(fitted))):
        assert other.predict(X) == fitted.predict(X)
        assert other.certificate_ == fitted.certificate_
        for a, b in zip(other.predict_marginals(X), fitted.predict_marginals(X), strict=True):
            assert np.array_equal(a, b)


def test_a_file_with_arrays_that_do_not_fit_is_refused(fitted, tmp_path):
    fitted.save(tmp_path / "aligner.m3n")
    kind, meta, tensors = model_file.read(tmp_path / "aligner.m3n")
    for name in ("coef_", "null_coef_", "jumps_"):
        model_file.write(tmp_path / "bad.m3n", kind, meta, tensors | {name: tensors[name][:-1]})
        if len(tensors[name]):
            with pytest.raises(model_file.ModelFileError, match="is damaged"):
                m3n.load(tmp_path / "bad.m3n")


def test_weights_are_shown_by_name(fitted):
    shown = m3n.estimators.top_weights(fitted, 3)
    assert set(shown) == ({"link"} if fitted.structure == "matching" else {"forward", "backward"})
    assert all(name in fitted.reader_.names for weights in shown.values() for name, _ in weights)
    assert m3n.estimators.summary(fitted)["attributes"] == len(fitted.reader_.names)


def test_sample_weights(hmm, labelled):
    X, y = labelled[0][0][:12], labelled[0][1][:12]
    twice = m3n.WordAligner(translations=hmm, lam=0.1, tol=1e-4, n_jobs=1).fit(X + X[:4], y + y[:4])
    weighted = m3n.WordAligner(translations=hmm, lam=0.1, tol=1e-4, n_jobs=1).fit(X, y, [2.0] * 4 + [1.0] * 8)
    assert weighted.certificate_.primal == pytest.approx(twice.certificate_.primal, abs=2e-4)


def test_settings_are_checked(hmm, labelled):
    X, y = labelled[0]
    for wrong, message in (
        ({"structure": "tree"}, "structure must be one of"),
        ({"symmetrize": "both"}, "symmetrize must be one of"),
        ({"missed": -1.0}, "missed must be a finite price"),
        ({"reach": 0}, "reach must be a whole number"),
        ({"fertility": 0}, "fertility"),
        ({"translations": []}, "translations is empty"),
    ):
        with pytest.raises(ValueError, match=message):
            m3n.WordAligner(**({"translations": hmm} | wrong)).fit(X, y)
    with pytest.raises(TypeError, match="translations must be an HMMAligner"):
        m3n.WordAligner(translations="hmm.m3n").fit(X, y)
    with pytest.raises(ValueError, match="leave out translations, or these"):
        m3n.WordAligner(translations=hmm).fit(X, y, unlabelled=X)
    with pytest.raises(NotFittedError):
        m3n.WordAligner(translations=m3n.HMMAligner()).fit(X, y)
    with pytest.raises(NotFittedError):
        m3n.WordAligner().predict(X)


def test_bad_data_are_named(hmm):
    aligner = m3n.WordAligner(translations=hmm)
    pair = (["a"], ["x"])
    for X, y, error, message in (
        ([pair], [], ValueError, "1 sentence pairs but y has 0"),
        ([pair, pair], [[(0, 0)], [(0, 1)]], ValueError, "pair 1: the link 0-1 is outside of 0..0 and 0..0"),
        ([(["a"], [])], [[]], ValueError, "pair 0"),
        ([("a b", "x y")], [[(0, 0)]], TypeError, "pair 0"),
    ):
        with pytest.raises(error, match=message):
            aligner.fit(X, y)


def test_conventions(hmm, labelled):
    aligner = m3n.WordAligner("chain", translations=hmm, reach=3)
    assert clone(aligner, safe=False).get_params(deep=False)["reach"] == 3
    assert m3n.WordAligner(translations=hmm).fit(*labelled[0]).predict([]) == []
