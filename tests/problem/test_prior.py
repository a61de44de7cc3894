"""A prior in the objective, lam/2 |w - w0|^2: against the objective as it is written, and independent solvers of it."""

from functools import cache

import clarabel
import numpy as np
import pytest
import scipy.optimize
import scipy.sparse

import m3n
from m3n.checks import check_problem
from m3n.features import Dense, Scaled, Stack, chain_features
from m3n.losses import NormalizedHamming
from m3n.run.memory import memory_of
from m3n.solvers import (
    BMRM,
    LBFGS,
    SMO,
    BatchFrankWolfe,
    BlockFrankWolfe,
    DualAscent,
    ExcessiveGap,
    ExponentiatedGradient,
    Extragradient,
    SequentialDual,
    StructSVM,
)
from m3n.structures import Chain
from tests.tiny import Enumerated

LENGTHS, LABELS, ATTRIBUTES = (1, 3, 2, 4), 3, 4
MARGIN = [
    SequentialDual(), ExcessiveGap(), ExcessiveGap(schedule="paper", center="uniform"), BMRM(), BlockFrankWolfe(),
    SMO(), BatchFrankWolfe(), ExponentiatedGradient(), ExponentiatedGradient(online=True), Extragradient(), StructSVM(),
    LBFGS(mu=1e-3),
]  # fmt: skip
SMOOTH = [DualAscent(), LBFGS(), BMRM(), ExponentiatedGradient(), ExponentiatedGradient(online=True)]
TOL = 0.02


def problem(temperature=0.0, prior=True, **more):
    """A chain with a prior that is neither zero nor the optimum, and examples that count differently."""
    random = np.random.default_rng(3)
    X = random.normal(size=(sum(LENGTHS), ATTRIBUTES))
    y = [random.integers(LABELS, size=length) for length in LENGTHS]
    features = chain_features(Dense(X, LABELS), LABELS)
    loss = None if temperature else NormalizedHamming()
    drawn = random.normal(size=features.dim)
    w0 = drawn if prior is True else None if prior is False else prior
    settings = {"loss": loss, "lam": 0.1, "temperature": temperature, "n_jobs": 1, "prior": w0} | more
    return m3n.Problem(Chain(LENGTHS, LABELS), features, y, **settings)


def direct(temperature=0.0):
    """psi, ell and their owners without any prior, and the prior: all that the objective is made of."""
    return Enumerated.of(problem(temperature, prior=False)), problem(temperature).prior


def objective(known, prior, w):
    """lam/2 |w - w0|^2 + risk, as it is written."""
    lam = known.problem.lam
    return known.primal(w) - lam / 2 * w @ w + lam / 2 * (w - prior) @ (w - prior)


@cache
def optimum(temperature):
    """The least objective: of a QP in w and slacks for the margin, by SciPy for a CRF."""
    known, prior = direct(temperature)
    if temperature:
        found = scipy.optimize.minimize(lambda w: objective(known, prior, w), prior, method="BFGS", tol=1e-9)
        return found.fun
    n, dim, lam = known.problem.n, known.problem.dim, known.problem.lam
    P = scipy.sparse.diags_array([lam] * dim + [0.0] * n, format="csc")
    owner = scipy.sparse.csc_matrix((np.ones(len(known.owner)), (np.arange(len(known.owner)), known.owner)))
    A = scipy.sparse.hstack([-known.psi, -owner], format="csc")  # ell - <w, psi> <= slack
    q = np.concatenate([-lam * prior, np.full(n, 1.0 / n)])
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    cones = [clarabel.NonnegativeConeT(len(known.ell))]
    answer = clarabel.DefaultSolver(P, q, A, -known.ell, cones, settings).solve()
    return answer.obj_val + lam / 2 * prior @ prior


