"""Templates around anchors: features of parts of trees as numbers of weights, without a name or a dictionary.

A template is a text such as ``"h.upos d.form d+1.upos way"``: attributes of tokens at, or next to, the anchors of a
part, and further things that are known about it. Its feature is the conjunction of these values, hashed to the number
of a weight. ``"h.upos between d.upos"`` is one feature for every different tag between the first two anchors. Hashing
needs no dictionary, so features that training has not seen cost nothing, and models know nothing of their texts; two
features may share a weight, which costs little accuracy as long as weights outnumber the frequent features.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from m3n.compiled.maps.anchored import Places, Plan, Tokens, count_codes, write_codes
from m3n.features.codes import Codes
from m3n.packed import SERIAL, Threads

ATOM = re.compile(r"(?P<anchor>\w+?)(?P<distance>[+-]\d)?\.(?P<attribute>\w+)")
BETWEEN = "between"


@dataclass(frozen=True)
class AnchoredTemplates:
    """Templates of one kind of part.

    Parameters
    ----------
    templates : sequence of str
        Atoms between spaces: ``anchor.attribute``, ``anchor+1.attribute``, the name of something else that is known
        about a part, or ``between``.
    anchors, attributes, extras : sequence of str
        What anchors, attributes of tokens, and other things known about a part are called.
    bits : int
        There are 2^bits weights.

    Examples
    --------
    >>> from m3n.features import AnchoredTemplates
    >>> templates = AnchoredTemplates(["h.tag d.tag", "d.word"], ("h", "d"), ("word", "tag"), (), bits=18)
    >>> templates.dim
    262144
    """

    templates: Sequence[str]
    anchors: Sequence[str]
    attributes: Sequence[str]
    extras: Sequence[str]
    bits: int

    def __post_init__(self) -> None:
        if not 1 <= self.bits <= 30:
            raise ValueError(f"bits must be in 1..30, got {self.bits}")
        if not self.templates:
            raise ValueError("there are no templates")
        assert self.plan.seeds.size  # says what is wrong with a template

    @property
    def dim(self) -> int:
        """Number of weights."""
        return 1 << self.bits

    @cached_property
    def plan(self) -> Plan:
        """The templates as compiled code takes them."""
        atoms: dict[tuple[int, int, int], int] = {}
        lists = [[self._atom(word, text, atoms) for word in self._words(text)] for text in self.templates]
        table = np.full((len(lists), max(map(len, lists)) or 1), -1, np.int32)
        for row, found in zip(table, lists, strict=True):
            row[: len(found)] = found
        seeds = np.array([text_hash(text) for text in self.templates], np.uint64)
        between = np.array([BETWEEN in text.split() for text in self.templates])
        places = np.array(list(atoms) or np.empty((0, 3)), np.int32).reshape(-1, 3)
        return Plan(places, table, seeds, between, 64 - self.bits)

    def codes(
        self,
        places: Places,
        tokens: Tokens,
        threads: Threads = SERIAL,
        firsts: np.ndarray | None = None,
        kinds: np.ndarray | None = None,
    ) -> Codes:
        """The features of some parts, or of parts of several kinds in the same places.

        Parameters
        ----------
        places : Places
            Where the parts are.
        tokens : Tokens
            The table of tokens.
        threads : Threads
            Threads to share the parts out to.
        firsts : array of int (places + 1,), optional
            The first part at every place; without it there is one at each.
        kinds : array of uint64 (parts,), optional
            Hashes of the kinds of parts, of which features are to be told apart.
        """
        count, plan = len(places.first), self.plan
        wide = int(plan.between.sum())
        counts, lanes = np.zeros(count, np.int64), threads.rows(count)
        tags = len(tokens.tag_values)
        threads.run(count_codes, lanes, places, tokens.tags, tags, len(plan.between) - wide, wide, counts)
        pointers = np.concatenate([[0], np.cumsum(counts)])
        if counts.max(initial=0) > self.dim:
            raise ValueError(f"{self.dim} weights are fewer than the {counts.max()} features of a part: take more bits")
        codes = np.empty(pointers[-1], np.int32)
        threads.run(write_codes, lanes, plan, places, tokens, pointers, codes)
        masks = None if kinds is None else (kinds >> np.uint64(64 - self.bits)).astype(np.int32)
        return Codes(pointers, codes, self.dim, firsts, masks)

    def seen(self, places: Places, tokens: Tokens, part: int) -> list[tuple[str, int]]:
        """The templates of a part in the order of its codes, each with the tag that it sees between, or -1.

        Parameters
        ----------
        places : Places
            Where parts are.
        tokens : Tokens
            The table of tokens.
        part : int
            Which one.
        """
        between = list(dict.fromkeys(tokens.tags[places.first[part] : places.last[part]].tolist()))
        return [(text, tag) for text in self.templates for tag in (between if BETWEEN in text.split() else [-1])]

    def _words(self, text: str) -> list[str]:
        return [word for word in text.split() if word != BETWEEN]

    def _atom(self, word: str, text: str, atoms: dict[tuple[int, int, int], int]) -> int:
        """The number of an atom, a new one if it has none."""
        if word in self.extras:
            key = (-1, 0, list(self.extras).index(word))
        else:
            found = ATOM.fullmatch(word)
            if not found or found["anchor"] not in self.anchors or found["attribute"] not in self.attributes:
                raise ValueError(
                    f"template {text!r}: {word!r} is none of {list(self.extras)}, and no anchor of "
                    f"{list(self.anchors)} "
                    f"with an attribute of {list(self.attributes)}, such as "
                    f"'{self.anchors[0]}+1.{self.attributes[0]}'"
                )
            distance = int(found["distance"] or 0)
            if abs(distance) > 1:
                raise ValueError(f"template {text!r}: {word!r} is further away than one token")
            key = (list(self.anchors).index(found["anchor"]), distance, list(self.attributes).index(found["attribute"]))
        return atoms.setdefault(key, len(atoms))


def text_hash(text: str) -> int:
    """A number of 64 bits for a text, the same in every process; 0 is never one."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little") or 1


def hashed(texts: Iterable[str]) -> np.ndarray:
    """The numbers of some texts."""
    return np.array([text_hash(text) for text in texts], np.uint64)
