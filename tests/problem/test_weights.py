"""An example of weight 2 is an example that occurs twice: for problems, blocks and every solver."""

import numpy as np
import pytest

from m3n import Problem, minimize
from m3n.features import Dense, chain_features
from m3n.losses import Hamming
from m3n.solvers import DualAscent, ExponentiatedGradient
from m3n.structures import Chain, Multiclass
from tests.solvers.test_product import NO_DUAL, SOLVERS, lowest_temperature, needed_l1

LENGTHS, LABELS, TIMES = np.array([1, 3, 2, 4]), 3, np.array([2, 1, 3, 1])


def chains(weights=None, copies=None, temperature=0.0, loss=None, **settings):
    """Random sequences, weighted or written out several times."""
    random = np.random.default_rng(5)
    X = np.split(random.normal(size=(LENGTHS.sum(), 4)), np.cumsum(LENGTHS)[:-1])
    y = [random.integers(LABELS, size=length) for length in LENGTHS]
    order = np.repeat(np.arange(4), 1 if copies is None else copies)
    features = chain_features(Dense(np.concatenate([X[i] for i in order]), LABELS), LABELS)
    settings = {"sample_weight": weights, "temperature": temperature, "loss": loss, "n_jobs": 1, **settings}
    return Problem(Chain(LENGTHS[order], LABELS), features, [y[i] for i in order], **settings)


@pytest.mark.parametrize(("temperature", "loss"), [(0.0, None), (1.0, None), (0.5, Hamming())])
def test_the_problem(temperature, loss, random):
    weighted, written = chains(0.7 * TIMES, None, temperature, loss), chains(None, TIMES, temperature, loss)
    assert weighted.lam == pytest.approx(written.lam / 0.7)
    weighted.lam = written.lam
    w = random.normal(size=written.dim)
    assert weighted.primal(w) == pytest.approx(written.primal(w), rel=1e-13)
    assert weighted.log_size == pytest.approx(written.log_size)
    assert weighted.worst_loss == pytest.approx(written.worst_loss)
    for name, arguments in (("hard", ()), ("soft", (0.4,)), ("risk", ())):
        one, two = getattr(weighted, name)(w, *arguments), getattr(written, name)(w, *arguments)
        assert (one.value, one.loss, one.offset) == pytest.approx((two.value, two.loss, two.offset))
        np.testing.assert_allclose(one.vector, two.vector, atol=1e-13)


@pytest.mark.parametrize("loss", [None, Hamming()], ids=["crf", "softmax_margin"])
@pytest.mark.parametrize("weights", [None, TIMES])
def test_the_answer_is_the_gradient(loss, weights, random):
    """The error of the first-order expansion of J falls with the square of the step."""
    problem = chains(weights, None, 1.0, loss, lam=0.1)
    w, direction = random.normal(size=(2, problem.dim))
    slope = (problem.lam * w - problem.risk(w).vector) @ direction
    steps = np.logspace(-3.5, -1.5, 9)
    errors = [abs(problem.primal(w + step * direction) - problem.primal(w) - step * slope) for step in steps]
    assert np.polyfit(np.log(steps), np.log(errors), 1)[0] == pytest.approx(2.0, abs=0.1)


def test_some_of_the_examples(random):
    weighted = chains(TIMES)
    w = random.normal(size=weighted.dim)
    blocks = [weighted.soft(w, 0.3, np.array(block)) for block in ([0, 2], [1, 3])]
    whole = weighted.soft(w, 0.3)
    np.testing.assert_allclose(blocks[0].vector + blocks[1].vector, whole.vector, atol=1e-13)
    assert blocks[0].value + blocks[1].value == pytest.approx(whole.value)


def test_multiclass(random):
    X, y, times = random.normal(size=(5, 3)), random.integers(4, size=5), np.array([1, 4, 2, 1, 1])
    weighted = Problem(Multiclass(5, 4), Dense(X, 4), y, sample_weight=times, n_jobs=1)
    order = np.repeat(np.arange(5), times)
    written = Problem(Multiclass(len(order), 4), Dense(X[order], 4), y[order], n_jobs=1)
    w = random.normal(size=written.dim)
    for one, two in ((weighted.hard(w), written.hard(w)), (weighted.soft(w, 0.3), written.soft(w, 0.3))):
        assert (one.value, one.loss) == pytest.approx((two.value, two.loss))
        np.testing.assert_allclose(one.vector, two.vector, atol=1e-13)


@pytest.mark.parametrize("solver", SOLVERS.values(), ids=SOLVERS)
def test_every_solver(solver):
    heat, l1 = lowest_temperature(solver), needed_l1(solver)
    weighted, written = chains(TIMES, None, heat, lam=0.1, l1=l1), chains(None, TIMES, heat, lam=0.1, l1=l1)
    result = minimize(weighted, solver, tol=1e-2, max_passes=2000)
    reference = "owl_qn" if l1 else "lbfgs" if heat else "sequential_dual"
    best = minimize(written, reference, tol=1e-7, max_passes=2000).certificate
    assert result.certificate.primal == pytest.approx(written.primal(result.w), rel=1e-12)
    assert result.certificate.dual <= best.primal + 1e-9
    assert result.certificate.primal >= best.dual - 1e-9
    assert result.converged or isinstance(solver, NO_DUAL)


@pytest.mark.parametrize("solver", [DualAscent(), ExponentiatedGradient(online=True)])
def test_the_dual_of_weighted_crfs(solver):
    """Certified as tightly as one likes: each example has a temperature of its own."""
    result = minimize(chains(TIMES, None, 1.0, lam=0.1), solver, tol=1e-9, max_passes=5000)
    assert result.converged
    assert result.certificate.primal == pytest.approx(chains(None, TIMES, 1.0, lam=0.1).primal(result.w), abs=1e-12)


def test_equal_weights_are_none():
    assert chains(np.full(4, 3.0)).weights is None
    assert chains(np.full(4, 3.0)).lam == pytest.approx(1 / 12)


@pytest.mark.parametrize(
    ("weights", "message"),
    [([1, 2], r"shape \(4,\), got \(2,\)"), ([1, 0, 1, 1], r"sample_weight\[1\] is 0.0"), ([1, 1, 1, np.nan], "nan")],
)
def test_weights_that_make_no_sense(weights, message):
    with pytest.raises(ValueError, match=message):
        chains(weights)
