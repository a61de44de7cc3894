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

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import m3n
from benchmarks.datasets.base import data_folder
from m3n.alignment.symmetrization import METHODS, best_links, symmetrize
from m3n.io import Alignment, read_alignments, read_parallel
from m3n.io.parallel import sizes_of
from m3n.scores import alignment_scores

MANY = 100  # links of a word: no bound
MEAN = 0.4  # least mean probability of a link of several models, chosen on trial and labelled pairs
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

    def up_to(self, first: int) -> Annotated:
        """The first ones alone."""
        return Annotated(self.pairs[:first], self.alignments[:first])


class Task(NamedTuple):
    """What there is to learn from, without and with links, and to test on."""

    train: list[Pair]
    labelled: Annotated
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
    known = Annotated(test.pairs, test.alignments)
    return Task(train.pairs, known.up_to(FIRST), {"test": known.after(FIRST)})


def hansards(folder: Path) -> Task:
    """English and French."""
    trial, test = (annotated(folder, name) for name in ("trial", "test"))
    tests = {"trial": trial, f"test without {FIRST}": test.after(FIRST), "test": test}
    return Task(pairs_of(folder, "unlabelled25k"), test.up_to(FIRST), tests)


def pairs_of(folder: Path, name: str) -> list[Pair]:
    """Sentence pairs of two files, a sentence per line."""
    return read_parallel(folder / f"{name}.e.gz", folder / f"{name}.f.gz")[0]


def annotated(folder: Path, name: str) -> Annotated:
    """Sentence pairs with their links."""
    pairs = pairs_of(folder, name)
    return Annotated(pairs, read_alignments(folder / f"{name}.wa.nonullalign.gz", sizes_of(pairs)))


def scored(task: Task, seconds: float, predict: Callable[[list[Pair]], Links]) -> dict[str, float]:
    """The figures of one aligner."""
    found = {name: alignment_scores(test.alignments, predict(test.pairs)) for name, test in task.tests.items()}
    rates = {name: 100.0 * scores.aer for name, scores in found.items()}
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
    """The HMM, likewise; and what the prior, the letters that count and capital letters do."""
    return (
        directions("HMM", task)
        | agreement("HMM, joint", task)
        | agreement("HMM, joint, first 5 letters of words", task, letters=5)
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


def with_links(task: Task) -> dict[str, Any]:
    """Aligners that learn from links, on the same models without labels."""
    models = m3n.WordAligner().fit([(["a"], ["b"])] * 2, [[(0, 0)]] * 2, unlabelled=task.train).translations_
    ways: dict[str, dict[str, Any]] = {
        "matching": {},
        "matching, one link per word": {"fertility": 1},
        "matching, features of the joint HMM alone": {"translations": models[:1]},
        "chain of jumps": {"structure": "chain"},
        "chain of jumps, CRF": {"structure": "chain", "objective": "crf"},
        "words by themselves": {"structure": "words"},
        "words by themselves, CRF": {"structure": "words", "objective": "crf"},
        "every link by itself": {"fertility": MANY},
        "matching, possible links learnt too": {"possible": 1.0},
    }
    found = {"the same models, without links": scored(task, 0.0, lambda pairs: mean_of(models, pairs))}
    for name, settings in ways.items():
        fit(task.labelled.up_to(2), **{"translations": models} | settings)  # machine code is loaded
        begin = time.perf_counter()
        aligner = fit(task.labelled, **{"translations": models} | settings)
        seconds = time.perf_counter() - begin
        found[f"with links: {name}"] = scored(task, seconds, aligner.predict) | {"gap": aligner.certificate_.gap}
    return found


def mean_of(models: list[m3n.HMMAligner], pairs: list[Pair]) -> Links:
    """Links that several models believe in: what there is to gain without links, to compare with."""
    tables = zip(*(model.predict_marginals(pairs) for model in models), strict=True)
    means = (np.exp(np.mean([np.log(np.maximum(table, 1e-12)) for table in own], axis=0)) for own in tables)
    return [[(i, j) for i, j in np.argwhere(mean >= MEAN).tolist()] for mean in means]


def fit(data: Annotated, **settings: Any) -> m3n.WordAligner:
    """Trained on labelled pairs."""
    return m3n.WordAligner(**settings).fit(data.pairs, data.alignments)


ROWS: tuple[Callable[[Task], dict[str, Any]], ...] = (model_1, hmm, with_test_text, with_links)
