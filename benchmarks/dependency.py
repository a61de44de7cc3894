"""Dependency trees of Universal Dependencies treebanks, gold tags: English EWT and Gothic PROIEL.

English: the M3N of the first and of the second order, and beside it, on the same features of the first order, the CRF
and the averaged perceptron. Gothic, whose arcs often cross: trees that may cross beside projective ones, trained on
lifted trees, or on the sentences without crossing arcs alone; with the usual loss, and with one in which a wrong head
costs two and a wrong label alone one.
"""

from __future__ import annotations

import resource
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import m3n
from m3n.estimators.projective import crossing
from m3n.io import Treebank, read_conllu
from m3n.losses import PartLoss
from m3n.run.loop import Result
from m3n.scores import attachment_scores

ENGLISH, GOTHIC = "ud_english_ewt/en_ewt-ud-{}.conllu.gz", "ud_gothic_proiel/got_proiel-ud-{}.conllu.gz"
GAPS = (0.5, 0.2, 0.1)  # of the objective
EPOCHS = 10
HEADS_TWICE = {"loss": PartLoss(0.0, 1.0, arrays=(0, 1))}
CRF = {"objective": "crf", "lam": 3.0}  # lam as a multiple of 1/n


class AveragedPerceptron(m3n.DependencyParser):
    """The mean of the weights of all steps of the structured perceptron (Collins, 2002), on the parser's features."""

    _parameters = m3n.DependencyParser._parameters

    def _minimize(self, problem: m3n.Problem, start: Result | None = None, scale: float = 1.0) -> Result:
        return replace(m3n.minimize(problem, max_passes=1.0, tol=np.inf), w=averaged(problem))


def run(folder: Path) -> dict[str, Any]:
    """All figures."""
    english = [read_conllu(folder / ENGLISH.format(part)) for part in ("train", "test")]
    gothic = [read_conllu(folder / GOTHIC.format(part)) for part in ("train", "test")]
    m3n.DependencyParser(max_passes=2.0, bits=12).fit(gothic[0][:20])  # machine code is loaded
    free = {"projective": False}
    crf = CRF | {"lam": CRF["lam"] / len(english[0])}
    drawn = [not crossing([head for head, _ in tree]) for tree in gothic[0].trees]
    few = Treebank([s for s, keep in zip(gothic[0].sentences, drawn, strict=True) if keep])
    return {
        "English, M3N, first order": figures(m3n.DependencyParser(), *english),
        "English, M3N, second order": figures(m3n.DependencyParser(order=2), *english),
        "English, CRF, first order": figures(m3n.DependencyParser(**crf), *english),
        "English, averaged perceptron, first order": figures(AveragedPerceptron(), *english),
        "Gothic, M3N, projective, lifted": figures(m3n.DependencyParser(), *gothic),
        "Gothic, M3N, projective, without crossing": figures(m3n.DependencyParser(), few, gothic[1]),
        "Gothic, M3N, arcs may cross": figures(m3n.DependencyParser(**free), *gothic),
        "Gothic, M3N, heads twice, projective, lifted": figures(m3n.DependencyParser(**HEADS_TWICE), *gothic),
        "Gothic, M3N, heads twice, arcs may cross": figures(m3n.DependencyParser(**HEADS_TWICE, **free), *gothic),
        "Gothic, CRF, projective, lifted": figures(_gothic_crf(gothic[0]), *gothic),
        "Gothic, CRF, arcs may cross": figures(_gothic_crf(gothic[0]).set_params(**free), *gothic),
    }


def figures(parser: m3n.DependencyParser, train: Treebank, test: Treebank) -> dict[str, Any]:
    """Scores, times and the certificate of a parser."""
    begin, cpu = time.perf_counter(), time.process_time()
    parser.fit(train)
    seconds, cpu = time.perf_counter() - begin, time.process_time() - cpu
    begin = time.perf_counter()
    found = parser.predict(test)
    speed, scores = len(test) / (time.perf_counter() - begin), attachment_scores(test.trees, found)
    times = {} if isinstance(parser, AveragedPerceptron) else _seconds_to_gaps(parser)
    return {
        "UAS": 100.0 * scores.uas, "LAS": 100.0 * scores.las, "seconds to fit": seconds, "CPU seconds": cpu, **times,
        "certificate": "none" if not times else str(parser.certificate_), "sentences per second": speed,
        "peak of memory so far, GB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6,
    }  # fmt: skip


def averaged(problem: m3n.Problem) -> np.ndarray:
    """Averaged weights after ``EPOCHS`` passes in random order."""
    random, w, late, step = np.random.default_rng(0), np.zeros(problem.dim), np.zeros(problem.dim), 0
    alone = [problem.structure.select(np.array([i])) for i in range(problem.n)]
    examples = [(space, problem.features.select(rows)) for space, rows in alone]
    right_parts = problem.structure.encode(problem.gold)
    gold = [problem.structure.own(right_parts, i) for i in range(problem.n)]
    for i in np.concatenate([random.permutation(problem.n) for _ in range(EPOCHS)]).tolist():
        space, features = examples[i]
        theta = features.scores(w, tuple(np.empty(shape) for shape in features.shapes))
        best = space.encode(space.hard(theta)[1])
        change = tuple(right - found for right, found in zip(gold[i], best, strict=True))
        if any(array.any() for array in change):
            features.add_adjoint(change, 1.0, w)
            features.add_adjoint(change, float(step), late)
        step += 1
    return w - late / step


def _gothic_crf(train: Treebank) -> m3n.DependencyParser:
    return m3n.DependencyParser(**CRF | {"lam": CRF["lam"] / len(train)})


def _seconds_to_gaps(parser: m3n.DependencyParser) -> dict[str, float]:
    """When the gap was first that small beside the objective; reading, filter and features are not in it."""
    found = {}
    for gap in GAPS:
        near = (record.seconds for record in parser.trace_ if record.gap <= gap * record.primal)
        found[f"seconds to a gap of {100 * gap:g} %"] = next(near, np.inf)
    return found
