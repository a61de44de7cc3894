"""What projective and other dependency trees have in common: arcs, labels, and trees as the user writes them.

A tree gives every word a head, another word or the root, without a cycle. The score of a tree is the sum over its arcs
of the score of the arc and, if there are labels, of the label that the arc has in the output.

theta = (arc (arcs,), label (labelled parts,) if there are labels), rows in the order of ``Arcs``. A tree is written as
a list of heads, one per word; with labels as a list of pairs (head, label).
"""

from __future__ import annotations

import itertools
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from m3n.compiled.oracles.arcs import Candidates
from m3n.structures.arcs import Arcs
from m3n.structures.base import Examples, Selection, Structure, Words


class DependencyTrees(Structure):
    """Trees over words, made of candidate arcs.

    Parameters
    ----------
    arcs : Arcs or sequence of int
        Candidate arcs; or the lengths of sentences that may have every arc.
    labels : int
        Number of labels if lengths are given.
    single_root : bool
        Whether exactly one word hangs on the root, or any number of them.
    """

    words: ClassVar[Words] = Words("sentence", "words", "trees")

    def __init__(self, arcs: Arcs | Sequence[int] | np.ndarray, labels: int = 1, *, single_root: bool = True):
        self.arcs = arcs if isinstance(arcs, Arcs) else Arcs.all(arcs, labels)
        if labels not in (1, self.arcs.labels):
            raise ValueError(f"labels={labels}, but the arcs have {self.arcs.labels}; leave labels out")
        self.single_root, self.n = bool(single_root), self.arcs.n
        self.shapes = tuple((int(span[-1]),) for span in self.spans())

    def spans(self) -> tuple[np.ndarray, ...]:
        first = self.arcs.first
        return (first,) if self.arcs.labels == 1 else (first, self.arcs.part_first[first])

    def most_parts(self) -> np.ndarray:
        return self.arcs.lengths * len(self.shapes)

    def parts_of(self, output: Sequence[Any], example: int) -> np.ndarray:
        heads, labels = self._read(output, example)
        self._check_tree(heads, example)
        arcs = self._arcs_of(heads, example)
        parts = [arcs, *self._pair_parts(heads, arcs, example)]
        if self.arcs.labels > 1:
            parts.insert(1, self._labelled_parts(arcs, labels, example))
        return np.concatenate([own + before for own, before in zip(parts, self.layout.before[:, example], strict=True)])

    def output_of(self, parts: np.ndarray, example: int) -> list[Any]:
        length, first = int(self.arcs.lengths[example]), self.arcs.first[example]
        if len(parts) < length:
            raise ValueError(f"sentence {example} has no tree: {self._remedy}")
        heads = self.arcs.head[first + parts[:length]].tolist()
        if self.arcs.labels == 1:
            return heads
        labelled = parts[length : 2 * length] - self.layout.before[1, example]
        labels = self.arcs.part_label[self.arcs.part_first[first] + labelled]
        return list(zip(heads, labels.tolist(), strict=True))

    def enumerate(self, example: int) -> Iterator[np.ndarray]:
        alone, _ = self.select(np.array([example]))
        for heads in self._trees(example):
            for output in self._labellings(heads, example):
                yield alone.pack([output])

    def log_size(self) -> np.ndarray:
        return self._sizes.copy()

    def select(self, examples: Examples) -> tuple[Structure, tuple[Selection, ...]]:
        part = self._alike(self.arcs.select(examples))
        if "_sizes" in self.__dict__:  # known: once is enough
            part._sizes = self._sizes[examples]
        return part, self.rows_of(examples)

    @abstractmethod
    def _alike(self, arcs: Arcs) -> DependencyTrees:
        """The same structure over other arcs."""

    def _check_arcs(self, heads: np.ndarray, example: int) -> None:
        """Say which word has an arc that cannot be, beside others, if one has; ``heads[0]`` is meaningless."""

    def _pair_parts(self, heads: np.ndarray, arcs: np.ndarray, example: int) -> list[np.ndarray]:
        """The parts of a tree that are pairs of arcs, array by array."""
        return []

    @cached_property
    def _sizes(self) -> np.ndarray:
        """log |Y_i|, by the exp-oracle."""
        sizes = self.soft(tuple(np.zeros(shape) for shape in self.shapes), 1.0)[0]
        if np.isneginf(sizes).any():
            raise ValueError(f"sentence {int(sizes.argmin())} has no tree: {self._remedy}")
        return sizes

    @property
    def _remedy(self) -> str:
        several = ", or let the root have several children (single_root=False)" if self.single_root else ""
        return f"no candidate arcs that are allowed make one; add arcs{several}"

    @cached_property
    def _candidates(self) -> Candidates:
        arcs = self.arcs
        label_first = np.empty(0, np.int64) if arcs.label_first is None else arcs.label_first
        return Candidates(arcs.lengths, arcs.first, arcs.words, arcs.word_first, arcs.head, arcs.labels, label_first)

    @cached_property
    def _effort(self) -> np.ndarray:
        """Both oracles are cubic in the length."""
        return np.concatenate([[0], np.cumsum(self.arcs.lengths**3 + np.diff(self.arcs.first))])

    def _read(self, output: Sequence[Any], example: int) -> tuple[np.ndarray, np.ndarray]:
        """Heads of the root (-1) and of all words, and the labels of words, as numbers that exist."""
        length, labelled = int(self.arcs.lengths[example]), self.arcs.labels > 1
        if len(output) != length:
            raise ValueError(f"sentence {example} has {length} words, but its tree has {len(output)}")
        given = np.asarray(output)
        if given.dtype.kind not in "iu" or given.shape != ((length, 2) if labelled else (length,)):
            form = "pairs (head, label)" if labelled else "heads, 0 for the root"
            raise ValueError(f"sentence {example}: a tree must be a list of {form}, all of them numbers")
        heads, labels = given.T if labelled else (given, np.zeros(length, np.int64))
        self._refuse(example, (heads < 0) | (heads > length), heads, f"heads are 0 (the root) to {length}, not {{}}")
        most = self.arcs.labels - 1
        self._refuse(example, (labels < 0) | (labels > most), labels, f"labels are 0 to {most}, not {{}}")
        return np.concatenate([[-1], heads]), labels

    def _refuse(self, example: int, wrong: np.ndarray, values: np.ndarray, reason: str) -> None:
        """Name the first word that is wrong."""
        if wrong.any():
            word = int(wrong.argmax())
            raise ValueError(f"sentence {example}, word {word + 1}: {reason.format(values[word])}")

    def _check_tree(self, heads: np.ndarray, example: int) -> None:
        """Say what is wrong with the heads of the root (-1) and all words, if something is."""
        below = heads[1:] == 0
        if self.single_root and below.sum() > 1:
            word = int(np.flatnonzero(below)[1]) + 1
            raise ValueError(
                f"sentence {example}, word {word}: the root has a child already, word {int(below.argmax()) + 1}; "
                "let one word hang on it, or take single_root=False"
            )
        above = heads.copy()
        for _ in range(len(heads).bit_length()):  # from heads to their heads, twice as far every time
            above = np.where(above > 0, above[above], above)
        self._refuse(example, above[1:] > 0, heads[1:], "its head {} is a descendant of it, or leads to a cycle")
        self._check_arcs(heads, example)

    def _arcs_of(self, heads: np.ndarray, example: int) -> np.ndarray:
        """The arcs of a tree, numbered within the sentence."""
        own, size = slice(*self.arcs.first[example : example + 2]), len(heads)
        listed = self.arcs.dependent[own].astype(np.int64) * size + self.arcs.head[own]
        wanted = np.arange(1, size) * size + heads[1:]
        found = np.minimum(np.searchsorted(listed, wanted), len(listed) - 1)
        self._refuse(example, listed[found] != wanted, heads[1:], "the arc from {} is no candidate; add it to the arcs")
        return found

    def _labelled_parts(self, arcs: np.ndarray, labels: np.ndarray, example: int) -> np.ndarray:
        """The labelled parts of a tree, numbered within the sentence."""
        arcs, begins = arcs + self.arcs.first[example], self.arcs.part_first
        if self.arcs.label is None:
            return begins[arcs] + labels - begins[self.arcs.first[example]]
        kept = [self.arcs.label[begins[a] : begins[a + 1]] for a in arcs]
        wrong = np.array([label not in own for label, own in zip(labels, kept, strict=True)])
        self._refuse(example, wrong, labels, "label {} is no candidate of its arc; add it to the labels of the arc")
        places = [int(np.searchsorted(own, label)) for label, own in zip(labels, kept, strict=True)]
        return begins[arcs] + places - begins[self.arcs.first[example]]

    def _trees(self, example: int) -> Iterator[tuple[int, ...]]:
        """The heads of every tree."""
        begins = self.arcs.word_first[self.arcs.words[example] : self.arcs.words[example + 1] + 1]
        for heads in itertools.product(*(self.arcs.head[a:b].tolist() for a, b in itertools.pairwise(begins))):
            try:
                self._check_tree(np.array([-1, *heads]), example)
            except ValueError:
                continue
            if 0 in heads:
                yield heads

    def _labellings(self, heads: tuple[int, ...], example: int) -> Iterator[list[Any]]:
        """The tree with all labels that its arcs may have."""
        if self.arcs.labels == 1:
            yield list(heads)
            return
        arcs, begins = self.arcs.first[example] + self._arcs_of(np.array([-1, *heads]), example), self.arcs.part_first
        own = [self.arcs.part_label[begins[a] : begins[a + 1]].tolist() for a in arcs]
        for labels in itertools.product(*own):
            yield list(zip(heads, labels, strict=True))
