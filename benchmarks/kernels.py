"""Kernels on the OCR words, as in Taskar, Guestrin, Koller (2003): train on one fold of ten, test on the other nine.

Every kernel at every lam of a short list, to a certified gap of 1e-2 of the objective's own units; letter error, mean
over several folds. A kernel's figure is the one at its best lam, for all kernels alike. Then the time of passes beside
the product of the Gram matrix with a full table of marginals, which a pass cannot do without.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

import m3n
from benchmarks.datasets.base import data_folder
from benchmarks.datasets.ocr import LETTERS, generated_words
from m3n.features import Kernel, chain_features
from m3n.packed.threads import single_threaded_blas
from m3n.structures import Chain

KERNELS: dict[str, dict[str, Any]] = {
    "linear": {"kernel": "linear"},
    "quadratic": {"kernel": "poly", "degree": 2},
    "cubic": {"kernel": "poly", "degree": 3},
    "rbf": {"kernel": "rbf"},
}
STRENGTHS = (1.0, 10.0)  # lam n
FOLDS = (0, 1, 2)
GAP = 1e-2
Words = tuple[list[np.ndarray], list[np.ndarray]]


def run(rounds: int = 15) -> dict[str, Any]:
    """Errors, support, seconds and passes of every kernel, and the time of passes."""
    found = {
        name: {f"lam {c:g}/n": mean_over_folds(settings, c) for c in STRENGTHS} for name, settings in KERNELS.items()
    }
    best = {name: min(row["letter error %"] for row in rows.values()) for name, rows in found.items()}
    return {
        "data": "OCR words" if data_folder() else "generated words",
        "folds": list(FOLDS),
        "kernels": found,
        "best lam": best,
        "cubic below linear": 1.0 - best["cubic"] / best["linear"],
        "passes": passes(rounds),
    }


def fold(number: int) -> tuple[Words, Words]:
    """The words of a fold, and all others."""
    folder = data_folder()
    if folder is None:
        X, y = generated_words()[:2]
        X = [image[:, :-1] for image in X]
        folds = np.arange(len(y)) % 10
    else:
        data = np.load(folder / "ocr" / "letters.npz")
        cuts, folds = data["offsets"][1:-1], data["folds"]
        X, y = np.split(data["pixels"].astype(float), cuts), np.split(data["labels"].astype(np.int64), cuts)
    mine, others = np.flatnonzero(folds == number), np.flatnonzero(folds != number)
    return ([X[i] for i in mine], [y[i] for i in mine]), ([X[i] for i in others], [y[i] for i in others])


def mean_over_folds(settings: dict[str, Any], strength: float) -> dict[str, float]:
    """Figures of one kernel at one lam."""
    rows = [train(settings, strength, number) for number in FOLDS]
    return {key: float(np.mean([row[key] for row in rows])) for key in rows[0]}


def train(settings: dict[str, Any], strength: float, number: int) -> dict[str, float]:
    """Figures of one fold."""
    (X, y), (X_test, y_test) = fold(number)
    tagger = m3n.SequenceTagger(**settings, lam=strength / len(X), tol=GAP)
    begin = time.perf_counter()
    tagger.fit(X, y)
    seconds = time.perf_counter() - begin
    begin = time.perf_counter()
    error = 100.0 * (1.0 - tagger.score(X_test, y_test))
    predicting = time.perf_counter() - begin
    return {
        "letter error %": error,
        "gap": tagger.certificate_.gap,
        "seconds to fit": seconds,
        "passes": tagger.trace_[-1].passes,
        "support": float(tagger.kernel_model_.size),
        "inputs": float(tagger.kernel_model_.trained_on),
        "microseconds to tag a letter": 1e6 * predicting / sum(map(len, y_test)),
    }


def passes(rounds: int) -> dict[str, Any]:
    """Milliseconds of a product with the Gram matrix and of passes of both oracles, shortest of several rounds."""
    (X, y), _ = fold(0)
    kernel = Kernel(np.concatenate(X), LETTERS, "poly", degree=3)
    problem = m3n.Problem(Chain([len(t) for t in y], LETTERS), chain_features(kernel, LETTERS), y)
    full = np.random.default_rng(0).normal(size=(LETTERS, kernel.gram.size))
    w = m3n.minimize(problem, "excessive_gap", tol=0.0, max_passes=15).w
    tasks: dict[str, Callable[[], Any]] = {
        "Gram product": lambda: kernel.gram.product(full, problem.threads),
        "exp-oracle pass": lambda: problem.soft(w, 0.1),
        "max-oracle pass": lambda: problem.hard(w),
    }
    with single_threaded_blas():
        times = {name: 1e3 * shortest(task, rounds) for name, task in tasks.items()}
    ratio = times["exp-oracle pass"] / times["Gram product"]
    return {"units": kernel.gram.size, "milliseconds": times, "exp-oracle pass / Gram product": ratio}


def shortest(task: Callable[[], Any], rounds: int) -> float:
    """Seconds."""
    found = []
    for _ in range(rounds):
        begin = time.perf_counter()
        task()
        found.append(time.perf_counter() - begin)
    return min(found)
