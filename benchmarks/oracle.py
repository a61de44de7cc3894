"""How long a pass takes: exp-oracle, max-oracle and block Frank-Wolfe, a naive loop beside them, one thread and two."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.datasets import data_folder, ocr_problem
from benchmarks.naive import naive_pass
from m3n import Problem
from m3n.packed.threads import single_threaded_blas
from m3n.solvers import BlockFrankWolfe


def run(repeats: int = 25) -> dict[str, Any]:
    """Minimum times in one run, everything warm and in turn, and their ratios."""
    problems = {jobs: ocr_problem(data_folder(), n_jobs=jobs) for jobs in (1, 2)}
    sparse = {jobs: ocr_problem(data_folder(), n_jobs=jobs, sparse=True) for jobs in (1, 2)}
    w = 0.05 * np.random.default_rng(0).normal(size=problems[1].dim)
    tasks: dict[str, Callable[[], Any]] = {
        "naive loop, 1 thread": lambda: naive(problems[1], w, 0.1),
        "exp-oracle, 1 thread": lambda: problems[1].soft(w, 0.1),
        "exp-oracle, 2 threads": lambda: problems[2].soft(w, 0.1),
        "exp-oracle, sparse pixels, 1 thread": lambda: sparse[1].soft(w, 0.1),
        "exp-oracle, sparse pixels, 2 threads": lambda: sparse[2].soft(w, 0.1),
        "exp-oracle, 1 thread, mu = 1e-4": lambda: problems[1].soft(w, 1e-4),
        "max-oracle, 1 thread": lambda: problems[1].hard(w),
        "max-oracle, 2 threads": lambda: problems[2].hard(w),
        "max-oracle, sparse pixels, 1 thread": lambda: sparse[1].hard(w),
    }
    with single_threaded_blas():
        check(problems[1], w)
        for passes in (1, 25):
            state = frank_wolfe(sparse[1], passes)
            tasks[f"block Frank-Wolfe, pass {passes + 1}"] = partial(BlockFrankWolfe().step, sparse[1], state)
        seconds = interleaved(tasks, repeats)
    one, two = seconds["exp-oracle, 1 thread"], seconds["exp-oracle, 2 threads"]
    hard, block = seconds["max-oracle, sparse pixels, 1 thread"], seconds["block Frank-Wolfe, pass 26"]
    return {
        "data": "OCR words" if data_folder() else "generated words",
        "tokens": problems[1].structure.shapes[0][0],
        "seconds": seconds,
        "naive / ours, 1 thread": seconds["naive loop, 1 thread"] / one,
        "1 thread / 2 threads": one / two,
        "block Frank-Wolfe, pass 26 / max-oracle": block / hard,
    }


def frank_wolfe(problem: Problem, passes: int) -> Any:
    """The solver's state after some passes."""
    state = BlockFrankWolfe().init(problem)
    for _ in range(passes):
        state = BlockFrankWolfe().step(problem, state)
    return state


def naive(problem: Problem, w: np.ndarray, mu: float) -> Any:
    """One pass of the reference."""
    node, transition, start, end = problem.features.split(w)
    labels = problem.structure.labels
    weights = node.reshape(-1, labels), transition.reshape(labels, labels), start, end
    X, cost = problem.features.maps[0].X, problem.cost
    return naive_pass(X, *weights, cost.gold, cost.weight, problem.structure.offsets, mu)


def check(problem: Problem, w: np.ndarray) -> None:
    """Both must compute the same thing, or the ratio means nothing."""
    answer, (value, loss, gradient, *_) = problem.soft(w, 0.1), naive(problem, w, 0.1)
    gold = problem.features.adjoint(problem.structure.encode(problem.gold))
    np.testing.assert_allclose(answer.value, (value - w @ gold) / problem.n, rtol=1e-9)
    np.testing.assert_allclose(answer.loss, loss / problem.n, rtol=1e-9)
    expected = (gold[: gradient.size] - gradient.ravel()) / problem.n
    np.testing.assert_allclose(answer.vector[: gradient.size], expected, atol=1e-9)


def interleaved(tasks: dict[str, Callable[[], Any]], repeats: int) -> dict[str, float]:
    """Run the tasks in turn; the minimum of each is the least disturbed by the machine's other work."""
    best = dict.fromkeys(tasks, np.inf)
    for _ in range(repeats):
        for name, task in tasks.items():
            begin = time.perf_counter()
            task()
            best[name] = min(best[name], time.perf_counter() - begin)
    return best
