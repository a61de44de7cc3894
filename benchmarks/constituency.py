"""Phrase structure on the Wall Street Journal sample: files 1-159 train, 180-199 test, at most 40 words.

Three ways to weigh the rules of one grammar: relative frequencies (PCFG), the M3N and the CRF, which also see the words
next to a word when they choose its tag; then M3N and CRF with features of spans. F1 of labelled brackets by EVALB's
conventions. A difference comes with the interval that holds 95 % of the differences on samples of test sentences, drawn
with replacement, the same for both parsers.

As only few test sentences are short, those of at most 15 words of the whole sample are parsed by ten grammars, each of
the short sentences of nine tenths of the files. Frequencies there are those of the better grammar, v=2 h=1.
"""

from __future__ import annotations

import gzip
import resource
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import m3n
from m3n.grammars import PCFG, Binarisation, TreebankGrammar, Vocabulary
from m3n.io import ParseTree
from m3n.scores import bracket_scores

GRAMMARS = {"v=1 h=0": (1, 0), "v=2 h=1": (2, 1)}
LONGEST, SHORT, FOLDS, SAMPLES = 40, 15, 10, 10_000
GAPS = (0.1, 0.01)  # of the objective
RARE = 2  # words that occur less often are seen by their signature
TREES = "wsj_sample/wsj_sample.norm.trees.gz"

Filed = list[tuple[int, ParseTree]]  # number of the file, and a tree


class Parsed(NamedTuple):
    """What a parser found, and what it took."""

    counts: np.ndarray  # (sentences, 3) right, gold and predicted brackets
    figures: dict[str, Any]


def run(folder: Path) -> dict[str, Any]:
    """All figures."""
    trees = read(folder / TREES)
    train = [tree for file, tree in trees if file <= 159 and len(tree.words()) <= LONGEST]
    test = [tree for file, tree in trees if file >= 180 and len(tree.words()) <= LONGEST]
    m3n.ConstituencyParser(max_passes=2.0, tol=np.inf, n_jobs=1).fit(*_task(train[:20]))  # machine code is loaded
    found: dict[str, Any] = {name: rules(train, test, *orders) for name, orders in GRAMMARS.items()}
    found["spans"] = spans(train, test)
    found["spans, CRF"] = spans(train, test, objective="crf", decode="risk")
    found[f"at most {SHORT} words, {FOLDS} parts of the files"] = short(trees)
    return found


def read(path: Path) -> Filed:
    """All trees of the sample."""
    with gzip.open(path, "rt") as file:
        rows = [line.rstrip("\n").split("\t") for line in file]
    return [(int(name[4:8]), ParseTree.parse(text)) for name, text in rows]


def rules(train: list[ParseTree], test: list[ParseTree], vertical: int, horizontal: int) -> dict[str, Any]:
    """The same rules with relative frequencies, as M3N and as CRF."""
    settings = {"features": "rules", "vertical": vertical, "horizontal": horizontal}
    base = relative(train, test, vertical, horizontal)
    found = {"PCFG": base.figures}
    for name, more in (("M3N", {}), ("CRF", {"objective": "crf", "decode": "risk"})):
        parsed = trained(m3n.ConstituencyParser(**settings, **more), train, test)
        found[name] = parsed.figures | compared(parsed, base)
    return found


def spans(train: list[ParseTree], test: list[ParseTree], **settings: Any) -> dict[str, Any]:
    """The parser as it is but for some settings, against relative frequencies of the same rules."""
    parser = m3n.ConstituencyParser(**settings)
    base = relative(train, test, parser.vertical, parser.horizontal)
    parsed = trained(parser, train, test)
    return parsed.figures | compared(parsed, base)


def short(trees: Filed) -> dict[str, Any]:
    """Short sentences, every one by a parser that has not seen its file."""
    few = [(file, tree) for file, tree in trees if len(tree.words()) <= SHORT]
    parsers = {
        "PCFG": lambda train, test: relative(train, test, 2, 1),
        "M3N, rules": lambda train, test: trained(_by_rules(), train, test),
        "M3N, spans": lambda train, test: trained(m3n.ConstituencyParser(), train, test),
    }
    parts = [_parted(few, k) for k in range(FOLDS)]
    counts = {name: np.vstack([parse(*part).counts for part in parts]) for name, parse in parsers.items()}
    base = Parsed(counts["PCFG"], {})
    return {name: _figures(own) | compared(Parsed(own, {}), base) for name, own in counts.items()}


