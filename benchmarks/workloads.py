"""Four problems of different shapes, to measure passes on: real data, or generated data of the same size.

Chunking has many attributes and 22 labels, the OCR words few attributes and 26 labels, tags of a treebank with all
their features about 400 labels, and snakes are grids, relaxed to paths, with a table of scores for every edge.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from benchmarks.datasets import LETTERS, data_folder, words
from benchmarks.labelling import snake_grids
from m3n import Problem
from m3n.features import (
    CHUNKING,
    Observed,
    ObservedTable,
    Sparse,
    Stack,
    chain_features,
    graph_features,
    observed_pairs,
    observed_transitions,
    word_templates,
)
from m3n.io import Sentences, read_columns
from m3n.losses import NormalizedHamming
from m3n.structures import Chain, LoopyGraph

TAGS = 395  # of the treebank


@dataclass(frozen=True)
class Workload:
    """The CRF and the max-margin network on the same data, and what a pass has to do.

    Attributes
    ----------
    problems : tuple of Problem
        Both.
    positions : int
        Labels of all positions: how many scores an oracle reads, but for tables.
    pairs : int
        Pairs of neighbouring labels at all pairs of positions.
    tables : bool
        Whether every pair of positions has a table of its own.
    """

    problems: tuple[Problem, Problem]
    positions: int
    pairs: int
    tables: bool = False

    @property
    def parts(self) -> int:
        """Scores of all parts that examples do not share."""
        return self.positions + self.pairs * self.tables

    @property
    def shared(self) -> int:
        """Entries of shared tables, once for every example: what a visit has to read and write."""
        rows, problem = self.problems[0].blocks.rows, self.problems[0]
        return int(rows.sizes.sum()) - self.parts * (len(rows.sizes) == problem.n)

    @property
    def entries(self) -> int:
        """Entries of the feature map."""
        return len(self.problems[0].blocks.rows.data)

    @property
    def met(self) -> int:
        """Weights that these entries meet."""
        rows = self.problems[0].blocks.rows
        counts, lists = np.diff(rows.pointers), np.asarray(rows.lists, dtype=np.int64)
        if not len(rows.columns):
            return int(counts @ rows.widths)
        first, last = lists - rows.pointers[:-1], rows.pointers[1:] - lists
        listed = rows.runs[np.repeat(lists - np.cumsum(last) + last, last) + np.arange(last.sum())]
        ends = np.flatnonzero(rows.columns < 0)
        return int(first @ rows.widths) + int((ends[np.searchsorted(ends, listed)] - listed + 1).sum())


def chains(X: Any, y: Sequence[Any], labels: int, jobs: int, features: Any = None) -> Workload:
    """Sequences: inputs, numbers of labels."""
    lengths = np.array([len(t) for t in y])
    features = chain_features(Sparse(X, labels), labels) if features is None else features
    tokens, pairs = int(lengths.sum()), int((lengths - 1).sum())
    return Workload(both(Chain(lengths, labels), features, y, jobs), tokens * labels, pairs * labels**2)


def both(structure: Any, features: Any, y: Sequence[Any], jobs: int, lam: float | None = None) -> Any:
    """The CRF and the max-margin network."""
    margin = Problem(structure, features, y, loss=NormalizedHamming(), lam=lam, n_jobs=jobs)
    return Problem(structure, features, y, temperature=1.0, lam=lam, n_jobs=jobs), margin


def chunking(jobs: int) -> Workload:
    """CoNLL-2000 with CRFsuite's template, or generated sentences of the same size: many attributes, 22 labels."""
    folder = data_folder()
    if folder is None:
        return chains(*generated(), jobs)
    sentences = read_columns(folder / "conll2000" / "train.txt.gz")
    X = CHUNKING.unfitted().fit_transform(sentences)
    y, labels = numbered(sentences.labels)
    return chains(X, y, labels, jobs)


def numbered(given: Sequence[Sequence[str]]) -> tuple[list[list[int]], int]:
    """Numbers for labels, and how many there are."""
    names = {label: k for k, label in enumerate(sorted({t for y in given for t in y}))}
    return [[names[t] for t in labels] for labels in given], len(names)


