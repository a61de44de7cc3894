import itertools

import numpy as np
import pytest

from m3n.structures import relaxed_marginals
from m3n.structures.relaxed_marginals import appearance

TREE = [[0, 1], [2, 1], [1, 3], [4, 3]]
CYCLES = {
    "cycle": [[0, 1], [1, 2], [2, 3], [3, 0]],
    "complete": [[0, 1], [0, 2], [1, 2], [2, 3], [3, 0], [3, 1]],
    "parallel": [[0, 1], [1, 0], [1, 2], [2, 0]],
}


def enumerated(node, edges, pair, temperature):
    """T log Z and the marginals, from every labelling."""
    nodes, labels = node.shape
    outputs = np.array(list(itertools.product(range(labels), repeat=nodes)))
    scores = node[np.arange(nodes), outputs].sum(axis=1)
    for table, (a, b) in zip(pair, edges, strict=True):
        scores = scores + table[outputs[:, a], outputs[:, b]]
    total = np.logaddexp.reduce(scores / temperature)
    shares, marginals = np.exp(scores / temperature - total), np.zeros(node.shape)
    for v in range(nodes):
        np.add.at(marginals[v], outputs[:, v], shares)
    return temperature * total, marginals


def drawn(random, edges, labels=3):
    node = random.normal(size=(np.max(edges) + 1, labels))
    pair = 2 * random.normal(size=(len(edges), labels, labels))
    node[0, 1] = pair[0, 2, 2] = -np.inf
    return node, np.array(edges), pair


def solved(node, edges, pair, temperature):
    cuts = {"offsets": np.array([0, len(node)]), "edge_offsets": np.array([0, len(edges)])}
    return relaxed_marginals(node, edges, pair, **cuts, temperature=temperature)


@pytest.mark.parametrize("temperature", [0.5, 2.0])
def test_trees_are_exact(random, temperature):
    problem = drawn(random, TREE)
    found, (value, marginals) = solved(*problem, temperature), enumerated(*problem, temperature)
    assert found.converged.all()
    assert found.values[0] == pytest.approx(value)
    np.testing.assert_allclose(found.node, marginals, atol=1e-7)


@pytest.mark.parametrize("name", CYCLES)
def test_cycles_are_bounded(random, name):
    """The value is above T log Z, and its slope in a score is the marginal."""
    node, edges, pair = problem = drawn(random, CYCLES[name])
    found, (value, marginals) = solved(*problem, 0.7), enumerated(*problem, 0.7)
    assert found.converged.all()
    assert found.values[0] > value + 1e-3
    np.testing.assert_allclose(found.node.sum(axis=1), 1.0)
    assert (found.node[marginals == 0.0] == 0.0).all()
    step = np.zeros(node.shape)
    step[2, 1] = 1e-4
    slope = (solved(node + step, edges, pair, 0.7).values - solved(node - step, edges, pair, 0.7).values) / 2e-4
    assert slope[0] == pytest.approx(found.node[2, 1], abs=1e-5)


def test_several_graphs_and_a_shared_table(random):
    node, table = random.normal(size=(6, 2)), random.normal(size=(2, 2))
    edges = np.array([[0, 1], [1, 2], [0, 2], [0, 1]])
    found = relaxed_marginals(node, edges, table, offsets=np.array([0, 3, 5, 6]), edge_offsets=np.array([0, 3, 4, 4]))
    for k, (own, mine) in enumerate(
        [(slice(0, 3), slice(0, 3)), (slice(3, 5), slice(3, 4)), (slice(5, 6), slice(4, 4))]
    ):
        pair = np.tile(table, (mine.stop - mine.start, 1, 1))
        alone = solved(node[own], edges[mine], pair, 1.0)
        np.testing.assert_allclose(found.node[own], alone.node)
        assert found.values[k] == pytest.approx(alone.values[0])
    np.testing.assert_allclose(found.node[5], np.exp(node[5]) / np.exp(node[5]).sum())


def test_appearance():
    np.testing.assert_array_equal(appearance(5, np.sort(TREE, axis=1)), 1.0)
    cycle = appearance(4, np.sort(CYCLES["cycle"], axis=1))
    assert cycle.sum() == pytest.approx(3.0)  # every forest of it has three edges
    assert ((cycle > 0.0) & (cycle <= 1.0)).all()
