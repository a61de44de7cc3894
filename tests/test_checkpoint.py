import pickle
import warnings

import numpy as np
import pytest

import m3n
from m3n.checkpoint import Checkpoint, CheckpointError
from m3n.run.loop import Status, minimize
from m3n.solvers import BY_NAME
from tests.tiny import chain_problem


@pytest.mark.parametrize("name", sorted(BY_NAME))
def test_a_run_that_was_cut_off_goes_on(name, tmp_path):
    """The same weights to the last bit as without a break, for every solver."""
    smooth = {"l1": 0.01} if name == "owl_qn" else {}
    problem = chain_problem(temperature=1.0 if name in ("dual_ascent", "owl_qn") else 0.0, **smooth)
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
    settings = {"lam": 0.01, "tol": 1e-2, "checkpoint": tmp_path / "run", "n_jobs": 1}
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
