"""The rules of a grammar, as numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass(frozen=True, eq=False)
class Rules:
    """Binary and unary rules of a context-free grammar whose words are written by tags.

    Symbols are numbers, tags the first of them. Rules are numbered, too: binary ones first, then unary ones; what
    follows are the tags.

    Parameters
    ----------
    symbols, tags : int
        How many symbols there are, and how many of them are tags.
    root : int
        The symbol of a whole sentence, not a tag.
    binary : array of int (rules, 3)
        Parent, left child and right child; no parent is a tag.
    unary : array of int (rules, 2)
        Parent and child. A symbol is rewritten by one unary rule at most before a binary rule or a word follows, so
        there are no cycles.
    label : array of int (symbols,), optional
        The label of the span of a symbol that a binary rule rewrites, -1 for none; without it there are no labels.
    chains : sequence of sequences of int, optional
        The labels of the span that every unary rule adds to that of its child, each once.
    classes : array of int (rules,) or (rules, k), optional
        The class of every rule, or several classes: surface scores belong to classes.

    Examples
    --------
    >>> rules = Rules(symbols=3, tags=1, root=2, binary=[[1, 0, 0], [1, 1, 0]], unary=[[2, 1]], label=[-1, 0, -1])
    >>> rules.labels, rules.classes_count, rules.count
    (1, 0, 3)
    """

    symbols: int
    tags: int
    root: int
    binary: np.ndarray
    unary: np.ndarray
    label: Any = None  # arrays, once the rules are made
    chains: Sequence[Sequence[int]] = ()
    classes: Any = None
    labels: int = field(init=False)
    classes_count: int = field(init=False)

    def __post_init__(self) -> None:
        binary = np.asarray(self.binary, dtype=np.int64).reshape(-1, 3)
        unary = np.asarray(self.unary, dtype=np.int64).reshape(-1, 2)
        given = np.full(self.symbols, -1) if self.label is None else self.label
        label = np.asarray(given, dtype=np.int64)
        chains = self.chains or [()] * len(unary)
        _check(self, binary, unary, label, chains)
        count = len(binary) + len(unary)
        classes = np.empty((count, 0)) if self.classes is None else np.asarray(self.classes).reshape(count, -1)
        found = {
            "binary": binary, "unary": unary, "label": label, "chains": tuple(tuple(chain) for chain in chains),
            "classes": classes.astype(np.int64), "classes_count": int(classes.max(initial=-1)) + 1,
            "labels": 1 + max([-1, *label.tolist(), *(k for chain in chains for k in chain)]),
        }  # fmt: skip
        for name, value in found.items():
            object.__setattr__(self, name, value)

    @property
    def count(self) -> int:
        """Number of rules, without tags."""
        return len(self.binary) + len(self.unary)


def _check(rules: Rules, binary: np.ndarray, unary: np.ndarray, label: np.ndarray, chains: Sequence) -> None:
    """Refuse what is no grammar."""
    if not 1 <= rules.tags <= rules.root < rules.symbols < 1 << 15:
        raise ValueError(
            f"a grammar needs tags, then other symbols, one of them its root, fewer than {1 << 15} in all; got "
            f"tags={rules.tags}, root={rules.root}, symbols={rules.symbols}"
        )
    for name, array in (("binary", binary), ("unary", unary)):
        wrong = (array < 0) | (array >= rules.symbols)
        if wrong.any():
            raise ValueError(f"{name} rule {int(np.argwhere(wrong)[0, 0])} names a symbol that is not there")
        if (array[:, 0] < rules.tags).any():
            k = int(np.flatnonzero(array[:, 0] < rules.tags)[0])
            raise ValueError(f"{name} rule {k} rewrites the tag {array[k, 0]}; only words are below tags")
    if label.shape != (rules.symbols,):
        raise ValueError(f"label must have one number per symbol, shape ({rules.symbols},), got {label.shape}")
    if len(chains) != len(unary):
        raise ValueError(f"{len(unary)} unary rules but {len(chains)} chains of labels")
    for u, chain in enumerate(chains):
        below = label[unary[u, 1]]
        if len({*chain, int(below)}) <= len(chain):
            raise ValueError(
                f"the labels of unary rule {u} are {tuple(chain)} above {below}: a span has every label once"
            )
