"""Trees and graphs against chains: the same paths, both oracles, time per node and pair of labels, one thread.

Words of the OCR data are 7.6 letters long on average; here are as many generated ones as there are, with 26 labels and
with 10. *Tables* is the model with a table of scores for every edge on top of the shared one. The last figures are of
graphs with cycles, in nanoseconds per table entry.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from m3n.structures import Chain, Factors, Graph, Parts, Structure, Tree

WORDS = 6251


def run(repeats: int = 9) -> dict[str, Any]:
    """Nanoseconds of the fastest of some runs, and ratios to the chain."""
    lengths = np.random.default_rng(0).integers(3, 13, size=WORDS)
    paths = {f"{labels} labels": compare(lengths, labels, repeats) for labels in (26, 10)}
    return {"paths": paths, "graphs": {name: measure(*make(), repeats) for name, make in GRAPHS.items()}}


def compare(lengths: np.ndarray, labels: int, repeats: int) -> dict[str, Any]:
    """Chain, tree and graph on the same scores; they must agree."""
    figures: dict[str, Any] = {}
    edges = [np.stack([np.arange(n - 1), np.arange(1, n)], axis=1) for n in lengths]
    random = np.random.default_rng(1)
    for tables in (False, True):
        factors = [Factors(edges, shared=True), Factors(edges)][: 1 + tables]
        same = {"tree": Tree(lengths, labels, edges, tables=tables), "graph": Graph(lengths, labels, factors)}
        theta = tuple(random.normal(size=shape) for shape in same["tree"].shapes)
        chain = Chain(lengths, labels, edges=tables)
        full = (*theta[:2], np.zeros(labels), np.zeros(labels), *theta[2:])
        pairs = int((lengths - 1).sum()) * labels**2
        times = {"chain": both(chain, full, pairs, repeats)}
        for name, structure in same.items():
            np.testing.assert_array_equal(structure.hard(theta)[1], chain.hard(full)[1])
            times[name] = both(structure, theta, pairs, repeats)
        for name, oracle in itertools.product(same, ("hard", "soft")):
            times[name][f"{oracle} / chain"] = times[name][oracle] / times["chain"][oracle]
        figures["tables" if tables else "shared"] = times
    return figures


def both(structure: Structure, theta: Parts, entries: int, repeats: int) -> dict[str, float]:
    """Nanoseconds per entry of the max-oracle and of the exp-oracle, without the copy of theta."""
    work = tuple(array.copy() for array in theta)

    def refill() -> None:
        for a, b in zip(work, theta, strict=True):
            np.copyto(a, b)

    hard = fastest(lambda: structure.hard(theta), lambda: None, repeats)
    soft = fastest(lambda: structure.soft(work, 1.0), refill, repeats)
    return {"hard": 1e9 * hard / entries, "soft": 1e9 * soft / entries}


def measure(nodes: int, labels: int, edges: np.ndarray, repeats: int) -> dict[str, float]:
    """One graph, several times if it is small."""
    copies = max(1, 300_000 // labels**nodes)
    graph = Graph([nodes] * copies, labels, [Factors([edges] * copies)])
    theta = tuple(np.random.default_rng(0).normal(size=shape) for shape in graph.shapes)
    return {"width": graph.width, "entries": int(graph.cost[0]), **both(graph, theta, int(graph.cost.sum()), repeats)}


def fastest(call: Callable[[], Any], prepare: Callable[[], Any], repeats: int) -> float:
    """Least CPU time; the first run, which compiles, does not count."""
    times = []
    for _ in range(repeats + 1):
        prepare()
        begin = time.process_time()
        call()
        times.append(time.process_time() - begin)
    return min(times[1:])


def grid(height: int, width: int) -> np.ndarray:
    """The edges between neighbours."""
    cells = np.arange(height * width).reshape(height, width)
    across = np.stack([cells[:, :-1].ravel(), cells[:, 1:].ravel()], axis=1)
    return np.concatenate([across, np.stack([cells[:-1].ravel(), cells[1:].ravel()], axis=1)])


def complete(nodes: int) -> np.ndarray:
    """All pairs."""
    return np.array(list(itertools.combinations(range(nodes), 2)))


GRAPHS: dict[str, Callable[[], tuple[int, int, np.ndarray]]] = {
    "6 binary variables, all pairs": lambda: (6, 2, complete(6)),
    "14 binary variables, all pairs": lambda: (14, 2, complete(14)),
    "grid 12 x 12, 2 labels": lambda: (144, 2, grid(12, 12)),
    "grid 4 x 12, 11 labels": lambda: (48, 11, grid(4, 12)),
}