@pytest.mark.parametrize(
    ("temperature", "solver"),
    [*((0.0, solver) for solver in MARGIN), *((1.0, solver) for solver in SMOOTH)],
    ids=lambda value: value if isinstance(value, float) else repr(value)[:40],
)
def test_certificates_enclose_the_optimum_of_the_objective_with_the_prior(temperature, solver):
    made, (known, prior) = problem(temperature), direct(temperature)
    result = m3n.minimize(made, solver, tol=TOL, max_passes=2000)
    found, best = result.certificate, optimum(temperature)
    assert found.gap <= TOL
    assert found.dual <= best + 1e-7
    assert found.primal >= best - 1e-7
    assert objective(known, prior, made.absolute(result.w)) == pytest.approx(found.primal, abs=1e-9)
    state = result.state
    assert state.dual <= best + 1e-7


def test_the_prior_matters():
    without = m3n.minimize(problem(prior=False), SequentialDual(), tol=1e-6).certificate
    assert abs(without.primal - optimum(0.0)) > 0.01


def test_oracles_against_enumeration():
    for temperature in (0.0, 1.0):
        check_problem(problem(temperature))
    made, (known, prior) = problem(), direct()
    w, n = np.random.default_rng(1).normal(size=made.dim), made.n
    alpha = known.gibbs(prior + w, 0.7, loss_scale=0.3)
    answer = made.soft(w, 0.7, loss_scale=0.3)
    np.testing.assert_allclose(answer.vector, alpha @ known.psi, atol=1e-12)
    assert answer.loss == pytest.approx(alpha @ (known.ell - known.psi @ prior))
    pieces = [made.soft(w, 0.7, block=np.arange(low, low + 2)) for low in range(0, n, 2)]
    np.testing.assert_allclose(sum(p.loss for p in pieces), made.soft(w, 0.7).loss)
    assert made.pieces(2)[0].hard(w).loss + made.pieces(2)[1].hard(w).loss == pytest.approx(made.hard(w).loss)


def test_a_prior_without_mistakes_is_final_at_once():
    """R(w0) = 0 makes w0 the optimum of lam/2 |w - w0|^2 + R(w): nothing is better, and no solver moves."""
    plain = problem(prior=False, lam=1e-6)
    apart = 2.0 * m3n.minimize(plain, SequentialDual(), tol=1e-9).w  # all margins beyond the loss
    assert plain.hard(apart).value == pytest.approx(0.0, abs=1e-12)
    result = m3n.minimize(problem(lam=0.1, prior=apart), SequentialDual(), tol=1e-12)
    assert result.certificate.primal == pytest.approx(0.0, abs=1e-12)
    assert result.converged
    assert result.trace[-1].passes == 1  # J(w0) was enough
    assert not result.w.any()


def test_an_optimum_of_the_same_data_with_mistakes_is_left():
    """Where R is not flat at w0 the pull of the data is felt twice: |w - w0| grows, and J falls below R(w0)."""
    first = m3n.minimize(problem(prior=False, lam=1.0), SequentialDual(), tol=1e-8)
    made = problem(prior=first.w, lam=1.0)
    result = m3n.minimize(made, SequentialDual(), tol=1e-6)
    assert made.worst_loss == pytest.approx(problem(prior=False).hard(first.w).value)
    assert result.certificate.primal < 0.99 * made.worst_loss


def test_example_weights_are_those_of_repeated_examples():
    weights = [2.0, 1.0, 3.0, 1.0]
    weighed = problem(sample_weight=weights)
    random = np.random.default_rng(3)
    X = np.split(random.normal(size=(sum(LENGTHS), ATTRIBUTES)), np.cumsum(LENGTHS)[:-1])
    y = [random.integers(LABELS, size=length) for length in LENGTHS]
    chosen = np.repeat(np.arange(4), np.array(weights, int))
    features = chain_features(Dense(np.concatenate([X[i] for i in chosen]), LABELS), LABELS)
    structure = Chain([LENGTHS[i] for i in chosen], LABELS)
    settings = {"loss": NormalizedHamming(), "lam": 0.1, "prior": weighed.prior, "n_jobs": 1}
    repeated = m3n.Problem(structure, features, [y[i] for i in chosen], **settings)
    one, other = (m3n.minimize(p, SequentialDual(), tol=1e-7).certificate for p in (weighed, repeated))
    assert max(one.dual, other.dual) <= min(one.primal, other.primal) + 1e-9
    np.testing.assert_allclose(one.primal, other.primal, atol=1e-6)


