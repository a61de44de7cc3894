import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from m3n.checks import brute_force, check_structure
from m3n.compiled.oracles import hooks
from m3n.compiled.oracles.chain_scaled import soft_scaled
from m3n.compiled.oracles.driver import rows_of, soft_one
from m3n.features import Dense, chain_features
from m3n.packed import Threads
from m3n.problem import Problem
from m3n.structures import Chain, Multiclass
from tests.kernels import kept
from tests.structures.template import StructureTemplate
from tests.tiny import Enumerated, chain_problem


@st.composite
def chains(draw, edges):
    labels = draw(st.integers(1, 3))
    lengths = draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    forbid = {}
    if draw(st.booleans()):  # label 0 may always follow itself, so that every length keeps an output
        random = np.random.default_rng(draw(st.integers(0, 1000)))
        forbid = {
            "forbidden": random.random((labels, labels)) < 0.4,
            "forbidden_start": random.random(labels) < 0.4,
            "forbidden_end": random.random(labels) < 0.4,
        }
        for mask in forbid.values():
            mask[(0,) * mask.ndim] = False
    return Chain(lengths, labels, edges=edges, **forbid)


class TestChain(StructureTemplate):
    instances = chains(edges=False)


class TestChainWithEdges(StructureTemplate):
    instances = chains(edges=True)


@pytest.mark.parametrize("labels", [100, 101, 104, 111, 130])
@pytest.mark.parametrize("peaked", [0.0, 0.1, 3.0, 100.0])
def test_leaving_out_labels_that_cannot_win_changes_nothing(labels, peaked, random):
    """A chain with edge scores (all zero) looks at all labels: same values and labels bit for bit, ties included."""
    lengths, forbidden = [1, 12, 2, 30], random.random((labels, labels)) < 0.3
    forbidden[0] = False
    for rules in ({}, {"forbidden": forbidden, "forbidden_end": np.arange(labels) % 3 == 1}):
        plain, edged = Chain(lengths, labels, **rules), Chain(lengths, labels, edges=True, **rules)
        theta = tuple(random.integers(-3, 4, size=shape).astype(float) for shape in plain.shapes)
        theta[0][...] *= peaked * random.random(theta[0].shape) ** 4
        theta[0][1::5, ::7] = -np.inf
        value, labelling = plain.hard(tuple(a.copy() for a in theta))
        expected, found = edged.hard((*(a.copy() for a in theta), np.zeros(edged.shapes[-1])))
        np.testing.assert_array_equal(value, expected)
        np.testing.assert_array_equal(labelling, found)


@pytest.mark.parametrize("labels", [101, 104])
@pytest.mark.parametrize("scale", [1.0, 30.0, 1000.0])
def test_sequences_side_by_side_are_as_if_alone(labels, scale, random):
    """Same values and marginals bit for bit, with any neighbours and threads, also where some leave for logarithms."""
    lengths, forbidden = random.integers(1, 12, size=11), random.random((labels, labels)) < 0.3
    forbidden[0] = False
    for rules in ({}, {"forbidden": forbidden, "forbidden_start": np.arange(labels) % 3 == 1}):
        together = Chain(lengths, labels, **rules)
        theta = tuple(random.normal(size=shape) for shape in together.shapes)
        theta[0][:] *= scale * (random.random((len(theta[0]), 1)) < 0.2)
        value, (node, *counts) = together.soft(tuple(a.copy() for a in theta), 1.0)
        again, (other, *_) = together.soft(tuple(a.copy() for a in theta), 1.0, Threads(2))
        np.testing.assert_array_equal(again, value)
        np.testing.assert_array_equal(other, node)
        edged = Chain(lengths, labels, edges=True, **rules)
        expected, found = edged.soft((*(a.copy() for a in theta), np.zeros(edged.shapes[-1])), 1.0)
        np.testing.assert_allclose(value, expected, rtol=1e-12)
        for a, b in zip((node, *counts), found, strict=False):
            np.testing.assert_allclose(a, b, atol=1e-9)
        for i in range(together.n):
            alone, rows = Chain(lengths[i : i + 1], labels, **rules), slice(*together.offsets[i : i + 2])
            local = np.concatenate([theta[0][rows].ravel(), *(a.ravel() for a in theta[1:])])
            assert soft_one(alone.space(), 0, local, 1.0) == value[i]
            np.testing.assert_array_equal(local[: lengths[i] * labels], node[rows].ravel())
        weights = random.random(len(lengths))
        weighted, (half, *_) = together.soft(tuple(a.copy() for a in theta), 1.0, weights=weights)
        np.testing.assert_array_equal(weighted, value)
        np.testing.assert_allclose(half, np.repeat(weights, lengths)[:, None] * node, rtol=1e-12, atol=1e-300)


