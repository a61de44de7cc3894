"""What a service waits for: one sentence, many, and eight threads on one model, each row in a process of its own.

A row's process imports nothing but what it measures, so that its memory is that of the library, the model and the
sentences. One CRF of dicts is trained by us and written as CRFsuite's file: sklearn-crfsuite and ``crfs`` serve the
very same model, and their labels are compared with ours. ``python -m benchmarks.service ROW FOLDER`` is one row. Rivals
are those of ``make bench-rivals``, or of this interpreter.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from typing import Any

from benchmarks.memory import peak_memory

TRAIN, CALLS, ROUNDS, THREADS = 3000, 1000, 3, 8
SAME = "dicts"  # the model that all serve
Call = Callable[[list[Any]], Any]


def run() -> dict[str, Any]:
    """The figures of all rows."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        _prepare(folder)
        rows = {name: _child(name, folder) for name in ROWS}
    expected = rows[SAME]["labels"]
    for name, row in rows.items():
        labels = row.pop("labels", None)
        if ROWS[name][0].startswith(SAME) and labels is not None:
            row["sentences with other labels"] = sum(one != other for one, other in zip(labels, expected, strict=True))
    return rows


def _prepare(folder: Path) -> None:
    """Train the models, and write them and the sentences to a folder."""
    import m3n
    from benchmarks.datasets.base import data_folder
    from benchmarks.datasets.generated import corpus
    from benchmarks.drop_in import token_features
    from m3n.features import CHUNKING, word_templates

    place = data_folder()
    if place is None:
        made = [[tuple(row) for row in rows] for rows in corpus(2 * TRAIN, seed=0)]
        train, new = made[:TRAIN], made[TRAIN:]
    else:
        parts = (m3n.io.read_columns(place / "conll2000" / f"{name}.txt.gz").rows() for name in ("train", "test"))
        train, new = next(parts)[:TRAIN], next(parts)
    forms: dict[str, Callable[[Any], Any]] = {
        "dicts": lambda rows: [token_features(rows, i) for i in range(len(rows))],
        "strings": lambda rows: [[f"{k}={v}" for k, v in token.items()] for token in forms["dicts"](rows)],
        "columns": lambda rows: [row[:-1] for row in rows],
    }
    templates = {"dicts": None, "strings": None, "columns": CHUNKING, "forms": word_templates(2)}
    y = [[row[-1] for row in rows] for rows in train]
    for name, used in templates.items():
        form = forms.get(name, forms["columns"])
        tagger = m3n.SequenceTagger(objective="crf", rtol=0.02, tol=0.0, boundaries=False, templates=used)
        tagger.fit([form(rows) for rows in train], y).save(folder / f"{name}.m3n")
        (folder / f"{name}.json").write_text(json.dumps([form(rows) for rows in new]))
        if name == SAME:
            m3n.compat.export(tagger, folder / "dicts.crfsuite")


def _child(name: str, folder: Path) -> dict[str, Any]:
    from benchmarks.contest import ROOT, rivals_python

    ours = ROWS[name][1] in (_labels, _marginals, _five)
    for python in [sys.executable] if ours else [rivals_python(), sys.executable]:
        if python is not None:
            command = [python, "-m", __spec__.name, name, str(folder)]
            done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=False)
            if done.returncode == 0:
                found: dict[str, Any] = json.loads(done.stdout)
                return found
    if ours:
        raise RuntimeError(f"the row {name!r} failed")
    return {"missing": "not installed"}


def main(name: str, folder: Path) -> None:
    """Measure one row."""
    data, make = ROWS[name]
    sentences = json.loads((folder / f"{data}.json").read_text())
    if data in ("columns", "forms"):
        sentences = [[tuple(token) for token in sentence] for sentence in sentences]
    call = make(folder, data)
    if make is _crfs_ready:
        sentences = [_attributes(sentence) for sentence in sentences]
    first = time.perf_counter()
    call(sentences[:1])
    figures: dict[str, Any] = {"first call, ms": 1000 * (time.perf_counter() - first)}
    figures |= _one_by_one(call, sentences[:CALLS]) | _at_once(call, sentences)
    figures["peak memory, MB"] = peak_memory()
    figures |= _side_by_side(call, sentences[:CALLS])
    if make not in (_marginals, _five, _crfsuite_marginals):
        figures["labels"] = [list(labels) for labels in call(sentences)]
    print(json.dumps(figures))


