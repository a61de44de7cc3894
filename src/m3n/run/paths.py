"""A path over lam: one problem at several strengths of regularisation, each run beginning where the last one ended.

The dual problem has the same feasible set for every lam, so the dual point of one run is a start for the next one, and
what a solver has learned on the way (cached outputs, potentials, weights) is not thrown away. Every value of lam still
has a certificate of its own. The runs go from strong to weak regularisation, as strong ones are quick and their
solutions simple.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from m3n.cluster import Backend, placed
from m3n.problem import Objective
from m3n.run.certificate import Certificate
from m3n.run.loop import Callback, Result, minimize
from m3n.solvers import Solver, resolve_solver


@dataclass(frozen=True)
class PathPoint:
    """The run for one value of lam.

    Attributes
    ----------
    lam : float
        Weight of the regulariser lam/2 |w|^2.
    result : Result
        The run's outcome; its ``state`` is kept for the last point of a path alone.
    """

    lam: float
    result: Result

    @property
    def w(self) -> np.ndarray:
        """The weights."""
        return self.result.w

    @property
    def certificate(self) -> Certificate:
        """primal, dual and gap at this lam."""
        return self.result.certificate

    @property
    def passes(self) -> float:
        """Oracle calls of this run in units of n."""
        return self.result.trace[-1].passes

    @property
    def seconds(self) -> float:
        """Time of this run."""
        return self.result.seconds


@dataclass(frozen=True)
class Path(Sequence[PathPoint]):
    """The points of a path, from strong to weak regularisation; ``print`` shows them as a table.

    Attributes
    ----------
    points : tuple of PathPoint
        One for every lam.
    """

    points: tuple[PathPoint, ...]

    def __len__(self) -> int:
        return len(self.points)

    def __getitem__(self, index: Any) -> Any:
        return self.points[index]

    def __str__(self) -> str:
        head = f"{'lam':>11} {'objective':>12} {'gap':>9} {'passes':>7} {'seconds':>8} {'nonzero':>9}  stopped"
        lines = [
            f"{p.lam:11.4g} {p.certificate.primal:12.6g} {p.certificate.gap:9.2g} {p.passes:7.1f} {p.seconds:8.2f} "
            f"{np.count_nonzero(p.w):9d}  {p.result.status}"
            for p in self.points
        ]
        total = f"{'together':>11} {'':22} {sum(p.passes for p in self):7.1f} {sum(p.seconds for p in self):8.2f}"
        return "\n".join([head, *lines, total])


def path(
    problem: Objective,
    lams: Iterable[float],
    solver: Solver[Any] | str = "auto",
    *,
    tol: float = 1e-3,
    rtol: float = 0.0,
    max_passes: float | None = None,
    max_seconds: float | None = None,
    callbacks: Iterable[Callback] = (),
    seed: int | np.random.RandomState | np.random.Generator | None = 0,
    warm_start: bool = True,
    backend: Backend | str | None = None,
) -> Path:
    """Minimise a problem for several values of lam, each run from where the last one ended.

    Parameters
    ----------
    problem : Problem
        The data and everything else; its own ``lam`` plays no part, its ``l1`` is that of all runs.
    lams : iterable of float
        Values of lam, in any order: they are taken from the largest to the smallest.
    solver : Solver or str
        As in ``minimize``; "auto" chooses once, for the smallest lam, which takes most of the time.
    tol, rtol : float
        Tolerances of every run, as in ``minimize``.
    max_passes, max_seconds : float or None
        Limits of every run.
    callbacks : iterable of callable
        Called in every run, as in ``minimize``.
    seed : int, RandomState, Generator or None
        Seed of a solver that draws random numbers, if it is given by its name; drawn once, as in ``minimize``.
    warm_start : bool
        False begins every run from nothing, to see what the path saves.
    backend : {"threads", "ray"}, Backend or None
        Where passes run, as in ``minimize``; workers serve for the whole path.

    Returns
    -------
    Path
        A sequence of ``PathPoint``, the largest lam first.
    """
    settings: dict[str, Any] = {"tol": tol, "rtol": rtol, "max_passes": max_passes, "max_seconds": max_seconds}
    settings |= {"callbacks": tuple(callbacks), "seed": seed, "warm_start": warm_start, "backend": backend}
    order = sorted(set(map(float, lams)), reverse=True)
    if not order:
        raise ValueError("a path needs at least one value of lam")
    points: list[PathPoint] = []
    for point in walk(problem, order, solver, **settings):
        points = [*map(_light, points), point]  # only the last goes on
    return Path(tuple(points))


def walk(
    problem: Objective,
    lams: Iterable[float],
    solver: Solver[Any] | str = "auto",
    *,
    seed: int | np.random.RandomState | np.random.Generator | None = 0,
    warm_start: bool = True,
    backend: Backend | str | None = None,
    start: Result | None = None,
    **settings: Any,
) -> Iterator[PathPoint]:
    """The points of a path one by one, in the order of ``lams``, so that nobody need keep the weights of all.

    Parameters
    ----------
    problem, lams, solver, seed, warm_start, backend
        As in ``path``.
    start : Result or None
        A run of the same problem, from whose end the first one begins.
    **settings
        Tolerances, limits and callbacks of every run, as ``minimize`` takes them.
    """
    order = list(lams)
    tolerances = settings.get("tol", 1e-3), settings.get("rtol", 0.0)
    last = start
    with placed(problem, backend) as there:
        choice = resolve_solver(solver, seed, there.with_lam(min(order)), *tolerances)
        for lam in order:
            there = there.with_lam(lam)  # of the last one, so that what it prepared is shared
            last = minimize(there, choice.solver, start=last if warm_start else None, **settings)
            last = replace(last, reason=choice.reason)
            yield PathPoint(lam, last)


def _light(point: PathPoint) -> PathPoint:
    return replace(point, result=replace(point.result, state=None, fingerprint=None))
