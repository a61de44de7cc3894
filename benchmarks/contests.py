"""Which contests are held: data, runs, and the figures that are read off them."""

from __future__ import annotations

from benchmarks.contest import Contest, Run
from benchmarks.figures import Figure
from benchmarks.objectives import CRF, Margin

CRFSUITE = CRF(c2=1.0)
LETTERS = CRF(c2=0.5, states="all")  # lam = 1/n
M3N = Margin()
TIGHT = {"tol": 1e-3}  # an absolute gap; J(0) = 1 with the normalised loss

CONTESTS = (
    Contest(
        "chunking",
        "chunking",
        (
            Run("m3n CRF, 1 thread", "m3n", CRFSUITE, {"jobs": 1}),
            Run("python-crfsuite", "python-crfsuite", CRFSUITE),
            Run("m3n CRF, 2 threads", "m3n", CRFSUITE, {"jobs": 2}),
            Run("m3n M3N, 1 thread", "m3n", M3N, {"jobs": 1, "watch": True, **TIGHT}),
            Run("m3n M3N, 2 threads", "m3n", M3N, {"jobs": 2, "watch": True, **TIGHT}),
            Run("m3n M3N, block Frank-Wolfe", "m3n", M3N,
                {"jobs": 1, "watch": True, "solver": "block_frank_wolfe", "max_seconds": 200, **TIGHT}, once=True),
        ),
    ),
)  # fmt: skip
BY_NAME = {contest.name: contest for contest in CONTESTS}

ONE, TWO, SUITE = "m3n CRF, 1 thread", "m3n CRF, 2 threads", "python-crfsuite"
FIGURES = (
    Figure("CRF training, 1 thread", "chunking", ONE, SUITE, "to its value", 5),
    Figure("CRF training, 2 threads", "chunking", TWO, SUITE, "to its value", 10),
    Figure("CRF pass / iteration, 1 thread", "chunking", ONE, SUITE, "pass"),
    Figure("CRF pass / iteration, 2 threads", "chunking", TWO, SUITE, "pass", 6),
    Figure("column file to features", "chunking", ONE, SUITE, "ingest", 8),
    Figure("tagging, features ready, 1 thread", "chunking", ONE, SUITE, "tag", 5),
    Figure("tagging, from the file, 1 thread", "chunking", ONE, SUITE, "file to labels"),
    Figure("peak memory, 1 thread", "chunking", ONE, SUITE, "peak", 1),
    Figure("M3N to F1 93.4, 1 thread / CRF", "chunking", "m3n M3N, 1 thread", SUITE, "to score 93.4", 20),
    Figure("M3N to F1 93.4, 2 threads / CRF", "chunking", "m3n M3N, 2 threads", SUITE, "to score 93.4", 20),
)
