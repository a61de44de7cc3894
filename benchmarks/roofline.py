"""How near to the machine's limits a pass comes: its bytes and flops against measured bandwidth and peak.

Two limits are measured first: the bandwidth of a triad a = b + s c over arrays beyond the cache, and the rate of fused
multiply-adds in registers. Then every part of an exp-oracle pass runs by itself. *Bytes* are what a part has to touch
if nothing stays in a cache between two uses (rows of weights included), so a part can exceed the triad where caches
help; *flops* count a multiply-add as two and an exponential as the 35 operations of ours.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse
from numba import njit

from benchmarks.datasets import LETTERS, data_folder, words
from m3n import Problem
from m3n.compiled.primitives.vector import load, multiply_add, splat, total
from m3n.features import CHUNKING, Sparse, chain_features
from m3n.io import read_columns
from m3n.packed import Threads
from m3n.packed.threads import single_threaded_blas
from m3n.structures import Chain

TRIAD = 8_000_000  # numbers of each of the three arrays: 64 MB
CHAINS = 10  # independent sums: latency 4, two units, a little spare
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
    """Limits with one thread and two, then the parts of a pass on two data sets."""
    figures: dict[str, Any] = {}
    for jobs in (1, 2):
        limits = {"GB/s": bandwidth(jobs, repeats), "Gflop/s": peak(jobs, repeats)}
        with single_threaded_blas():
            parts = {name: measure(make(jobs), limits, repeats) for name, make in PROBLEMS.items()}
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


def chunking(jobs: int) -> Problem:
    """CoNLL-2000 with CRFsuite's template, or generated sentences of the same size: many attributes, 22 labels."""
    folder = data_folder()
    if folder is None:
        return generated(jobs)
    sentences = read_columns(folder / "conll2000" / "train.txt.gz")
    X = CHUNKING.unfitted().fit_transform(sentences)
    names = {label: k for k, label in enumerate(sorted({t for y in sentences.labels for t in y}))}
    y = [[names[t] for t in labels] for labels in sentences.labels]
    features = chain_features(Sparse(X, len(names)), len(names))
    return Problem(Chain([len(t) for t in y], len(names)), features, y, temperature=1.0, n_jobs=jobs)


def generated(jobs: int, n: int = 8936, labels: int = 22, length: int = 24, used: int = 11) -> Problem:
    """Attributes with the frequencies of words (1/rank)."""
    random = np.random.default_rng(0)
    tokens = n * length
    columns = np.exp(random.random(tokens * used) * np.log(60_000)).astype(np.int64) - 1
    X = scipy.sparse.csr_array((np.ones(len(columns)), columns, np.arange(0, len(columns) + 1, used)))
    y = random.integers(labels, size=(n, length))
    features = chain_features(Sparse(X, labels), labels)
    return Problem(Chain([length] * n, labels), features, y, temperature=1.0, n_jobs=jobs)


def pixels(jobs: int) -> Problem:
    """The OCR words as sparse pixels: few attributes, 26 labels."""
    X, y, _, _ = words(data_folder())
    features = chain_features(Sparse(scipy.sparse.csr_array(np.concatenate(X)), LETTERS), LETTERS)
    return Problem(Chain([len(t) for t in y], LETTERS), features, y, temperature=1.0, n_jobs=jobs)


PROBLEMS = {"chunking": chunking, "OCR words": pixels}


def measure(problem: Problem, limits: dict[str, float], repeats: int) -> dict[str, Any]:
    """Every part of an exp-oracle pass, and the whole."""
    features, structure, threads = problem.features, problem.structure, problem.threads
    jobs = threads.count
    X, s = features.maps[0].X, structure.labels
    tokens, entries = X.shape[0], X.nnz
    w = 0.1 * np.random.default_rng(0).normal(size=problem.dim)
    theta = features.scores(w, structure.empty(), threads)
    parts = structure.soft(tuple(a.copy() for a in theta), 1.0, threads)[1]
    vector, work = np.zeros(problem.dim), tuple(a.copy() for a in theta)

    def recursion() -> None:
        for a, b in zip(work, theta, strict=True):
            np.copyto(a, b)
        structure.soft(work, 1.0, threads)

    copying = best(lambda: [np.copyto(a, b) for a, b in zip(work, theta, strict=True)], repeats, jobs)
    row = 8.0 * s
    # name -> seconds, bytes, flops
    table = {
        "scores": (
            best(lambda: features.scores(w, work, threads), repeats, jobs),
            entries * (12 + row) + tokens * row,
            2.0 * entries * s,
        ),
        "recursion": (
            best(recursion, repeats, jobs) - copying,
            2 * tokens * row,
            tokens * (6.0 * s * s + (EXPONENTIAL + 15) * s),
        ),
        "adjoint": (
            best(lambda: features.add_adjoint(parts, 1.0, vector, threads), repeats, jobs),
            entries * (12 + 2 * row) + tokens * row,
            2.0 * entries * s,
        ),
    }
    whole = best(lambda: problem.soft(w, 1.0), repeats, jobs)
    table["pass"] = (whole, sum(t[1] for t in table.values()), sum(t[2] for t in table.values()))
    return {name: rates(*entry, limits) for name, entry in table.items()}


def rates(seconds: float, moved: float, flops: float, limits: dict[str, float]) -> dict[str, float]:
    """Absolute and relative to the limits."""
    return {
        "seconds": seconds,
        "MB": moved / 1e6,
        "Mflop": flops / 1e6,
        "share of the triad": moved / seconds / 1e9 / limits["GB/s"],
        "share of the peak": flops / seconds / 1e9 / limits["Gflop/s"],
    }
