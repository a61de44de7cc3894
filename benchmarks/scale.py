"""What it costs to leave memory, and the machine: passes on shards and on workers beside passes on threads.

Passes are measured in turn on the same corpus, CoNLL-2000 ten times over (or generated sentences of that size): in
memory on two threads, on memory-mapped shards with two lanes, on two workers of a Ray cluster of this machine. The
engine's own price is that of a pass whose lanes do nothing but answer with a vector.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

import m3n
from benchmarks import workloads
from m3n.features import CHUNKING
from m3n.io import Sentences, read_columns
from m3n.io.sentences import Column
from m3n.packed.threads import single_threaded_blas
from m3n.problem import Answer, Objective, Sharded
from m3n.problem.lanes import Lane

TIMES = 10  # the corpus
WEIGHTS = 100_000, 1_000_000, 10_000_000
ROUNDS, MOST, BATCH = 5, 400, 30
RAY = m3n.Ray(address="local", workers=2)
QUESTIONS: dict[str, Callable[[Any, np.ndarray], object]] = {
    "max-oracle": lambda problem, w: problem.hard(w),
    "exp-oracle": lambda problem, w: problem.soft(w, 1.0),
    "certificate": lambda problem, w: problem.primal(w),
}
KINDS: dict[str, dict[str, Any]] = {
    "CRF, pairs that occur": {"objective": "crf", "observed_only": True},
    "M3N, all pairs": {},
    "M3N, pairs that occur": {"observed_only": True},
}


def run(quick: bool = False) -> dict[str, Any]:
    """Seconds of a pass and their ratios; seconds and passes to 1 %; milliseconds that the engine adds."""
    once = _sentences()
    figures: dict[str, Any] = {"data": "real" if workloads.data_folder() else "generated"}
    with tempfile.TemporaryDirectory() as folder, single_threaded_blas():
        many = once if quick else _repeated(once)
        begin = time.perf_counter()
        shards = m3n.pack(many, many.labels, Path(folder) / "many", templates=CHUNKING)
        figures["packing"] = f"{time.perf_counter() - begin:.1f} s for {int(shards.positions.sum()):,} tokens"
        few = m3n.pack(once, once.labels, Path(folder) / "few", templates=CHUNKING)
        for kind in list(KINDS)[:2]:
            figures[f"pass, {kind}"] = _passes(many, shards, KINDS[kind])
        for kind in list(KINDS)[::2]:
            figures[f"to 1 %, {kind}"] = _trainings(once, few, KINDS[kind])
        figures["engine, ms per pass"] = {f"{count:,} weights": _engine(few, count) for count in WEIGHTS}
    return figures


def _sentences() -> Sentences:
    """CoNLL-2000, or as many words and labels that follow from them."""
    folder = workloads.data_folder()
    if folder is not None:
        return read_columns(folder / "conll2000" / "train.txt.gz")
    random = np.random.default_rng(0)
    words = np.exp(random.random((8936, 24)) * np.log(20_000)).astype(int)
    tokens = [[(f"w{word}", f"T{word % 40}") for word in sentence] for sentence in words.tolist()]
    labels = Column.of((f"L{word % 22}" for word in words.ravel().tolist()), words.size)
    plain = Sentences.of(tokens)
    return Sentences(plain.columns, plain.offsets, labels)


def _repeated(once: Sentences) -> Sentences:
    columns = [Column(c.values, np.tile(c.codes, TIMES)) for c in (*once.columns, once.label) if c is not None]
    return Sentences(columns[:-1], np.concatenate([[0], np.cumsum(np.tile(once.lengths, TIMES))]), columns[-1])


def _passes(sentences: Sentences, shards: m3n.Shards, settings: dict[str, Any]) -> dict[str, Any]:
    """Seconds of passes, in turn, and how many times those of two threads in memory."""
    with ExitStack() as stack:
        here = _tagger(settings, templates=CHUNKING).problem(sentences, sentences.labels)
        there = {
            "shards, 2 threads": stack.enter_context(_tagger(settings).problem(shards)),
            "shards, 2 workers": stack.enter_context(_tagger(settings, backend=RAY).problem(shards)),
        }
        w = np.random.default_rng(0).normal(size=here.dim) * 0.01
        w = here.hard(w).vector  # weights that do occur
        found: dict[str, Any] = {"weights": here.dim}
        for name, ask in QUESTIONS.items():
            seconds = _in_turn({"memory, 2 threads": here, **there}, lambda problem, ask=ask: ask(problem, w))
            base = seconds["memory, 2 threads"]
            for place, own in seconds.items():
                found[f"{name}, {place}"] = f"{own:.3f} s" + (f", {own / base:.2f}" if place in there else "")
    return found


def _trainings(sentences: Sentences, shards: m3n.Shards, settings: dict[str, Any]) -> dict[str, Any]:
    """Passes and seconds of the default to 1 % of the objective, and of a batch method for so many passes."""
    with ExitStack() as stack:
        here = _tagger(settings, templates=CHUNKING).problem(sentences, sentences.labels)
        alone = _tagger(settings, templates=CHUNKING, n_jobs=1).problem(sentences, sentences.labels)
        there = stack.enter_context(_tagger(settings).problem(shards))
        workers = stack.enter_context(_tagger(settings, backend=RAY).problem(shards))
        batch = "lbfgs" if settings.get("objective") == "crf" else "excessive_gap"
        places = {"memory, 1 thread": alone, "memory, 2 threads": here, "shards, 2 threads": there}
        found = {}
        for solver in (batch, "auto"):
            for place, problem in (places | {"shards, 2 workers": workers}).items():
                m3n.minimize(problem, solver, tol=0.0, max_passes=3)
                most = MOST if solver == "auto" else BATCH
                result = m3n.minimize(problem, solver, tol=0.0, rtol=0.01, max_passes=most)
                passes = f"{result.trace[-1].passes:.0f} passes, {result.seconds:.2f} s"
                found[f"{type(result.solver).__name__}, {place}"] = passes
    return found


def _engine(shards: m3n.Shards, count: int) -> str:
    """A question that costs nothing, with weights that come and go."""
    with _tagger({}, backend=RAY).problem(shards) as problem:
        w = np.ones(count)
        assert isinstance(problem, Sharded)
        times = [_timed(lambda: problem.engine.total(_echo, w)) for _ in range(ROUNDS)]
    return f"{1000 * float(np.median(times)):.0f}"


def _echo(lane: Lane, w: np.ndarray) -> Answer:
    return Answer(0.0, w, 0.0, 0.0)


def _tagger(settings: dict[str, Any], **more: Any) -> m3n.SequenceTagger:
    return m3n.SequenceTagger(**{"n_jobs": 2, **settings, **more})


def _in_turn(problems: dict[str, Objective], ask: Callable[[Objective], object]) -> dict[str, float]:
    times: dict[str, list[float]] = {place: [] for place in problems}
    for turn in range(ROUNDS + 1):
        for place, problem in problems.items():
            seconds = _timed(lambda problem=problem: ask(problem))
            if turn:
                times[place].append(seconds)
    return {place: float(np.median(own)) for place, own in times.items()}


def _timed(call: Callable[[], object]) -> float:
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin
