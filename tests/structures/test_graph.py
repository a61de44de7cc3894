import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from m3n import Problem, minimize
from m3n.checks import check_problem
from m3n.compiled.oracles import hooks
from m3n.compiled.sweeps import visits
from m3n.features import Dense, Stack, Table
from m3n.losses import Hamming
from m3n.packed import Threads
from m3n.problem.blocks import Blocks, PythonSpace
from m3n.solvers import LBFGS, SMO, BlockFrankWolfe, DualAscent, ExcessiveGap, SequentialDual, Subgradient
from m3n.structures import Factors, Graph, Multiclass
from tests.kernels import kept
from tests.structures.template import StructureTemplate
from tests.tiny import Enumerated

KINDS = [(2, True), (2, False), (3, False), (3, True), (2, True)]
MOST = {1: 5, 2: 5, 3: 3}  # variables for so many labels: at most 32 outputs


def random_scopes(random, nodes, k, most=4):
    """Up to ``most`` tuples of different variables per example: cycles, double edges, isolated variables."""
    counts = [int(random.integers(0, most + 1)) if number >= k else 0 for number in nodes]
    rows = [[random.permutation(number)[:k] for _ in range(count)] for number, count in zip(nodes, counts, strict=True)]
    return [np.array(row, dtype=np.int64).reshape(-1, k) for row in rows]


@st.composite
def graphs(draw):
    labels = draw(st.integers(1, 3))
    nodes = draw(st.lists(st.integers(1, MOST[labels]), min_size=1, max_size=3))
    kinds = draw(st.lists(st.sampled_from(KINDS), max_size=3))
    random = np.random.default_rng(draw(st.integers(0, 10_000)))
    return Graph(nodes, labels, [Factors(random_scopes(random, nodes, k), shared) for k, shared in kinds])


class TestGraph(StructureTemplate):
    instances = graphs()


def grid(height, width):
    """The edges between neighbours of a grid whose cells are numbered row by row."""
    cells = np.arange(height * width).reshape(height, width)
    across = np.stack([cells[:, :-1].ravel(), cells[:, 1:].ravel()], axis=1)
    return np.concatenate([across, np.stack([cells[:-1].ravel(), cells[1:].ravel()], axis=1)])


def complete(nodes):
    return np.array(list(itertools.combinations(range(nodes), 2)))


def cycle(nodes):
    return np.stack([np.arange(nodes), np.roll(np.arange(nodes), -1)], axis=1)


def theta_for(structure, random, scale=1.0):
    return tuple(scale * random.normal(size=shape) for shape in structure.shapes)


def copies(theta):
    return tuple(array.copy() for array in theta)


@pytest.mark.parametrize(
    ("edges", "width"),
    [(cycle(7), 3), (grid(3, 3), 4), (grid(2, 9), 3), (grid(9, 2), 3), (complete(5), 5), (np.array([[0, 1]]), 2)],
)
def test_width_is_the_known_treewidth_plus_one(edges, width):
    nodes = int(edges.max()) + 1
    graph = Graph([nodes], 3, [Factors([edges])])
    assert graph.width == width
    assert nodes * 3 <= graph.cost[0] <= nodes * 3**width
    assert Graph([nodes, 1], 3, [Factors([edges, np.empty((0, 2), int)])]).cost.tolist() == [graph.cost[0], 3]


def test_a_graph_without_factors_is_multiclass(random):
    graph, flat = Graph([2, 1, 3], 4), Multiclass(6, 4)
    theta = theta_for(graph, random)
    values, labelling = flat.hard(theta)
    assert graph.width == 1
    np.testing.assert_array_equal(graph.hard(theta)[1], labelling)
    np.testing.assert_allclose(graph.hard(theta)[0], np.add.reduceat(values, [0, 2, 3]))
    np.testing.assert_allclose(graph.soft(copies(theta), 0.7)[1][0], flat.soft(copies(theta), 0.7)[1][0])


