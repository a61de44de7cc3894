"""How a pass grows with the number of sequences, of labels, and with the length: slopes on a log-log plot.

The work of an exp-oracle pass is n * length * (labels^2 + labels * attributes of a token). Slopes of 1, 2 and 1 are
what the recursions promise where they dominate, so tokens have two attributes each and the labels range from 64 to 192:
below that exponentials, scores and adjoint, which are linear in the labels, bend the line; from 256 on the table of
transitions (512 KB) leaves the second-level cache. Both oracles on fixed scores are plotted beside the whole pass.
Everything is generated; CPU time of one thread, the minimum of several rounds.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from m3n import Problem
from m3n.features import Sparse, chain_features
from m3n.packed.threads import single_threaded_blas
from m3n.structures import Chain

ATTRIBUTES = 1000
SIZES = {"n": (500, 1000, 2000, 4000), "labels": (64, 80, 96, 128, 160, 192), "length": (16, 32, 64, 128, 256)}
BASE = {"n": 400, "labels": 32, "length": 16}


def run(rounds: int = 7) -> dict[str, Any]:
    """Seconds per pass for growing sizes, and the fitted slopes; the plot goes to ``out/growth.png``."""
    with single_threaded_blas():
        curves = {name: measure(name, sizes, rounds) for name, sizes in SIZES.items()}
    slopes = {name: {task: slope(curve["size"], curve[task]) for task in TASKS} for name, curve in curves.items()}
    plot(curves, slopes, Path(__file__).parent / "out" / "growth.png")
    return {"tokens have": "2 attributes", "slopes": slopes, "seconds": curves}


def generated(n: int, labels: int, length: int) -> Problem:
    """Sequences of equal length, two of ``ATTRIBUTES`` attributes per token, random labels."""
    random = np.random.default_rng(0)
    tokens = n * length
    columns = random.integers(ATTRIBUTES, size=2 * tokens)
    X = scipy.sparse.csr_array((np.ones(2 * tokens), columns, np.arange(0, 2 * tokens + 1, 2)), (tokens, ATTRIBUTES))
    y = random.integers(labels, size=(n, length))
    features = chain_features(Sparse(X, labels), labels)
    return Problem(Chain([length] * n, labels), features, y, temperature=1.0, n_jobs=1)


def whole(problem: Problem) -> Callable[[], Any]:
    """Scores, recursion and adjoint."""
    w = 0.1 * np.random.default_rng(0).normal(size=problem.dim)
    return lambda: problem.soft(w, 1.0)


def viterbi(problem: Problem) -> Callable[[], Any]:
    """The max-oracle on fixed scores."""
    theta = tuple(np.random.default_rng(0).normal(size=shape) for shape in problem.structure.shapes)
    return lambda: problem.structure.hard(theta)


def recursion(problem: Problem) -> Callable[[], Any]:
    """Forward-backward on fixed scores; what it leaves behind, marginals, are fine scores for the next time."""
    theta = tuple(np.random.default_rng(0).normal(size=shape) for shape in problem.structure.shapes)

    def task() -> None:
        theta[1][:] = 0.0  # counts would make far too good transitions
        problem.structure.soft(theta, 1.0)

    return task


TASKS = {"exp-oracle pass": whole, "recursion": recursion, "Viterbi": viterbi}


def measure(name: str, sizes: tuple[int, ...], rounds: int) -> dict[str, list[float]]:
    """CPU seconds of every task at every size; sizes in turn, so that a busy moment hits them all."""
    problems = [generated(**{**BASE, name: size}) for size in sizes]
    curve: dict[str, list[float]] = {"size": [float(size) for size in sizes]}
    for task, make in TASKS.items():
        calls = [make(problem) for problem in problems]
        best = [np.inf] * len(sizes)
        for _ in range(rounds + 1):  # one more, to compile
            best = [min(old, seconds(call)) for old, call in zip(best, calls, strict=True)]
        curve[task] = best
    return curve


def seconds(call: Callable[[], Any]) -> float:
    """CPU time of one call."""
    begin = time.process_time()
    call()
    return time.process_time() - begin


def slope(sizes: list[float], times: list[float]) -> float:
    """Least-squares slope on a log-log scale."""
    return float(np.polyfit(np.log(sizes), np.log(times), 1)[0])


def plot(curves: dict[str, dict[str, list[float]]], slopes: dict[str, dict[str, float]], path: Path) -> None:
    """One panel per size."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, len(curves), figsize=(4 * len(curves), 3.6), sharey=True)
    for axis, (name, curve) in zip(axes, curves.items(), strict=True):
        for task in TASKS:
            rate = [1 / t for t in curve[task]]
            axis.loglog(curve["size"], rate, "o-", label=f"{task}: slope {-slopes[name][task]:.2f}")
        axis.set_xlabel(name)
        axis.legend(fontsize=8)
    axes[0].set_ylabel("passes per second, one thread")
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    pyplot.close(figure)
