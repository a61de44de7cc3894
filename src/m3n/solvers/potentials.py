"""Dual points as potentials of every example, the factored form of alpha_i: what methods that keep them share.

Potentials and marginals of all parts stand in one array each, example after example.
"""

from __future__ import annotations

import numpy as np

from m3n.compiled.sweeps.dual_ascent import Ascent
from m3n.compiled.sweeps.exponentiated import Potentials, fill
from m3n.problem import Problem
from m3n.solvers.forms import require


def starts_of(problem: Problem) -> np.ndarray:
    """Where the potentials of every example begin, and where they end."""
    return np.concatenate([[0], np.cumsum(problem.blocks.rows.sizes)])


def leaning(problem: Problem, odds: float) -> np.ndarray:
    """Potentials that favour gold by ``odds`` in logarithms: its labels against all others of a row, or its parts."""
    starts, labels = starts_of(problem), problem.blocks.costs.table.shape[1]
    potentials = np.zeros(int(starts[-1]))
    potentials[gold_places(problem, starts)] = odds + np.log(max(labels - 1, 1))
    return potentials


def gold_places(problem: Problem, starts: np.ndarray) -> np.ndarray:
    """Where the potentials of gold's labels stand, or of its parts if outputs are not labels of rows."""
    blocks = problem.blocks
    costs = blocks.costs
    if not len(costs.gold):
        owner = np.repeat(np.arange(problem.n), blocks.gold_counts)
        return starts[owner] + blocks.gold[np.arange(blocks.gold.shape[1]) < blocks.gold_counts[:, None]]
    rows = np.arange(len(costs.gold))
    owner = np.searchsorted(costs.first, rows, side="right") - 1
    return starts[owner] + (rows - costs.first[owner]) * costs.table.shape[1] + costs.gold


def filled(problem: Problem, dual: Potentials | Ascent) -> np.ndarray:
    """w(alpha) of the potentials, whose marginals are filled in by a pass of the exp-oracle."""
    blocks, w = problem.blocks, np.zeros(problem.dim)
    problem.visit(fill, dual, blocks.gold, blocks.gold_counts, problem.lam, w, asks="soft", soft=problem.n)
    return w


def dual_value(problem: Problem, dual: Potentials | Ascent, w: np.ndarray) -> float:
    """D(alpha), with w = w(alpha)."""
    entropy = np.mean(problem.blocks.weights * dual.entropies)
    return problem.dual(w, float(dual.losses.mean() + problem.temperature * entropy))


def check_potentials(problem: Problem, dual: Potentials | Ascent, where: str) -> None:
    """Refuse potentials, read from a file, that do not fit the problem."""
    starts, uses = starts_of(problem), int(problem.blocks.rows.first[-1])
    lengths = dict.fromkeys(dual._fields, problem.n) | dict.fromkeys(("potentials", "marginals"), int(starts[-1]))
    lengths |= {"starts": problem.n + 1, **({"eta": uses} if isinstance(dual, Ascent) else {})}
    kinds = dict.fromkeys(dual._fields, "float64") | {"starts": "int64", "failed": "bool", "joint": "bool"}
    for name, array in dual._asdict().items():
        fits = isinstance(array, np.ndarray) and array.shape == (lengths[name],) and array.dtype == kinds[name]
        require(fits, f"{where}.{name} is no array of {lengths[name]} {kinds[name]}")
    require((dual.starts == starts).all(), "the potentials are those of examples of other sizes")