def _one_by_one(call: Call, sentences: list[Any]) -> dict[str, float]:
    times = sorted(_seconds(call, [sentence]) for _ in range(ROUNDS) for sentence in sentences)
    return {"one, p50 ms": 1000 * times[len(times) // 2], "one, p99 ms": 1000 * times[len(times) * 99 // 100]}


def _at_once(call: Call, sentences: list[Any]) -> dict[str, float]:
    tokens = sum(map(len, sentences))
    return {"tokens/s at once": tokens / min(_seconds(call, sentences) for _ in range(ROUNDS))}


def _side_by_side(call: Call, sentences: list[Any]) -> dict[str, float]:
    """Threads that ask for one sentence after another, all for the same ones; are the answers those of one thread?"""
    alone = [str(list(call([sentence])[0])) for sentence in sentences]
    times: list[float] = []
    found: list[tuple[int, Any]] = []

    def ask() -> None:
        for i, sentence in enumerate(sentences):
            start = time.perf_counter()
            try:
                found.append((i, call([sentence])[0]))
            except ValueError:  # a rival that mixes up its threads
                found.append((i, ()))
            times.append(time.perf_counter() - start)

    workers = [Thread(target=ask) for _ in range(THREADS)]
    start = time.perf_counter()
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    seconds = time.perf_counter() - start
    times.sort()
    return {
        "threads, sentences/s": len(times) / seconds,
        "threads, p99 ms": 1000 * times[len(times) * 99 // 100],
        "threads, other answers": sum(str(list(answer)) != alone[i] for i, answer in found),
    }


def _seconds(call: Call, given: list[Any]) -> float:
    start = time.perf_counter()
    call(given)
    return time.perf_counter() - start


def _model(folder: Path, data: str) -> Any:
    import m3n

    return m3n.load(folder / f"{data}.m3n").set_params(n_jobs=1)


def _labels(folder: Path, data: str) -> Call:
    predict: Call = _model(folder, data).predict
    return predict


def _marginals(folder: Path, data: str) -> Call:
    predict: Call = _model(folder, data).predict_marginals
    return predict


def _five(folder: Path, data: str) -> Call:
    model = _model(folder, data)
    return lambda sentences: model.predict_k_best(sentences, 5)


def _crfsuite(folder: Path, data: str) -> Call:
    import sklearn_crfsuite

    predict: Call = sklearn_crfsuite.CRF(model_filename=str(folder / f"{data}.crfsuite")).predict
    return predict


def _crfsuite_marginals(folder: Path, data: str) -> Call:
    import sklearn_crfsuite

    predict: Call = sklearn_crfsuite.CRF(model_filename=str(folder / f"{data}.crfsuite")).predict_marginals
    return predict


def _crfs_ready(folder: Path, data: str) -> Call:
    import crfs

    tag = crfs.Model.open(str(folder / f"{data}.crfsuite")).tag
    return lambda sentences: [tag(sentence) for sentence in sentences]


def _crfs(folder: Path, data: str) -> Call:
    ready = _crfs_ready(folder, data)
    return lambda sentences: ready(list(map(_attributes, sentences)))


def _attributes(sentence: list[dict[str, Any]]) -> list[list[Any]]:
    """Attributes of ``crfs``, which reads no dicts."""
    from crfs import Attribute

    return [
        [
            Attribute(f"{name}:{value}", 1.0) if isinstance(value, str) else Attribute(name, float(value))
            for name, value in token.items()
        ]
        for token in sentence
    ]


ROWS: dict[str, tuple[str, Callable[[Path, str], Call]]] = {  # the model and its sentences, and what is asked
    "dicts": ("dicts", _labels),
    "dicts: sklearn-crfsuite": ("dicts", _crfsuite),
    "dicts: crfs": ("dicts", _crfs),
    "dicts: crfs, attributes made before": ("dicts", _crfs_ready),
    "dicts, marginals": ("dicts", _marginals),
    "dicts, marginals: sklearn-crfsuite": ("dicts", _crfsuite_marginals),
    "dicts, 5 best": ("dicts", _five),
    "lists of strings": ("strings", _labels),
    "columns, CHUNKING": ("columns", _labels),
    "columns, CHUNKING, marginals": ("columns", _marginals),
    "columns, word_templates(2)": ("forms", _labels),
    "columns, word_templates(2), marginals": ("forms", _marginals),
}


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
