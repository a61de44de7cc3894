"""Passes over lanes of shards: the same sums as in one piece, and the same bits whoever makes them."""

import pickle
from functools import partial

import numpy as np
import pytest

from m3n import Problem, minimize
from m3n.features import Dense, Sparse, chain_features
from m3n.losses import Hamming, PartLoss
from m3n.problem import EngineLost
from m3n.problem.engines import ThreadEngine
from m3n.problem.lanes import Lane
from m3n.problem.sharded import Sharded
from m3n.problem.sources import climbed, cut, total
from m3n.problem.spool import Spooled
from m3n.solvers import BMRM, LBFGS, BatchFrankWolfe, ExcessiveGap, ExponentiatedGradient, Extragradient
from m3n.structures import Chain, Multiclass, NonProjectiveTree
from tests.tiny import multiclass_problem

LENGTHS = (2, 3, 1, 4, 2, 3, 5, 1, 2, 2, 3)


def whole_problem(temperature=0.0, weighted=True, rescale="margin", edges=False):
    random = np.random.default_rng(4)
    structure = Chain(LENGTHS, 3, edges=edges)
    pairs = Dense(random.normal(size=(sum(LENGTHS) - len(LENGTHS), 2)), (3, 3)) if edges else None
    features = chain_features(Dense(random.normal(size=(sum(LENGTHS), 3)), 3), 3, pairs)
    y = [random.integers(3, size=length) for length in LENGTHS]
    weights = random.uniform(0.5, 2.0, len(LENGTHS)) if weighted else None
    loss = PartLoss(missed=2.0) if edges else None if temperature else Hamming()
    return Problem(
        structure, features, y, loss=loss, lam=0.1, sample_weight=weights, temperature=temperature, rescale=rescale
    )


def sharded(problem, lanes, threads=1, memory=None):
    return Sharded(ThreadEngine(Spooled(problem, lanes), threads, lanes, memory), problem.lam)