@pytest.mark.parametrize("mu", [1e-8, 1e-4, 1e-2, 1.0])
@pytest.mark.parametrize("scale", [1.0, 1e4])
def test_both_recursions_agree_on_long_chains(mu, scale, random):
    """A chain without edge scores may use the scaled recursion, one with edges (all zero) never does."""
    lengths, labels = [1, 60, 7, 33], 5
    plain, edged = Chain(lengths, labels), Chain(lengths, labels, edges=True)
    theta = tuple(scale * random.normal(size=shape) for shape in plain.shapes)
    value, marginals = plain.soft(tuple(a.copy() for a in theta), mu * scale)
    zero = np.zeros(edged.shapes[-1])
    value_edged, marginals_edged = edged.soft((*(a.copy() for a in theta), zero), mu * scale)
    np.testing.assert_allclose(value, value_edged, rtol=1e-12)
    accuracy = 1e-10 + 1e-13 / mu  # scores are known to 16 digits, hence exponents to 1e-16 * length / mu
    for a, b in zip(marginals, marginals_edged, strict=False):
        np.testing.assert_allclose(a, b, atol=accuracy)
    np.testing.assert_allclose(marginals_edged[4].sum(axis=0), marginals_edged[1], atol=accuracy)


def test_both_recursions_agree_where_underflow_begins(random):
    """Scores between 50 and 5000 temperatures: one sequence stays scaled, the next one must not."""
    for _ in range(300):
        lengths, labels = random.integers(1, 9, size=20), int(random.integers(2, 6))
        plain, edged = Chain(lengths, labels), Chain(lengths, labels, edges=True)
        theta = tuple(np.exp(random.uniform(4, 7.5)) * random.normal(size=shape) for shape in plain.shapes)
        value, marginals = plain.soft(tuple(a.copy() for a in theta), 1.0)
        value_edged, marginals_edged = edged.soft((*(a.copy() for a in theta), np.zeros(edged.shapes[-1])), 1.0)
        np.testing.assert_allclose(value, value_edged, rtol=1e-13)
        for a, b in zip(marginals, marginals_edged, strict=False):
            np.testing.assert_allclose(a, b, atol=1e-9)


def test_marginals_are_those_of_a_distribution_at_any_temperature(random):
    """Node marginals sum to one and agree with the pair marginals, also where underflow would lose paths."""
    chain = Chain([40, 3], 6, edges=True)
    for mu in (1e-9, 1e-5, 1e-3, 1.0, 1e3):
        theta = tuple(random.normal(size=shape) for shape in chain.shapes)
        node, counts, start, end, edge = chain.soft(theta, mu)[1]
        np.testing.assert_allclose(node.sum(axis=1), 1.0, rtol=1e-12)
        np.testing.assert_allclose(edge[:39].sum(axis=1), node[1:40], atol=1e-12)
        np.testing.assert_allclose(edge[:39].sum(axis=2), node[:39], atol=1e-12)
        np.testing.assert_allclose(counts, edge.sum(axis=0), atol=1e-10)
        np.testing.assert_allclose(start, node[0] + node[40], atol=1e-12)
        np.testing.assert_allclose(end, node[39] + node[42], atol=1e-12)


def test_paths_that_underflow_would_lose():
    """The only allowed path runs through labels that look hopeless one by one."""
    chain = Chain([3], 2, forbidden=np.array([[True, False], [True, False]]), forbidden_start=[True, False])
    theta = (np.array([[0.0, -900.0], [0.0, -900.0], [0.0, -900.0]]), np.zeros((2, 2)), np.zeros(2), np.zeros(2))
    value, marginals = chain.soft(theta, 1.0)
    assert value[0] == pytest.approx(-2700.0)
    np.testing.assert_allclose(marginals[0], [[0, 1]] * 3)