def all_scores(edges, triples, theta):
    """Scores of all labellings of a binary graph, and the labellings, by broadcasting over bits."""
    node, edge, triple = theta
    labellings = np.array(list(itertools.product(range(node.shape[1]), repeat=len(node))))
    scores = node[np.arange(len(node)), labellings].sum(axis=1)
    scores += edge[np.arange(len(edges)), labellings[:, edges[:, 0]], labellings[:, edges[:, 1]]].sum(axis=1)
    return scores + triple[tuple(labellings[:, triples].transpose(2, 0, 1))].sum(axis=1), labellings


@pytest.mark.parametrize("mu", [1e-3, 0.3, 5.0])
def test_larger_graphs_against_all_labellings(mu, random):
    """4096 and 6561 labellings: wide buckets, long rows, several columns at a time."""
    for labels, edges in ((2, grid(3, 4)), (3, grid(4, 2))):
        triples = np.array([[0, 5, 3], [7, 2, 1]])
        graph = Graph([int(edges.max()) + 1], labels, [Factors([edges]), Factors([triples], shared=True)])
        theta = theta_for(graph, random)
        scores, labellings = all_scores(edges, triples, theta)
        value, best = graph.hard(theta)
        assert value[0] == pytest.approx(scores.max(), rel=1e-12)
        np.testing.assert_array_equal(best, labellings[scores.argmax()])
        p = np.exp((scores - scores.max()) / mu)
        value, (node, edge, triple) = graph.soft(copies(theta), mu)
        assert value[0] == pytest.approx(scores.max() + mu * np.log(p.sum()), rel=1e-12)
        p /= p.sum()
        for x in range(labels):
            np.testing.assert_allclose(node[:, x], p @ (labellings == x), atol=1e-11)
            for y in range(labels):
                both = (labellings[:, edges[:, 0]] == x) & (labellings[:, edges[:, 1]] == y)
                np.testing.assert_allclose(edge[:, x, y], p @ both, atol=1e-11)
                for z in range(labels):
                    found = sum(p @ (labellings[:, t] == [x, y, z]).all(axis=1) for t in triples)
                    assert triple[x, y, z] == pytest.approx(found, abs=1e-11)


@pytest.mark.parametrize("mu", [1e-9, 1e-4, 1.0, 1e3])
def test_marginals_are_those_of_a_distribution_at_any_temperature(mu, random):
    edges = np.concatenate([grid(4, 5), [[0, 19], [3, 10]]])
    graph = Graph([20], 3, [Factors([edges])])
    node, edge = graph.soft(theta_for(graph, random, 10.0), mu)[1]
    np.testing.assert_allclose(node.sum(axis=1), 1.0, rtol=1e-12)
    np.testing.assert_allclose(edge.sum(axis=2), node[edges[:, 0]], atol=1e-12)
    np.testing.assert_allclose(edge.sum(axis=1), node[edges[:, 1]], atol=1e-12)


def test_who_is_eliminated_last_does_not_matter(random):
    edges = [cycle(5), grid(2, 3)]
    theta = theta_for(Graph([5, 6], 3, [Factors(edges)]), random)
    answers = []
    for last in (None, [0, -1], [2, 5], [4, 1]):
        graph = Graph([5, 6], 3, [Factors(edges)], last=last)
        answers.append((*graph.hard(theta), graph.soft(copies(theta), 0.4)))
    for value, labelling, (soft, marginals) in answers[1:]:
        np.testing.assert_allclose(value, answers[0][0], rtol=1e-13)
        np.testing.assert_array_equal(labelling, answers[0][1])
        np.testing.assert_allclose(soft, answers[0][2][0], rtol=1e-13)
        for a, b in zip(marginals, answers[0][2][1], strict=True):
            np.testing.assert_allclose(a, b, atol=1e-13)


