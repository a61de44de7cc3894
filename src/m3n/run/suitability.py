"""Whether a solver can minimise a problem, and if not, why and who can."""

from __future__ import annotations

from typing import Any

from m3n.problem import Objective
from m3n.solvers import BY_NAME, Solver

ORACLE_NAMES = {"hard": "max-oracle", "soft": "exp-oracle", "support": "min-oracle on the support of a factored dual"}


class MissingOracle(TypeError):
    """The solver needs an oracle that the structure does not offer."""


class WrongObjective(TypeError):
    """The solver cannot minimise the problem's kind of objective."""


def check_fit(problem: Objective, solver: Solver[Any]) -> None:
    """Refuse a solver that cannot minimise the problem, with the reason and those that can.

    Parameters
    ----------
    problem : Problem
        What is to be minimised.
    solver : Solver
        The solver.
    """
    structure, name = problem.name, type(solver).__name__
    if problem.rescale == "slack" and not solver.rescales:
        raise WrongObjective(f"{name} {solver.slack_restriction}; for slack rescaling choose from {_fitting(problem)}")
    _check_l1(problem, solver)
    needed = solver.oracles(problem.temperature)
    if needed is None:
        raise WrongObjective(
            f"{name} {solver.restriction}; at temperature {problem.temperature:g} choose from {_fitting(problem)}"
        )
    if not solver.reaches(problem):
        raise MissingOracle(
            f"{name} visits examples one by one, which passes made elsewhere do not allow; {_choices(problem)}"
        )
    missing = solver.missing(problem)
    if missing:
        names = " and the ".join(ORACLE_NAMES[oracle] for oracle in sorted(missing))
        raise MissingOracle(f"{name} needs the {names}, which {structure} does not offer; {_choices(problem)}")
    if _evaluation(problem) not in problem.oracles:
        raise MissingOracle(
            f"a certificate needs the {ORACLE_NAMES[_evaluation(problem)]}, which {structure} does not offer; "
            f"{_choices(problem)}"
        )


def _check_l1(problem: Objective, solver: Solver[Any]) -> None:
    name = type(solver).__name__
    if problem.l1 and not problem.temperature:
        raise WrongObjective(
            f"no solver minimises an l1 penalty (here l1 = {problem.l1:g}) at temperature 0: that takes the smooth "
            "risk of a CRF; choose l1=0, or temperature=1"
        )
    if problem.l1 and not solver.takes_l1:
        raise WrongObjective(f"{name} cannot minimise an l1 penalty (here l1 = {problem.l1:g}): {_choices(problem)}")
    if solver.takes_l1 and not problem.l1:
        instead = "LBFGS" if problem.temperature else "SequentialDual"
        raise WrongObjective(f"{name} is for problems with an l1 penalty, here l1 = 0: choose {instead} or 'auto'")


def _choices(problem: Objective) -> str:
    fitting = _fitting(problem)
    return f"choose from {fitting}" if fitting else f"no solver can go on at temperature {problem.temperature:g}"


def _fitting(problem: Objective) -> list[str]:
    """Those that fit, if their weights can be certified."""
    certain = _evaluation(problem) in problem.oracles
    return sorted(kind.__name__ for kind in BY_NAME.values() if certain and kind().fits(problem))


def _evaluation(problem: Objective) -> str:
    """The oracle that certificates call."""
    return "soft" if problem.temperature else "hard"
