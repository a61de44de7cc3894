"""Fits that begin where the last one ended: never worse than their start, and true certificates."""

import logging
import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import m3n
from m3n.run.loop import Status
from m3n.solvers import LBFGS, SMO, BlockFrankWolfe, DualAscent, ExcessiveGap, SequentialDual

SOLVERS = [
    ("crf", DualAscent(), {"tol": 1e-6}), ("crf", LBFGS(), {"tol": 1e-6}), ("crf", "auto", {"tol": 1e-6}),
    ("crf", "owl_qn", {"tol": 1e-6, "l1": 0.01}), ("softmax_margin", DualAscent(), {"tol": 1e-6}),
    ("margin", SequentialDual(), {"tol": 1e-5}), ("margin", BlockFrankWolfe(), {}), ("margin", ExcessiveGap(), {}),
    ("margin", "auto", {"tol": 1e-5}), ("margin", SMO(), {}), ("slack", "auto", {}),
]  # fmt: skip


@pytest.fixture(scope="module")
def data():
    random = np.random.default_rng(0)
    y = [random.integers(3, size=random.integers(2, 5)).tolist() for _ in range(12)]
    return [np.eye(4)[labels] + random.normal(size=(len(labels), 4)) for labels in y], y


def tagger(objective, solver="auto", **settings):
    settings = {"lam": 0.1, "tol": 0.03, "n_jobs": 1, "warm_start": True} | settings
    return m3n.SequenceTagger(objective, solver, **settings)


def fit(model, X, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, y)


def objective_at(model, X, y):
    """J at the model's weights, from a problem that is made anew."""
    problem = model._training_problem(X, y)
    named = (model.coef_, model.transitions_, model.start_, model.end_)
    return problem.primal(np.concatenate([np.ravel(part) for part in named]))


@pytest.mark.parametrize(("objective", "solver", "settings"), SOLVERS)
def test_fits_with_a_pass_limit_go_on(objective, solver, settings, data):
    """J never rises, D never falls, both are true, and many short fits come to what one long fit finds."""
    best = fit(tagger(objective, solver, **settings), *data).certificate_
    model, primals, duals = tagger(objective, solver, max_passes=4, **settings), [np.inf], [-np.inf]
    for _ in range(300):
        fit(model, *data)
        assert model.certificate_.primal <= primals[-1]
        assert model.certificate_.dual >= duals[-1]
        primals.append(model.certificate_.primal)
        duals.append(model.certificate_.dual)
        if len(primals) < 4:
            assert objective_at(model, *data) == pytest.approx(primals[-1], rel=1e-9)
        if model.status_ is Status.TOLERANCE:
            break
    assert primals[-1] < primals[1]
    assert model.status_ is Status.TOLERANCE
    assert max(best.dual, duals[-1]) <= min(best.primal, primals[-1]) + 1e-9  # certificates of one problem overlap
    assert "warm_start: goes on with the last fit" in model.reason_


def test_a_finished_fit_is_finished(data):
    model = fit(tagger("crf"), *data)
    coef, certificate = model.coef_.copy(), model.certificate_
    again = fit(model, *data)
    np.testing.assert_array_equal(again.coef_, coef)
    assert again.certificate_ == certificate
    assert again.trace_[-1].passes == 0
    tighter = fit(model.set_params(tol=1e-5), *data)
    assert tighter.certificate_.gap <= 1e-5


@pytest.mark.parametrize(("objective", "solver", "settings"), SOLVERS)
@pytest.mark.parametrize("lam", [0.02, 0.2])
def test_another_lam_is_never_worse_than_its_start(objective, solver, settings, lam, data):
    model = fit(tagger(objective, solver, max_passes=60, **settings), *data)
    start = objective_at(model.set_params(lam=lam, max_passes=3), *data)
    fit(model, *data)
    assert model.certificate_.primal <= start * (1 + 1e-12)
    assert objective_at(model, *data) == pytest.approx(model.certificate_.primal, rel=1e-9)
    assert model.trace_[-1].primal == model.certificate_.primal
    optimum = fit(tagger(objective, solver, **settings, lam=lam), *data).certificate_
    assert model.certificate_.dual <= optimum.primal + 1e-9


def test_weights_are_found_again_from_other_solvers(data):
    """L-BFGS can begin at the weights of any solver; a dual method cannot, and says so."""
    model = fit(tagger("crf", "dual_ascent", tol=1e-6), *data)
    primal = model.certificate_.primal
    fit(model.set_params(solver="lbfgs", max_passes=3), *data)
    assert model.reason_ == "warm_start: begins at the weights of DualAscent"
    assert model.certificate_.primal <= primal + 1e-9
    fit(model.set_params(solver="dual_ascent", max_passes=None), *data)
    assert model.reason_ == "warm_start: begins anew, DualAscent cannot begin where LBFGS ended"


def relabelled(y):
    return [["abc"[label] for label in labels] for labels in y]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda X, y: (X, relabelled(y), {}), "there are other labels"),
        (lambda X, y: ([np.hstack([x, x]) for x in X], y, {}), "there are 8 attributes, and were 4"),
        (lambda X, y: (X[:10], y[:10], {}), "there are 10 examples, and were 12"),
        (lambda X, y: ([x + 1.0 for x in X], y, {}), "the data are others"),
        (lambda X, y: (X, y, {"loss": "normalized_hamming"}), "loss is another one"),
        (lambda X, y: (X, y, {"solver": "excessive_gap"}), "ExcessiveGap cannot begin where SequentialDual ended"),
    ],
)
def test_a_cold_start_says_why(change, reason, data, caplog):
    model = fit(tagger("margin", "sequential_dual", tol=0.1), *data)
    assert "warm_start" not in model.reason_
    X, y, settings = change(*data)
    with caplog.at_level(logging.WARNING, logger="m3n"):
        fit(model.set_params(**settings), X, y)
    assert model.reason_ == f"warm_start: begins anew, {reason}"
    assert reason in caplog.text
    assert set(model.classes_) == {label for labels in y for label in labels}


def test_nothing_to_carry_over_to_another_lam(data, caplog):
    model = fit(tagger("margin", "excessive_gap", tol=0.5), *data)
    fit(model.set_params(lam=0.2), *data)
    assert "begins anew, ExcessiveGap carries nothing over (for lam=0.1, not 0.2)" in model.reason_
    assert "ExcessiveGap carries nothing over" in caplog.text


def test_a_new_random_state_goes_on_with_the_old_one(data):
    model = fit(tagger("margin", "block_frank_wolfe", max_passes=4, random_state=None), *data)
    seed, primal = model.solver_.seed, model.certificate_.primal
    fit(model, *data)
    assert model.solver_.seed == seed
    assert model.certificate_.primal <= primal


def test_objectives_that_are_a_multiple_of_the_problem():
    """A word aligner with two directions trains twice as many chains as there are pairs."""
    pairs = [(["the", "house"], ["das", "Haus"]), (["a", "book"], ["ein", "Buch"])] * 4
    links = [[(0, 0), (1, 1)]] * 8
    model = m3n.WordAligner("chain", "crf", lam=0.1, tol=1e-3, n_jobs=1, warm_start=True, max_passes=3)
    primals = [fit(model, pairs, links).certificate_.primal for _ in range(6)]
    assert primals == sorted(primals, reverse=True)
    best = fit(model.set_params(max_passes=None), pairs, links).certificate_
    alone = fit(m3n.WordAligner("chain", "crf", lam=0.1, tol=1e-3, n_jobs=1), pairs, links).certificate_
    assert max(best.dual, alone.dual) <= min(best.primal, alone.primal)
