"""Multilabel structures against enumeration; mutual information by its definition, trees against all trees."""

import itertools

import numpy as np
import pytest
import scipy.sparse

from m3n.checks import check_gradient, check_structure, total_score
from m3n.losses import Hamming
from m3n.packed import Threads
from m3n.structures import Multilabel, multilabel_pairs
from m3n.structures.multilabel import mutual_information


def related_labels(random, n, labels):
    """Labels that copy or contradict earlier ones, with noise."""
    Y = random.integers(2, size=(n, labels))
    for label in range(1, labels):
        source = random.integers(label)
        copied = random.random(n) < random.uniform(0.2, 0.9)
        Y[copied, label] = Y[copied, source] ^ random.integers(2)
    return Y[:, random.permutation(labels)]


def information(Y, i, j):
    """Sum over the four cases."""
    total = 0.0
    for a, b in itertools.product((0, 1), repeat=2):
        both = np.mean((Y[:, i] == a) & (Y[:, j] == b))
        if both > 0:
            total += both * np.log(both / (np.mean(Y[:, i] == a) * np.mean(Y[:, j] == b)))
    return total


def spanning_trees(labels):
    """All sets of labels - 1 edges without a cycle."""
    for edges in itertools.combinations(itertools.combinations(range(labels), 2), labels - 1):
        component = list(range(labels))
        for i, j in edges:
            if component[i] == component[j]:
                break
            component = [component[j] if c == component[i] else c for c in component]
        else:
            yield edges


@pytest.mark.parametrize("labels", [4, 5])
def test_the_tree_is_the_best_of_all_trees(labels, random):
    trees = list(spanning_trees(labels))
    assert len(trees) == labels ** (labels - 2)  # Cayley
    for _ in range(10):
        Y = related_labels(random, 40, labels)
        gains = {(i, j): information(Y, i, j) for i, j in itertools.combinations(range(labels), 2)}
        for (i, j), gain in gains.items():
            assert mutual_information(Y)[i, j] == pytest.approx(gain, abs=1e-12)
        found = multilabel_pairs(Y, "tree")
        assert tuple(map(tuple, found.tolist())) in trees
        best = max(sum(gains[edge] for edge in tree) for tree in trees)
        assert sum(gains[i, j] for i, j in found.tolist()) == pytest.approx(best, abs=1e-12)


def test_labels_that_say_nothing_about_one_another_still_make_a_tree():
    Y = np.array([[1, 0, 1], [1, 0, 1], [1, 0, 1]])
    assert multilabel_pairs(Y, "tree").shape == (2, 2)
    assert (mutual_information(Y) == 0.0).all()


def test_weights_are_repetitions(random):
    Y, times = related_labels(random, 30, 5), random.integers(0, 4, size=30)
    repeated = np.repeat(Y, times, axis=0)
    np.testing.assert_allclose(mutual_information(Y, times), mutual_information(repeated), atol=1e-12)
    np.testing.assert_array_equal(multilabel_pairs(Y, "tree", times), multilabel_pairs(repeated, "tree"))
    assert not np.allclose(mutual_information(Y, times), mutual_information(Y))


def test_all_and_none():
    Y = np.eye(4, dtype=int)
    assert multilabel_pairs(Y).tolist() == [[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]]
    assert multilabel_pairs(Y, "none").shape == (0, 2)
    for pairs in ("full", "tree", "none"):
        assert multilabel_pairs(Y[:, :1], pairs).shape == (0, 2)


def test_sparse_and_boolean_indicators(random):
    Y = related_labels(random, 30, 4)
    for other in (scipy.sparse.csr_array(Y), Y.astype(bool), Y.astype(float)):
        np.testing.assert_array_equal(multilabel_pairs(other, "tree"), multilabel_pairs(Y, "tree"))


