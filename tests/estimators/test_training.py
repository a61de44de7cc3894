"""The words of an estimator: objectives, losses by name, strengths, weights, warm starts."""

import warnings

import numpy as np
import pytest

import m3n
from m3n.estimators.training import OBJECTIVES
from m3n.losses import CostMatrix, EdgeHamming, Hamming
from m3n.solvers import DualAscent, SequentialDual
from tests.tiny import Enumerated

NAMES = ["B", "I", "O"]


def sequences(count=8, seed=0):
    random = np.random.default_rng(seed)
    lengths = random.integers(1, 5, count)
    X = [random.normal(size=(length, 4)) for length in lengths]
    return X, [[NAMES[k] for k in random.integers(3, size=length)] for length in lengths]


def tagger(objective="margin", **settings):
    return m3n.SequenceTagger(objective, **{"tol": 1e-6, "lam": 0.1, "n_jobs": 1, **settings})


def weights(model):
    return np.concatenate([model.coef_.ravel(), model.transitions_.ravel(), model.start_, model.end_])


def problem_of(X, y, objective="margin", loss=None, **settings):
    """The training problem, written by hand."""
    from m3n.features import Dense, chain_features
    from m3n.structures import Chain

    kind = OBJECTIVES[objective]
    loss = (loss or Hamming()) if kind.has_loss else None
    numbers = [[NAMES.index(label) for label in labels] for labels in y]
    structure, features = Chain([*map(len, y)], 3), chain_features(Dense(np.concatenate(X), 3), 3)
    given = {
        "loss": loss,
        "lam": 0.1,
        "temperature": kind.temperature,
        "rescale": kind.rescale,
        "n_jobs": 1,
        **settings,
    }
    return m3n.Problem(structure, features, numbers, **given)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_every_objective_by_its_word(objective):
    X, y = sequences()
    model = tagger(objective).fit(X, y)
    known = Enumerated.of(problem_of(X, y, objective))
    if objective == "slack":
        known.psi = known.ell[:, None] * known.psi
    assert model.certificate_.primal == pytest.approx(known.primal(weights(model)), rel=1e-12)
    assert 0.0 <= model.certificate_.gap <= 1e-6


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_twice_as_much_weight_is_twice_the_sequence(objective):
    X, y = sequences()
    weighted = tagger(objective).fit(X, y, sample_weight=[2, 1, 1, 0, 1, 1, 1, 1])
    written = tagger(objective).fit([X[0], *X[:3], *X[4:]], [y[0], *y[:3], *y[4:]])
    assert weighted.certificate_.primal == pytest.approx(written.certificate_.primal, abs=3e-6)
    np.testing.assert_allclose(weights(weighted), weights(written), atol=1e-2)


@pytest.mark.parametrize(
    ("given", "message"),
    [([1.0], r"shape \(8,\), got \(1,\)"), ([-1] * 8, r"sample_weight\[0\] is -1.0"), ([0] * 8, "nothing to train on")],
)
def test_weights_that_make_no_sense(given, message):
    with pytest.raises(ValueError, match=message):
        tagger().fit(*sequences(), sample_weight=given)


def test_c_is_another_way_to_write_lam():
    X, y = sequences()
    np.testing.assert_array_equal(weights(tagger(lam=None, C=1.25).fit(X, y)), weights(tagger(lam=0.1).fit(X, y)))
    assert tagger(lam=None, C=2.0).fit(X, y, sample_weight=[3] * 8).lam_ == pytest.approx(1 / 48)
    with pytest.raises(ValueError, match=r"either lam=0\.1 or C=2\.0"):
        tagger(C=2.0).fit(X, y)
    with pytest.raises(ValueError, match="C must be a positive"):
        tagger(lam=None, C=0.0).fit(X, y)


def test_groups_have_strengths():
    """The objective with a quarter of the strength on transitions, four times that on boundaries."""
    X, y = sequences()
    model = tagger("crf", strengths={"transitions": 0.25, "boundaries": 4.0}, tol=1e-9).fit(X, y)
    w, strengths = weights(model), np.repeat([1.0, 0.25, 4.0], [12, 9, 6])
    problem = problem_of(X, y, "crf")
    slope = 0.1 * strengths * w - problem.risk(w).vector
    assert model.certificate_.primal == pytest.approx(problem.risk(w).value + 0.05 * strengths @ w**2, rel=1e-12)
    np.testing.assert_allclose(slope, 0.0, atol=1e-4)
    with pytest.raises(ValueError, match=r"the group 'edges'; there are \('attributes'"):
        tagger(strengths={"edges": 1.0}).fit(X, y)
    with pytest.raises(ValueError, match=r"strengths\['transitions'\] must be a positive"):
        tagger(strengths={"transitions": 0.0}).fit(X, y)


