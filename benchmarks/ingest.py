"""From a column file to packed features: our readers beside the usual loop that spells every attribute out.

CPU seconds. The loop is what users of CRFsuite write (a list of strings per token); where python-crfsuite is installed,
handing those lists to its trainer counts too, because only then are its features packed.
"""

from __future__ import annotations

import gzip
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.datasets import data_folder
from m3n.estimators.inputs import read_labels
from m3n.features import CHUNKING, AttributeVectorizer
from m3n.features.templates import Template
from m3n.io import Sentences, read_columns

Spelled = list[list[list[str]]]


def run(repeats: int = 5) -> dict[str, Any]:
    """Minimum CPU seconds of every step, and how many times faster than the loop we are."""
    folder = data_folder()
    with tempfile.TemporaryDirectory() as made:
        path = folder / "conll2000" / "train.txt.gz" if folder else generated_file(Path(made))
        sentences, templates = read_columns(path), CHUNKING.unfitted()
        seconds = {
            "read the file": fastest(lambda: read_columns(path), repeats),
            "templates": fastest(lambda: templates.fit_transform(sentences), repeats),
            "templates, new data": fastest(lambda: templates.transform(sentences), repeats),
            "labels": fastest(lambda: read_labels(sentences.labels, sentences.lengths), repeats),
        }
        seconds["loop: read the file"] = fastest(lambda: read_line_by_line(path), 1)
    spelled = spell(sentences)
    check(templates.names, templates.transform(sentences), spelled)
    seconds["loop: spell out attributes"] = fastest(lambda: spell(sentences), 1)
    seconds["lists of strings"] = fastest(lambda: AttributeVectorizer().fit_transform(spelled), 2)
    dicts = [[dict(name.partition("=")[::2] for name in token) for token in sentence] for sentence in spelled]
    seconds["dicts"] = fastest(lambda: AttributeVectorizer().fit_transform(dicts), 2)
    rival = crfsuite_ingest(spelled, sentences.labels)
    ours = seconds["read the file"] + seconds["templates"]
    loop = seconds["loop: read the file"] + seconds["loop: spell out attributes"]
    figures = {"loop / ours": loop / ours}
    if rival is not None:
        seconds["CRFsuite: append"] = rival
        figures["loop and CRFsuite / ours"] = (loop + rival) / ours
    data = "CoNLL-2000" if folder else "generated sentences"
    return {"data": data, "tokens": int(sentences.offsets[-1]), "CPU seconds": seconds, **figures}


def fastest(task: Callable[[], Any], repeats: int) -> float:
    """Minimum CPU time."""
    best = np.inf
    for _ in range(repeats):
        begin = time.process_time()
        task()
        best = min(best, time.process_time() - begin)
    return best


def read_line_by_line(path: Path) -> list[list[list[str]]]:
    """The usual reader."""
    sentences: list[list[list[str]]] = [[]]
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for line in file:
            fields = line.split()
            if fields:
                sentences[-1].append(fields)
            elif sentences[-1]:
                sentences.append([])
    return sentences


def spell(sentences: Sentences) -> Spelled:
    """The attributes of every token as strings, template by template."""
    parsed = CHUNKING.parsed[: len(CHUNKING.patterns)]
    return [[attributes(tokens, t, parsed) for t in range(len(tokens))] for tokens in sentences.tokens]


def attributes(tokens: list[tuple[str, ...]], t: int, templates: tuple[Template, ...]) -> list[str]:
    """The strings of one token."""
    found = []
    for macros, texts in templates:
        values = [tokens[t + row][column] for row, column in macros if 0 <= t + row < len(tokens)]
        if len(values) == len(macros):
            found.append(texts[0] + "|".join(values))
    return found + ["__BOS__"] * (t == 0) + ["__EOS__"] * (t == len(tokens) - 1)


def check(names: list[str], matrix: Any, spelled: Spelled) -> None:
    """Both must make the same attributes, or the ratio means nothing."""
    flat = [token for sentence in spelled for token in sentence]
    for row in range(0, len(flat), 997):
        columns = matrix.indices[matrix.indptr[row] : matrix.indptr[row + 1]]
        assert {names[k] for k in columns} == set(flat[row]), row


def crfsuite_ingest(spelled: Spelled, labels: list[list[str]]) -> float | None:
    """CPU seconds of CRFsuite's own packing, if it is installed."""
    try:
        import pycrfsuite
    except ImportError:
        return None
    trainer = pycrfsuite.Trainer(verbose=False)
    begin = time.process_time()
    for sequence, gold in zip(spelled, labels, strict=True):
        trainer.append(sequence, gold)
    return time.process_time() - begin


def generated_file(folder: Path, tokens: int = 200_000) -> Path:
    """A file of about CoNLL-2000's size: words by Zipf's law, 44 tags, 22 labels."""
    random = np.random.default_rng(0)
    words = np.minimum(random.zipf(1.3, size=tokens), 20_000)
    ends = random.random(tokens) < 1 / 24
    lines = [f"w{w} T{w % 44} L{w % 22}\n" + "\n" * end for w, end in zip(words.tolist(), ends.tolist(), strict=True)]
    path = folder / "generated.txt.gz"
    path.write_bytes(gzip.compress("".join(lines).encode()))
    return path