@pytest.mark.parametrize(
    ("Y", "pairs", "message"),
    [
        (np.eye(2), "star", "pairs='star' is not available"),
        ([[0, 1], [2, 0]], "tree", "y, example 1, label 0: 2 is neither 0 nor 1"),
        ([[0.0, np.nan]], "full", "y, example 0, label 1: nan is neither"),
        ([0, 1], "full", "indicator matrix"),
        (np.zeros((0, 3)), "tree", "at least one example"),
        ([["a"], ["b"]], "none", "indicator matrix"),
    ],
)
def test_what_is_no_indicator_matrix_is_refused(Y, pairs, message):
    with pytest.raises(ValueError, match=message):
        multilabel_pairs(Y, pairs)


@pytest.mark.parametrize("pairs", [[], [[0, 2]], [[0, 1], [1, 2]], [[0, 1], [2, 0], [1, 2]]])
def test_oracles_agree_with_enumeration(pairs, random):
    structure = Multilabel(4, 3, pairs)
    assert structure.shapes == ((12, 2), *((2, 2) for _ in pairs))
    for forbid in (0.0, 0.2):
        theta = tuple(random.normal(size=shape) for shape in structure.shapes)
        theta[0][random.random(theta[0].shape) < forbid] = -np.inf
        theta[0][:, 0] = np.where(np.isinf(theta[0]).all(axis=1), 0.0, theta[0][:, 0])
        check_structure(structure, theta, 0.7)
    check_gradient(structure, tuple(random.normal(size=shape) for shape in structure.shapes), 0.7)


@pytest.mark.parametrize("pairs", [[], [[0, 1], [1, 2]], [[0, 1], [2, 0], [1, 2]]])
def test_slack_rescaling_against_its_definition(pairs, random):
    structure = Multilabel(6, 3, pairs)
    gold = random.integers(2, size=18)
    cost = Hamming(class_weight=[1.0, 2.5]).cost(structure, gold)
    for scale in (3.0, 0.1, -np.inf):  # the last: nothing but gold is possible, so gold it is
        theta = tuple(abs(scale) * random.normal(size=shape) for shape in structure.shapes)
        if scale == -np.inf:
            theta = tuple(np.zeros(shape) for shape in structure.shapes)
            theta[0][np.arange(18), 1 - gold] = -np.inf
        values, labelling, losses = structure.slack(theta, gold, cost, Threads(2))
        for i in range(6):
            alone, rows = structure.select(np.array([i]))
            mine, span = tuple(a if row is None else a[row] for a, row in zip(theta, rows, strict=True)), rows[0]
            own = cost.select(rows, [i])
            found = {
                tuple(y.tolist()): (own.expected(parts := alone.encode(y)), total_score(mine, parts))
                for y in structure.enumerate(i)
            }
            reference = found[tuple(gold[span].tolist())][1]
            best = max(ell * (1 + s - reference) if ell else 0.0 for ell, s in found.values())
            assert values[i] == pytest.approx(best)
            ell, s = found[tuple(labelling[span].tolist())]
            assert losses[i] == ell
            assert (ell * (1 + s - reference) if ell else 0.0) == pytest.approx(best)


def test_slack_rescaling_of_many_labels_is_searched(monkeypatch, random):
    """The answer is that of enumeration."""
    structure, gold = Multilabel(40, 5, [[0, 1], [1, 2], [0, 3]]), random.integers(2, size=200)
    cost = Hamming(class_weight=[1.0, 1.7]).cost(structure, gold)
    theta = tuple(random.normal(size=shape) for shape in structure.shapes)
    listed = structure.slack(theta, gold, cost)
    monkeypatch.setattr("m3n.structures.multilabel.MOST_ENUMERATED", 2)
    np.testing.assert_allclose(structure.slack(theta, gold, cost)[0], listed[0], rtol=1e-9, atol=1e-9)


def test_the_rows_of_an_indicator_matrix_are_outputs():
    Y = np.array([[0, 1, 1], [1, 0, 0]])
    structure = Multilabel(2, 3, [[0, 2]])
    labelling = structure.pack(Y)
    assert structure.unpack(labelling) == Y.tolist()
    np.testing.assert_array_equal(structure.encode(labelling)[1], [[0, 1], [1, 0]])


def test_pairs_of_labels_that_do_not_exist_are_refused():
    with pytest.raises(ValueError, match=r"scope \[1, 3\] must name 2 different variables out of 0..2"):
        Multilabel(2, 3, [[1, 3]])
