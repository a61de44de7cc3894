import sys
from dataclasses import dataclass
from typing import Literal

import pytest

from m3n.cli.settings import fitting, parse_folds, parse_solver, parse_stop, parse_strength, seeded
from m3n.solvers import BY_NAME, BlockFrankWolfe, ExcessiveGap, GapSampling, Pairwise, PlaneCache, Solver
from tests.comparison.small_solvers import Blind, FrankWolfe
from tests.tiny import chain_problem


@dataclass(frozen=True)
class Various(Solver):
    """One setting of every kind."""

    count: int = 1
    size: float | None = None
    sure: bool = False
    way: Literal["up", "down"] = "up"
    order: object = None

    requires = frozenset({"hard"})


class Bare(Solver):
    requires = frozenset({"soft"})


@pytest.fixture(autouse=True)
def more_solvers(monkeypatch):
    for name, kind in (("various", Various), ("bare", Bare), ("blind", Blind)):
        monkeypatch.setitem(BY_NAME, name, kind)


def test_solvers_with_settings():
    assert parse_solver("excessive_gap") == ExcessiveGap()
    assert parse_solver("excessive_gap:schedule=paper") == ExcessiveGap(schedule="paper")
    assert parse_solver("excessive_gap:memory=3,spend=0,radius=2") == ExcessiveGap(memory=3, spend=0.0, radius=2.0)
    assert parse_solver("excessive_gap:center=none,radius=none") == ExcessiveGap()
    assert parse_solver("excessive_gap:center=gold") == ExcessiveGap(center="gold")
    assert parse_solver("various:count=2,size=3,sure=true,way=down") == Various(2, 3.0, True, "down")
    assert isinstance(parse_solver("various:size=3").size, float)


@pytest.mark.parametrize(
    "text, message",
    [
        ("sgd", "unknown solver 'sgd'; choose from .*excessive_gap"),
        ("no.such.Solver", "there is no solver 'no.such.Solver': No module named 'no'"),
        ("tests.tiny.Solver", "there is no solver 'tests.tiny.Solver': module 'tests.tiny' has no attribute"),
        ("pathlib.Path", "pathlib.Path is not a class that derives from m3n.solvers.Solver"),
        ("excessive_gap:speed=3", "excessive_gap has no setting 'speed'; it has schedule, center"),
        ("excessive_gap:memory", "excessive_gap: write memory=VALUE"),
        ("excessive_gap:memory=many", "excessive_gap: memory must be int or none, got 'many'"),
        ("excessive_gap:warm=2.5", "excessive_gap: warm must be int, got '2.5'"),
        ("excessive_gap:schedule=fast", "excessive_gap: schedule must be 'adaptive' or 'paper', got 'fast'"),
        ("excessive_gap:radius=wide", "excessive_gap: radius must be float or none, got 'wide'"),
        ("various:sure=perhaps", "various: sure must be bool, got 'perhaps'"),
        ("various:way=left", "various: way must be .*up.*, got 'left'"),
        ("various:order=random", "various: order must be object, got 'random'"),
        ("bare:x=1", "bare has no setting 'x'; it has none"),
    ],
)
def test_wrong_solvers_are_explained(text, message):
    with pytest.raises(ValueError, match=message):
        parse_solver(text)


def test_folds():
    assert parse_folds("1-9") == [1, 2, 3, 4, 5, 6, 7, 8, 9]
    assert parse_folds("4-6, 0,5") == [0, 4, 5, 6]
    for text in ("", "a", "1-", "-1", "1-b"):
        with pytest.raises(ValueError, match="folds are numbers and ranges such as 1-9"):
            parse_folds(text)
    with pytest.raises(ValueError, match="range 9-1 is empty"):
        parse_folds("9-1")


def test_regularisation():
    assert parse_strength("0.5", 10) == 0.5
    assert parse_strength("1 / n", 10) == 0.1
    assert parse_strength("5/n", 10) == 0.5
    for text in ("0", "-1", "nan", "inf", "0/n"):
        with pytest.raises(ValueError, match="must be positive and finite"):
            parse_strength(text, 10)
    for text in ("much", "1/m", "/n", "1/"):
        with pytest.raises(ValueError, match=f"one divided by n such as 5/n, got '{text}'"):
            parse_strength(text, 10)


def test_solvers_that_fit():
    names = {type(solver).__name__ for solver in fitting(chain_problem())}
    assert names >= {"ExcessiveGap", "Various", "Bare", "Blind"}
    problem = chain_problem()
    problem.structure.oracles = frozenset({"hard"})
    names = {type(solver).__name__ for solver in fitting(problem)}
    assert names >= {"Various", "Blind"}
    assert not names & {"ExcessiveGap", "Bare"}
    assert not {"Various", "ExcessiveGap"} & {type(s).__name__ for s in fitting(chain_problem(temperature=1.0))}


def test_seeds_go_to_random_solvers_only():
    assert seeded(Blind(), 3) == Blind(seed=3)
    assert seeded(Blind(seed=7), 3) == Blind(seed=7)  # chosen on purpose
    assert seeded(FrankWolfe(), 3) == FrankWolfe()
    assert isinstance(seeded(Bare(), 3), Bare)


def test_settings_that_are_objects():
    solver = parse_solver("block_frank_wolfe:move=pairwise,cache=plane_cache(7),order=gap_sampling,seed=3")
    assert solver == BlockFrankWolfe(move=Pairwise(), cache=PlaneCache(7), order=GapSampling(), seed=3)
    assert parse_solver("block_frank_wolfe:cache=none") == BlockFrankWolfe()
    with pytest.raises(ValueError, match="move must be toward or pairwise, got 'sideways'"):
        parse_solver("block_frank_wolfe:move=sideways")
    with pytest.raises(ValueError, match=r"cache must be plane_cache or none, got 'plane_cache\(many\)'"):
        parse_solver("block_frank_wolfe:cache=plane_cache(many)")


def test_a_solver_of_ones_own_is_named_by_its_module_and_class(tmp_path, monkeypatch):
    (tmp_path / "my_solvers.py").write_text(
        "from dataclasses import dataclass\nfrom m3n.solvers import BMRM\n"
        "@dataclass(frozen=True)\nclass Mine(BMRM):\n    patience: int = 3\n"
    )
    monkeypatch.chdir(tmp_path)
    path = list(sys.path)
    solver = parse_solver("my_solvers.Mine:patience=5")
    assert type(solver).__module__ == "my_solvers"
    assert solver.patience == 5
    assert sys.path == path


def test_ways_to_stop():
    assert parse_stop("gap") is None
    assert parse_stop("predictions") == "predictions"
    assert parse_stop("0.9") == 0.9
    for wrong in ("never", "0", "1.5", "-1", "nan"):
        with pytest.raises(ValueError, match=r"or at a share of them such as 0.9, got"):
            parse_stop(wrong)