def small_shards(monkeypatch, scores=40):
    """Several shards in a lane, and several pieces in a shard."""
    monkeypatch.setattr("m3n.problem.spool.MOST", scores)
    monkeypatch.setattr("m3n.problem.lanes.PIECE", scores // 2)


PROBLEMS = {
    "margin": whole_problem,
    "edges": partial(whole_problem, edges=True),
    "crf": partial(whole_problem, temperature=1.0),
    "unweighted": partial(whole_problem, weighted=False),
    "slack": partial(whole_problem, rescale="slack"),
    "rows": partial(multiclass_problem, seed=3),
}


@pytest.mark.parametrize("lanes", [1, 2, 3, 11, 20])
@pytest.mark.parametrize("kind", PROBLEMS)
def test_answers_are_those_of_the_whole(kind, lanes, monkeypatch):
    small_shards(monkeypatch)
    problem = PROBLEMS[kind]()
    w = np.random.default_rng(1).normal(size=problem.dim)
    there = sharded(problem, lanes)
    with there.engine:
        assert there.engine.lanes == lanes if lanes <= 3 else 3 < there.engine.lanes <= problem.n
        asked = [] if kind == "slack" else [("soft", w, 0.3), ("soft", w, 1.7, None, 0.4)]
        for question, *arguments in [("hard", w), *asked]:
            found, expected = (getattr(p, question)(*arguments) for p in (there, problem))
            np.testing.assert_allclose(found.vector, expected.vector, atol=1e-12)
            for name in ("value", "loss", "offset"):
                np.testing.assert_allclose(getattr(found, name), getattr(expected, name), atol=1e-12)
        assert there.primal(w) == pytest.approx(problem.primal(w), abs=1e-12)
        assert there.radius == pytest.approx(problem.radius)
        assert there.log_size == pytest.approx(problem.log_size)
        assert there.passes == pytest.approx(2.0 + len(asked))
        for one, other in zip(there.outputs(w), problem.outputs(w), strict=True):
            np.testing.assert_allclose(one, other, atol=1e-12)


@pytest.mark.parametrize("lanes", [1, 2, 4])
def test_some_of_the_examples(lanes, random, monkeypatch):
    small_shards(monkeypatch)
    problem = whole_problem()
    w, there = random.normal(size=problem.dim), sharded(problem, lanes)
    for chosen in ([3], [0, 10], [1, 2, 5, 6, 7], list(range(11))):
        found, expected = there.hard(w, np.array(chosen)), problem.hard(w, np.array(chosen))
        np.testing.assert_allclose(found.vector, expected.vector, atol=1e-12)
        assert found.value == pytest.approx(expected.value)
        some = there.whole.over(np.array(chosen))
        np.testing.assert_allclose(some.over(np.array([0])).hard(w).vector, problem.hard(w, chosen[:1]).vector)
    for count in (1, 2, 5, 11):
        pieces = there.cut(count)
        assert sorted(np.concatenate(pieces)) == list(range(11)) and len(pieces) == count


def test_bits_depend_on_lanes_alone(random, monkeypatch):
    """Not on threads, nor on how often shards are opened anew because memory is short."""
    small_shards(monkeypatch)
    problem = whole_problem(temperature=1.0)
    w = random.normal(size=problem.dim)
    for lanes in (1, 3, 5):
        answers = [sharded(problem, lanes, threads, memory).soft(w, 1.0) for threads, memory in [(1, 0.0), (4, None)]]
        np.testing.assert_array_equal(answers[0].vector, answers[1].vector)
        assert answers[0].offset == answers[1].offset


@pytest.mark.parametrize(
    "solver", [ExcessiveGap(), BMRM(), Extragradient(), ExponentiatedGradient(), BatchFrankWolfe()]
)
def test_batch_solvers_for_networks(solver):
    problem = whole_problem()
    with sharded(problem, 3, 2).engine as engine:
        there = minimize(Sharded(engine, problem.lam), solver, tol=0.0, max_passes=30)
    here = minimize(problem, solver, tol=0.0, max_passes=30)
    if not isinstance(solver, BatchFrankWolfe):  # whose batches are others
        np.testing.assert_allclose(there.w, here.w, atol=1e-4)
    gap = there.certificate.gap
    assert there.certificate.primal == pytest.approx(problem.primal(there.w))
    assert gap >= 0.0 and there.certificate.dual <= here.certificate.primal


@pytest.mark.parametrize("solver", [LBFGS(), BMRM(), ExponentiatedGradient()])
def test_batch_solvers_for_crfs(solver):
    problem = whole_problem(temperature=1.0)
    with sharded(problem, 3).engine as engine:
        there = minimize(Sharded(engine, problem.lam), solver, tol=0.0, max_passes=20)
    np.testing.assert_allclose(there.w, minimize(problem, solver, tol=0.0, max_passes=20).w, atol=1e-5)


def test_a_structure_that_is_copied_to_be_cut(random):
    """Trees over the words of sentences: nothing about them is light."""
    lengths = [2, 3, 4, 2, 3]
    trees = NonProjectiveTree(lengths)
    heads = trees.unpack(trees.hard((random.normal(size=trees.shapes[0]),))[1])
    X = random.normal(size=(trees.shapes[0][0], 3))
    problem = Problem(trees, Parts(X), heads, lam=0.1, temperature=1.0)
    w = random.normal(size=3)
    for lanes in (1, 2, 5):
        found, expected = sharded(problem, lanes).soft(w, 1.0), problem.soft(w, 1.0)
        np.testing.assert_allclose(found.vector, expected.vector, atol=1e-12)
        assert found.offset == pytest.approx(expected.offset)


class Parts(Dense):
    """A row of features for every part."""

    def __init__(self, X):
        super().__init__(X, 1)
        self.shapes = ((len(self.X),),)

    def select(self, rows):
        return Parts(self.X[rows[0]])


def test_what_an_oracle_says_is_raised_here():
    problem = whole_problem()
    there = sharded(problem, 2, 2)
    with pytest.raises(FloatingPointError, match="the weights contain NaN"):
        there.hard(np.full(problem.dim, np.nan))


def test_kernels_stay_where_they_are(random):
    from m3n.features import Kernel

    X = random.normal(size=(6, 2))
    problem = Problem(Multiclass(6, 3), Kernel(X @ X.T, 3), [0, 1, 2, 0, 1, 2], lam=1.0)
    with pytest.raises(TypeError, match="inner product of its own"):
        Spooled(problem, 2)


def test_files_are_gone_afterwards():
    source = Spooled(whole_problem(), 2)
    assert source.folder.is_dir()
    with ThreadEngine(source, 1, 2):
        pass
    assert not source.folder.exists()


def test_files_are_gone_with_whoever_made_them_and_not_with_copies():
    source = Spooled(whole_problem(), 2)
    folder, copy = source.folder, pickle.loads(pickle.dumps(source))
    assert copy.folder == folder and copy.open(0).structure.n
    del copy
    assert folder.is_dir()
    del source
    assert not folder.exists()


@pytest.mark.parametrize("lanes", range(1, 10))
def test_the_tree_is_the_same_however_it_is_climbed(lanes, random):
    leaves = random.normal(size=lanes) * 10.0 ** random.integers(-9, 9, lanes)
    expected = total(leaves.tolist())
    for middle in range(1, lanes):
        parts = [
            dict(climbed({(0, k): leaves[k] for k in own}, lanes)) for own in (range(middle), range(middle, lanes))
        ]
        (root,) = climbed(parts[1] | parts[0], lanes).values()
        assert root == expected


def test_lanes_of_equal_work():
    class Sizes:
        edges = None

        def __init__(self, sizes, work):
            self.sizes, self.work, self.n = np.array(sizes), np.array(work, float), sum(sizes)

    for sizes, work in [([10, 10], [1, 1]), ([1, 30, 2], [100, 300, 20]), ([5] * 7, range(1, 8))]:
        source = Sizes(sizes, work)
        for lanes in (1, 2, 3, 8):
            found = cut(source, lanes)
            seen = [(s.shard, i) for own in found for s in own for i in range(s.low, s.high)]
            assert seen == [(k, i) for k, size in enumerate(sizes) for i in range(size)]
            cost = np.array(work) / np.array(sizes)
            loads = [sum(cost[s.shard] * (s.high - s.low) for s in own) for own in found]
            assert max(loads) <= sum(work) / lanes + 2 * max(cost)


def test_an_engine_that_is_lost_ends_the_run():
    class Breaking(ThreadEngine):
        asked = 0

        def total(self, *arguments, **more):
            self.asked += 1
            if self.asked > 9:
                raise EngineLost("nobody is there")
            return super().total(*arguments, **more)

    problem = whole_problem()
    result = minimize(Sharded(Breaking(Spooled(problem, 2), 1, 2), problem.lam), ExcessiveGap(), tol=0.0)
    assert result.status == "workers lost"
    assert result.certificate.primal == pytest.approx(problem.primal(result.w))
    on = minimize(sharded(problem, 2), ExcessiveGap(), tol=0.0, max_passes=15, resume=result)
    assert on.certificate.gap < result.certificate.gap


def test_sparse_rows_with_one_value(random):
    """Where all entries have one value a range of rows still has it, without a copy of the columns."""
    import scipy.sparse

    X = scipy.sparse.random_array((9, 5), density=0.5, format="csr", rng=random)
    X.data[:] = 2.0
    features, w = Sparse(X, 3), random.normal(size=15)
    part = features.select((slice(2, 7),))
    assert np.shares_memory(part.X.indices, features.X.indices)
    np.testing.assert_allclose(part.scores(w, (np.empty((5, 3)),))[0], X.toarray()[2:7] @ w.reshape(5, 3))
    M = random.normal(size=(5, 3))
    np.testing.assert_allclose(part.adjoint((M,)), (X.toarray()[2:7].T @ M).ravel())


def test_lanes_keep_what_solvers_leave():
    engine = ThreadEngine(Spooled(whole_problem(), 3), 2, 3)
    engine.run(leave, each=[4, 5, 6])
    assert engine.run(left) == [4, 5, 6]


def leave(lane: Lane, number):
    lane.kept["number"] = number


def left(lane: Lane):
    return lane.kept["number"]
