"""The problem example by example must be the problem."""

import numpy as np
import pytest

from m3n import Problem
from m3n.compiled.maps.costs import add_costs
from m3n.compiled.oracles import hooks
from m3n.compiled.sweeps import visits
from m3n.features import Dense, Sparse, chain_features
from m3n.losses import Hamming
from m3n.problem.blocks import Blocks
from m3n.structures import Chain
from tests.kernels import kept
from tests.structures.support import cliques_of
from tests.tiny import Enumerated, chain_problem, multiclass_problem


def edge_problem(seed=0):
    """Edge features, forbidden transitions, starts and ends."""
    random = np.random.default_rng(seed)
    lengths, labels = [3, 1, 2, 4], 3
    forbidden = np.zeros((labels, labels), bool)
    forbidden[0, 2] = forbidden[2, 2] = True
    structure = Chain(
        lengths, labels, edges=True, forbidden=forbidden, forbidden_start=[True, False, False], forbidden_end=[0, 1, 0]
    )
    node, edge = random.normal(size=(sum(lengths), 4)), random.normal(size=(sum(lengths) - 4, 2))
    features = chain_features(Dense(node, labels), labels, Dense(edge, (labels, labels)))
    y = [[1, 1, 0], [2], [1, 2], [2, 1, 0, 0]]
    return Problem(structure, features, y, loss=Hamming(), lam=0.1, n_jobs=1)


PROBLEMS = [chain_problem, multiclass_problem, edge_problem]


@kept
def all_best(space, rows, costs, w, values, parts, counts):
    work = hooks.workspace(space)
    theta = np.empty(rows.sizes.max())
    for i in range(rows.sizes.shape[0]):
        local = theta[: rows.sizes[i]]
        visits.gather(rows, i, w, local)
        add_costs(costs, i, local, 1.0)
        values[i], counts[i] = hooks.best(space, i, local, parts[i], work)


@kept
def all_soft(space, rows, costs, w, mu, values, marginals):
    work = hooks.workspace(space)
    for i in range(rows.sizes.shape[0]):
        local = marginals[i, : rows.sizes[i]]
        visits.gather(rows, i, w, local)
        add_costs(costs, i, local, 1.0)
        values[i] = hooks.soft(space, i, local, mu, work)


@kept
def all_worst(space, rows, costs, w, mass, values, parts, counts):
    work = hooks.workspace(space)
    theta = np.empty(rows.sizes.max())
    for i in range(rows.sizes.shape[0]):
        local = theta[: rows.sizes[i]]
        visits.gather(rows, i, w, local)
        values[i], counts[i] = hooks.worst(space, i, local, mass[i], parts[i], work)


def in_python(problem):
    """The same blocks with the structure's own methods in the interpreter."""
    blocks = Blocks(problem.structure, problem.features, problem.cost, problem.gold)
    blocks.space = blocks.interpreted
    return blocks


def both(problem):
    return problem.blocks, in_python(problem)


@pytest.mark.parametrize("make", PROBLEMS)
def test_block_oracles_are_those_of_the_batch(make, random):
    problem = make()
    w = random.normal(size=problem.dim)
    theta = problem.features.scores(w, problem.structure.empty())
    problem.cost.add_to(theta)
    hard, labelling = problem.structure.hard(theta)
    expected, expected_counts = problem.structure.local_parts(labelling)
    soft, _ = problem.structure.soft(theta, 0.7)
    for blocks in both(problem):
        values, counts, parts = np.empty(problem.n), np.empty(problem.n, np.int64), np.zeros_like(expected)
        blocks.run(all_best, w, values, parts, counts)
        np.testing.assert_allclose(values, hard)
        np.testing.assert_array_equal(counts, expected_counts)
        np.testing.assert_array_equal(parts, expected)
        marginals = np.zeros((problem.n, blocks.largest))
        blocks.run(all_soft, w, 0.7, values, marginals, asks="soft")
        np.testing.assert_allclose(values, soft)
        for i in range(problem.n):
            answer = problem.soft(w, 0.7, np.array([i]))
            alone, rows = problem.structure.select(np.array([i]))
            scores = problem.features.select(rows).scores(w, alone.empty())
            flat = np.concatenate([s.ravel() for s in scores])
            gold = flat[blocks.gold[i, : blocks.gold_counts[i]]].sum()
            assert gold - flat @ marginals[i, : len(flat)] == pytest.approx(problem.n * w @ answer.vector)


@pytest.mark.parametrize("make", PROBLEMS)
def test_default_parts_are_those_of_the_structure(make):
    """What a structure lists quickly, indicators of single examples say slowly."""
    from m3n.structures import Structure

    problem = make()
    structure = problem.structure
    parts, counts = structure.local_parts(problem.gold)
    slow, chosen = np.zeros_like(parts), []
    for i in range(problem.n):
        alone, rows = structure.select(np.array([i]))
        encoded = alone.encode(problem.gold[structure.entries_of(np.array([i]))])
        uses = np.concatenate([part.ravel() for part in encoded]).astype(int)
        listed = np.repeat(np.arange(len(uses)), uses)
        assert counts[i] == len(listed)
        slow[i, : counts[i]] = listed
        chosen.append(rows)
    np.testing.assert_array_equal(parts, slow)
    for quick, rows, shape in zip(structure.spans(), zip(*chosen, strict=True), structure.shapes, strict=True):
        assert (quick is None) == (rows[0] is None)
        if quick is not None:
            counted = [len(np.arange(shape[0])[r]) for r in rows]
            np.testing.assert_array_equal(quick, np.cumsum([0, *counted]))
    assert (Structure.most_parts(structure) >= structure.most_parts()).all()