def test_an_l1_penalty_makes_zeros():
    X, y = sequences(20)
    model = tagger("crf", l1=0.05, lam=0.01).fit(X, y)
    w = weights(model)
    assert 0 < np.count_nonzero(w) < len(w)
    expected = problem_of(X, y, "crf", lam=0.01).primal(w) + 0.05 * np.abs(w).sum()
    assert model.certificate_.primal == pytest.approx(expected, rel=1e-12)
    assert type(model.solver_).__name__ == "SparseDualAscent"


def test_sparse_models_keep_no_zeros(tmp_path):
    words = [[["a", "b"], ["b"], ["c"]], [["a"], ["c", "b"]], [["b"], ["a", "c"]], [["c"], ["b"]]]
    y = [["B", "I", "O"], ["B", "O"], ["I", "B"], ["O", "I"]]
    dense = tagger("crf", lam=0.01, observed_only=True).fit(words, y)
    model = tagger("crf", l1=0.1, lam=0.01, observed_only=True).fit(words, y)
    assert 0 < model.coef_.nnz < dense.coef_.nnz
    assert model.coef_.data.all()
    model.save(tmp_path / "sparse.m3n")
    np.testing.assert_array_equal(
        m3n.load(tmp_path / "sparse.m3n").predict_marginals(words)[0], model.predict_marginals(words)[0]
    )


def test_losses_speak_of_labels_by_name():
    X, y = sequences()
    named = tagger(loss=CostMatrix({("B", "O"): 3.0})).fit(X, y)
    costs = 1.0 - np.eye(3)
    costs[0, 2] = 3.0
    numbered = tagger(loss=CostMatrix(costs)).fit(X, y)
    np.testing.assert_array_equal(weights(named), weights(numbered))
    with pytest.raises(ValueError, match="names the label 'X', which does not exist; the labels are 'B', 'I', 'O'"):
        tagger(loss=Hamming(class_weight={"X": 2.0})).fit(X, y)


def test_losses_on_pairs_of_neighbours():
    X, y = sequences(5)
    model = tagger(loss=Hamming() + 0.5 * EdgeHamming()).fit(X, y)
    w, worst = weights(model), []
    plain = Enumerated.of(problem_of(X, y))
    for i, gold in enumerate(y):
        numbers = np.array([NAMES.index(label) for label in gold])
        outputs = np.array([*plain.problem.structure.enumerate(i)])
        wrong = outputs != numbers
        ell = wrong.sum(axis=1) + 0.5 * (wrong[:, 1:] | wrong[:, :-1]).sum(axis=1)
        worst.append(np.max(ell - plain.psi[plain.owner == i] @ w))
    assert model.certificate_.primal == pytest.approx(0.05 * w @ w + np.mean(worst), rel=1e-12)
    assert len(model.predict(X)) == 5


@pytest.mark.parametrize(
    ("objective", "solver"), [("margin", SequentialDual()), ("crf", DualAscent()), ("slack", "auto")]
)
def test_warm_starts(objective, solver):
    X, y = sequences(40)
    warm = tagger(objective, solver=solver, warm_start=True, tol=1e-4).fit(X, y)
    again = warm.set_params(lam=0.08).fit(X, y)
    cold = tagger(objective, solver=solver, lam=0.08, tol=1e-4).fit(X, y)
    assert again.certificate_.primal == pytest.approx(cold.certificate_.primal, abs=2e-4)
    assert again.trace_[-1].passes < cold.trace_[-1].passes
    other = sequences(40, seed=1)
    fresh = warm.fit(*other)
    np.testing.assert_array_equal(weights(fresh), weights(clone_fit(fresh, other)))


def clone_fit(model, data):
    return m3n.SequenceTagger(**{**model.get_params(), "warm_start": False}).fit(*data)


def test_all_of_it_is_saved(tmp_path):
    X, y = sequences()
    loss = 2.0 * Hamming(class_weight={"B": 2.0}) + CostMatrix({("B", "O"): 3.0}) + EdgeHamming()
    model = tagger(loss=loss, strengths={"transitions": 0.5}, constraints="observed").fit(X, y)
    model.save(tmp_path / "model.m3n")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loaded = m3n.load(tmp_path / "model.m3n")
    assert loaded.predict(X) == model.predict(X)
    assert loaded.get_params()["strengths"] == {"transitions": 0.5}
    np.testing.assert_array_equal(weights(loaded.fit(X, y)), weights(model))


def test_unknown_objectives():
    with pytest.raises(ValueError, match=r"objective='svm' is not available; choose one of \('margin', 'slack'"):
        m3n.SequenceTagger("svm").fit(*sequences())
