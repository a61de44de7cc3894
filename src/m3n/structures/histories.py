"""Which label histories may occur, as a machine that reads labels: its states, its steps, and the grams that they use.

A *gram* of k labels is kept as its number in base ``labels``, the oldest label first, so the order of the numbers is
that of the grams. States of level k < order are the beginnings of histories; layout in ``oracles.higher_order``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from m3n.compiled.oracles.higher_order import Machine

LARGEST = 1 << 26  # steps: 512 MB for a table of them


class Histories:
    """Allowed histories of labels, and what follows from them.

    Parameters
    ----------
    labels : int
        Number of labels.
    order : int
        Labels of a history.
    allowed : sequence of tuples of int, or None
        The histories; shorter ones are whole outputs, or beginnings. None: all.
    """

    def __init__(self, labels: int, order: int, allowed: Iterable[Sequence[int]] | None):
        self.labels, self.order = labels, order
        self.levels = self._all() if allowed is None else self._given(allowed)
        self.everything = allowed is None
        first = np.concatenate([[0], np.cumsum([len(level) for level in self.levels])])
        states = self.levels[-1]
        self.widest = max(len(level) for level in self.levels)
        self._find_blocks(states)
        grams = self._grams(states)
        self.tables = self._tables(grams)
        self.machine = Machine(
            labels,
            order,
            first,
            np.concatenate(self.levels) % labels,
            np.concatenate([_find(self.levels[max(k - 1, 0)], level // labels) for k, level in enumerate(self.levels)]),
            self.sources,
            self.source_first,
            self.target_first,
            self.target_end,
            self.step_first,
            self.block_of,
            np.ascontiguousarray(self._parts(grams)),
        )

    def read(self, labelling: np.ndarray, offsets: np.ndarray) -> np.ndarray:
        """The lead or step that every position of a packed labelling takes; -1 where none is allowed."""
        position = np.arange(len(labelling)) - np.repeat(offsets[:-1], np.diff(offsets))
        used = np.full(len(labelling), -1)
        code = labelling.copy()
        for k, level in enumerate(self.levels):
            if k:
                code[k:] += self.labels**k * labelling[:-k]
            here = position == k if k + 1 < self.order else position >= k
            used[here] = _find(level, code[here])
            first = here & (position == k) & (used >= 0)
            used[first] += self.machine.levels[k]
        later = np.flatnonzero(position >= self.order)
        source = _find(self.levels[-1], code[later - 1])
        used[later] = self._step(source, used[later])
        return used

    def decode(self, codes: np.ndarray, length: int) -> np.ndarray:
        """The labels of grams, (grams, length)."""
        return codes[:, None] // self.labels ** np.arange(length - 1, -1, -1) % self.labels

    def encode(self, grams: np.ndarray) -> np.ndarray:
        """The numbers of grams (grams, length) in base ``labels``."""
        return grams @ self.labels ** np.arange(grams.shape[1] - 1, -1, -1)

    def _all(self) -> list[np.ndarray]:
        _check_size(self.labels ** (self.order + 1), self.labels)
        return [np.arange(self.labels ** (k + 1)) for k in range(self.order)]

    def _given(self, allowed: Iterable[Sequence[int]]) -> list[np.ndarray]:
        by_length: dict[int, list[Sequence[int]]] = {k: [] for k in range(1, self.order + 1)}
        for history in allowed:
            if len(history) not in by_length or not all(0 <= label < self.labels for label in history):
                raise ValueError(
                    f"history {tuple(history)} must have 1 to {self.order} labels in 0..{self.labels - 1}; "
                    "HigherOrderChain.observed makes histories of label sequences"
                )
            by_length[len(history)].append(history)
        if not by_length[self.order]:
            raise ValueError(f"there is no history of {self.order} labels; give some, or take a lower order")
        levels: list[np.ndarray] = []
        longer = np.empty(0, np.int64)
        for k in range(self.order, 0, -1):
            grams = np.array(by_length[k], dtype=np.int64).reshape(-1, k)
            longer = np.unique(np.concatenate([longer // self.labels, self.encode(grams)]))
            levels.insert(0, longer)
        return levels

    def _find_blocks(self, states: np.ndarray) -> None:
        """Sources and targets of every block, by the labels that they share."""
        rest_of_source, rest_of_target = states % self.labels ** (self.order - 1), states // self.labels
        rests = np.intersect1d(rest_of_source, rest_of_target)
        order = np.argsort(rest_of_source, kind="stable")
        sources = order[np.isin(rest_of_source[order], rests)]
        self.sources = sources
        self.source_first = np.searchsorted(rest_of_source[sources], np.append(rests, self.labels**self.order))
        self.target_first = np.searchsorted(rest_of_target, rests)
        self.target_end = np.searchsorted(rest_of_target, rests, side="right")
        sizes = np.diff(self.source_first) * (self.target_end - self.target_first)
        _check_size(int(sizes.sum()), self.labels)
        self.step_first = np.cumsum(sizes) - sizes
        self.block_of = _find(rests, rest_of_target)
        block_from = np.full(len(states), -1)
        block_from[sources] = np.repeat(np.arange(len(rests)), np.diff(self.source_first))
        rank = np.zeros(len(states), np.int64)
        rank[sources] = np.arange(len(sources)) - np.repeat(self.source_first[:-1], np.diff(self.source_first))
        self.block_from, self._rank = block_from, rank

    def _step(self, source: np.ndarray, target: np.ndarray) -> np.ndarray:
        """Numbers of steps between states, -1 where one of the two is none."""
        if not len(self.sources):
            return np.full(len(source), -1)
        b = self.block_from[source]
        width = self.target_end[b] - self.target_first[b]
        number = self.machine.levels[-1] + self.step_first[b] + self._rank[source] * width + target
        return np.where((source < 0) | (target < 0), -1, number - self.target_first[b])

    def _grams(self, states: np.ndarray) -> list[tuple[int, np.ndarray]]:
        """The grams that leads of every level and all steps end with: how long they are, and their numbers."""
        widths = np.repeat(self.target_end - self.target_first, np.diff(self.source_first))
        first = np.repeat(np.cumsum(widths) - widths, widths)
        target = np.repeat(np.repeat(self.target_first, np.diff(self.source_first)), widths)
        target = target + np.arange(len(first)) - first
        steps = np.repeat(states[self.sources], widths) * self.labels + states[target] % self.labels
        return [*((k + 1, level) for k, level in enumerate(self.levels)), (self.order + 1, steps)]

    def _tables(self, grams: list[tuple[int, np.ndarray]]) -> list[np.ndarray]:
        """For k = 2..order the grams of k + 1 labels that occur."""
        tables = []
        for k in range(3, self.order + 2):
            tables.append(np.unique(np.concatenate([codes % self.labels**k for size, codes in grams if size >= k])))
        return tables

    def _parts(self, grams: list[tuple[int, np.ndarray]]) -> np.ndarray:
        """Positions in transition, start, end and the longer tables, one after another."""
        s = self.labels
        rows = [np.full((len(codes), self.order), -1) for _, codes in grams]
        first = s * s + 2 * s + np.cumsum([0, *(len(table) for table in self.tables)])
        for (size, codes), parts in zip(grams, rows, strict=True):
            parts[:, 0] = s * s + codes if size == 1 else codes % (s * s)
            for k in range(3, size + 1):
                parts[:, k - 2] = first[k - 3] + _find(self.tables[k - 3], codes % s**k)
        return np.concatenate(rows)


def _find(sorted_codes: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Where codes stand in a sorted array; -1 where they do not."""
    at = np.searchsorted(sorted_codes, wanted)
    at[at == len(sorted_codes)] = 0
    return np.where(sorted_codes[at] == wanted, at, -1) if len(sorted_codes) else np.full(len(wanted), -1)


def _check_size(steps: int, labels: int) -> None:
    if steps > LARGEST:
        raise ValueError(
            f"{steps} steps between histories of {labels} labels are too many (at most {LARGEST}); take a lower order, "
            "or only histories that occur: histories=HigherOrderChain.observed(label sequences, order)"
        )