def test_strengths_of_groups():
    """A group with the factor f has weights f v: its prior is given in v as well."""
    made, (known, prior) = problem(), direct()
    node, table, start, end = made.features.maps
    factors = (1.0, 0.5, 2.0, 1.0)
    features = Stack(
        *(Scaled(m, f) if f != 1.0 else m for m, f in zip((node, table, start, end), factors, strict=True))
    )
    scale = np.repeat(factors, [m.dim for m in features.maps])
    y = made.structure.unpack(made.gold)
    scaled = m3n.Problem(made.structure, features, y, loss=NormalizedHamming(), lam=0.1, prior=prior / scale, n_jobs=1)
    result = m3n.minimize(scaled, SequentialDual(), tol=1e-4)
    w = scale * scaled.absolute(result.w)
    pull = 0.05 * (((w - prior) / scale) ** 2).sum()
    assert pull + known.primal(w) - 0.05 * w @ w == pytest.approx(result.certificate.primal, abs=1e-9)


def test_lam_and_other_things_that_go_on(tmp_path):
    from m3n.checkpoint import Checkpoint

    made = problem()
    first = m3n.minimize(made, SequentialDual(), tol=0.05)
    weaker = made.with_lam(0.05)
    assert weaker.prior is made.prior
    assert m3n.minimize(weaker, SequentialDual(), tol=0.01, start=first).converged
    assert m3n.minimize(made, SequentialDual(), tol=1e-3, resume=first).converged
    saved = Checkpoint(tmp_path / "run")
    m3n.minimize(made, SequentialDual(), tol=0.0, max_passes=3, callbacks=[saved])
    saved.close(m3n.minimize(made, SequentialDual(), tol=0.0, max_passes=3, callbacks=[saved]))
    assert Checkpoint(tmp_path / "run").load(problem()) is not None
    with pytest.raises(ValueError, match="for another prior"):
        Checkpoint(tmp_path / "run").load(problem(prior=False))
    with pytest.raises(ValueError, match="for another prior"):
        m3n.minimize(problem(prior=False), SequentialDual(), resume=first)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"prior": np.zeros(3)}, r"prior has weights of shape \(3,\), but the features have 27 weights"),
        ({"prior": np.full(27, np.nan)}, r"prior\[0\] is not finite"),
        ({"rescale": "slack"}, "slack rescaling multiplies the whole margin"),
        ({"l1": 0.1, "temperature": 1.0}, "use l1=0, or no prior"),
    ],
)
def test_refusals(settings, words):
    with pytest.raises(ValueError, match=words):
        problem(**settings)


def test_kernels_and_workers_elsewhere_are_refused():
    from tests.tiny import PartCoordinates

    made = problem()
    coordinates = PartCoordinates(made.features)
    y = made.structure.unpack(made.gold)
    with pytest.raises(TypeError, match="inner product of its own"):
        m3n.Problem(made.structure, coordinates, y, prior=np.zeros(coordinates.dim))
    with pytest.raises(ValueError, match="a prior is for threads of this process"):
        m3n.minimize(made, SequentialDual(), backend="ray")


def test_shared_scores_count_for_every_example():
    """A prior on transitions alone, which all examples share, and which block methods write out for each."""
    only_table = np.zeros(27)
    only_table[12:21] = np.random.default_rng(5).normal(size=9)
    made = problem(prior=only_table)
    result = m3n.minimize(made, BlockFrankWolfe(), tol=0.01)
    other = m3n.minimize(problem(prior=only_table), BMRM(), tol=1e-6)
    assert result.certificate.dual <= other.certificate.primal + 1e-9
    assert other.certificate.dual <= result.certificate.primal + 1e-9


def test_memory_for_the_prior_is_counted_where_it_is_needed():
    with_prior, without = problem(), problem(prior=False)
    parts = 8 * sum(3 * length + 9 + 3 + 3 for length in LENGTHS)
    assert memory_of(with_prior, SequentialDual()) - memory_of(without, SequentialDual()) == parts
    assert memory_of(with_prior, BMRM()) == memory_of(without, BMRM())
    values, starts = with_prior.blocks.costs.values, with_prior.blocks.costs.starts
    assert values.nbytes == parts == 8 * starts[-1]