@kept
def scaled_values(space, arrays, first, shared, mu, values):
    work = hooks.workspace(space)
    hooks.read_shared(space, shared, work)
    hooks.begin_soft(space, mu, work)
    for i in range(len(values)):
        node, _ = rows_of(arrays, first, i)
        node[: space.labels] += work.ends[0]
        node[-space.labels :] += work.ends[1]
        scratch = work.sequences, work.tables, work.vectors
        values[i] = soft_scaled(node, work.transition, mu, 1.0, *scratch)


def scaled(chain, theta, mu):
    """Which sequences the scaled recursion finishes by itself, and their values."""
    values = np.empty(chain.n)
    scaled_values(chain.space(), *chain._divided(tuple(array.copy() for array in theta)), mu, values)
    return ~np.isnan(values), values


@pytest.mark.parametrize("labels", [3, 5, 22])
def test_what_is_forbidden_stays_scaled(labels, random):
    """Labels that cannot be reached are exact zeros, not underflow: the slow recursion is not needed."""
    for _ in range(20):
        forbidden = random.random((labels, labels)) < 0.6
        forbidden[:, 1] = True  # label 1 stands first or nowhere
        forbidden[2, 0] = forbidden[0, 2] = False
        start = random.random(labels) < 0.5
        start[0] = False
        chain = Chain(random.integers(1, 7, size=12), labels, forbidden=forbidden, forbidden_start=start)
        theta = tuple(random.normal(size=shape) for shape in chain.shapes)
        finished, values = scaled(chain, theta, 0.5)
        assert finished.all()
        edged = Chain(chain.lengths, labels, edges=True, forbidden=forbidden, forbidden_start=start)
        expected, marginals = edged.soft((*(a.copy() for a in theta), np.zeros(edged.shapes[-1])), 0.5)
        np.testing.assert_allclose(values, expected, rtol=1e-12)
        for a, b in zip(chain.soft(theta, 0.5)[1], marginals, strict=False):
            np.testing.assert_allclose(a, b, atol=1e-12)


def test_underflow_is_not_taken_for_forbidden():
    """Label 1 is reached from label 0 alone, whose weight underflows: only the log domain knows its score."""
    chain = Chain([2, 2], 2, forbidden=np.array([[False, False], [False, True]]))
    node = np.array([[-2000.0, 0.0], [0.0, 3000.0], [-2.0, 0.0], [0.0, 3.0]])
    theta = node, np.zeros((2, 2)), np.zeros(2), np.zeros(2)
    assert scaled(chain, theta, 1.0)[0].tolist() == [False, True]
    value, marginals = chain.soft(theta, 1.0)
    assert value[0] == pytest.approx(1000.0)
    np.testing.assert_allclose(marginals[0][:2], [[1, 0], [0, 1]])


def test_scaled_recursion_survives_a_huge_transition_range():
    chain = Chain([4], 3)
    transition = np.array([[0.0, -2000.0, -3000.0], [-1000.0, 0.0, 5.0], [-40.0, -700.0, 0.0]])
    theta = (np.array([[0.0, 1500.0, 2.0]] * 4), transition, np.zeros(3), np.zeros(3))
    check_structure(chain, theta, 1.0)


def test_no_allowed_labelling_gives_minus_infinity():
    chain = Chain([2, 1], 2, forbidden=np.ones((2, 2), dtype=bool))
    theta = tuple(np.zeros(shape) for shape in chain.shapes)
    assert chain.hard(theta)[0].tolist() == [-np.inf, 0.0]
    value, marginals = chain.soft(theta, 1.0)
    assert value.tolist() == [-np.inf, np.log(2)]
    assert not np.isnan(marginals[0]).any()


def test_problem_says_which_example_has_no_output():
    chain = Chain([1, 2], 2, forbidden_end=np.ones(2, dtype=bool))
    with pytest.raises(ValueError, match="sequence 0 uses a forbidden"):
        chain.pack([[0], [0, 0]])


