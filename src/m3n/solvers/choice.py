"""What ``solver="auto"`` means: the solver that measured fastest on problems of the kind, and why.

The choice depends on the problem alone, never on a clock, so that the same problem always gets the same solver.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from m3n.problem import Problem
from m3n.solvers.base import Solver
from m3n.solvers.batch_frank_wolfe import BatchFrankWolfe
from m3n.solvers.lbfgs import LBFGS
from m3n.solvers.sequential_dual import SequentialDual


@dataclass(frozen=True)
class Choice:
    """A solver, and in a sentence why it was chosen.

    Attributes
    ----------
    solver : Solver
        The solver with its settings.
    reason : str
        Empty if the user named the solver.
    """

    solver: Solver[Any]
    reason: str = ""


def choose(problem: Problem, seed: int = 0) -> Choice:
    """The solver for a problem.

    Parameters
    ----------
    problem : Problem
        What is to be minimised.
    seed : int
        Seed of a solver that draws random numbers.
    """
    return choose_smooth(problem, seed) if problem.temperature else _choose_margin(problem, seed)


def choose_smooth(problem: Problem, seed: int = 0) -> Choice:
    """The solver at a positive temperature."""
    return Choice(LBFGS(), "temperature > 0: the objective is smooth, and L-BFGS needs the fewest passes over it")


def _choose_margin(problem: Problem, seed: int) -> Choice:
    try:
        rows = problem.blocks.rows
    except TypeError as obstacle:  # the map cannot be written out example by example
        why = f"no visits of single examples ({obstacle}): mini-batches need the fewest passes of what is left"
        return Choice(BatchFrankWolfe(seed=seed), why)
    why = f"max-margin with {len(rows.sizes)} examples that can be visited one by one: cached outputs save oracle calls"
    return Choice(SequentialDual(seed=seed), why)
