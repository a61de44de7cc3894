"""What ``solver="auto"`` takes, beside every other solver that is worth trying, on generated sequences.

A *cell* is a kind of problem, a size, a strength of regularisation and a tolerance. The chosen solver runs first; a
rival that has taken ``LOST`` times the best is stopped at its next certificate, so nobody waits for a loser. CPU
seconds of one thread, without compilation: every kind of problem is trained on a handful of sequences beforehand. Runs
of less than ``SHORT`` seconds are repeated and their minimum counts.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
import scipy.sparse

from m3n import Problem, minimize
from m3n.features import Dense, Sparse, chain_features
from m3n.run.loop import Result, Snapshot
from m3n.solvers import (
    BMRM,
    LBFGS,
    OWLQN,
    BlockFrankWolfe,
    DualAscent,
    ExcessiveGap,
    SequentialDual,
    Solver,
    SparseDualAscent,
    choose,
)
from m3n.structures import Chain

LOST = 3.0
SHORT, ROUNDS = 0.5, 3
LONGEST = 60.0  # CPU seconds of the chosen solver
GOOD, FAIR = 1.3, 2.0  # times the best
TRIFLE = 0.02  # CPU seconds: less counts as so much, as nobody waits for the difference
NOISE = 0.1  # share of labels that are drawn at random
WORDS, PER_TOKEN = 8, 5000  # of a token of text; attributes of a unit of ``dim``
RIVALS: dict[str, tuple[Solver[Any], ...]] = {
    "margin": (SequentialDual(), BlockFrankWolfe(), ExcessiveGap(), BMRM()),
    "crf": (DualAscent(), LBFGS()),
    "l1": (SparseDualAscent(), OWLQN()),
}


@dataclass(frozen=True)
class Cell:
    """A problem to be solved to a tolerance.

    Attributes
    ----------
    objective : {"margin", "crf", "l1"}
        What is minimised.
    kind : {"dense", "low rank", "separable", "uneven", "text"}
        What tokens are: normal numbers, the same in an eighth of the directions, the same without noise in the labels,
        numbers of very different sizes that are not zero on average, or a few of many words with Zipf's frequencies.
    n, dim, labels : int
        Sequences, numbers of a token (words in the vocabulary of a text), labels.
    strength : float
        lam n; negative for lam itself.
    rtol : float
        The gap is to be this part of the objective.
    """

    objective: str
    kind: str
    n: int
    dim: int
    labels: int
    strength: float
    rtol: float

    @property
    def lam(self) -> float:
        """Weight of the regulariser."""
        return self.strength / self.n if self.strength > 0.0 else -self.strength

    @property
    def name(self) -> str:
        """In words."""
        lam = f"{self.strength:g}/n" if self.strength > 0.0 else f"{self.lam:g}"
        return f"{self.objective} {self.kind} n={self.n} dim={self.dim} labels={self.labels} lam={lam} {self.rtol:g}"


def cells(quick: bool) -> Iterator[Cell]:
    """The grid: small, middle and large problems, dense and sparse; a few of them where quick."""
    if quick:
        for objective, kind in product(RIVALS, ("dense", "text")):
            yield Cell(objective, kind, 50, 20 if kind == "dense" else 2000, 6, 1.0, 0.05)
        return
    strengths = (1.0, 10.0, -0.1)
    for objective, n, strength, rtol in product(("margin", "crf"), (50, 500, 2000), strengths, (0.05, 0.002)):
        yield Cell(objective, "dense", n, 20, 6, strength, rtol)
        yield Cell(objective, "text", n, 20000, 10, strength, rtol)
    for objective, n, strength in product(("margin", "crf"), (50, 500, 2000), strengths):
        yield Cell(objective, "dense", n, 100, 10, strength, 0.05)
    for objective, kind, strength in product(("margin", "crf"), ("uneven", "low rank", "separable"), strengths):
        yield Cell(objective, kind, 500, 100, 10, strength, 0.02)
    for objective, strength in product(("margin", "crf"), strengths):
        yield Cell(objective, "dense", 200, 1000, 10, strength, 0.05)
        yield Cell(objective, "dense", 200, 20, 40, strength, 0.05)
    for kind, n, rtol in product(("dense", "text"), (50, 500, 2000), (0.05, 0.01)):
        yield Cell("l1", kind, n, 20 if kind == "dense" else 20000, 6, 0.2, rtol)
    for objective, strength in product(("margin", "crf"), (1.0, -0.1)):
        yield Cell(objective, "dense", 20000, 20, 6, strength, 0.05)
        yield Cell(objective, "text", 20000, 100000, 10, strength, 0.05)


def problem_of(cell: Cell, seed: int = 0) -> Callable[[], Problem]:
    """A maker of fresh problems on the same data: what a problem prepares for its solvers counts for each of them."""
    random = np.random.default_rng(seed)
    lengths = random.integers(10, 31, size=cell.n)
    tokens, scores = _tokens(cell, random, int(lengths.sum()))
    gold = scores.argmax(axis=1)
    wrong = random.random(len(gold)) < (0.0 if cell.kind == "separable" else NOISE)
    gold[wrong] = random.integers(cell.labels, size=int(wrong.sum()))
    node = Sparse if scipy.sparse.issparse(tokens) else Dense
    y = np.split(gold, np.cumsum(lengths)[:-1])
    smooth = {"temperature": 1.0} if cell.objective != "margin" else {}
    l1 = {"l1": cell.lam / 2} if cell.objective == "l1" else {}

    def make() -> Problem:
        features = chain_features(node(tokens, cell.labels), cell.labels)
        return Problem(Chain(lengths, cell.labels), features, y, lam=cell.lam, n_jobs=1, **smooth, **l1)

    return make


def _tokens(cell: Cell, random: np.random.Generator, count: int) -> tuple[Any, np.ndarray]:
    """Features of all tokens, and the scores of their labels; neighbours have nothing in common."""
    if cell.kind == "text":
        ranks = np.minimum(random.zipf(1.3, size=(count, WORDS)), cell.dim) - 1
        columns = (ranks * WORDS + np.arange(WORDS)) % cell.dim  # every place has frequent words of its own
        pointers = np.arange(0, count * WORDS + 1, WORDS)
        X = scipy.sparse.csr_array((np.ones(columns.size), columns.ravel(), pointers), (count, cell.dim))
    elif cell.kind == "low rank":
        rank = max(1, cell.dim // 8)
        X = random.normal(size=(count, rank)) @ random.normal(size=(rank, cell.dim)) / np.sqrt(rank)
    else:
        X = random.normal(size=(count, cell.dim))
    if cell.kind == "uneven":
        X = (1.0 + X) / np.sqrt(np.arange(1, cell.dim + 1))
    return X, X @ random.normal(size=(cell.dim, cell.labels))


def measure(cell: Cell) -> dict[str, Any]:
    """CPU seconds of every solver, infinite for one that lost, and the ratio of the chosen one to the best."""
    small = problem_of(replace(cell, n=8))
    make = problem_of(cell)
    chosen = type(choose(make(), rtol=cell.rtol).solver).__name__
    rivals = sorted(RIVALS[cell.objective], key=lambda solver: type(solver).__name__ != chosen)
    seconds: dict[str, float] = {}
    for solver in rivals:
        minimize(small(), solver, tol=0.0, rtol=0.5, max_passes=20)  # machine code is loaded
        limit = LOST * min(seconds.values(), default=LONGEST / LOST)
        seconds[type(solver).__name__] = _seconds(make, solver, cell.rtol, limit)
    best = max(min(seconds.values()), TRIFLE)
    return {"chosen": chosen, "seconds": seconds, "ratio": max(seconds[chosen], TRIFLE) / best}


def _seconds(make: Callable[[], Problem], solver: Solver[Any], rtol: float, limit: float) -> float:
    """CPU seconds to the tolerance, at least; the limit if it was not reached in that time."""
    least = np.inf
    for _ in range(ROUNDS):
        problem, begin = make(), time.process_time()
        result = _run(problem, solver, rtol, begin + limit)
        spent = time.process_time() - begin
        least = min(least, spent if result.converged else max(spent, limit))
        if spent > SHORT or not result.converged:
            break
    return least


def _run(problem: Problem, solver: Solver[Any], rtol: float, until: float) -> Result:
    def late(snapshot: Snapshot) -> bool:
        return time.process_time() > until

    return minimize(problem, solver, tol=0.0, rtol=rtol, callbacks=[late])


def run(quick: bool = False) -> dict[str, Any]:
    """All cells, and the share of them in which the choice is good."""
    found, ratios = dict[str, Any](), []
    for cell in cells(quick):
        found[cell.name] = measure(cell)
        ratios.append(found[cell.name]["ratio"])
        print(line(cell, found[cell.name]), flush=True)
    within = {f"within {limit}x %": 100.0 * float(np.mean(np.array(ratios) <= limit)) for limit in (GOOD, FAIR)}
    return {"cells": len(ratios), **within, "worst ratio": max(ratios), "all": found}


def line(cell: Cell, found: dict[str, Any]) -> str:
    """A cell in a line."""
    times = ", ".join(f"{name} {seconds:.3g}" for name, seconds in found["seconds"].items())
    return f"{cell.name}: {found['chosen']} at {found['ratio']:.2f} of the best ({times})"
