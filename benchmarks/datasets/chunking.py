"""CoNLL-2000 chunking with the attributes of CRFsuite's example: words, tags, and their neighbours' in combination.

A template is a column and a window of offsets. It gives the attribute ``w[-1]|w[0]=the|dog`` where the window lies in
the sentence, and nothing elsewhere; the ends are marked by ``__BOS__`` and ``__EOS__``.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

from benchmarks.datasets.base import SAMPLE, Dataset, Sentence, Sequences, data_folder
from benchmarks.datasets.generated import corpus
from benchmarks.scores import chunk_f1

GENERATED = 2000  # sentences, where the real ones are absent
WINDOWS = {
    "w": [(-2,), (-1,), (0,), (1,), (2,), (-1, 0), (0, 1)],
    "pos": [
        *((t,) for t in range(-2, 3)),
        *((t, t + 1) for t in range(-2, 2)),
        *((t, t + 1, t + 2) for t in (-2, -1, 0)),
    ],
}
TEMPLATES = [
    ("|".join(f"{name}[{offset}]" for offset in window) + "=", column, window)
    for column, (name, windows) in enumerate(WINDOWS.items())
    for window in windows
]


class Chunking(Dataset):
    """Column files: word, part of speech, chunk label."""

    name = "chunking"
    measure = "chunk F1"
    larger_is_better = True

    @classmethod
    def prepare(cls, folder: Path, limit: int | None) -> Chunking:
        """The shared task's files or, without them, a generated corpus; cut to the first sentences if asked to."""
        real = data_folder()
        source = real / "conll2000" if real is not None and (real / "conll2000").is_dir() else None
        count = limit or (None if source else GENERATED)
        parts = {"train": ("train", count), "test": ("test", count), "sample": ("train", SAMPLE)}
        paths = {part: folder / f"{part}.txt.gz" for part in parts}
        for part, (name, most) in parts.items():
            sentences = read(source / f"{name}.txt.gz") if source else corpus(GENERATED, seed=len(name))
            _write(paths[part], islice(sentences, most))
        origin = "CoNLL-2000 chunking" if source else "generated chunks"
        return cls(*map(str, paths.values()), origin + (f", first {limit} sentences" if limit else ""))

    def sentences(self, path: str) -> Iterator[Sentence]:
        """Attribute lists and labels, sentence by sentence."""
        for rows in read(path):
            yield attributes(rows), [row[-1] for row in rows]

    def score(self, gold: Sequences, found: Sequences) -> float:
        """Chunk F1 in per cent."""
        return chunk_f1(gold, found)


def read(path: str | Path) -> Iterator[list[list[str]]]:
    """The rows of every sentence of a gzipped column file."""
    rows: list[list[str]] = []
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for line in file:
            fields = line.split()
            if fields:
                rows.append(fields)
            elif rows:
                yield rows
                rows = []
    if rows:
        yield rows


def attributes(rows: list[list[str]]) -> list[list[str]]:
    """The attributes of every token of a sentence."""
    length = len(rows)
    sentence = []
    for t in range(length):
        token = [
            prefix + "|".join([rows[t + offset][column] for offset in window])
            for prefix, column, window in TEMPLATES
            if t + window[0] >= 0 and t + window[-1] < length
        ]
        if t == 0:
            token.append("__BOS__")
        if t == length - 1:
            token.append("__EOS__")
        sentence.append(token)
    return sentence


def _write(path: Path, sentences: Iterable[list[list[str]]]) -> None:
    with gzip.open(path, "wt", encoding="utf-8", compresslevel=1) as file:
        for rows in sentences:
            file.writelines(" ".join(row) + "\n" for row in rows)
            file.write("\n")
