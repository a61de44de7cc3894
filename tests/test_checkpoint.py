import copy
import pickle
import re
import warnings
from dataclasses import is_dataclass, replace

import numpy as np
import pytest
import scipy.sparse

import m3n
from m3n import Problem
from m3n.checkpoint import Checkpoint, CheckpointError
from m3n.features import Dense, chain_features
from m3n.losses import Hamming, NormalizedHamming
from m3n.run.fingerprint import digest
from m3n.run.loop import Status, minimize
from m3n.solvers import (
    BMRM,
    BY_NAME,
    SMO,
    BlockFrankWolfe,
    DualAscent,
    ExcessiveGap,
    ExponentiatedGradient,
    Pairwise,
    SequentialDual,
    SparseDualAscent,
    StructSVM,
)
from m3n.structures import Chain
from tests.tiny import chain_problem


@pytest.mark.parametrize("name", sorted(BY_NAME))
def test_a_run_that_was_cut_off_goes_on(name, tmp_path):
    """The same weights to the last bit as without a break, for every solver."""
    kind = BY_NAME[name]
    smooth = {"l1": 0.01} if kind.takes_l1 else {}
    problem = chain_problem(temperature=1.0 if kind.smooth_only else 0.0, **smooth)
    solver = BY_NAME[name]()
    saved = Checkpoint(tmp_path / "run", every=0.0)
    cut = minimize(problem, solver, tol=0.0, max_passes=4, callbacks=[saved])
    loaded = Checkpoint(tmp_path / "run").load(problem)
    assert loaded.solver == solver
    assert len(loaded.trace) == len(cut.trace)
    on, same = (minimize(problem, solver, tol=0.0, max_passes=6, resume=earlier) for earlier in (loaded, cut))
    np.testing.assert_array_equal(on.w, same.w)
    assert on.certificate == same.certificate


def test_estimators(tmp_path):
    train, _ = m3n.datasets.digit_strings(n_train=20, n_test=1)
    settings = {"lam": 1.0, "tol": 1e-2, "checkpoint": tmp_path / "run", "n_jobs": 1}
    with pytest.warns(match="pass limit"):
        cut = m3n.SequenceTagger(**settings, max_passes=5).fit(train.inputs, train.labels)
    assert (tmp_path / "run").exists()
    whole = m3n.SequenceTagger(**settings).fit(train.inputs, train.labels)
    assert not (tmp_path / "run").exists()
    assert whole.status_ is Status.TOLERANCE
    alone = m3n.SequenceTagger(**settings | {"checkpoint": None}).fit(train.inputs, train.labels)
    assert whole.trace_[-1].passes < alone.trace_[-1].passes
    assert whole.certificate_.primal < cut.certificate_.primal
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a path of this machine is none of a model's business
        whole.save(tmp_path / "model")
    assert m3n.load(tmp_path / "model").checkpoint is None


def test_other_problems_are_refused(tmp_path):
    problem = chain_problem()
    saved = Checkpoint(tmp_path / "run")
    saved.save(minimize(problem, "bmrm", tol=0.0, max_passes=3))
    with pytest.raises(CheckpointError, match=r"run' belongs to other data or settings .*; remove it or choose"):
        saved.load(chain_problem(attributes=7))
    with pytest.raises(ValueError, match="cannot resume a run of BMRM"):
        minimize(problem, "excessive_gap", resume=saved.load(problem))


class Harmful:
    def __reduce__(self):
        return (print, ("executed",))


@pytest.mark.parametrize(
    "content", [b"", b"text", pickle.dumps([1]), pickle.dumps(Harmful()), pickle.dumps(Checkpoint)]
)
def test_other_files_are_refused_and_execute_nothing(content, tmp_path, capsys):
    (tmp_path / "run").write_bytes(content)
    with pytest.raises(CheckpointError, match="is no checkpoint of this m3n"):
        Checkpoint(tmp_path / "run").load(chain_problem())
    assert capsys.readouterr().out == ""


