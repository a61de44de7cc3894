"""Context-free parsing: derivations of sentences by a binary grammar with one layer of unary rules.

The score of a derivation is the sum over its words of the scores of their tags and over its anchored rules r, from
word ``begin`` to word ``end``, exclusive, divided at ``split`` if r is binary, of

    rule[r] + sum over classes c of r of { begin[begin, c] + split[split, c] + end[end - 1, c] }
            + sum over the labels l that r gives to its span of span[begin..end, l]

theta = (tag (tokens, tags), rule (rules,), begin, split, end (tokens, classes), span (cells, labels)). A *cell* is a
stretch of words; ``cells()`` lists them, a row of features each. Surface scores depend on one position alone, so they
cost O(length classes), not O(length^3 rules). Arrays without classes or labels are empty.

Of a batch is found once which symbols can be part of a complete parse of which sentence, where. Both oracles go only
there, O(length^3 rules) in the worst case, see ``oracles.grammar``.

Label losses count wrong tags; wrong, missed and spurious spans are parts of the last array (``losses.SpanLoss``).
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from m3n.compiled.oracles import grammar_soft as _soft  # noqa: F401 (registers the exp-oracle)
from m3n.compiled.oracles.grammar import GrammarSpace, cell_of, derive, list_parts
from m3n.compiled.oracles.grammar_chart import find_items
from m3n.compiled.oracles.grammar_k_best import k_best
from m3n.packed import SERIAL, Threads
from m3n.packed.ragged import numbers
from m3n.structures.base import Examples, Parts, Selection, Structure, Words
from m3n.structures.rules import Rules
from m3n.structures.slack import Restriction


class Grammar(Structure):
    """Derivations of sentences.

    An output is the list of the rules of a derivation, in the order in which they rewrite the leftmost symbol, with
    ``rules.count + tag`` where a word gets a tag.

    Parameters
    ----------
    allowed : sequence of arrays of bool (length, tags)
        For every sentence which tags its words may have.
    rules : Rules
        The grammar.

    Examples
    --------
    >>> from m3n.structures import Grammar, Rules
    >>> rules = Rules(symbols=3, tags=1, root=2, binary=[[1, 0, 0], [1, 1, 0], [1, 0, 1]], unary=[[2, 1]])
    >>> structure = Grammar([[[True]] * 3], rules)
    >>> [structure.unpack(y)[0] for y in structure.enumerate(0)]
    [[3, 1, 0, 4, 4, 4], [3, 2, 4, 0, 4, 4]]
    """

    oracles: ClassVar[frozenset[str]] = frozenset({"hard", "soft"})
    words: ClassVar[Words] = Words("sentence", "words", "derivations")

    def __init__(self, allowed: Sequence[Any], rules: Rules):
        self.n, self.rules, self._bare = len(allowed), rules, _bare(rules)
        if not self.n:
            raise ValueError("a grammar needs at least one sentence")
        masks = [np.asarray(mask, dtype=bool) for mask in allowed]
        for i, mask in enumerate(masks):
            if mask.ndim != 2 or not len(mask) or mask.shape[1] != rules.tags:
                raise ValueError(f"sentence {i}: allowed must have shape (words, {rules.tags}), got {mask.shape}")
        self.lengths = np.array([len(mask) for mask in masks])
        self._found(masks)
        self._measure()

    def _found(self, masks: list[np.ndarray]) -> None:
        """What can be part of complete parses, and of which sentences there are none."""
        items, counts = [], []
        for i, mask in enumerate(masks):
            found, number = _items(self._bare, mask)
            if not len(found):
                raise NoParse(i)
            items.append(found)
            counts.append(number.ravel())
        self.items, self.item_counts = np.concatenate(items), np.concatenate(counts)

    def _measure(self) -> None:
        """Where sentences begin in the arrays."""
        self.offsets = np.concatenate([[0], np.cumsum(self.lengths)])
        self.cuts = np.concatenate([[0], np.cumsum(self.lengths * (self.lengths + 1) // 2)])
        self.item_first = np.concatenate([[0], np.cumsum(self.item_counts)])
        rules, tokens, cells = self.rules, int(self.offsets[-1]), int(self.cuts[-1])
        surface = (tokens, rules.classes_count)
        self.shapes = ((tokens, rules.tags), (rules.count,), surface, surface, surface, (cells, rules.labels))

    def spans(self) -> tuple[np.ndarray | None, ...]:
        return self.offsets, None, self.offsets, self.offsets, self.offsets, self.cuts

    def cells(self) -> np.ndarray:
        """Every cell as (sentence, begin, end), in the order of the rows of the last array of theta: (cells, 3)."""
        rows = []
        for i, length in enumerate(self.lengths.tolist()):
            begin, end = np.triu_indices(length)
            rows.append(np.stack([np.full(len(begin), i), begin, end + 1], axis=1))
        return np.concatenate(rows)

    def hard(self, theta: Parts, threads: Threads = SERIAL) -> tuple[np.ndarray, np.ndarray]:
        values, packed, space = np.empty(self.n), np.empty(int(self._steps[-1]), np.int64), self.space()
        divided = self._divided(theta)

        def lane(low: int, high: int) -> None:
            derive(space, *divided, self._steps, low, high, values, packed)

        threads.run(lane, threads.lanes(self._effort))
        return values, packed

    def k_best(self, theta: Parts, k: int, threads: Threads = SERIAL) -> tuple[np.ndarray, np.ndarray]:
        """The k best outputs of every example, best first: scores (n, k) and packed derivations (k, entries).

        An example with fewer derivations has scores of -inf at the end, and empty derivations there.
        """
        if k < 1:
            raise ValueError(f"k must be at least 1, got {k}")
        scores, packed = np.empty((self.n, k)), np.empty((k, int(self._steps[-1])), np.int64)
        space, divided = self.space(), self._divided(theta)

        def lane(low: int, high: int) -> None:
            k_best(space, *divided, self._steps, low, high, scores, packed)

        threads.run(lane, threads.lanes(self._effort))
        return scores, packed

    def pack(self, outputs: Sequence[Any] | np.ndarray) -> np.ndarray:
        if len(outputs) != self.n:
            raise ValueError(f"{self.n} {self.words.example}s but {len(outputs)} {self.words.outputs}")
        packed = np.full(int(self._steps[-1]), -1)
        for i, output in enumerate(outputs):
            self._check(output, i)
            packed[self._steps[i] : self._steps[i] + len(output)] = output
        return packed

    def unpack(self, packed: np.ndarray) -> list[list[int]]:
        """The rules of a derivation per sentence."""
        return [row[row >= 0].tolist() for row in np.split(packed, self._steps[1:-1])]

    def entries_of(self, examples: Examples) -> Selection:
        chosen = np.arange(self.n)[examples]
        return numbers(self._steps[chosen], np.diff(self._steps)[chosen])

    def local_parts(self, packed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        parts, counts = np.zeros((self.n, int(self._most.max())), np.int64), np.empty(self.n, np.int64)
        list_parts(self.space(), packed, self._steps, parts, counts)
        return parts, counts

    def most_parts(self) -> np.ndarray:
        binary, unary = self.lengths - 1, 2 * self.lengths - 1
        columns, chain = self.rules.classes.shape[1], max(map(len, self.rules.chains), default=0)
        return self.lengths + (2 + 3 * columns) * binary + (1 + 2 * columns + chain) * unary

    def labels_of(self, packed: np.ndarray) -> np.ndarray:
        return packed[packed >= self.rules.count] - self.rules.count

    def enumerate(self, example: int) -> Iterator[np.ndarray]:
        alone, _ = self.select(np.array([example]))
        return (alone.pack([output]) for output in _Outputs(alone).all())

    def log_size(self) -> np.ndarray:
        return self._log_size

    def branches(self, one: np.ndarray, other: np.ndarray) -> list[Restriction]:
        """By the tag of a word, or by a part that only one of the two has; derivations of the same parts are alike."""
        by_tags = self._label_branches(one, other)
        if by_tags:
            return by_tags
        for k, (a, b) in enumerate(zip(self.encode(one), self.encode(other), strict=True)):
            different = np.argwhere((a > 0) != (b > 0))
            if len(different):
                mask = np.zeros(a.shape, bool)
                mask[tuple(different[0])] = True
                without, only = Restriction(k, mask), Restriction(k, mask, required=True)
                return [without, only]
        return []

    def select(self, examples: Examples) -> tuple[Grammar, tuple[Selection, ...]]:
        chosen = np.arange(self.n)[examples]
        part = copy.copy(self)
        for name in ("layout", "_most", "_room", "_effort", "_first", "_steps", "_log_size"):
            vars(part).pop(name, None)
        part.n, part.lengths = len(chosen), self.lengths[chosen]
        cells = 2 * np.diff(self.cuts)[chosen]
        part.item_counts = self.item_counts[numbers(2 * self.cuts[chosen], cells)]
        first = self.item_first[2 * self.cuts[:-1]][chosen]
        part.items = self.items[numbers(first, self.item_first[2 * self.cuts[1:]][chosen] - first)]
        part._measure()
        return part, self.rows_of(examples)

    def space(self) -> GrammarSpace:
        return self._bare._replace(lengths=self.lengths, cells=self.cuts, item_first=self.item_first, items=self.items)

    @cached_property
    def _steps(self) -> np.ndarray:
        """(n + 1,) where derivations begin among packed ones."""
        return np.concatenate([[0], np.cumsum(4 * self.lengths - 2)])

    @cached_property
    def _effort(self) -> np.ndarray:
        return np.concatenate([[0], np.cumsum(self.lengths**3)])

    @cached_property
    def _log_size(self) -> np.ndarray:
        return self.soft(tuple(np.zeros(shape) for shape in self.shapes), 1.0)[0]

    def _check(self, steps: Sequence[int], i: int) -> None:
        """Say what is wrong with a derivation of sentence i, if something is."""
        length, count, expected = int(self.lengths[i]), self.rules.count, [(self.rules.root, True)]
        words = 0
        for k, step in enumerate(steps):
            if not expected:
                raise ValueError(f"sentence {i}: the derivation is complete after {k} of {len(steps)} rules")
            symbol, high = expected.pop()
            children = self._children(int(step), symbol, high)
            if children is None:
                raise ValueError(f"sentence {i}, rule {k}: {step} does not rewrite symbol {symbol} there")
            expected += children[::-1]
            if step >= count:
                if words >= length or not self._tag_allowed(i, words, step - count):
                    raise ValueError(f"sentence {i}: word {words} cannot have tag {step - count}, or is not there")
                words += 1
        if expected or words < length:
            raise ValueError(f"sentence {i} has {length} words, but its derivation ends after {words}")

    def _children(self, step: int, symbol: int, high: bool) -> list[tuple[int, bool]] | None:
        """What a rule makes of a symbol, with their layers; None if it does not rewrite it."""
        binary, count = len(self.rules.binary), self.rules.count
        if 0 <= step < binary and self.rules.binary[step, 0] == symbol:
            return [(int(child), True) for child in self.rules.binary[step, 1:]]
        if binary <= step < count and high and self.rules.unary[step - binary, 0] == symbol:
            return [(int(self.rules.unary[step - binary, 1]), False)]
        return [] if step == count + symbol and symbol < self.rules.tags else None

    def _tag_allowed(self, i: int, word: int, tag: int) -> bool:
        return tag in self._listed(i, word, word + 1, 0)

    def _listed(self, i: int, begin: int, end: int, layer: int) -> np.ndarray:
        """The low (0) or high (1) symbols of a cell."""
        at = 2 * (self.cuts[i] + cell_of.py_func(int(self.lengths[i]), begin, end)) + layer
        return self.items[self.item_first[at] : self.item_first[at + 1]]


class NoParse(ValueError):
    """A sentence has no derivation.

    Parameters
    ----------
    sentence : int
        Its number.
    """

    def __init__(self, sentence: int):
        super().__init__(
            f"sentence {sentence} has no derivation at all: allow its words more tags, or leave the sentence out"
        )
        self.sentence = sentence


def derivable(allowed: Sequence[Any], rules: Rules) -> np.ndarray:
    """Which sentences have a derivation, (n,).

    Parameters
    ----------
    allowed : sequence of arrays of bool (length, tags)
        For every sentence which tags its words may have.
    rules : Rules
        The grammar.
    """
    space = _bare(rules)
    return np.array([len(_items(space, np.asarray(mask, dtype=bool))[0]) > 0 for mask in allowed], dtype=bool)


class _Outputs:
    """Every derivation of the only sentence of a grammar."""

    def __init__(self, structure: Grammar):
        self.structure, self.rules = structure, structure.rules

    def all(self) -> Iterator[list[int]]:
        return self._high(self.rules.root, 0, int(self.structure.lengths[0]))

    def _high(self, symbol: int, begin: int, end: int) -> Iterator[list[int]]:
        yield from self._low(symbol, begin, end)
        for u, (parent, child) in enumerate(self.rules.unary.tolist()):
            if parent == symbol:
                yield from ([len(self.rules.binary) + u, *rest] for rest in self._low(child, begin, end))

    def _low(self, symbol: int, begin: int, end: int) -> Iterator[list[int]]:
        if symbol not in self.structure._listed(0, begin, end, 0):
            return
        if end - begin == 1:
            yield [self.rules.count + symbol]
        for r, (parent, left, right) in enumerate(self.rules.binary.tolist()):
            for split in range(begin + 1, end) if parent == symbol else ():
                for one in self._high(left, begin, split):
                    yield from ([r, *one, *two] for two in self._high(right, split, end))


def _bare(rules: Rules) -> GrammarSpace:
    """The rules as compiled code wants them, without sentences."""
    binary, unary, nothing = rules.binary, rules.unary, np.zeros(1, np.int64)
    order, unary_order = np.argsort(binary[:, 0], kind="stable"), np.argsort(unary[:, 0], kind="stable")
    _, lefts, rights = binary[order].T.astype(np.int32)
    begins, unary_begins = (
        np.searchsorted(a[o, 0], np.arange(rules.symbols + 1)) for a, o in ((binary, order), (unary, unary_order))
    )
    members, kinds = np.unique(rules.classes, axis=0, return_inverse=True) if rules.classes.size else _one_kind(rules)
    return GrammarSpace(
        binary=binary, rule_of=order, lefts=np.ascontiguousarray(lefts), rights=np.ascontiguousarray(rights),
        begins=begins, unary=unary, unary_of=unary_order, unary_begins=unary_begins, root=rules.root, tags=rules.tags,
        label=rules.label, labels=rules.labels,
        chain_first=np.concatenate([[0], np.cumsum([len(chain) for chain in rules.chains])]).astype(np.int64),
        chains=np.array([k for chain in rules.chains for k in chain], dtype=np.int64),
        kinds=kinds.reshape(-1).astype(np.int64), members=members, classes=rules.classes_count,
        lengths=nothing, cells=nothing, item_first=nothing, items=np.zeros(0, np.int16),
    )  # fmt: skip


def _items(space: GrammarSpace, mask: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What can be part of complete parses of a sentence, and how many low and high symbols every cell has."""
    cells = len(mask) * (len(mask) + 1) // 2
    found, number = np.empty(2 * cells * (len(space.begins) - 1), np.int16), np.zeros((cells, 2), np.int64)
    size = find_items(space, len(mask), np.ascontiguousarray(mask), found, number)
    return found[:size].copy(), number


def _one_kind(rules: Rules) -> tuple[np.ndarray, np.ndarray]:
    return np.empty((1, 0), np.int64), np.zeros(rules.count, np.int64)