def test_orientation_of_a_scope_turns_its_table(random):
    edges = grid(2, 3)
    one, two = Graph([6], 3, [Factors([edges])]), Graph([6], 3, [Factors([edges[:, ::-1]])])
    node, edge = theta_for(one, random)
    turned = np.ascontiguousarray(edge.transpose(0, 2, 1))
    a, b = one.soft((node.copy(), edge.copy()), 0.6), two.soft((node.copy(), turned), 0.6)
    np.testing.assert_allclose(a[0], b[0], rtol=1e-13)
    np.testing.assert_allclose(a[1][1], b[1][1].transpose(0, 2, 1), atol=1e-13)


def test_no_allowed_labelling_gives_minus_infinity(random):
    """Example 1 loses its last labelling to a factor far from its first variable; its neighbours notice nothing."""
    graph = Graph([3, 4, 3], 2, [Factors([cycle(3), cycle(4), cycle(3)]), Factors([[[0, 1]]] * 3, shared=True)])
    theta = theta_for(graph, random)
    theta[1][5] = -np.inf
    values, marginals = graph.soft(copies(theta), 1.0)
    assert np.isneginf(values).tolist() == [False, True, False]
    assert graph.hard(theta)[0][1] == -np.inf
    assert all(np.isfinite(array).all() for array in marginals)
    assert not marginals[0][3:7].any()
    rest, rows = graph.select(np.array([0, 2]))
    mine = tuple(a if row is None else a[row] for a, row in zip(theta, rows, strict=True))
    np.testing.assert_allclose(marginals[2], rest.soft(copies(mine), 1.0)[1][2], atol=1e-13)


@given(st.integers(0, 10_000))
def test_weights_count_examples(seed):
    """Whole weights are repetitions; the values are those of one."""
    random = np.random.default_rng(seed)
    nodes = [3, 2, 4]
    kinds = [Factors(random_scopes(random, nodes, 2), shared=True), Factors(random_scopes(random, nodes, 2))]
    graph = Graph(nodes, 2, kinds[: random.integers(1, 3)])
    theta = theta_for(graph, random)
    chosen = np.array([0, 0, 2])
    more, rows = graph.select(chosen)
    mine = tuple(a.copy() if row is None else a[row] for a, row in zip(theta, rows, strict=True))
    values, marginals = graph.soft(copies(theta), 0.5, weights=np.array([2.0, 0.0, 1.0]))
    expected, repeated = more.soft(mine, 0.5)
    np.testing.assert_allclose(values[chosen], expected)
    np.testing.assert_allclose(marginals[0][:3], 2 * repeated[0][:3], atol=1e-13)
    np.testing.assert_array_equal(marginals[0][3:5], 0.0)
    np.testing.assert_allclose(marginals[1], repeated[1], atol=1e-13)


def test_examples_in_several_chunks_are_the_same(random, monkeypatch):
    nodes = [4, 2, 5, 3, 4]
    graph = Graph(nodes, 3, [Factors(random_scopes(random, nodes, 2)), Factors(random_scopes(random, nodes, 3), True)])
    theta = theta_for(graph, random)
    whole = graph.hard(theta), graph.soft(copies(theta), 0.5)
    for size in (1, 40, 100):
        monkeypatch.setattr("m3n.structures.graph.CHUNK", size)
        for a, b in zip(whole[0], graph.hard(theta), strict=True):
            np.testing.assert_array_equal(a, b)
        values, marginals = graph.soft(copies(theta), 0.5, Threads(2))
        np.testing.assert_array_equal(values, whole[1][0])
        for a, b in zip(marginals, whole[1][1], strict=True):
            np.testing.assert_allclose(a, b, atol=1e-14)


# --- problems on graphs