def test_unwritable_paths_are_refused_before_the_work(tmp_path):
    with pytest.raises(FileNotFoundError, match="does not exist"):
        m3n.SequenceTagger(checkpoint=tmp_path / "no" / "run").fit([[["a"]]], [["A"]])


def saved_run(tmp_path, problem, solver, passes=4):
    """The path of a checkpoint, and the run that is in it."""
    result = minimize(problem, solver, tol=0.0, max_passes=passes)
    Checkpoint(tmp_path / "run").save(result)
    return tmp_path / "run", result


def same_data(lengths=(1, 3, 2, 4), seed=0, labels=3, loss=None, features=None, y=None, structure=None, **settings):
    """A problem whose parts can be changed one at a time."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(sum(lengths), 4))
    gold = [random.integers(labels, size=length) for length in lengths]
    features = features or chain_features(Dense(X, labels), labels)
    structure = structure or Chain(lengths, labels)
    return Problem(structure, features, y or gold, loss=loss, **{"lam": 0.1, "n_jobs": 1, **settings})


OTHERS = {
    "fewer examples": ({"lengths": (1, 3, 2)}, "for 4 examples, not 3"),
    "other labels": ({"y": [[0], [1, 2, 0], [0, 0], [2, 1, 0, 2]]}, "for other labels"),
    "other features": ({"features": chain_features(Dense(np.ones((10, 4)), 3), 3)}, "for other features"),
    "more features": ({"features": chain_features(Dense(np.ones((10, 5)), 3), 3)},
                      "for features of 27 weights, not 30"),
    "other loss": ({"loss": NormalizedHamming()}, "for another loss"),
    "other lam": ({"lam": 0.01}, "for lam=0.1, not 0.01"),
    "sample weights": ({"sample_weight": [1.0, 2.0, 3.0, 1.0]}, "for other sample weights"),
    "slack rescaling": ({"rescale": "slack"}, "for rescale='margin', not 'slack'"),
    "temperature": ({"temperature": 1.0, "loss": Hamming()}, "for temperature=0.0, not 1.0"),
    "other sequences": ({"structure": Chain((3, 1, 4, 2), 3), "y": [[1, 2, 0], [0], [2, 1, 0, 2], [0, 0]]},
                        "for another structure"),
}  # fmt: skip


@pytest.mark.parametrize("case", OTHERS)
def test_the_difference_is_named(case, tmp_path):
    """Also where the certificate is still that of w = 0 and has the same value for both problems."""
    changed, words = OTHERS[case]
    path, result = saved_run(tmp_path, same_data(), SequentialDual(), passes=2)
    assert Checkpoint(path).load(same_data()) is not None
    with pytest.raises(CheckpointError, match=f"belongs to other data or settings .*{re.escape(words)}.*; remove it"):
        Checkpoint(path).load(same_data(**changed))
    solver = "auto" if changed.keys() & {"rescale", "temperature"} else SequentialDual()
    with pytest.raises(ValueError, match=f"belongs to another problem.*{re.escape(words)}|cannot resume a run of"):
        minimize(same_data(**changed), solver, resume=result)


def test_other_settings_of_the_solver_are_refused(tmp_path):
    problem = same_data()
    path, _ = saved_run(tmp_path, problem, BMRM(patience=5))
    loaded = Checkpoint(path).load(problem)
    words = r"for solver BMRM\(stabilize='line_search', patience=5, .*\), not BMRM\(.*patience=10"
    with pytest.raises(ValueError, match=words):
        minimize(problem, BMRM(), resume=loaded)
    assert minimize(problem, BMRM(patience=5), resume=loaded, tol=1e-6).converged


def test_threads_and_what_is_prepared_on_the_way_do_not_matter(tmp_path):
    path, _ = saved_run(tmp_path, same_data(), SequentialDual())
    other = same_data(n_jobs=2)
    minimize(other, "excessive_gap", max_passes=5)
    minimize(other, "block_frank_wolfe", max_passes=5)
    assert Checkpoint(path).load(other) is not None
    assert digest(other.features) == digest(same_data().features)


class OwnMap(Dense):
    """A feature map of somebody else, with private attributes."""

    def __init__(self, X, labels):
        super().__init__(X, labels)
        self._own = np.array(X)


class Closed:
    """An object without attributes that can be read."""

    __slots__ = ()


def test_digests_of_anything():
    X = np.random.default_rng(0).normal(size=(4, 3))
    assert digest(OwnMap(X, 2)) == digest(OwnMap(X.copy(), 2)) != digest(OwnMap(X + 1e-9, 2))
    assert digest(OwnMap(X, 2)) != digest(Dense(X, 2))
    assert digest(Closed()) == digest(Closed()) != digest(object())
    assert digest(np.arange(3, dtype=np.int32)) == digest(np.arange(3)) != digest(np.arange(4))
    assert digest(np.arange(6).reshape(2, 3)) != digest(np.arange(6).reshape(3, 2))
    assert digest(np.array([1 << 40])) != digest(np.array([0]))
    assert digest({"a": [1, 2.0]}) == digest({"a": [1, np.float64(2.0)]}) != digest({"a": [2, 1.0]})
    matrix = scipy.sparse.csr_array(np.eye(3))
    again = scipy.sparse.csr_array(np.eye(3))
    assert again.has_sorted_indices  # remembered by the matrix
    assert digest(matrix) == digest(again) != digest(scipy.sparse.csr_array(2 * np.eye(3)))
    assert digest(np.array(["a", "b"])) != digest(np.array(["a", "c"]))
    circle = []
    circle.append(circle)
    assert digest(circle) == digest(circle)


def changed_at(thing, path, change):
    """A copy of a state in which the array at some path is another one."""
    if not path:
        return change(thing)
    if isinstance(path[0], int):
        return (*thing[: path[0]], changed_at(thing[path[0]], path[1:], change), *thing[path[0] + 1 :])
    inner = changed_at(getattr(thing, path[0]), path[1:], change)
    if hasattr(thing, "_replace"):
        return thing._replace(**{path[0]: inner})
    if is_dataclass(thing):
        return replace(thing, **{path[0]: inner})
    thing = copy.copy(thing)
    setattr(thing, path[0], inner)
    return thing


def arrays_in(thing, path=()):
    """The paths of all arrays in a state."""
    if isinstance(thing, np.ndarray):
        yield path
    elif hasattr(thing, "_fields"):
        for name in thing._fields:
            yield from arrays_in(getattr(thing, name), (*path, name))
    elif isinstance(thing, tuple):
        for k, inner in enumerate(thing):
            yield from arrays_in(inner, (*path, k))
    elif thing is not None and hasattr(thing, "__dict__"):
        for name, inner in vars(thing).items():
            yield from arrays_in(inner, (*path, name))


VECTORS = ("point", "average", "centre", "previous", "support", "u")  # of a support, which may be small
WRONG = {
    "type": lambda array: array.astype(np.float32 if array.dtype == float else np.int16),
    "objects": lambda array: array.astype(object),
    "dimensions": lambda array: array[..., None],
    "empty": lambda array: array[:0],
    "list": lambda array: array.tolist(),
}
SOLVERS = {
    **{name: kind() for name, kind in BY_NAME.items()},
    "n slacks": StructSVM(slack="n"),
    "no cache": StructSVM(cache=0),
    "pairwise": BlockFrankWolfe(move=Pairwise()),
    "online": ExponentiatedGradient(online=True),
    "cold": ExcessiveGap(warm=0),
}


@pytest.fixture(params=sorted(SOLVERS))
def solver_and_problem(request):
    solver = SOLVERS[request.param]
    return solver, same_data(temperature=1.0 if solver.smooth_only else 0.0, **l1_of(solver))


def l1_of(solver):
    """A penalty for a solver that needs one."""
    return {"l1": 0.01} if solver.takes_l1 else {}


def test_damaged_arrays_are_refused_one_by_one(solver_and_problem, tmp_path):
    """Of the wrong type or shape: no compiled code ever sees them."""
    solver, problem = solver_and_problem
    path, result = saved_run(tmp_path, problem, solver, passes=8)
    assert Checkpoint(path).load(problem) is not None
    found = list(arrays_in(result.state))
    assert found
    for place in found:
        for name, change in WRONG.items():
            if name == "empty" and place[-1] in ("order", *VECTORS):
                continue
            state = changed_at(result.state, place, change)
            Checkpoint(path).save(replace(result, state=state))
            with pytest.raises(CheckpointError, match=r"is damaged|is no checkpoint"):
                Checkpoint(path).load(problem)


OUT_OF_RANGE = [
    (SequentialDual(), ("caches", "parts"), 1 << 20), (SequentialDual(), ("caches", "uses"), 99),
    (SequentialDual(), ("caches", "starts"), 1 << 30), (SequentialDual(), ("caches", "lengths"), 1 << 20),
    (SequentialDual(), ("caches", "used"), 1000), (SequentialDual(), ("caches", "first"), -5),
    (SequentialDual(), ("caches", "squares"), 7), (SequentialDual(), ("caches", "size"), 1 << 40),
    (SequentialDual(), ("caches", "alpha"), -1.0), (SequentialDual(), ("support",), 1 << 30),
    (SequentialDual(), ("support",), 3),
    (BlockFrankWolfe(), ("sets", "parts"), 1 << 20), (BlockFrankWolfe(), ("sets", "counts"), 1 << 20),
    (BlockFrankWolfe(), ("sets", "used"), 0), (BlockFrankWolfe(), ("sets", "first"), 1 << 40),
    (StructSVM(), ("outputs", "parts"), -1), (StructSVM(slack="n"), ("order",), 99),
    (SMO(), ("masses", "ids"), 1 << 40), (SMO(), ("masses", "used"), 1 << 20), (SMO(), ("order",), -1),
    (DualAscent(), ("memory", "point", "starts"), 1 << 40),
    (SparseDualAscent(), ("memory", "point", "starts"), 1 << 40),
    (ExponentiatedGradient(online=True), ("potentials", "starts"), -1),
]  # fmt: skip


@pytest.mark.parametrize(("solver", "place", "number"), OUT_OF_RANGE)
def test_numbers_out_of_range_are_refused(solver, place, number, tmp_path):
    problem = same_data(lengths=(1, 3, 2, 4, 3), temperature=1.0 if solver.smooth_only else 0.0, **l1_of(solver))
    path, result = saved_run(tmp_path, problem, solver, passes=3)

    def change(array):
        array = array.copy()
        array[...] = number
        return array

    Checkpoint(path).save(replace(result, state=changed_at(result.state, place, change)))
    with pytest.raises(CheckpointError, match="is damaged"):
        Checkpoint(path).load(problem)


def test_the_state_of_another_solver_is_refused(tmp_path):
    problem = same_data()
    path, result = saved_run(tmp_path, problem, SMO())
    other = minimize(problem, BlockFrankWolfe(), max_passes=3)
    Checkpoint(path).save(replace(result, state=other.state))
    with pytest.raises(CheckpointError, match="the state is a BlockFrankWolfeState, not a SMOState"):
        Checkpoint(path).load(problem)
    for changed, words in (({"trace": [1]}, "the trace"), ({"status": 3}, "status is a int"), ({"w": None}, "w is a")):
        Checkpoint(path).save(replace(result, **changed))
        with pytest.raises(CheckpointError, match=f"is damaged .*{words}"):
            Checkpoint(path).load(problem)


def test_files_of_older_versions_are_refused(tmp_path):
    path, result = saved_run(tmp_path, same_data(), BMRM())
    Checkpoint(path).save(replace(result, fingerprint=None))
    with pytest.raises(CheckpointError, match="was written by an older m3n"):
        Checkpoint(path).load(same_data())
