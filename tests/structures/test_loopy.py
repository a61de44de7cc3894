import itertools

import numpy as np
import pytest
import scipy.optimize
from hypothesis import strategies as st

from m3n import Problem, minimize
from m3n.checks import check_adjoint, check_problem
from m3n.features import Copies, Dense, Kernel, graph_features
from m3n.losses import Hamming, NormalizedHamming
from m3n.structures import Factors, Graph, LoopyGraph, Tree
from m3n.structures.loopy import cut_into_paths
from tests.structures.template import StructureTemplate


def grid(height, width):
    number = np.arange(height * width).reshape(height, width)
    across = np.stack([number[:, :-1].ravel(), number[:, 1:].ravel()], axis=1)
    down = np.stack([number[:-1].ravel(), number[1:].ravel()], axis=1)
    return np.concatenate([across, down])


@st.composite
def loopy_graphs(draw):
    graphs = draw(st.integers(1, 2))
    nodes = [draw(st.integers(1, 4)) for _ in range(graphs)]
    edges = []
    for count in nodes:
        pairs = list(itertools.permutations(range(count), 2))
        edges.append(draw(st.lists(st.sampled_from(pairs), max_size=4)) if pairs else [])
    return LoopyGraph(nodes, draw(st.integers(1, 2)), edges, tables=draw(st.booleans()))


class TestLoopyGraph(StructureTemplate):
    instances = loopy_graphs()

    def test_encode_and_decode_round_trip(self):
        """Labels of nodes come back; of copies only where they agree."""

        def check(structure, draw):
            outputs = [
                [draw(st.integers(0, structure.labels - 1)) for _ in range(count)] for count in structure.positions()
            ]
            labelling = structure.pack(outputs)
            assert structure.unpack(labelling) == outputs
            assert structure.agreement(labelling) == 1.0

        self.for_all(check)


def test_paths_of_a_grid():
    paths = cut_into_paths(6, grid(2, 3))
    found = {tuple(part) for part in np.split(paths.owner, np.cumsum(paths.lengths)[:-1])}
    assert found == {(0, 1, 2, 5), (0, 3, 4, 5), (1, 4)}


def test_paths_use_every_edge_once(random):
    for _ in range(50):
        nodes = int(random.integers(1, 9))
        edges = random.integers(nodes, size=(int(random.integers(0, 15)), 2))
        edges = edges[edges[:, 0] != edges[:, 1]]
        paths = cut_into_paths(nodes, edges)
        owners = np.split(paths.owner, np.cumsum(paths.lengths)[:-1])
        walked = [owner[pair] for owner, local in zip(owners, paths.edges, strict=True) for pair in local]
        np.testing.assert_array_equal(np.array(walked).reshape(-1, 2), edges[paths.edge_order])
        assert sorted(paths.edge_order) == list(range(len(edges)))
        assert set(paths.owner) == set(range(nodes))
        for owner, local in zip(owners, paths.edges, strict=True):
            assert len(local) == len(owner) - 1
            assert (np.diff(owner) > 0).all()


def relaxed_problem(random, nodes, edges, labels=2, lam=0.05, agreement=1e-3, kind=LoopyGraph, **settings):
    X, Z = random.normal(size=(sum(nodes), 3)), random.normal(size=(sum(map(len, edges)), 2))
    y = [random.integers(labels, size=count) for count in nodes]
    if kind is LoopyGraph:
        structure = LoopyGraph(nodes, labels, edges, tables=True)
        features = graph_features(structure, Dense(X, labels), Dense(Z, (labels, labels)), agreement=agreement)
        settings["lam"] = lam * structure.graphs / structure.n
    else:
        structure = Graph(nodes, labels, [Factors(edges, shared=True), Factors(edges)])
        features = graph_features(structure, Dense(X, labels), Dense(Z, (labels, labels)))
        settings["lam"] = lam
    return Problem(structure, features, y, n_jobs=1, **settings)


