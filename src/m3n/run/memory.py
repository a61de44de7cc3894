"""Whether a run fits into memory, told before it begins.

What is counted: what a solver keeps of every example (``Solver.footprint``), and for those that visit single examples
the inputs written out as lists, which dense arrays are not yet, and the scores of all parts under a prior. A few
vectors of all weights are not counted.
"""

from __future__ import annotations

import warnings
from typing import Any

from m3n.packed.memory import free_memory
from m3n.problem import Objective, Problem
from m3n.solvers import BY_NAME, Solver
from m3n.solvers.base import parts_of_all

LISTED = 36.0  # bytes per number of a dense array at most while it is written out: 12 that stay, and copies on the way
PRIOR = 8.0  # bytes per part for its score under a prior
MUCH = 0.5  # of the memory that is free: worth a warning
MEGABYTE, GIGABYTE = 1e6, 1e9
SMALL = 100 * MEGABYTE  # nobody needs to hear of


class TooLarge(MemoryError):
    """The solver would need more memory than there is."""


def check_memory(problem: Objective, solver: Solver[Any]) -> None:
    """Refuse a solver that would need more memory than is free; warn where it needs most of that.

    Parameters
    ----------
    problem : Problem
        What is to be minimised.
    solver : Solver
        The solver.
    """
    needed = memory_of(problem, solver)
    if needed < SMALL:
        return
    free = free_memory(unknown=float("inf"))
    if needed <= MUCH * free:
        return
    text = (
        f"{type(solver).__name__} needs about {_size(needed)} for these {problem.n:,} examples; {_size(free)} are free"
    )
    if needed > free:
        raise TooLarge(f"{text}: {_advice(problem, needed)}")
    warnings.warn(f"{text}. If that is too much: {_advice(problem, needed)}", UserWarning, stacklevel=3)


def memory_of(problem: Objective, solver: Solver[Any]) -> float:
    """Bytes that a solver needs besides the data, its passes and a few vectors, as far as is known beforehand.

    Parameters
    ----------
    problem : Problem
        What is to be minimised.
    solver : Solver
        The solver.
    """
    array = problem.features.array if isinstance(problem, Problem) and solver.visits else None
    prior = PRIOR * parts_of_all(problem) if problem.prior is not None and solver.visits else 0.0
    return solver.footprint(problem) + prior + (0.0 if array is None else LISTED * array.size)


def _advice(problem: Objective, needed: float) -> str:
    """Who gets by with a quarter of it."""
    solvers: list[Solver[Any]] = [kind() for kind in BY_NAME.values()]
    frugal = [solver for solver in solvers if solver.fits(problem) and memory_of(problem, solver) <= needed / 4.0]
    names = ", ".join(sorted(type(solver).__name__ for solver in frugal))
    return f"choose from {names}, or train on fewer examples" if names else "train on fewer examples"


def _size(count: float) -> str:
    unit, name = (GIGABYTE, "GB") if count >= GIGABYTE else (MEGABYTE, "MB")
    return f"{count / unit:.2g} {name}"
