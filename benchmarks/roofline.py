"""How near to the machine's limits a pass comes: its bytes and flops against measured bandwidth and peak.

Two limits are measured first: the bandwidth of a triad a = b + s c over arrays beyond the cache, and the rate of fused
multiply-adds in registers, four numbers in each. Then every part of a pass runs by itself, on four data sets
(``workloads``): scores, both recursions, the adjoint; whole passes of either oracle; and visits, in which one example
after another gets its scores at the newest weights, its oracle and its step (``DualAscent`` and ``BlockFrankWolfe``,
the quickest pass after the first), unless a dual point of all examples is too large for memory.

*Bytes* are what a part has to touch if nothing stays in a cache between two uses (rows of weights included, tables of
labels by labels not, except where a visit reads or writes them), so a part can exceed the triad where caches help;
*flops* count a multiply-add as two, as the sum and the comparison of a maximum, and an exponential as the 35 operations
of ours. Maxima count all pairs of labels, also those that an oracle leaves out: a share of the peak above one is then
possible.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
from numba import njit

from benchmarks.workloads import WORKLOADS, Workload
from m3n import Problem, minimize
from m3n.compiled.primitives.vector import load, multiply_add, splat, total
from m3n.packed import Threads
from m3n.packed.threads import single_threaded_blas
from m3n.solvers import BlockFrankWolfe, DualAscent
from m3n.solvers.choice import MOST_BYTES

TRIAD = 8_000_000  # numbers of each of the three arrays: 64 MB
CHAINS = 10  # independent sums: latency 4, two units, a little spare
VISITED = 3  # passes of visits
EXPONENTIAL = 35.0  # flops of one
OPTIONS: dict[str, Any] = {"nogil": True, "fastmath": {"contract"}, "error_model": "numpy"}


@njit(**OPTIONS)
def triad(a, b, c, low, high):
    """a = b + 3 c on a range."""
    for i in range(low, high):
        a[i] = b[i] + 3.0 * c[i]


@njit(**OPTIONS)
def spin(x, rounds):
    """``CHAINS`` chains of fused multiply-adds on four numbers each."""
    m, a = load(x, 0), load(x, 4)
    s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = s8 = s9 = splat(0.0)
    for _ in range(rounds):
        s0 = multiply_add(s0, m, a)
        s1 = multiply_add(s1, m, a)
        s2 = multiply_add(s2, m, a)
        s3 = multiply_add(s3, m, a)
        s4 = multiply_add(s4, m, a)
        s5 = multiply_add(s5, m, a)
        s6 = multiply_add(s6, m, a)
        s7 = multiply_add(s7, m, a)
        s8 = multiply_add(s8, m, a)
        s9 = multiply_add(s9, m, a)
    ends = total(s0) + total(s1) + total(s2) + total(s3) + total(s4)
    return ends + total(s5) + total(s6) + total(s7) + total(s8) + total(s9)


def run(repeats: int = 7) -> dict[str, Any]:
    """Limits with one thread and two, then the parts of a pass on every data set."""
    figures: dict[str, Any] = {}
    for jobs in (1, 2):
        limits = {"GB/s": bandwidth(jobs, repeats), "Gflop/s": peak(jobs, repeats)}
        with single_threaded_blas():
            parts = {name: measure(make(jobs), limits, repeats) for name, make in WORKLOADS.items()}
        figures[f"{jobs} thread{'s' * (jobs > 1)}"] = {"triad and peak": limits, **parts}
    return figures


def best(call: Callable[[], Any], repeats: int, jobs: int = 1) -> float:
    """Minimum time: CPU time of one thread, which other work on the machine disturbs least; wall time of several."""
    clock = time.process_time if jobs == 1 else time.perf_counter
    times = []
    for _ in range(repeats + 1):
        begin = clock()
        call()
        times.append(clock() - begin)
    return min(times[1:])


def bandwidth(jobs: int, repeats: int) -> float:
    """GB/s of a triad, 24 bytes per entry."""
    a, b, c = (np.ones(TRIAD) for _ in range(3))
    threads = Threads(jobs)
    seconds = best(lambda: threads.run(lambda low, high: triad(a, b, c, low, high), threads.rows(TRIAD)), repeats, jobs)
    return 24e-9 * TRIAD / seconds


def peak(jobs: int, repeats: int, rounds: int = 2_000_000) -> float:
    """Gflop/s of fused multiply-adds."""
    threads, x = Threads(jobs), np.full(8, 0.5)
    seconds = best(lambda: threads.run(lambda low, high: spin(x, rounds), threads.rows(jobs)), repeats, jobs)
    return 8e-9 * CHAINS * rounds * jobs / seconds


def measure(work: Workload, limits: dict[str, float], repeats: int) -> dict[str, Any]:
    """Every part of a pass, whole passes, and visits."""
    smooth, margin = work.problems
    features, structure, threads = smooth.features, smooth.structure, smooth.threads
    jobs, w = threads.count, 0.1 * np.random.default_rng(0).normal(size=smooth.dim)
    theta = features.scores(w, structure.empty(), threads)
    parts = structure.soft(tuple(a.copy() for a in theta), 1.0, threads)[1]
    vector, scratch = np.zeros(smooth.dim), tuple(a.copy() for a in theta)

    def fill() -> None:
        for a, b in zip(scratch, theta, strict=True):
            np.copyto(a, b)

    def recursion() -> None:
        fill()
        structure.soft(scratch, 1.0, threads)

    copying = best(fill, repeats, jobs)
    rows, pairs, positions = 8.0 * work.parts, work.pairs, work.positions
    scores = 12.0 * work.entries + 8.0 * work.met + rows, 2.0 * work.met
    soft = 2 * rows, 6.0 * pairs + (EXPONENTIAL + 15) * positions + work.tables * EXPONENTIAL * pairs
    hard = rows, 2.0 * pairs
    adjoint = 12.0 * work.entries + 16.0 * work.met + rows, 2.0 * work.met
    shared = 8.0 * work.shared, EXPONENTIAL * work.shared * (not work.tables)
    # name -> seconds, (bytes, flops) of what it consists of
    table = {
        "scores": (best(lambda: features.scores(w, scratch, threads), repeats, jobs), [scores]),
        "exp-oracle": (best(recursion, repeats, jobs) - copying, [soft]),
        "max-oracle": (best(lambda: structure.hard(theta, threads), repeats, jobs), [hard]),
        "adjoint": (best(lambda: features.add_adjoint(parts, 1.0, vector, threads), repeats, jobs), [adjoint]),
        "pass, exp-oracle": (best(lambda: smooth.soft(w, 1.0), repeats, jobs), [scores, soft, adjoint]),
        "pass, max-oracle": (best(lambda: margin.hard(w), repeats, jobs), [scores, hard]),
    }
    if jobs == 1 and 16 * int(smooth.blocks.rows.sizes.sum()) <= MOST_BYTES:
        table["visits, exp-oracle"] = visits(smooth, DualAscent()), [scores, soft, shared, adjoint, adjoint]
        table["visits, max-oracle"] = visits(margin, BlockFrankWolfe()), [scores, hard, shared]
    return {name: rates(seconds, *map(sum, zip(*of, strict=True)), limits) for name, (seconds, of) in table.items()}


def visits(problem: Problem, solver: Any) -> float:
    """CPU seconds of a pass of visits: that of the quickest step after the first."""
    stamps: list[tuple[float, float]] = []

    def stamp(snapshot: Any) -> None:
        stamps.append((time.process_time(), snapshot.record.passes))

    minimize(problem, solver, tol=0.0, max_passes=2.0)  # loads machine code
    minimize(problem, solver, tol=0.0, max_passes=1.0 + VISITED, callbacks=[stamp])
    steps = [(b[0] - a[0]) / (b[1] - a[1]) for a, b in pairwise(stamps) if b[1] > a[1]]
    return min(steps, default=np.nan)


def rates(seconds: float, moved: float, flops: float, limits: dict[str, float]) -> dict[str, float]:
    """Absolute and relative to the limits."""
    return {
        "seconds": seconds,
        "MB": moved / 1e6,
        "Mflop": flops / 1e6,
        "share of the triad": moved / seconds / 1e9 / limits["GB/s"],
        "share of the peak": flops / seconds / 1e9 / limits["Gflop/s"],
    }
