"""Searches over lam on CoNLL-2000: their time against one training, what the path saves, and what is proven.

A tenth of the sentences validates. The search is ``m3n.tune`` with 20 values of lam; *cold* is every fourth of its runs
from nothing, beside the same on the path; *exact* is the path at the tolerance of the estimator, to see what the looser
one of the search costs in scores. CPU seconds and seconds of the clock, after one training that compiles.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

import m3n
from benchmarks.datasets import data_folder
from m3n.features import CHUNKING
from m3n.run.paths import walk
from m3n.tuning.search import SEARCH
from m3n.tuning.settings import values_of_lam

WISH = 0.5  # points
BUDGET = 60.0  # seconds


def sentences(limit: int | None = None) -> Any:
    """Training and validation examples, and the settings that they need."""
    folder = data_folder()
    if folder is None:
        train, test = m3n.datasets.digit_strings(n_train=200, n_test=50)
        return (train.inputs, train.labels), (test.inputs, test.labels), {}
    found = m3n.io.read_columns(folder / "conll2000" / "train.txt.gz")
    order = np.random.default_rng(0).permutation(len(found))[:limit]
    held, rest = np.sort(order[: len(order) // 10]), np.sort(order[len(order) // 10 :])
    train, test = found[rest], found[held]
    return (train, train.labels), (test, test.labels), {"templates": CHUNKING, "observed_only": True}


def measure(objective: str, quick: bool) -> dict[str, Any]:
    """All figures of one objective."""
    train, test, settings = sentences(500 if quick else None)
    own = m3n.SequenceTagger(objective=objective, **settings)
    own.fit(*train)  # compiled, and the files in memory
    fit, model = timed(lambda: own.fit(*train))
    search, found = timed(lambda: m3n.tune(own, *train, validation=test, guarantee=False))
    bounds, proven = timed(lambda: m3n.tune(own, *train, validation=test, refit=False))
    lams = values_of_lam(None, 1.0 / len(train[1]))
    problem, solver = own.problem(*train), model.solver_
    cold = sum(p.passes for p in walk(problem, lams[2::4], solver, rtol=SEARCH, warm_start=False))
    passes = {"on the path": sum(row.passes for row in found.rows[2::4]), "cold": cold}
    budget = 2.0 if quick else BUDGET
    _, wish = timed(lambda: m3n.tune(own, *train, validation=test, guarantee=WISH, budget=budget, refit=False))
    exact = m3n.tune(own, *train, validation=test, rtol=0.01, guarantee=False, refit=False)
    at_best = next(row.mean for row in exact.rows if row.lam == found.best_lam)
    low = wish.guarantee.within(WISH, wish.best_lam) or (wish.best_lam, wish.best_lam)
    return {
        "one training": fit | {"passes": model.trace_[-1].passes},
        "search with last fit": search | {"passes": found.passes},
        "search, no last fit, with bounds": bounds,
        "times one training, CPU": search["cpu"] / fit["cpu"],
        "times one training, seconds": search["seconds"] / fit["seconds"],
        "passes of every fourth lam": passes,
        "best lam n": found.best_lam * len(train[1]),
        "score": found.best_score,
        "lost by the tolerance, points": 100.0 * (exact.best_score - at_best),
        "proven, points": proven.guarantee.points,
        f"proven after {budget:g} s more, points": wish.guarantee.points,
        f"within {WISH:g} points, lam n": f"{low[0] * len(train[1]):.4g} to {low[1] * len(train[1]):.4g}",
        "scores": {f"{row.lam * len(train[1]):.3g}/n": [row.mean, row.passes] for row in found.rows},
    }


def timed(work: Callable[[], Any]) -> tuple[dict[str, float], Any]:
    """Seconds of the clock and of the CPU, and what came of it."""
    wall, cpu = time.perf_counter(), time.process_time()
    result = work()
    return {"seconds": time.perf_counter() - wall, "cpu": time.process_time() - cpu}, result


def run(quick: bool = False) -> dict[str, Any]:
    """Both objectives."""
    return {objective: measure(objective, quick) for objective in ("crf", "margin")}