def exact_weights(problem, w):
    """The weights without multipliers."""
    node, *rest = problem.features.split(w)
    return np.concatenate([problem.features.maps[0].split(node)[0], *rest])


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_relaxed_objective_is_an_upper_bound(temperature, random):
    """At every w and delta, against the exact objective on a 3x3 grid."""
    for seed in range(5):
        pair = [
            relaxed_problem(
                np.random.default_rng(seed), [9, 4], [grid(3, 3), grid(2, 2)], kind=kind, temperature=temperature
            )
            for kind in (LoopyGraph, Graph)
        ]
        scale = pair[0].structure.n / pair[0].structure.graphs
        w = random.normal(size=pair[0].dim)
        assert scale * pair[0].risk(w).value >= pair[1].risk(exact_weights(pair[0], w)).value - 1e-9


def test_certificate_bounds_the_exact_objective(random):
    problem = relaxed_problem(np.random.default_rng(1), [9, 6], [grid(3, 3), grid(2, 3)])
    exact = relaxed_problem(np.random.default_rng(1), [9, 6], [grid(3, 3), grid(2, 3)], kind=Graph)
    result = minimize(problem, "bmrm", tol=1e-4)
    assert result.certificate.relaxed
    assert "relaxed problem" in str(result.certificate)
    scale = problem.structure.n / problem.structure.graphs
    assert scale * result.certificate.primal >= exact.primal(exact_weights(problem, result.w)) - 1e-9
    assert not minimize(exact, tol=1e-3).certificate.relaxed


def test_relaxation_is_tight_on_trees():
    """Nodes of a star have copies that multipliers bring to agree: the optimum tends to that of the tree."""
    edges, seed = [np.array([[0, 3], [1, 3], [3, 2], [3, 4]])], 3
    exact = relaxed_problem(np.random.default_rng(seed), [5], edges, labels=3, kind=Graph)
    best = minimize(exact, "bmrm", tol=1e-6).certificate.primal
    found = []
    for agreement in (1.0, 0.1, 1e-3):
        problem = relaxed_problem(np.random.default_rng(seed), [5], edges, labels=3, agreement=agreement)
        assert problem.structure.n > 1
        found.append(problem.structure.n * minimize(problem, "bmrm", tol=1e-7).certificate.primal)
    assert found[0] > found[1] > found[2] >= best - 1e-5
    assert found[2] == pytest.approx(best, rel=1e-2)


def test_multipliers_reach_the_linear_programme(random):
    """The least relaxed loss over delta is the value of the LP over the local polytope, on a 2x2 cycle."""
    labels, edges = 2, grid(2, 2)
    structure = LoopyGraph([4], labels, [edges], tables=True)
    node, pair = random.normal(size=(4, labels)), 3 * random.normal(size=(4, labels, labels))
    copies = Copies(Dense(np.eye(4), labels), structure.owner, 1.0)

    def value(delta):
        theta = copies.scores(np.concatenate([node.ravel(), delta]), (np.empty(structure.shapes[0]),))
        arrays = theta[0], np.zeros((labels, labels)), pair[structure.edge_order]
        return structure.hard(arrays)[0].sum()

    start = np.zeros(copies.dim - node.size)
    rough = scipy.optimize.minimize(value, start, method="Powell", options={"ftol": 1e-12, "maxiter": 20_000})
    fine = scipy.optimize.minimize(value, rough.x, method="Nelder-Mead", options={"fatol": 1e-10, "maxiter": 20_000})
    assert min(rough.fun, fine.fun) == pytest.approx(linear_programme(node, pair, edges), abs=1e-3)


def linear_programme(node, pair, edges):
    """max <theta, mu> over locally consistent marginals."""
    nodes, labels = node.shape
    size = node.size + pair.size
    rows, right = [], []
    for v in range(nodes):
        row = np.zeros(size)
        row[v * labels : (v + 1) * labels] = 1.0
        rows.append(row)
        right.append(1.0)
    for e, ends in enumerate(edges):
        table = node.size + e * labels**2 + np.arange(labels**2).reshape(labels, labels)
        for axis, v in enumerate(ends):
            for label in range(labels):
                row = np.zeros(size)
                row[np.take(table, label, axis=axis)] = 1.0
                row[v * labels + label] = -1.0
                rows.append(row)
                right.append(0.0)
    objective = -np.concatenate([node.ravel(), pair.ravel()])
    return -scipy.optimize.linprog(objective, A_eq=np.array(rows), b_eq=right, bounds=(0, 1)).fun


