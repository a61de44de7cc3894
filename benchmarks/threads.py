"""What a second thread brings: the default solvers to the same gap on one thread and on two, in turn."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from benchmarks import workloads
from m3n import Problem, minimize
from m3n.solvers import DualAscent, SequentialDual, Solver

GAPS = 1e-2, 1e-3  # of J(0)
MOST = 300  # passes
SETTINGS: Sequence[tuple[str, str, Solver, float]] = (  # lam n
    ("OCR", "pixels", SequentialDual(), 1.0),
    ("OCR", "pixels", SequentialDual(), 62.5),
    ("OCR", "pixels", DualAscent(), 1.0),
    ("CoNLL-2000", "chunking", SequentialDual(), 1.0),
    ("CoNLL-2000", "chunking", DualAscent(), 2.0),
)


def run(jobs: int = 2, rounds: int = 3) -> dict[str, Any]:
    """Seconds (the least of some rounds, without compilation) and passes to a gap, and the ratios of seconds."""
    figures: dict[str, Any] = {"data": "real" if workloads.data_folder() else "generated", "threads": jobs}
    for data, load, solver, strength in SETTINGS:
        problems = {count: _problem(load, solver, strength, count) for count in (1, jobs)}
        figures[f"{data}, {type(solver).__name__}, lam = {strength:g}/n"] = _compare(problems, solver, rounds)
    return figures


def _problem(load: str, solver: Solver, strength: float, jobs: int) -> Problem:
    crf, margin = getattr(workloads, load)(jobs).problems
    problem = crf if isinstance(solver, DualAscent) else margin
    return problem.with_lam(strength / problem.n)


def _compare(problems: dict[int, Problem], solver: Solver, rounds: int) -> dict[str, Any]:
    for problem in problems.values():
        minimize(problem, solver, tol=0.0, max_passes=3)  # compiled before the clock runs
    least: dict[int, dict[float, tuple[float, float]]] = {}
    for _ in range(rounds):
        for jobs, problem in problems.items():
            found = _race(problem.with_lam(problem.lam), solver)
            earlier = least.get(jobs, found)
            least[jobs] = {gap: min(found[gap], earlier[gap]) for gap in found}
    figures: dict[str, Any] = {}
    for gap in GAPS:
        for jobs, found in least.items():
            seconds, passes = found[gap]
            figures[f"{jobs} threads, gap {gap:g} of J(0)"] = f"{seconds:.2f} s, {passes:.0f} passes"
        (one, _), (many, _) = (found[gap] for found in least.values())
        figures[f"ratio, gap {gap:g}"] = one / many
    return figures


def _race(problem: Problem, solver: Solver) -> dict[float, tuple[float, float]]:
    """Seconds and passes to every gap."""
    found: dict[float, tuple[float, float]] = {}
    start, begin = problem.start(), time.perf_counter()

    def watch(snapshot: Any) -> None:
        for gap in GAPS:
            if snapshot.record.gap <= gap * start:
                found.setdefault(gap, (time.perf_counter() - begin, snapshot.record.passes))

    minimize(problem, solver, tol=GAPS[-1] * start, max_passes=MOST, callbacks=[watch])
    missed = time.perf_counter() - begin, float("inf")
    return {gap: found.get(gap, missed) for gap in GAPS}
