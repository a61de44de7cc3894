"""Where dual ascent begins: all but gold, or the dual point of another lam, closer to gold if that was much larger."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from m3n.compiled.sweeps.dual_ascent import Ascent
from m3n.problem import Problem
from m3n.problem.sections import Section
from m3n.solvers.dual_points import gold_places, leaning, starts_of

NEAR = 2.0  # ratio of lams up to which the point itself is the better start: D is then lower by (ratio - 1)^2 only
LEAN = 10.0  # log-odds of gold's label against all others together, at the start, position by position


class Origin(NamedTuple):
    """Where the steps of a run begin."""

    potentials: np.ndarray  # float32
    eta: np.ndarray  # step lengths
    kappa: np.ndarray  # see the sweep

    def copied(self) -> Origin:
        """The same in arrays of its own."""
        return Origin(*(array.copy() for array in self))


def gold(problem: Problem | Section) -> Origin:
    """All but gold; gold is certain, and so are its step lengths.

    Parameters
    ----------
    problem : Problem or Section
        The data.
    """
    return Origin(potentials=leaning(problem, LEAN, np.float32), eta=1.0 / row_heats(problem), kappa=np.ones(problem.n))


def closer_to_gold(problem: Problem | Section, point: Ascent, ratio: float) -> Origin:
    """A dual point for another lam, of which the point's own is ``ratio`` times as large.

    w(alpha) grows by the ratio where alpha stays; that is too much only where lam has changed by much.

    Parameters
    ----------
    problem : Problem or Section
        The data.
    point : Ascent
        The earlier dual point.
    ratio : float
        lam before / lam.
    """
    potentials, heat = point.potentials.copy(), row_heats(problem)
    potentials[gold_places(problem, point.starts)] += max(np.log(ratio / NEAR), 0.0)
    eta = 1.0 / (heat + ratio * (1.0 / point.eta - heat))
    return Origin(potentials=potentials, eta=eta, kappa=point.kappa.copy())


def row_heats(problem: Problem | Section) -> np.ndarray:
    """The temperature of every row, T times the weight of its example; a certain row makes steps of one over it.

    Parameters
    ----------
    problem : Problem or Section
        The data.
    """
    return np.repeat(problem.temperature * problem.blocks.weights, np.diff(problem.blocks.rows.first))


def begin(problem: Problem | Section, origin: Origin) -> Ascent:
    """The dual point before its marginals are known.

    Parameters
    ----------
    problem : Problem or Section
        The data.
    origin : Origin
        Potentials and step lengths; the point changes them in place.
    """
    return Ascent(
        starts=starts_of(problem), potentials=origin.potentials, marginals=np.zeros(len(origin.potentials)),
        entropies=np.zeros(problem.n), losses=np.zeros(problem.n), eta=origin.eta, kappa=origin.kappa,
        joint=np.zeros(problem.n, bool),
    )  # fmt: skip