def _by_rules() -> m3n.ConstituencyParser:
    return m3n.ConstituencyParser(features="rules", vertical=2, horizontal=1)


def _parted(trees: Filed, k: int) -> tuple[list[ParseTree], list[ParseTree]]:
    return [tree for file, tree in trees if file % FOLDS != k], [tree for file, tree in trees if file % FOLDS == k]


def relative(train: list[ParseTree], test: list[ParseTree], vertical: int, horizontal: int) -> Parsed:
    """Relative frequencies."""
    begin = time.perf_counter()
    parser = PCFG(TreebankGrammar.read(train, Binarisation(vertical, horizontal), Vocabulary(RARE)))
    found = parser.parse([tree.words() for tree in test])
    counts = counted(test, found)
    return Parsed(counts, _figures(counts) | {"rules": len(parser.scores), "seconds": time.perf_counter() - begin})


def trained(parser: m3n.ConstituencyParser, train: list[ParseTree], test: list[ParseTree]) -> Parsed:
    """A parser by training, with its certificate."""
    begin, cpu = time.perf_counter(), time.process_time()
    parser.fit(*_task(train))
    seconds, cpu = time.perf_counter() - begin, time.process_time() - cpu
    begin = time.perf_counter()
    found = parser.predict([tree.words() for tree in test])
    counts = counted(test, found)
    return Parsed(counts, _figures(counts) | {
        "tags %": 100.0 * bracket_scores(test, found).tagging,
        "seconds to fit": seconds, "CPU seconds": cpu, **_seconds_to_gaps(parser),
        "passes": parser.trace_[-1].passes, "solver": type(parser.solver_).__name__,
        "certificate": str(parser.certificate_), "seconds to predict": time.perf_counter() - begin,
        "peak of memory, GB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6,
    })  # fmt: skip


def _seconds_to_gaps(parser: m3n.ConstituencyParser) -> dict[str, float]:
    """When the gap was first that small beside the objective; compiling and reading are not in it."""
    found = {}
    for gap in GAPS:
        near = (record.seconds for record in parser.trace_ if record.gap <= gap * record.primal)
        found[f"seconds to a gap of {100 * gap:g} %"] = next(near, np.inf)
    return found


def counted(gold: list[ParseTree], found: list[ParseTree]) -> np.ndarray:
    """Right, gold and predicted brackets of every sentence."""
    scores = [bracket_scores([a], [b]) for a, b in zip(gold, found, strict=True)]
    return np.array([(one.right, one.gold, one.predicted) for one in scores])


def _f1(counts: np.ndarray) -> np.ndarray:
    """In per cent, over the last but one axis."""
    right, gold, predicted = np.moveaxis(counts.sum(axis=-2), -1, 0)
    return 200.0 * right / (gold + predicted)


def _figures(counts: np.ndarray) -> dict[str, Any]:
    right, gold, predicted = counts.sum(axis=0).tolist()
    exact = float(np.mean((counts[:, 0] == counts[:, 1]) & (counts[:, 0] == counts[:, 2])))
    return {
        "F1": 200.0 * right / (gold + predicted), "precision": 100.0 * right / predicted,
        "recall": 100.0 * right / gold, "exact %": 100.0 * exact, "sentences": len(counts),
    }  # fmt: skip


def compared(one: Parsed, other: Parsed) -> dict[str, Any]:
    """The difference in F1, and what holds 95 % of it on resampled sentences."""
    random, size = np.random.default_rng(0), len(one.counts)
    drawn = random.multinomial(size, np.full(size, 1.0 / size), size=SAMPLES)  # how often every sentence counts
    sums = (np.einsum("ds,sc->dc", drawn, parsed.counts)[:, None] for parsed in (one, other))
    mine, theirs = (_f1(total) for total in sums)
    low, high = np.percentile(mine - theirs, [2.5, 97.5]).tolist()
    return {
        "F1 above the PCFG": float(_f1(one.counts) - _f1(other.counts)), "from": low, "to": high,
    }  # fmt: skip


def _task(trees: list[ParseTree]) -> tuple[list[list[str]], list[ParseTree]]:
    return [tree.words() for tree in trees], trees
