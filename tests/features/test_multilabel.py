"""Maps of multilabel problems, against their definition."""

import numpy as np
import pytest
import scipy.sparse

from m3n.checks import check_adjoint
from m3n.features import BinaryLabels, Dense, Kernel, Observed, Scaled, Sparse, Stack, Table
from m3n.packed import SERIAL, Threads

EXAMPLES, ATTRIBUTES, LABELS, PAIRS = 7, 5, 3, 2


def inputs(random):
    return random.normal(size=(EXAMPLES, ATTRIBUTES)) * (random.random((EXAMPLES, ATTRIBUTES)) < 0.7)


def maps(random):
    X = inputs(random)
    return {
        "dense": BinaryLabels(Dense(X, LABELS)),
        "sparse": BinaryLabels(Sparse(scipy.sparse.csr_array(X), LABELS)),
        "one label": BinaryLabels(Dense(X, 1)),
        "kernel": BinaryLabels(Kernel(X, LABELS, "rbf")),
        "both": Stack(BinaryLabels(Dense(X, LABELS)), Scaled(BinaryLabels(Dense(X, PAIRS)), 0.5)),
    }


NAMES = list(maps(np.random.default_rng(0)))


def filled(features, w, threads=SERIAL):
    return features.scores(w, tuple(np.full(shape, np.nan) for shape in features.shapes), threads)


@pytest.mark.parametrize("name", NAMES)
def test_adjoint(name, random):
    check_adjoint(maps(random)[name])


def test_only_ones_score(random):
    X, W = inputs(random), random.normal(size=(ATTRIBUTES, LABELS))
    for name in ("dense", "sparse"):
        for threads in (Threads(1), Threads(3)):
            (node,) = filled(maps(np.random.default_rng(0))[name], W.ravel(), threads)
            np.testing.assert_array_equal(node[:, 0], 0.0)
            np.testing.assert_allclose(node[:, 1].reshape(EXAMPLES, LABELS), X @ W)


@pytest.mark.parametrize("name", ["dense", "sparse", "one label", "both"])
def test_rows_score_the_same(name, random):
    """Runs: part j meets weight runs[e] + j. Lists: weight k scores part columns[k], the last of a list ~columns[k]."""
    features = maps(random)[name]
    w, rows = random.normal(size=features.dim), features.rows()
    found = []
    for r, width in enumerate(rows.widths):
        theta = np.zeros(width)
        for e in range(rows.pointers[r], rows.pointers[r + 1]):
            if rows.lists is None or e < rows.lists[r]:
                theta += rows.data[e] * w[rows.runs[e] : rows.runs[e] + width]
                continue
            k = rows.runs[e]
            while rows.columns[k] >= 0:
                theta[rows.columns[k]] += rows.data[e] * w[k]
                k += 1
            theta[~rows.columns[k]] += rows.data[e] * w[k]
        found.append(theta)
    np.testing.assert_allclose(np.concatenate(found), np.concatenate([part.ravel() for part in filled(features, w)]))
    assert rows.arrays == (EXAMPLES,) * len(features.shapes)


@pytest.mark.parametrize("examples", [np.array([4, 1]), slice(2, 5)], ids=["array", "slice"])
def test_selection_takes_whole_examples(examples, random):
    features = maps(random)["both"]
    numbers = np.arange(EXAMPLES)[examples]
    rows = [np.arange(EXAMPLES * each).reshape(EXAMPLES, each)[numbers].ravel() for each in (LABELS, PAIRS)]
    if isinstance(examples, slice):
        rows = [slice(each * examples.start, each * examples.stop) for each in (LABELS, PAIRS)]
    w = random.normal(size=features.dim)
    some = filled(features.select(tuple(rows)), w)
    for part, whole, row in zip(some, filled(features, w), rows, strict=True):
        np.testing.assert_array_equal(part, whole[row])


def test_half_an_example_is_refused(random):
    for rows in (slice(1, 4), np.array([0, 2, 1])):
        with pytest.raises(ValueError, match="rows must be those of whole examples, 3 each"):
            maps(random)["dense"].select((rows,))


def test_norms_bound_the_difference_of_two_values(random):
    """sqrt(2) times the norm is what structures reckon with."""
    features = maps(random)["dense"]
    for r in range(features.shapes[0][0]):
        parts = np.zeros(features.shapes[0])
        parts[r] = -1.0, 1.0
        expected = np.linalg.norm(features.adjoint((parts,)))
        assert np.sqrt(2.0) * features.norms()[0][r] == pytest.approx(expected)


def test_kernels_keep_their_inner_product(random):
    kernel = Kernel(inputs(random), LABELS, "rbf")
    features = BinaryLabels(kernel)
    u, v = (kernel.refresh(random.normal(size=kernel.dim)) for _ in range(2))
    assert features.inner(u, v) == kernel.inner(u, v)
    assert not features.euclidean
    with pytest.raises(TypeError, match="BinaryLabels of Kernel cannot be written out"):
        features.rows()


def test_maps_that_do_not_fit_are_refused(random):
    with pytest.raises(ValueError, match=r"one array \(n, labels\)"):
        BinaryLabels(Table(2, 2, 2))
    X = scipy.sparse.csr_array(np.eye(3))
    with pytest.raises(TypeError, match="BinaryLabels of Observed cannot be written out"):
        BinaryLabels(Observed(X, scipy.sparse.csr_array(np.eye(3, dtype=bool)))).rows()
