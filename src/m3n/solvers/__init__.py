"""Algorithms: one file each. To add one, write its file and its line in ``BY_NAME``."""

from typing import Any

from m3n.solvers.base import Solver, State
from m3n.solvers.bmrm import BMRM
from m3n.solvers.excessive_gap import ExcessiveGap
from m3n.solvers.struct_svm import StructSVM

BY_NAME: dict[str, type[Solver[Any]]] = {
    "bmrm": BMRM,
    "excessive_gap": ExcessiveGap,
    "struct_svm": StructSVM,
}


def resolve_solver(solver: Solver[Any] | str) -> Solver[Any]:
    """Turn a name or "auto" into a solver object with default settings."""
    if isinstance(solver, Solver):
        return solver
    if solver == "auto":
        return ExcessiveGap()
    if solver not in BY_NAME:
        raise ValueError(f"unknown solver {solver!r}; choose 'auto', a solver object or one of {sorted(BY_NAME)}")
    return BY_NAME[solver]()


__all__ = ["BMRM", "BY_NAME", "ExcessiveGap", "Solver", "State", "StructSVM", "resolve_solver"]
