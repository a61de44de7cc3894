"""Word alignment: error rates and seconds of training, on the Hansards or, without the data, on two toy languages.

Of the Hansards, 25,000 sentence pairs without links are for training; 37 trial pairs and 447 test pairs have links. The
aligner's settings were chosen on the trial pairs, in runs that showed the figures of the test pairs as well: those are
no longer a blind test. Priors from 2 to 30 lie within 0.5 of each other on them. Aligners that learn from links may
see the first 100 test pairs, so the other 347 have a figure of their own. The alignment error rate of links A, with
sure ones S and possible ones P, is

    AER = 1 - (|A & S| + |A & (S | P)|) / (|A| + |S|),

here in percent. A row is a function of the task that gives the links of all test sets; add one to ``ROWS``.
"""

from __future__ import annotations

import gzip
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import m3n
from benchmarks.datasets.base import data_folder
from m3n.alignment.symmetrize import METHODS, best_links, symmetrize
from m3n.io import Alignment

FIRST = 100  # test pairs that aligners may learn from
Pair = tuple[list[str], list[str]]
Links = list[list[tuple[int, int]]]


class Annotated(NamedTuple):
    """Sentence pairs with links."""

    pairs: list[Pair]
    alignments: list[Alignment]

    def after(self, first: int) -> Annotated:
        """Without the first ones."""
        return Annotated(self.pairs[first:], self.alignments[first:])


class Task(NamedTuple):
    """What there is to learn from, and to test on."""

    train: list[Pair]
    tests: dict[str, Annotated]


def run() -> dict[str, Any]:
    """Figures of all rows."""
    folder = data_folder()
    task = toy() if folder is None else hansards(folder / "hansards")
    m3n.HMMAligner(iterations=1).fit(task.train[:20]).predict(task.train[:20])  # machine code is loaded
    found: dict[str, Any] = {"data": "two toy languages" if folder is None else "Hansards", "pairs": len(task.train)}
    for row in ROWS:
        found |= row(task)
    return found


def toy() -> Task:
    """Sentence pairs that we make ourselves."""
    train, test = m3n.datasets.parallel_sentences(2000, 200)
    return Task(train.pairs, {"test": Annotated(test.pairs, test.alignments)})


def hansards(folder: Path) -> Task:
    """English and French."""
    trial, test = (annotated(folder, name) for name in ("trial", "test"))
    tests = {"trial": trial, f"test without {FIRST}": test.after(FIRST), "test": test}
    return Task(pairs_of(folder, "unlabelled25k"), tests)


def pairs_of(folder: Path, name: str) -> list[Pair]:
    """Sentence pairs of two files, a sentence per line."""
    source, target = (_lines(folder / f"{name}.{language}.gz") for language in "ef")
    return [(e.split(), f.split()) for e, f in zip(source, target, strict=True)]


def annotated(folder: Path, name: str) -> Annotated:
    """Sentence pairs with their links: lines of a sentence, two words, all counted from 1, and S or P."""
    pairs = pairs_of(folder, name)
    found: defaultdict[tuple[int, str], set[tuple[int, int]]] = defaultdict(set)
    for line in _lines(folder / f"{name}.wa.nonullalign.gz"):
        sentence, i, j, kind = line.split()
        found[int(sentence) - 1, kind].add((int(i) - 1, int(j) - 1))
    alignments = [Alignment(frozenset(found[k, "S"]), frozenset(found[k, "P"])) for k in range(len(pairs))]
    return Annotated(pairs, alignments)


def _lines(path: Path) -> list[str]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return file.read().splitlines()


def error_rate(links: Links, alignments: list[Alignment]) -> float:
    """AER in percent."""
    right = total = 0
    for found, gold in zip(map(set, links), alignments, strict=True):
        right += len(found & gold.sure) + len(found & (gold.sure | gold.possible))
        total += len(found) + len(gold.sure)
    return 100.0 * (1.0 - right / total)


def scored(task: Task, seconds: float, predict: Callable[[list[Pair]], Links]) -> dict[str, float]:
    """The figures of one aligner."""
    rates = {name: error_rate(predict(test.pairs), test.alignments) for name, test in task.tests.items()}
    return {"seconds": seconds, **rates}


def trained(task: Task, more: tuple[Pair, ...] = (), **settings: Any) -> tuple[m3n.HMMAligner, float]:
    """An aligner, and how long it took."""
    begin = time.perf_counter()
    aligner = m3n.HMMAligner(**settings).fit([*task.train, *more])
    return aligner, time.perf_counter() - begin


def model_1(task: Task) -> dict[str, Any]:
    """Model 1: each direction alone, and in agreement."""
    return directions("Model 1", task, model="model1") | agreement("Model 1, joint", task, model="model1")


def hmm(task: Task) -> dict[str, Any]:
    """The HMM, likewise; and what the prior and letters that are as they are do."""
    return (
        directions("HMM", task)
        | agreement("HMM, joint", task)
        | agreement("HMM, joint, without prior", task, prior=0.0)
        | agreement("HMM, joint, with capital letters", task, lowercase=False)
    )


def with_test_text(task: Task) -> dict[str, Any]:
    """The HMM that has seen the sentences of the tests, without links."""
    more = tuple(pair for test in task.tests.values() for pair in test.pairs)
    aligner, seconds = trained(task, tuple(more[k] for k in _first(more)))
    return {"HMM, joint, with the text of the tests": scored(task, seconds, aligner.predict)}


def _first(pairs: tuple[Pair, ...]) -> list[int]:
    """Where sentence pairs occur first: test sets may share some."""
    return list({str(pair): k for k, pair in reversed(list(enumerate(pairs)))}.values())


def agreement(name: str, task: Task, **settings: Any) -> dict[str, Any]:
    """Joint training, decoded by both directions."""
    aligner, seconds = trained(task, **settings)
    return {name: scored(task, seconds, aligner.predict)}


def directions(name: str, task: Task, **settings: Any) -> dict[str, Any]:
    """Both directions trained apart: each alone, combined by links, and combined by probabilities."""
    aligner, seconds = trained(task, joint=False, **settings)

    def forward(pairs: list[Pair]) -> Links:
        return [best_links(forward) for forward, _ in aligner.directions(pairs)]

    def backward(pairs: list[Pair]) -> Links:
        return [[(i, j) for j, i in best_links(backward.T)] for _, backward in aligner.directions(pairs)]

    def combined(method: str) -> Callable[[list[Pair]], Links]:
        return lambda pairs: symmetrize(forward(pairs), backward(pairs), method)

    ways = {"forward": forward, "backward": backward, **{method: combined(method) for method in METHODS}}
    ways["probabilities"] = aligner.predict
    return {f"{name}, {way}": scored(task, seconds, predict) for way, predict in ways.items()}


ROWS: tuple[Callable[[Task], dict[str, Any]], ...] = (model_1, hmm, with_test_text)
