"""Whether sets of answers hold the right one as often as promised, and how large they are, on real data.

CoNLL-2003: names, a model of eng.train with the attributes of chunking, constraints of IOB1; testa and testb together
are cut at random into a half that calibrates and a half that tests, 20 times. OCR words: a model of folds 0 to 4, folds
5 to 9 cut likewise. Every cut calibrates a fresh temperature and fresh thresholds. Means over the cuts, and the least
and the largest of the coverages found. Without the data, generated digits take their place.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import m3n
from benchmarks.datasets.base import data_folder
from m3n.estimators import CoverageReport
from m3n.features import CHUNKING
from m3n.io import read_columns
from m3n.io.schemes import chunks
from m3n.scores.labels import are_chunks

SPLITS = 20
BINS = 15  # of the calibration error
QUICK = 3
LEVELS = ((0.1, 0.1), (0.1, 0.01), (0.05, 0.05))
BOUNDARY = "-DOCSTART-"


class Task(NamedTuple):
    """A model, and labelled sequences that it has not seen."""

    model: m3n.SequenceTagger
    X: list[Any]
    y: list[list[Any]]


def run(quick: bool = False) -> dict[str, Any]:
    """Figures of all data sets and levels."""
    found: dict[str, Any] = {}
    for name, make in tasks(data_folder()):
        task = make()
        found[name] = {"right labels %": 100.0 * task.model.score(task.X, task.y), "right sequences %": _whole(task)}
        for alphas in LEVELS:
            level = f"alpha {alphas[0]:g}, label_alpha {alphas[1]:g}"
            found[name][level] = measure(task, alphas, QUICK if quick else SPLITS)
            print(f"{name}, {level}: {found[name][level]}", flush=True)
        found[name] |= spans(task) if are_chunks(task.y) else {}
    return found


def tasks(folder: Path | None) -> Iterator[tuple[str, Callable[[], Task]]]:
    """The data sets by name; they are read and learnt when they are needed."""
    if folder is None:
        yield "generated digits", _digits
        return
    yield "CoNLL-2003", lambda: _names(folder / "conll2003")
    yield "OCR words", lambda: _letters(folder / "ocr" / "letters.npz")


def measure(task: Task, alphas: tuple[float, float], splits: int) -> dict[str, Any]:
    """Coverages and sizes over random halves."""
    reports, temperatures, begin = [], [], time.process_time()
    for seed in range(splits):
        held, fresh = halves(task, seed)
        task.model.calibrate(*held, alphas[0], label_alpha=alphas[1])
        temperatures.append(task.model.temperature_)
        reports.append(task.model.coverage_report(*fresh))
    return _means(reports) | {
        "temperature": float(np.mean(temperatures)),
        "seconds per split": (time.process_time() - begin) / splits,
    }


def halves(task: Task, seed: int) -> list[tuple[list[Any], list[Any]]]:
    """The data cut at random."""
    order = np.random.default_rng(seed).permutation(len(task.X))
    return [(_chosen(task.X, half), _chosen(task.y, half)) for half in np.array_split(order, 2)]


def spans(task: Task) -> dict[str, Any]:
    """What predicted chunks say of themselves, calibrated on a half and tested on the other one; in per cent."""
    held, (X, y) = halves(task, 0)
    task.model.calibrate_temperature(*held)
    gold = [{(begin, end, kind) for kind, begin, end in chunks(labels)} for labels in y]
    found: dict[str, Any] = {}
    for name, temperature in (("spans", None), ("spans at 1", 1.0)):
        rows = zip(task.model.predict_spans(X, temperature), gold, strict=True)
        pairs = np.array([(span.probability, span[:3] in known) for row, known in rows for span in row])
        bins = np.minimum((pairs[:, 0] * BINS).astype(int), BINS - 1)
        error = sum(abs(float(np.subtract(*pairs[bins == k].sum(axis=0)))) for k in range(BINS)) / len(pairs)
        said, right = (100.0 * pairs.mean(axis=0)).tolist()
        found[name] = {"mean probability %": said, "right %": right, "calibration error %": 100.0 * error}
    return found


def _means(reports: list[CoverageReport]) -> dict[str, Any]:
    columns = {name: np.array([getattr(report, name) for report in reports]) for name in vars(reports[0])}
    shown = {"outputs": columns["outputs_found"], "labels": columns["labels_found"]}
    found = {f"{name} found %": 100.0 * float(values.mean()) for name, values in shown.items()}
    found |= {f"{name} range %": f"{100 * v.min():.1f} to {100 * v.max():.1f}" for name, v in shown.items()}
    sizes = {"outputs size": "outputs_size", "labels size": "labels_size", "complete": "complete"}
    return found | {name: float(columns[column].mean()) for name, column in sizes.items()}


def _whole(task: Task) -> float:
    found = task.model.predict(task.X)
    return 100.0 * float(np.mean([a == b for a, b in zip(found, task.y, strict=True)]))


def _chosen(rows: list[Any], half: np.ndarray) -> list[Any]:
    return [rows[i] for i in half.tolist()]


def _names(folder: Path) -> Task:
    X, y = _sentences(folder / "eng.train.gz")
    model = m3n.SequenceTagger(templates=CHUNKING, constraints="iob1", lam=5 / len(X), tol=0.0, rtol=0.01, n_jobs=1)
    model.fit(X, y)
    parts = [_sentences(folder / f"eng.{name}.gz") for name in ("testa", "testb")]
    return Task(model, [x for part in parts for x in part[0]], [labels for part in parts for labels in part[1]])


def _sentences(path: Path) -> tuple[list[Any], list[list[str]]]:
    """Without the marks between documents."""
    data = read_columns(path)
    kept = [(x, labels) for x, labels in zip(data.tokens, data.labels, strict=True) if x[0][0] != BOUNDARY]
    return [x for x, _ in kept], [labels for _, labels in kept]


def _letters(path: Path) -> Task:
    with np.load(path) as data:
        offsets, folds = data["offsets"], data["folds"]
        pixels, letters = data["pixels"].astype(float), data["labels"].astype(np.int64)
    X = np.split(np.hstack([pixels, np.ones((len(pixels), 1))]), offsets[1:-1])
    y = [word.tolist() for word in np.split(letters, offsets[1:-1])]
    return _trained(
        *(([X[i] for i in part], [y[i] for i in part]) for part in (_places(folds < 5), _places(folds >= 5)))
    )


def _places(mask: np.ndarray) -> list[int]:
    return np.flatnonzero(mask).tolist()


def _digits() -> Task:
    train, test = m3n.datasets.digit_strings(n_train=100, n_test=400)
    return _trained(*((list(part.inputs), [np.asarray(row).tolist() for row in part.labels]) for part in (train, test)))


def _trained(train: tuple[list[Any], list[Any]], test: tuple[list[Any], list[Any]]) -> Task:
    model = m3n.SequenceTagger(lam=5 / len(train[0]), tol=0.0, rtol=0.01, n_jobs=1).fit(*train)
    return Task(model, *test)
