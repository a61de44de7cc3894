"""How a run converged: primal and dual closing in on the optimum, and their gap."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from m3n.problem import Problem
from m3n.run.certificate import Record

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PRIMAL, DUAL, GAP, BOUND = "#b2182b", "#2166ac", "#1b7837", "#777777"  # told apart in print and by the colour-blind


def paper_bound(problem: Problem, steps: Any) -> np.ndarray:
    """The paper's guarantee for its own schedule: 6 log|Y| R^2 / (lam (k+1)(k+2)) after k steps.

    Parameters
    ----------
    problem : Problem
        Gives log|Y|, R and lam.
    steps : array
        Step numbers k.
    """
    k = np.asarray(steps, dtype=float)
    return 6.0 * problem.log_size * problem.radius**2 / (problem.lam * (k + 1) * (k + 2))


def plot_convergence(trace: Sequence[Record], axes: Axes) -> None:
    """Draw primal and dual against passes; the optimum lies in the shaded band.

    Parameters
    ----------
    trace : sequence of Record
        The trace of a run.
    axes : matplotlib Axes
        Where to draw.
    """
    passes = [record.passes for record in trace]
    primal, dual = [r.primal for r in trace], [r.dual for r in trace]
    axes.fill_between(passes, dual, primal, color="0.9", label="the optimum is in here")
    axes.plot(passes, primal, color=PRIMAL, label="primal: objective of our weights")
    axes.plot(passes, dual, color=DUAL, linestyle="--", label="dual: lower bound for any weights")
    last = trace[-1]
    height = max(abs(last.primal), abs(last.dual), last.gap)
    axes.set_ylim(last.dual - 2.0 * height, last.primal + 3.0 * height)
    axes.set_xscale("log")
    axes.set_xlabel("passes over the data")
    axes.set_ylabel("objective")
    axes.legend(frameon=False, fontsize=8)


def plot_gap(trace: Sequence[Record], axes: Axes, problem: Problem | None = None) -> None:
    """Draw the duality gap against passes on logarithmic axes, with the paper's bound if the problem is given.

    Parameters
    ----------
    trace, axes : sequence of Record, matplotlib Axes
        The trace of a run, and where to draw.
    problem : Problem, optional
        The problem that was solved.
    """
    passes = np.array([record.passes for record in trace])
    axes.plot(passes, [record.gap for record in trace], color=GAP, label="certified duality gap")
    if problem is not None:
        steps = np.array([record.soft_calls / problem.n - 1 for record in trace])  # two passes to start, one per step
        begun = steps >= 1
        bound = paper_bound(problem, steps[begun])
        axes.plot(passes[begun], bound, color=BOUND, linestyle=":", label="the paper's bound")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("passes over the data")
    axes.set_ylabel("duality gap")
    axes.grid(True, which="major", color="0.92")
    axes.legend(frameon=False, fontsize=8)
