import numpy as np
import pytest
import scipy.sparse

from m3n import Problem
from m3n.checks import check_adjoint, check_problem
from m3n.features import Dense, NoTable, SymmetricTable, TwoWays, graph_features
from m3n.features.base import _written_out
from m3n.losses import EdgeHamming, Hamming
from m3n.structures import Factors, Graph, LoopyGraph, Tree

KINDS = np.array([0, 1, -1])
CYCLE = np.array([[0, 1], [2, 1], [0, 2]])


def dense(rows, dim):
    """Rows written out as a matrix (parts, weights)."""
    matrix, part = np.zeros((int(rows.widths.sum()), dim)), 0
    for r, width in enumerate(rows.widths):
        for e in range(rows.pointers[r], rows.pointers[r + 1]):
            matrix[np.arange(part, part + width), rows.runs[e] + np.arange(width)] += rows.data[e]
        part += width
    return matrix


@pytest.fixture
def maps(random):
    X = random.normal(size=(4, 3))
    sparse = scipy.sparse.csr_array(X)
    return {
        "symmetric": SymmetricTable(3),
        "none": NoTable(3, 3),
        "ways": TwoWays(X, 3, KINDS),
        "sparse": TwoWays(sparse, 3, KINDS),
    }


def test_adjoints_and_rows(maps):
    for features in maps.values():
        check_adjoint(features)
        np.testing.assert_allclose(dense(features.rows(), features.dim), dense(_written_out(features), features.dim))


def test_symmetric_table(maps):
    table = maps["symmetric"]
    assert table.dim == 6
    (scores,) = table.scores(np.arange(6.0), (np.empty((3, 3)),))
    np.testing.assert_array_equal(scores, [[0, 1, 3], [1, 2, 4], [3, 4, 5]])


def test_edge_features(maps, random):
    """An edge there and back scores what the tables say, and the same if it is written the other way round."""
    ways, w = maps["ways"], random.normal(size=27)
    there, back = ways.scores(w, tuple(np.empty(shape) for shape in ways.shapes))
    tables = w.reshape(3, 3, 3)
    tables = np.stack([tables[0], (tables[1] + tables[1].T) / 2, (tables[2] - tables[2].T) / 2])
    np.testing.assert_allclose(ways.weights(w), tables)
    X = ways.ways[0].X / [1.0, 0.5, 0.5]
    np.testing.assert_allclose(there + back.transpose(0, 2, 1), np.einsum("ef,fab->eab", X, tables))
    np.testing.assert_allclose(maps["sparse"].scores(w, (there.copy(), back.copy()))[1], back)


@pytest.mark.parametrize("kind", ["tree", "graph", "loopy"])
def test_problems(kind, random):
    edges = CYCLE[:2] if kind == "tree" else CYCLE
    if kind == "graph":
        common = Factors([edges], shared=True)
        structure = Graph([3], 2, [common, *common.tables(both_ways=True)])
    else:
        structure = {"tree": Tree, "loopy": LoopyGraph}[kind]([3], 2, [edges], tables=True, both_ways=True)
    node, edge = Dense(random.normal(size=(3, 2)), 2), TwoWays(random.normal(size=(len(edges), 3)), 2, KINDS)
    features = graph_features(structure, node, edge, common=SymmetricTable(2))
    problem = Problem(structure, features, [[0, 1, 1]], loss=Hamming() + EdgeHamming(), lam=0.1)
    check_problem(problem)
    everything_wrong = structure.encode(structure.pack([[1, 0, 0]]))
    assert problem.cost.expected(everything_wrong) == pytest.approx(3 + len(edges))  # every edge counts once


def test_refusals(random):
    with pytest.raises(ValueError, match="kinds must be -1, 0 or 1 for each of the 2 features"):
        TwoWays(random.normal(size=(3, 2)), 2, np.array([0, 2]))
    with pytest.raises(ValueError, match="needs tables=True"):
        Tree([2], 2, [[[0, 1]]], both_ways=True)