def graph_problem(seed=0, temperature=0.0, n_jobs=1):
    """A tree, a cycle with a chord that a triple covers, and a lonely variable; every kind of features."""
    random = np.random.default_rng(seed)
    nodes, labels = [3, 4, 1], 2
    edges = [np.array([[0, 1], [2, 1]]), np.array([[0, 1], [1, 2], [2, 3], [3, 0]]), np.empty((0, 2), int)]
    triples = [np.empty((0, 3), int), np.array([[0, 2, 3]]), np.empty((0, 3), int)]
    structure = Graph(nodes, labels, [Factors(edges, True), Factors(triples), Factors(edges)])
    inputs = [random.normal(size=(rows, 3)) for rows in (8, 1, 6)]
    triple, pair = Dense(inputs[1], (labels,) * 3), Dense(inputs[2], (labels,) * 2)
    features = Stack(Dense(inputs[0], labels), Table(labels, labels), triple, pair)
    y = [random.integers(labels, size=number) for number in nodes]
    loss = None if temperature else Hamming()
    return Problem(structure, features, y, loss=loss, lam=0.2, temperature=temperature, n_jobs=n_jobs)


def forest_problem(seed=0, temperature=0.0, n_jobs=1):
    """Shared tables alone, in both orientations: the recursion without tables."""
    random = np.random.default_rng(seed)
    edges = [np.array([[0, 1], [2, 1]]), np.array([[1, 0]]), np.empty((0, 2), int)]
    structure = Graph([3, 3, 1], 2, [Factors(edges, True)])
    assert structure._forests.plain.all()
    features = Stack(Dense(random.normal(size=(7, 3)), 2), Table(2, 2))
    y = [random.integers(2, size=number) for number in (3, 3, 1)]
    loss = None if temperature else Hamming()
    return Problem(structure, features, y, loss=loss, lam=0.2, temperature=temperature, n_jobs=n_jobs)


PROBLEMS = [graph_problem, forest_problem]


@pytest.mark.parametrize("make", PROBLEMS)
def test_problems_agree_with_enumeration(make):
    for seed in range(5):
        check_problem(make(seed))


@kept
def all_answers(space, rows, costs, w, mu, values, parts, counts, soft, marginals):
    work = hooks.workspace(space)
    theta = np.empty(rows.sizes.max())
    for i in range(rows.sizes.shape[0]):
        local = visits.local_scores(rows, costs, i, w, theta)
        values[i], counts[i] = hooks.best(space, i, local, parts[i], work)
        marginals[i, : rows.sizes[i]] = local
        soft[i] = hooks.soft(space, i, marginals[i, : rows.sizes[i]], mu, work)


@pytest.mark.parametrize("make", PROBLEMS)
@pytest.mark.parametrize("mu", [1e-4, 0.5])
def test_compiled_blocks_are_those_of_the_interpreter(make, mu, random):
    problem = make(seed=1)
    blocks = Blocks(problem.structure, problem.features, problem.cost, problem.gold)
    assert blocks.compiles("hard")
    assert blocks.compiles("soft")
    plain = PythonSpace(problem.structure, problem.cost, problem.gold, np.ones(problem.n))
    answers = []
    w = random.normal(size=problem.dim)
    for space, run in ((blocks.space, all_answers), (plain, all_answers.py_func)):
        n, most = problem.n, int(blocks.most.max())
        values, parts, counts = np.empty(n), np.zeros((n, most), np.int64), np.zeros(n, np.int64)
        soft, marginals = np.empty(n), np.zeros((n, blocks.largest))
        run(space, blocks.rows, blocks.costs, w, mu, values, parts, counts, soft, marginals)
        parts[np.arange(most) >= counts[:, None]] = 0
        answers.append((values, parts, counts, soft, marginals))
    for a, b in zip(*answers, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-11)


@pytest.mark.parametrize("make", PROBLEMS)
@pytest.mark.parametrize("kind", [SequentialDual, BlockFrankWolfe, SMO, ExcessiveGap, DualAscent, LBFGS])
def test_solvers_find_the_enumerated_optimum(make, kind):
    """The last two a CRF, the others an M3N."""
    problem = make(seed=2, temperature=float(kind in (DualAscent, LBFGS)))
    exact = Enumerated.of(problem)
    result = minimize(problem, kind(), tol=1e-3, max_passes=5000)
    assert result.converged
    assert result.certificate.dual - 1e-8 <= exact.optimum() <= result.certificate.primal + 1e-8
    assert exact.primal(result.w) == pytest.approx(result.certificate.primal, rel=1e-9)