@pytest.mark.parametrize("make", PROBLEMS)
def test_written_out_maps_equal_their_rows(make):
    from m3n.features import FeatureMap

    problem = make()
    quick, careful = problem.features.rows(), _dense_rows(FeatureMap.rows(Plain(problem.features)), problem.dim)
    np.testing.assert_allclose(_dense_rows(quick, problem.dim), careful)
    if isinstance(problem.features, Dense):
        sparse = Sparse(problem.features.X, problem.features.labels)
        np.testing.assert_allclose(_dense_rows(sparse.rows(), problem.dim), careful)


class Plain(Dense):
    """A map that hides how it is made."""

    def __init__(self, features):
        self.features, self.shapes, self.dim = features, features.shapes, features.dim

    def adjoint(self, parts, threads=None):
        return self.features.adjoint(parts)


def _dense_rows(rows, dim):
    out = np.zeros((int(rows.widths.sum()), dim))
    first = np.cumsum(rows.widths) - rows.widths
    for r, width in enumerate(rows.widths):
        for e in range(rows.pointers[r], rows.pointers[r + 1]):
            for j in range(width):
                out[first[r] + j, rows.runs[e] + j] += rows.data[e]
    return out


@pytest.mark.parametrize("make", PROBLEMS)
def test_worst_output_on_the_support(make, random):
    """Against enumeration: the least score among outputs all of whose cliques have mass."""
    problem = make()
    known = Enumerated.of(problem)
    structure, blocks = problem.structure, problem.blocks
    w = random.normal(size=problem.dim)
    labels = structure.labels
    mass = np.zeros((problem.n, max(max(np.bincount(known.owner)), 4 * labels * labels)))
    best = np.full(problem.n, np.inf)
    used = np.empty(int(blocks.most.max()), np.int64)
    chosen = {}
    for i in range(problem.n):
        outputs = list(structure.enumerate(i))
        for k in random.choice(len(outputs), size=min(3, len(outputs)), replace=False):
            parts = parts_of(structure, i, outputs[k])
            mass[i, used[: cliques_of(blocks.space, i, parts, used)]] = 0.3
    for i in range(problem.n):
        for y in structure.enumerate(i):
            parts = parts_of(structure, i, y)
            if (mass[i, used[: cliques_of(blocks.space, i, parts, used)]] > 0).all():
                theta = local_theta(problem, w, i)
                if theta[parts].sum() < best[i]:
                    best[i], chosen[i] = theta[parts].sum(), parts
    values, counts, parts = np.empty(problem.n), np.empty(problem.n, np.int64), np.zeros_like(blocks.gold)
    blocks.run(all_worst, w, mass, values, parts, counts, asks="support")
    np.testing.assert_allclose(values, best)
    for i in range(problem.n):
        np.testing.assert_array_equal(parts[i, : counts[i]], chosen[i])


def parts_of(structure, i, y):
    alone, _ = structure.select(np.array([i]))
    parts, counts = alone.local_parts(y)
    return parts[0, : counts[0]]


def local_theta(problem, w, i):
    alone, rows = problem.structure.select(np.array([i]))
    return np.concatenate([s.ravel() for s in problem.features.select(rows).scores(w, alone.empty())])


@pytest.mark.parametrize("make", PROBLEMS)
def test_scatter_is_the_adjoint_and_spread_its_norm(make, random):
    problem = make()
    rows = problem.blocks.rows
    for i in range(problem.n):
        size = int(rows.sizes[i])
        touched = random.permutation(size)[: size // 2]
        delta = np.zeros(size)
        delta[touched] = random.normal(size=len(touched))
        out, zeros = np.zeros(problem.dim), np.zeros(problem.dim)
        visits.scatter(rows, i, delta, touched, len(touched), 2.0, out)
        w = random.normal(size=problem.dim)
        assert w @ out == pytest.approx(2 * local_theta(problem, w, i) @ delta)
        assert visits.spread(rows, i, delta, touched, len(touched), zeros) == pytest.approx(out @ out / 4)
        np.testing.assert_allclose(zeros, out / 2, atol=1e-12)
        visits.wipe(rows, i, delta, touched, len(touched), zeros)
        assert not zeros.any()
        one, two = np.zeros(problem.dim), np.zeros(problem.dim)
        visits.spread(rows, i, delta, touched, len(touched), zeros)
        visits.settle(rows, i, delta, touched, len(touched), zeros, 2.0, one, -3.0, two)
        np.testing.assert_allclose(one, out, atol=1e-12)
        np.testing.assert_allclose(two, -1.5 * out, atol=1e-12)
        assert not zeros.any()
