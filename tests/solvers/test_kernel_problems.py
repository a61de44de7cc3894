"""Block methods on kernel expansions: a linear kernel must give the run of the explicit features.

Every solver that visits single examples, on maps whose features are known. After an exact pairwise step two outputs
have the same score, and rounding decides which of them counts as the better one; runs of methods that then choose
between the two are compared at the beginning, and at the optimum.
"""

import numpy as np
import pytest

from m3n import Problem, minimize
from m3n.features import CliqueKernel, Dense, FeatureMap, Kernel, Scaled, Stack, Table, chain_features
from m3n.losses import CostMatrix, NormalizedHamming
from m3n.solvers import (
    SMO,
    BlockFrankWolfe,
    DualAscent,
    ExponentiatedGradient,
    Pairwise,
    PlaneCache,
    SequentialDual,
    StructSVM,
    Subgradient,
    choose,
)
from m3n.structures import Chain

LENGTHS, LABELS = (2, 3, 2, 4, 3, 2), 3
MARGIN = {
    "smo": SMO(),
    "block_frank_wolfe": BlockFrankWolfe(),
    "subgradient": Subgradient(),
}
SMOOTH = {"dual_ascent": DualAscent(), "exponentiated_gradient": ExponentiatedGradient(online=True)}
SLACK = {"block_frank_wolfe": BlockFrankWolfe(), "subgradient": Subgradient()}
BRANCHING = {
    "sequential_dual": (SequentialDual(), 1),
    "struct_svm": (StructSVM(slack="n"), 5),
    "block_frank_wolfe, pairwise": (BlockFrankWolfe(move=Pairwise()), 3),
    "block_frank_wolfe, cached": (BlockFrankWolfe(move=Pairwise(), cache=PlaneCache(3)), 1),
}
COSTS = np.array([[0.0, 0.83, 1.31], [0.57, 0.0, 1.19], [1.43, 0.71, 0.0]])  # no two outputs cost the same
TABLES = Table(LABELS, LABELS), Table(LABELS), Table(LABELS)
SIMILAR = np.array([[1.0, 0.0, 0.0], [0.6, 0.9, 0.0], [-0.3, 0.2, 1.1]])  # label features A; the label kernel is A A'


class Shared(FeatureMap):
    """Explicit features x (x) A[y], in which labels share weights."""

    def __init__(self, X):
        self.dense = Dense(X, LABELS)
        self.dim, self.shapes = self.dense.dim, self.dense.shapes

    def scores(self, w, out, threads=None):
        out[0][...] = self.dense.scores(w, (np.empty(self.shapes[0]),))[0] @ SIMILAR.T
        return out

    def adjoint(self, parts, threads=None):
        return self.dense.adjoint((parts[0] @ SIMILAR,))

    def norms(self):
        return (np.sqrt(2.0) * self.dense.norms()[0] * np.linalg.norm(SIMILAR, 2),)

    def select(self, rows):
        chosen = Shared(np.empty((0, 1)))
        chosen.dense = self.dense.select(rows)
        chosen.dim, chosen.shapes = chosen.dense.dim, chosen.dense.shapes
        return chosen


def product_kernel(X, y, other, z):
    return (X @ other.T) * (SIMILAR @ SIMILAR.T)[np.ix_(y, z)]


def inputs(kind):
    """Inputs of tokens and of neighbours with duplicates; two are in one example, with different labels: no tie."""
    random = np.random.default_rng(5)
    X, Z = random.normal(size=(sum(LENGTHS), 4)), random.normal(size=(sum(LENGTHS) - len(LENGTHS), 2))
    if kind == "32 bits":
        X = np.round(4 * X) / 4  # all kernel values are exact in 32 bits
    X[8], X[3] = X[9], X[0]
    return X, Z


def pair(kind):
    """The same map twice: explicit features, and an expansion."""
    X, Z = inputs(kind)
    explicit, expanded = Dense(X, LABELS), Kernel(X, LABELS, "linear", dtype=np.float32 if kind == "32 bits" else float)
    if kind == "edges":
        both = (LABELS, LABELS)
        edges = Dense(Z, both), Kernel(Z, both, "linear")
        return chain_features(explicit, LABELS, edges[0]), chain_features(expanded, LABELS, edges[1])
    if kind == "scaled":
        return tuple(Stack(Scaled(m, 0.7), *TABLES) for m in (explicit, expanded))
    if kind in ("shared", "cliques"):
        explicit = Shared(X)
        expanded = Kernel(X, LABELS, "linear", label_kernel=SIMILAR @ SIMILAR.T)
    if kind == "cliques":
        expanded = CliqueKernel(X, LABELS, product_kernel)
    return chain_features(explicit, LABELS), chain_features(expanded, LABELS)


KINDS = ("plain", "edges", "scaled", "shared", "cliques")


def problems(kind, objective="margin", weights=None, structure=Chain):
    random = np.random.default_rng(6)
    y = [random.integers(LABELS, size=length) for length in LENGTHS]
    settings = {
        "margin": {"loss": CostMatrix(COSTS)},
        "softmax": {"loss": CostMatrix(COSTS), "temperature": 0.5},
        "crf": {"temperature": 1.0},
        "slack": {"loss": NormalizedHamming(), "rescale": "slack"},
    }[objective]
    output = structure(LENGTHS, LABELS, edges=kind == "edges")
    return [Problem(output, m, y, lam=0.1, n_jobs=1, sample_weight=weights, **settings) for m in pair(kind)]


