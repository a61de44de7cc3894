"""Labels and bounds of graphs with cycles, against enumeration and the linear programme over local marginals."""

import itertools

import numpy as np
import pytest
import scipy.optimize

from m3n.packed import Threads
from m3n.structures import relaxed_map


class Batch:
    """Graphs with scores, to be packed."""

    def __init__(self, labels):
        self.labels, self.graphs = labels, []

    def add(self, node, edges, pair):
        self.graphs.append((node, np.reshape(edges, (-1, 2)).astype(int), pair))

    def solve(self, **settings):
        nodes, edges, pairs = zip(*self.graphs, strict=True)
        offsets, edge_offsets = (np.cumsum([0, *map(len, arrays)]) for arrays in (nodes, edges))
        joined = np.concatenate(nodes), np.concatenate(edges), np.concatenate(pairs)
        self.offsets = offsets
        return relaxed_map(*joined, offsets=offsets, edge_offsets=edge_offsets, **settings)

    def scores(self, labelling):
        pieces = np.split(labelling, self.offsets[1:-1])
        return np.array([score(*graph, x) for graph, x in zip(self.graphs, pieces, strict=True)])

    def best(self):
        return np.array([best(*graph) for graph in self.graphs])


def score(node, edges, pair, x):
    return node[np.arange(len(node)), x].sum() + pair[np.arange(len(edges)), x[edges[:, 0]], x[edges[:, 1]]].sum()


def best(node, edges, pair):
    outputs = itertools.product(range(node.shape[1]), repeat=len(node))
    return max(score(node, edges, pair, np.array(x, int)) for x in outputs)


def relaxed_best(node, edges, pair):
    """The linear programme: marginals of pairs sum to those of nodes, these to one."""
    nodes, labels = node.shape
    single, double = node.size, pair.size
    rows, right = [], []
    for s in range(nodes):
        rows.append(np.zeros(single + double))
        rows[-1][s * labels : (s + 1) * labels] = 1.0
        right.append(1.0)
    for e, side, x in itertools.product(range(len(edges)), (0, 1), range(labels)):
        row, table = np.zeros(single + double), np.zeros((labels, labels))
        np.moveaxis(table, side, 0)[x] = 1.0
        row[single + e * labels**2 : single + (e + 1) * labels**2] = table.ravel()
        row[edges[e, side] * labels + x] = -1.0
        rows.append(row)
        right.append(0.0)
    costs = -np.concatenate([node.ravel(), pair.ravel()])
    return -scipy.optimize.linprog(costs, A_eq=np.array(rows), b_eq=right, method="highs").fun


def random_graph(random, labels, nodes, edges, forbid=0.0, integers=False):
    """Parallel edges, edges in either direction and nodes without edges occur."""
    draw = (lambda size: random.integers(-2, 3, size=size).astype(float)) if integers else random.normal
    ends = [random.choice(nodes, size=2, replace=False) for _ in range(edges)] if nodes > 1 else []
    node, pair = draw(size=(nodes, labels)), draw(size=(len(ends), labels, labels))
    node[random.random(node.shape) < forbid] = -np.inf
    pair[random.random(pair.shape) < forbid] = -np.inf
    return node, ends, pair


def random_batch(random, labels, count, **kind):
    batch = Batch(labels)
    most = 5 if labels < 5 else 4
    for k in range(count):
        batch.add(*random_graph(random, labels, k % (most + 1), int(random.integers(8)), **kind))
    return batch


def grid(height, width):
    number = np.arange(height * width).reshape(height, width)
    across = np.stack([number[:, :-1].ravel(), number[:, 1:].ravel()], axis=1)
    return np.concatenate([across, np.stack([number[:-1].ravel(), number[1:].ravel()], axis=1)])


def random_grid(random, labels, height=3, width=3):
    edges = grid(height, width)
    return random.normal(size=(height * width, labels)), edges, random.normal(size=(len(edges), labels, labels))