def test_chain_without_transitions_is_multiclass(random):
    X, y = random.normal(size=(9, 3)), random.integers(4, size=9)
    chain = Problem(Chain([1] * 9, 4), chain_features(Dense(X, 4), 4), y[:, None], lam=0.1, n_jobs=1)
    flat = Problem(Multiclass(9, 4), Dense(X, 4), y, lam=0.1, n_jobs=1)
    w = random.normal(size=flat.dim)
    padded = np.concatenate([w, np.zeros(chain.dim - flat.dim)])
    for a, b in ((chain.hard(padded), flat.hard(w)), (chain.soft(padded, 0.3), flat.soft(w, 0.3))):
        assert a.value == pytest.approx(b.value)
        assert a.loss == pytest.approx(b.loss)
        np.testing.assert_allclose(a.vector[: flat.dim], b.vector, atol=1e-12)


@given(st.integers(0, 10_000))
def test_radius_bounds_every_psi(seed):
    random = np.random.default_rng(seed)
    lengths = random.integers(1, 4, size=3)
    problem = chain_problem(seed=seed, lengths=tuple(lengths), labels=int(random.integers(1, 4)))
    assert Enumerated.of(problem).radius <= problem.radius + 1e-12


def test_radius_bounds_every_psi_with_edge_features(random):
    lengths, labels = [1, 3, 1, 2, 1], 2
    edge = Dense(random.normal(size=(3, 2)), (labels, labels))
    features = chain_features(Dense(random.normal(size=(8, 2)), labels), labels, edge)
    y = [random.integers(labels, size=length) for length in lengths]
    problem = Problem(Chain(lengths, labels, edges=True), features, y, n_jobs=1)
    assert Enumerated.of(problem).radius <= problem.radius + 1e-12


def test_radius_is_tight_in_the_worst_case():
    lengths, labels = (3,), 2
    features = chain_features(Dense(np.ones((3, 1)), labels), labels)
    problem = Problem(Chain(lengths, labels), features, [[0, 0, 0]], n_jobs=1)
    assert Enumerated.of(problem).radius == pytest.approx(problem.radius)


def test_log_size_counts_allowed_labellings():
    forbidden = np.array([[False, True], [False, False]])
    chain = Chain([1, 2, 5], 2, forbidden=forbidden)
    sizes = [sum(1 for _ in chain.enumerate(i)) for i in range(3)]
    assert sizes == [2, 3, 6]
    np.testing.assert_allclose(chain.log_size(), np.log(sizes))
    np.testing.assert_allclose(Chain([7, 2], 3).log_size(), [7 * np.log(3), 2 * np.log(3)])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([2, 0], 3), "sequence 1 is empty"),
        (([], 3), "at least one sequence"),
        (([2], 0), "one label"),
    ],
)
def test_bad_shapes_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        Chain(*arguments)


def test_bad_outputs_are_named():
    chain = Chain([2, 3], 2, forbidden=np.array([[False, True], [False, False]]))
    with pytest.raises(ValueError, match="2 sequences but 1 label"):
        chain.pack([[0, 0]])
    with pytest.raises(ValueError, match="sequence 1 has 3 positions but 2 labels"):
        chain.pack([[0, 0], [0, 0]])
    with pytest.raises(ValueError, match="sequence 1, position 2: label 7"):
        chain.pack([[0, 0], [0, 0, 7]])
    with pytest.raises(ValueError, match="sequence 1 uses a forbidden"):
        chain.pack([[0, 0], [1, 0, 1]])
    with pytest.raises(ValueError, match="forbidden must have shape"):
        Chain([2], 3, forbidden=np.zeros((2, 2), dtype=bool))


def test_ties_go_to_the_lowest_label():
    chain = Chain([3], 3)
    assert chain.hard(tuple(np.zeros(shape) for shape in chain.shapes))[1].tolist() == [0, 0, 0]


def test_brute_force_marginals_are_a_distribution(random):
    chain = Chain([2, 3], 2)
    marginals = brute_force(chain, tuple(random.normal(size=shape) for shape in chain.shapes), 1.0)[1]
    np.testing.assert_allclose(marginals[0].sum(axis=1), 1.0)