def check_same_run(pair_of_problems, solver, passes=25):
    explicit, expanded = (minimize(p, solver, tol=0.0, max_passes=passes) for p in pair_of_problems)
    assert len(explicit.trace) == len(expanded.trace) > 1
    for a, b in zip(explicit.trace, expanded.trace, strict=True):
        assert (b.primal, b.dual, b.passes) == pytest.approx((a.primal, a.dual, a.passes), rel=1e-8, abs=1e-9)
    check_weights(pair_of_problems[1], expanded)


def check_weights(problem, result):
    """The scores in w are those of its coefficients, and the certificate is that of these weights."""
    fresh = problem.features.refresh(result.w)
    np.testing.assert_allclose(result.w, fresh, rtol=1e-9, atol=1e-9)
    assert result.certificate.primal == pytest.approx(problem.primal(fresh), rel=1e-9)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("solver", MARGIN.values(), ids=MARGIN)
def test_same_run_of_max_margin_networks(solver, kind):
    check_same_run(problems(kind), solver)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "shared"])
@pytest.mark.parametrize("solver", SMOOTH.values(), ids=SMOOTH)
def test_same_run_of_random_fields(solver, kind):
    check_same_run(problems(kind, "crf"), solver)


@pytest.mark.parametrize("solver", SMOOTH.values(), ids=SMOOTH)
def test_same_optimum_where_labels_share_features(solver):
    """Explicit features are written out part by part here, so rows have other step lengths."""
    explicit, expanded = (minimize(p, solver, tol=1e-8, max_passes=500) for p in problems("shared", "crf"))
    assert expanded.certificate.gap <= 1e-8
    assert expanded.certificate.primal == pytest.approx(explicit.certificate.primal, abs=2e-8)


@pytest.mark.parametrize("solver", SMOOTH.values(), ids=SMOOTH)
def test_same_run_of_softmax_margins(solver):
    check_same_run(problems("plain", "softmax"), solver)


@pytest.mark.parametrize("kind", ["plain", "edges"])
@pytest.mark.parametrize("solver", SLACK.values(), ids=SLACK)
def test_same_run_of_slack_rescaling(solver, kind):
    check_same_run(problems(kind, "slack"), solver)


@pytest.mark.parametrize("objective", ["margin", "crf", "slack"])
def test_same_run_with_sample_weights(objective):
    weights = [0.5, 2.0, 1.0, 3.0, 1.5, 0.7]
    solvers = {"margin": MARGIN, "crf": SMOOTH, "slack": SLACK}[objective]
    for solver in solvers.values():
        check_same_run(problems("plain", objective, weights), solver)


@pytest.mark.parametrize("solver", [MARGIN["block_frank_wolfe"], SMOOTH["dual_ascent"]], ids=["margin", "crf"])
def test_same_run_in_32_bits(solver):
    check_same_run(problems("32 bits", "crf" if isinstance(solver, DualAscent) else "margin"), solver)


@pytest.mark.parametrize("kind", ["plain", "shared"])
@pytest.mark.parametrize(("solver", "passes"), BRANCHING.values(), ids=BRANCHING)
def test_same_beginning_and_same_optimum(solver, passes, kind):
    check_same_run(problems(kind), solver, passes)
    explicit, expanded = problems(kind)
    optimum = minimize(explicit, SequentialDual(), tol=1e-9, max_passes=500).certificate
    result = minimize(expanded, solver, tol=1e-4, max_passes=2000)
    assert result.certificate.gap <= 1e-4
    assert result.certificate.dual <= optimum.primal + 1e-9
    assert result.certificate.primal >= optimum.dual - 1e-9
    check_weights(expanded, result)


def test_a_restart_knows_the_inner_product():
    _, problem = problems("plain")
    first = minimize(problem, SequentialDual(), tol=1e-6, max_passes=300)
    other = problem.with_lam(0.2)
    second = minimize(other, SequentialDual(), tol=1e-6, max_passes=300, start=first)
    cold = minimize(other, SequentialDual(), tol=1e-6, max_passes=300)
    assert second.certificate.primal == pytest.approx(cold.certificate.primal, abs=2e-6)
    check_weights(other, second)


class Interpreted(Chain):
    """A chain without compiled functions of its own."""

    def space(self):
        return None


@pytest.mark.parametrize(("solver", "objective"), [(BlockFrankWolfe(), "margin"), (DualAscent(), "crf")])
def test_same_run_in_the_interpreter(solver, objective):
    check_same_run(problems("plain", objective, structure=Interpreted), solver, passes=4)


@pytest.mark.parametrize("objective", ["margin", "crf", "slack"])
def test_the_choice_of_a_solver_visits_examples(objective):
    problem = problems("plain", objective)[1]
    solver = choose(problem).solver
    assert isinstance(solver, (SequentialDual, BlockFrankWolfe, DualAscent))
    result = minimize(problem, solver, tol=1e-3, max_passes=500)
    assert result.certificate.gap <= 1e-3
    check_weights(problem, result)