@pytest.mark.parametrize("labels", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("kind", [{}, {"forbid": 0.2}, {"integers": True}], ids=["generic", "forbidden", "ties"])
def test_the_best_score_lies_between_value_and_bound_at_any_time(labels, kind, random):
    batch = random_batch(random, labels, 18, **kind)
    expected = batch.best()
    for rounds in (1, 2, 200):
        found = batch.solve(max_rounds=rounds)
        np.testing.assert_allclose(found.values, batch.scores(found.labels), atol=1e-12)
        assert (found.values <= expected + 1e-12).all()
        assert (found.bounds >= expected - 1e-12).all()
        assert (found.bounds >= found.values).all()
        assert (found.rounds <= rounds).all()
        np.testing.assert_allclose(found.values[found.exact], expected[found.exact], atol=1e-5)
    assert found.exact.mean() > 0.5
    assert labels == 1 or not batch.solve(max_rounds=1, tol=1e-9).exact.all()


@pytest.mark.parametrize("labels", [2, 5])
def test_trees_are_solved(labels, random):
    """In any numbering of the nodes; larger ones than enumeration can check."""
    batch, large = Batch(labels), Batch(labels)
    for k in range(20):
        for nodes, into in ((5, batch), (40, large)):
            names = random.permutation(nodes)
            edges = [[names[i], names[random.integers(i)]][:: 1 if k % 2 else -1] for i in range(1, nodes)]
            into.add(random.normal(size=(nodes, labels)), edges, random.normal(size=(nodes - 1, labels, labels)))
    found = batch.solve(tol=1e-9)
    assert found.exact.all()
    np.testing.assert_allclose(found.values, batch.best(), rtol=1e-12)
    assert large.solve(tol=1e-9).exact.all()


def test_chains_need_one_round(random):
    nodes = 50
    edges = np.stack([np.arange(nodes - 1), np.arange(1, nodes)], axis=1)
    batch = Batch(4)
    batch.add(random.normal(size=(nodes, 4)), edges, random.normal(size=(nodes - 1, 4, 4)))
    found = batch.solve(tol=1e-12)
    assert found.exact.all()
    assert found.rounds.tolist() == [1]


@pytest.mark.parametrize(("labels", "weakest"), [(2, 1e-6), (3, np.inf)])
def test_grids_against_the_linear_programme(labels, weakest, random):
    """No bound of this kind is below the linear programme; with two labels it comes down to it (3e-9 was seen)."""
    batch = Batch(labels)
    for _ in range(6):
        batch.add(*random_grid(random, labels))
    found = batch.solve(tol=1e-9, max_rounds=20_000)
    relaxed = np.array([relaxed_best(*graph) for graph in batch.graphs])
    assert (found.bounds >= relaxed - 1e-6).all()
    assert (found.bounds <= relaxed + weakest).all()
    expected = np.array([by_rows(*graph) for graph in batch.graphs])
    assert (found.values <= expected + 1e-9).all()
    assert (found.bounds >= expected - 1e-9).all()
    np.testing.assert_allclose(found.values[found.exact], expected[found.exact], atol=1e-6)
    assert found.exact.any()


def by_rows(node, edges, pair):
    """The best score of a 3 x 3 grid by a recursion over rows of labels."""
    labels = node.shape[1]
    rows = np.array(list(itertools.product(range(labels), repeat=3)))
    table = {tuple(edge): scores for edge, scores in zip(edges.tolist(), pair, strict=True)}
    total = np.zeros(len(rows))
    for r in range(3):
        if r:
            between = sum(table[3 * r - 3 + c, 3 * r + c][rows[:, None, c], rows[None, :, c]] for c in range(3))
            total = (total[:, None] + between).max(axis=0)
        total = total + sum(node[3 * r + c, rows[:, c]] for c in range(3))
        total = total + sum(table[3 * r + c, 3 * r + c + 1][rows[:, c], rows[:, c + 1]] for c in range(2))
    return total.max()


def test_a_cycle_that_no_bound_of_this_kind_solves():
    """Three nodes that want to differ, two labels: the best is 2, halves everywhere score 3."""
    unlike = 1.0 - np.eye(2)
    settings = {"offsets": [0, 3], "edge_offsets": [0, 3]}
    found = relaxed_map(np.zeros((3, 2)), [[0, 1], [1, 2], [2, 0]], unlike, **settings)
    assert found.values.tolist() == [2.0]
    np.testing.assert_allclose(found.bounds, 3.0)
    assert found.exact.tolist() == [False]
    assert found.rounds[0] < 10  # it notices that nothing moves any more


def test_no_single_label_can_be_improved(random):
    batch = Batch(4)
    for _ in range(30):
        nodes, edges, pair = random_grid(random, 4, 4, 4)
        batch.add(0.1 * nodes, edges, pair)
    found = batch.solve(max_rounds=1)
    assert not found.exact.all()
    for k, x in enumerate(np.split(found.labels, batch.offsets[1:-1])):
        for s, label in itertools.product(range(len(x)), range(4)):
            changed = x.copy()
            changed[s] = label
            assert score(*batch.graphs[k], changed) <= found.values[k] + 1e-9


@pytest.mark.parametrize("labels", [2, 6])
def test_one_table_for_all_and_either_direction_of_an_edge(labels, random):
    node, edges, _ = random_grid(random, labels)
    table = random.normal(size=(labels, labels))
    settings = {"offsets": [0, len(node)], "edge_offsets": [0, len(edges)]}
    one = relaxed_map(node, edges, table, **settings)
    all_ = relaxed_map(node, edges, np.repeat(table[None], len(edges), axis=0), **settings)
    turned = relaxed_map(node, edges[:, ::-1], table.T, **settings)
    for other in (all_, turned):
        np.testing.assert_array_equal(one.labels, other.labels)
        np.testing.assert_allclose(one.bounds, other.bounds, rtol=1e-12)


def test_threads_do_not_matter(random):
    batch = random_batch(random, 3, 40)
    one, two = batch.solve(), batch.solve(threads=Threads(3))
    for name in ("labels", "values", "bounds", "rounds", "exact"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name))


