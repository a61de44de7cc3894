import pytest

from m3n.comparison import label_solvers
from m3n.solvers import ExcessiveGap
from tests.comparison.small_solvers import Blind, FrankWolfe, Plain
from tests.tiny import chain_problem


def test_labels_name_what_is_not_the_default():
    labels = label_solvers(["excessive_gap", ExcessiveGap(schedule="paper"), ExcessiveGap("paper", memory=3), Blind()])
    assert list(labels) == [
        "ExcessiveGap",
        "ExcessiveGap(schedule='paper')",
        "ExcessiveGap(schedule='paper', memory=3)",
        "Blind",
    ]
    assert labels["ExcessiveGap"] == ExcessiveGap()
    assert labels["ExcessiveGap(schedule='paper', memory=3)"].memory == 3


def test_the_same_solver_twice_gets_numbers():
    labels = label_solvers([Blind(), FrankWolfe(), Blind(), Plain(), Plain()])
    assert list(labels) == ["Blind #1", "FrankWolfe", "Blind #2", "Plain #1", "Plain #2"]


def test_own_labels_are_kept():
    assert label_solvers({"ours": "excessive_gap", "theirs": Blind()}) == {"ours": ExcessiveGap(), "theirs": Blind()}


def test_one_solver_needs_no_list():
    assert list(label_solvers("excessive_gap")) == ["ExcessiveGap"]
    assert list(label_solvers(Blind(pause=1.0))) == ["Blind(pause=1.0)"]


def test_nothing_to_compare():
    for empty in ([], {}):
        with pytest.raises(ValueError, match="no solver to compare"):
            label_solvers(empty)
    with pytest.raises(ValueError, match="unknown solver 'sgd'"):
        label_solvers(["sgd"])


def test_auto_chooses_by_the_problem():
    labelled = label_solvers(["auto"], chain_problem(temperature=1.0))
    assert list(labelled) == ["DualAscent"]
    assert list(label_solvers(["auto"], chain_problem())) == ["SequentialDual"]