@pytest.mark.parametrize("loss", [Hamming(), NormalizedHamming(), Hamming(class_weight="balanced")])
def test_losses_count_nodes(loss, random):
    nodes, edges = [4, 3], [grid(2, 2), np.array([[2, 0], [0, 1]])]
    y = [random.integers(3, size=count) for count in nodes]
    loopy, tree = LoopyGraph(nodes, 3, edges), Tree(nodes, 3, [e[:2] for e in edges])
    other = [random.integers(3, size=count) for count in nodes]
    costs = [loss.cost(s, s.pack(y)).expected(s.encode(s.pack(other))) for s in (loopy, tree)]
    assert costs[0] == pytest.approx(costs[1])


def test_copies(random):
    owner = np.array([0, 1, 2, 1, 2, 3, 4, 2])
    for node in (Dense(random.normal(size=(5, 3)), 2), Kernel(random.normal(size=(5, 3)), 2)):
        copies = Copies(node, owner, 3.0)
        check_adjoint(copies)
        w = copies.refresh(random.normal(size=copies.dim))
        (theta,) = copies.scores(w, (np.empty((8, 2)),))
        whole = np.zeros((5, 2))
        np.add.at(whole, owner, theta)
        own, delta = copies.split(w)
        np.testing.assert_allclose(whole, node.scores(own, (np.empty((5, 2)),))[0])  # copies that agree
        np.testing.assert_allclose(delta, 3.0 * w[node.dim :].reshape(3, 2))
        part = copies.select((np.array([5, 6]),))
        check_adjoint(part)
        np.testing.assert_allclose(part.scores(w, (np.empty((2, 2)),))[0], theta[[5, 6]])


def test_rows_of_copies(random):
    copies = Copies(Dense(random.normal(size=(3, 2)), 2), np.array([0, 1, 1, 2, 1]), 2.0)
    rows, w = copies.rows(), random.normal(size=copies.dim)
    found = [
        [
            sum(rows.data[e] * w[rows.runs[e] + j] for e in range(rows.pointers[r], rows.pointers[r + 1]))
            for j in range(2)
        ]
        for r in range(5)
    ]
    np.testing.assert_allclose(found, copies.scores(w, (np.empty((5, 2)),))[0])
    with pytest.raises(TypeError, match="cannot make copies of Kernel"):
        Copies(Kernel(random.normal(size=(3, 2)), 2), np.array([0, 1, 1, 2, 1])).rows()


def test_whole_problem_against_enumeration(random):
    check_problem(relaxed_problem(random, [4], [grid(2, 2)]))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: LoopyGraph([2], 2, [[[1, 1]]]), "joins node 1 with itself"),
        (lambda: LoopyGraph([2, 2], 2, [[]]), "2 graphs but 1 lists of edges"),
        (lambda: LoopyGraph([2], 2, [[[0, 1]]]).pack([[0]]), "graph 0 has 2 nodes but 1 labels"),
        (lambda: LoopyGraph([2], 2, [[[0, 1]]]).pack([]), "1 graphs but 0 outputs"),
        (lambda: Copies(Dense(np.eye(2), 2), np.array([0, 0])), "every one of the 2 nodes"),
        (lambda: Copies(Dense(np.eye(2), 2), np.array([0, 1]), 0.0), "factor must be"),
        (lambda: graph_features(Tree([1], 2, [[]]), Dense(np.eye(1), 2), agreement=0.0), "agreement must be"),
    ],
)
def test_wrong_inputs(make, message):
    with pytest.raises(ValueError, match=message):
        make()