class Interpreted(Graph):
    """A graph without compiled functions: an array that is too short is noticed."""

    def space(self):
        return None


@pytest.mark.parametrize("kind", [Subgradient, SequentialDual])
def test_more_parts_than_scores(kind):
    """45 pairs share one table of four scores, and the most violated output differs from gold in all of them."""
    structure = Interpreted([10], 2, [Factors([complete(10)], shared=True)])
    features = Stack(Dense(np.ones((10, 1)), 2), Table(2, 2))
    problem = Problem(structure, features, [np.zeros(10, int)], loss=Hamming(), lam=1.0, n_jobs=1)
    assert problem.blocks.largest < int(problem.blocks.most.max())
    result = minimize(problem, kind(), tol=0.0, max_passes=4)
    assert 0.0 <= result.certificate.gap <= 10.0


# --- refusals


def test_budget_is_announced_and_kept():
    edges = [complete(3), complete(9)]
    graph = Graph([3, 9], 4, [Factors(edges)])
    assert graph.width == 9
    assert graph.cost.tolist() == [sum(4**k for k in (1, 2, 3)), sum(4**k for k in range(1, 10))]
    with pytest.raises(ValueError, match=r"example 1 joins 9 variables of 4 labels.*LoopyGraph.*larger budget"):
        Graph([3, 9], 4, [Factors(edges)], budget=3e5)
    with pytest.raises(ValueError, match=r"example 1 joins 9 variables .* at least 2\.6e\+05 table entries \(0\.0 GB"):
        Graph([3, 9], 4, [Factors(edges)], budget=2e5)


def test_a_dense_graph_is_refused_before_its_order_is_found():
    with pytest.raises(ValueError, match="example 0 joins"):
        Graph([60 * 60], 20, [Factors([grid(60, 60)])])


@pytest.mark.parametrize(
    ("scopes", "message"),
    [
        ([[[0, 1]], [[0, 2]]], r"factors\[0\], example 1, row 0: scope \[0, 2\] must name 2 different .* 0\.\.1"),
        ([[[0, 1], [1, 1]], [[0, 1]]], r"factors\[0\], example 0, row 1: scope \[1, 1\]"),
        ([[[0, -1]], [[0, 1]]], r"example 0, row 0: scope \[0, -1\]"),
        ([[[0, 1]]], r"factors\[0\] lists the scopes of 1 examples, but there are 2"),
        ([[[0, 1]], [[0, 1, 2]]], "example 1: scopes must be an array .* another Factors"),
        ([[[0.0, 1.0]], [[0, 1]]], "example 0: scopes must be .* of integers"),
        ([[[0]], [[1]]], "two variables at least"),
        ([[], []], "two variables at least"),
    ],
)
def test_bad_scopes_are_named(scopes, message):
    with pytest.raises(ValueError, match=message):
        Graph([3, 2], 2, [Factors(scopes)])


def test_bad_outputs_and_sizes_are_named():
    graph = Graph([2, 1], 2)
    with pytest.raises(ValueError, match="2 examples but 1 outputs"):
        graph.pack([[0, 1]])
    with pytest.raises(ValueError, match="example 1 has 1 variables but 2 labels"):
        graph.pack([[0, 1], [0, 1]])
    with pytest.raises(ValueError, match="example 0, position 1: label 2"):
        graph.pack([[0, 2], [0]])
    with pytest.raises(ValueError, match="example 1 has no variables"):
        Graph([2, 0], 2)
    with pytest.raises(ValueError, match="at least one example"):
        Graph([], 2)
    with pytest.raises(ValueError, match="for all 2 examples"):
        Graph([2, 1], 2, last=[0, 1])
