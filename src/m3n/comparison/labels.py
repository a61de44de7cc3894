"""Names for the solvers of a comparison: each has one of its own that says which settings are not the usual ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from typing import Any

from m3n.problem import Problem
from m3n.solvers import Solver, resolve_solver

Solvers = Iterable[Solver[Any] | str] | Mapping[str, Solver[Any] | str] | Solver[Any] | str


def label_solvers(solvers: Solvers, problem: Problem | None = None) -> dict[str, Solver[Any]]:
    """From a distinct label to each solver; the labels of a mapping are kept as they are.

    Parameters
    ----------
    solvers : list of Solver or str, or mapping of labels to them
        Solver objects or names.
    problem : Problem or None
        The problem, by which "auto" chooses.
    """
    if isinstance(solvers, Mapping):
        labelled = {str(label): resolve_solver(solver, problem=problem).solver for label, solver in solvers.items()}
    else:
        several = [solvers] if isinstance(solvers, (str, Solver)) else solvers
        labelled = _distinct([resolve_solver(solver, problem=problem).solver for solver in several])
    if not labelled:
        raise ValueError("there is no solver to compare: name at least one")
    return labelled


def settings_of(solver: Solver[Any]) -> dict[str, Any]:
    """All settings of a solver by name; empty for one that is no dataclass.

    Parameters
    ----------
    solver : Solver
        The solver.
    """
    return {f.name: getattr(solver, f.name) for f in fields(solver)} if is_dataclass(solver) else {}


def _distinct(solvers: list[Solver[Any]]) -> dict[str, Solver[Any]]:
    labels = [_label(solver) for solver in solvers]
    total, so_far, labelled = Counter(labels), Counter[str](), {}
    for label, solver in zip(labels, solvers, strict=True):
        so_far[label] += 1
        labelled[f"{label} #{so_far[label]}" if total[label] > 1 else label] = solver
    return labelled


def _label(solver: Solver[Any]) -> str:
    """The class with the settings that differ from its defaults; so different settings give different labels."""
    written = {name: repr(value) for name, value in settings_of(solver).items()}
    unusual = [f"{name}={value}" for name, value in written.items() if value != repr(_default(solver, name))]
    return type(solver).__name__ + (f"({', '.join(unusual)})" if unusual else "")


def _default(solver: Any, name: str) -> Any:
    """MISSING, which no setting is equal to, where there is none."""
    field = next(f for f in fields(solver) if f.name == name)
    return field.default_factory() if field.default_factory is not MISSING else field.default