def generated(n: int = 8936, labels: int = 22, length: int = 24, used: int = 11) -> tuple[Any, np.ndarray, int]:
    """Attributes with the frequencies of words (1/rank), and random labels."""
    random = np.random.default_rng(0)
    tokens = n * length
    columns = np.exp(random.random(tokens * used) * np.log(60_000)).astype(np.int64) - 1
    X = scipy.sparse.csr_array((np.ones(len(columns)), columns, np.arange(0, len(columns) + 1, used)))
    return X, random.integers(labels, size=(n, length)), labels


def pixels(jobs: int) -> Workload:
    """The OCR words as sparse pixels: few attributes, 26 labels."""
    X, y, _, _ = words(data_folder())
    return chains(scipy.sparse.csr_array(np.concatenate(X)), y, LETTERS, jobs)


def tags(jobs: int) -> Workload:
    """Words of English EWT with both tags and all features as one label; pairs that occur have weights."""
    folder = data_folder()
    if folder is None:
        X, drawn, labels = generated(12_544, TAGS, 16)
        y: Sequence[Any] = drawn
    else:
        found = list(tagged(folder / "ud_english_ewt" / "en_ewt-ud-train.conllu.gz"))
        X = word_templates(1).fit_transform(Sentences.of([[(word,) for word, _ in sentence] for sentence in found]))
        y, labels = numbered([[tag for _, tag in sentence] for sentence in found])
    gold, lengths = np.concatenate([np.asarray(t) for t in y]), np.array([len(t) for t in y])
    ends = ObservedTable(np.zeros(labels, bool))
    follows = ObservedTable(observed_transitions(gold, lengths, labels))
    return chains(X, y, labels, jobs, Stack(Observed(X, observed_pairs(X, gold, labels)), follows, ends, ends))


def tagged(path: Path) -> Iterator[list[tuple[str, str]]]:
    """Words with their tags of a CoNLL-U file, whose trees are of no concern here."""
    sentence: list[tuple[str, str]] = []
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for line in file:
            fields = line.rstrip("\n").split("\t")
            if fields[0].isdigit():
                sentence.append((fields[1], "|".join(fields[3:6])))
            elif not line.strip() and sentence:
                yield sentence
                sentence = []
    if sentence:
        yield sentence


def snakes(jobs: int) -> Workload:
    """Grids of 11 labels as paths; edges see the colours around both of their ends."""
    folder = data_folder()
    if folder is None:
        nodes, edges, seen, y = generated_grids()
    else:
        X, y = snake_grids(np.load(folder / "snakes" / "snakes.npz"), "train")
        nodes, edges, seen = map(list, zip(*X, strict=True))
    labels = 1 + max(int(np.max(t)) for t in y)
    structure = LoopyGraph([x.shape[0] for x in nodes], labels, edges, tables=True)
    pairs = Sparse(scipy.sparse.csr_array(scipy.sparse.vstack(seen)), (labels, labels))
    features = graph_features(structure, Sparse(scipy.sparse.csr_array(scipy.sparse.vstack(nodes)), labels), pairs)
    count = sum(map(len, edges))
    problems = both(structure, features, y, jobs, lam=0.01 * len(y) / structure.n)
    return Workload(problems, len(structure.owner) * labels, count * labels**2, tables=True)


def generated_grids(n: int = 200, side: int = 9, labels: int = 11, used: int = 10) -> tuple[Any, Any, Any, Any]:
    """Nodes, edges, attributes of edges and labels of random grids."""
    from m3n import grid_graph

    random = np.random.default_rng(0)
    _, edges, _ = grid_graph(np.zeros((side, side, 1)), edge_features=lambda a, b: a)
    cells = side * side

    def attributes(rows: int, width: int, count: int) -> Any:
        columns = random.integers(width, size=rows * count)
        return scipy.sparse.csr_array(
            (np.ones(rows * count), columns, np.arange(0, rows * count + 1, count)), (rows, width)
        )

    nodes = [attributes(cells, 46, used) for _ in range(n)]
    seen = [attributes(len(edges), 90, 2 * used) for _ in range(n)]
    return nodes, [edges] * n, seen, [random.integers(labels, size=cells) for _ in range(n)]


WORKLOADS = {"chunking": chunking, "OCR words": pixels, "tags of EWT": tags, "snakes": snakes}