def test_a_graph_without_any_labelling():
    """Known for certain, whether at once or through a cycle of forbidden pairs; its neighbour is not disturbed."""
    batch, different = Batch(2), np.where(np.eye(2) > 0, -np.inf, 0.0)
    batch.add(np.full((1, 2), -np.inf), [], np.empty((0, 2, 2)))
    batch.add(np.zeros((2, 2)), [[0, 1]], np.full((1, 2, 2), -np.inf))
    batch.add(np.array([[0.0, -np.inf], [0.0, 0.0], [0.0, 0.0]]), [[0, 1], [1, 2], [2, 0]], np.stack([different] * 3))
    batch.add(np.array([[1.0, 2.0]]), [], np.empty((0, 2, 2)))
    found = batch.solve()
    assert found.bounds.tolist() == [-np.inf, -np.inf, -np.inf, 2.0]
    assert found.values.tolist() == [-np.inf, -np.inf, -np.inf, 2.0]
    assert found.exact.all()
    assert found.rounds.tolist() == [1, 1, 1, 1]


def test_nothing_found_is_not_exact():
    """Three nodes that must differ, two labels: relaxed marginals exist, so only the value knows."""
    different = np.where(np.eye(2) > 0, -np.inf, 0.0)
    found = relaxed_map(np.zeros((3, 2)), [[0, 1], [1, 2], [2, 0]], different, offsets=[0, 3], edge_offsets=[0, 3])
    assert found.values.tolist() == [-np.inf]
    assert found.bounds.tolist() == [0.0]
    assert found.exact.tolist() == [False]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"node": np.zeros(3)}, r"node must have shape \(nodes, labels\)"),
        ({"pair": np.zeros((2, 3))}, r"pair must have shape \(2, 2, 2\), or \(2, 2\)"),
        ({"node": np.full((5, 2), np.nan)}, "node has scores that are infinite or not numbers"),
        ({"pair": np.full((2, 2), np.inf)}, "pair has scores that are infinite"),
        ({"edges": [[0, 1], [0, 3]]}, r"graph 1, edge 0: \[0, 3\] must be two different nodes of 0..2"),
        ({"edges": [[1, 1], [0, 1]]}, r"graph 0, edge 0: \[1, 1\] must be two different nodes of 0..1"),
        ({"edges": [[-1, 1], [0, 1]]}, "graph 0, edge 0"),
        ({"offsets": [0, 2, 4]}, "offsets must be n .* from 0 to 5"),
        ({"edge_offsets": [0, 2]}, "offsets speak of 2 graphs, edge_offsets of 1"),
        ({"max_rounds": 0}, "max_rounds must be at least 1, got 0"),
    ],
)
def test_what_makes_no_sense_is_refused(change, message):
    arguments = {"node": np.zeros((5, 2)), "edges": [[0, 1], [0, 2]], "pair": np.zeros((2, 2))}
    arguments |= {"offsets": [0, 2, 5], "edge_offsets": [0, 1, 2]} | change
    with pytest.raises(ValueError, match=message):
        relaxed_map(**arguments)
