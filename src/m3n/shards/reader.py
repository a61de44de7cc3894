"""Packed data: what is known about them, and one shard after another, mapped into memory.

Sizes of all files are compared with the manifest when ``Shards`` is made, and again whenever one is opened. The first
time that a process opens a file it reads it once, to compare the checksum and to look at every number that leads
somewhere (``contents``); after that, opening costs microseconds.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from m3n.features import AttributeVectorizer, HashedAttributes, HashedTemplates, Templates
from m3n.features.lookup import Attribute
from m3n.shards.arrays import DAMAGED, Arrays, ShardError, mapped
from m3n.shards.blocks import Matrix, csr_of
from m3n.shards.contents import Contents
from m3n.shards.labels import Transitions
from m3n.shards.manifest import NAMES, TABLES, Manifest
from m3n.shards.names import Texts
from m3n.shards.observed import pairs_of
from m3n.shards.places import place_of
from m3n.shards.values import unpacked_templates

TRANSITIONS = tuple(f"first_{name}" for name in Transitions._fields)
CHECKED = set[tuple[str, str, str]]()  # files of which this process has seen that they are what the manifest says


class Shard(NamedTuple):
    """Some sequences, mapped from a file: their arrays may be written on, which does not change the file.

    Attributes
    ----------
    matrix : array or csr_array (positions, attributes)
        All positions, sequence after sequence; the columns of a row are sorted.
    lengths : array of int64 (sequences,)
        Positions of every sequence; none is 0.
    labels : array of int32 (positions,)
        Numbers of labels.
    weights : array (sequences,) or None
        How often every sequence counts.
    pairs : csr_array (neighbouring positions, attributes of pairs) or None
        Attributes of pairs, if templates make any.
    """

    matrix: Matrix
    lengths: np.ndarray
    labels: np.ndarray
    weights: np.ndarray | None
    pairs: Matrix | None


class ReaderState(NamedTuple):
    """What reads new sequences as these were read: the attributes of ``SequenceReader``.

    Attributes
    ----------
    kind : str
        What sequences are made of.
    width : int
        Attributes of a position.
    vectorizer : AttributeVectorizer, Templates or None
        What numbers attributes.
    columns : int
        How many columns tokens have.
    delimiter : str
        What separates them.
    """

    kind: str
    width: int
    vectorizer: AttributeVectorizer | Templates | None
    columns: int
    delimiter: str


class Shards:
    """Packed data of sequences with labels, as ``m3n.pack`` and ``m3n pack`` write them.

    Parameters
    ----------
    path : path or str
        The folder, or a URL such as "s3://bucket/folder", which fsspec must know.
    cache : path, optional
        A folder of this machine for files that come from a URL. The default is what the variable M3N_SHARD_CACHE names,
        else one of the user's.

    Attributes
    ----------
    kind : {"attributes", "columns", "dense", "sparse"}
        What sequences were made of.
    width : int
        Attributes of a position.
    pair_width : int or None
        Attributes of a pair of positions; None if there are none.
    sequences, positions, entries, bytes : arrays of int (shards,)
        How many there are in every shard.
    classes : array (labels,)
        The labels, sorted.
    label_counts : array of int (labels,)
        How often each occurs.
    total_weight : float
        The sum of the weights of all sequences; their number, if they have none.
    weighted : bool
        Whether sequences have weights.
    dropped : dict
        How many sequences were left out: "empty" ones and "weightless" ones.
    digest : str
        What tells these data from others.
    """

    def __init__(self, path: str | os.PathLike[str], cache: str | os.PathLike[str] | None = None):
        self.path, self.cache = path, cache
        self._place = place_of(path, cache)
        self.manifest: Manifest = self._place.manifest()
        self._place.check_sizes(self.manifest.files)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.path, self.cache)

    def __len__(self) -> int:
        return len(self.manifest.shards)

    def __repr__(self) -> str:
        total = self.manifest.count
        return f"Shards({os.fspath(self.path)!r}): {total('sequences'):,} sequences, {total('positions'):,} positions"

    @property
    def kind(self) -> str:
        return self.manifest.kind

    @property
    def width(self) -> int:
        return self.manifest.width

    @property
    def pair_width(self) -> int | None:
        return self.manifest.pair_width

    @property
    def sequences(self) -> np.ndarray:
        return self._counted("sequences")

    @property
    def positions(self) -> np.ndarray:
        return self._counted("positions")

    @property
    def entries(self) -> np.ndarray:
        return self._counted("entries")

    @property
    def bytes(self) -> np.ndarray:
        return self._counted("bytes")

    @cached_property
    def classes(self) -> np.ndarray:
        return np.array(self.manifest.classes)

    @property
    def label_counts(self) -> np.ndarray:
        return np.array(self.manifest.label_counts, np.int64)

    @property
    def total_weight(self) -> float:
        return float(self.manifest.total_weight)

    @property
    def weighted(self) -> bool:
        return self.manifest.weighted

    @property
    def dropped(self) -> dict[str, int]:
        return dict(self.manifest.dropped)

    @property
    def digest(self) -> str:
        return self.manifest.digest

    @cached_property
    def first_places(self) -> Transitions:
        """Where every pair of neighbouring labels, first label and last label stood first, by number and position."""
        tables, labels = self._open_table(TABLES), len(self.classes)
        for name in TRANSITIONS:
            if name not in tables:
                raise ShardError(f"{self._named(TABLES)}: the array {name!r} is missing; {DAMAGED}")
        found = Transitions.of(tables)
        shapes = [table.shape for table in found]
        if shapes != [(labels, labels, 2), (labels, 2), (labels, 2)]:
            raise ShardError(f"{self._named(TABLES)}: tables of {labels} labels have the shapes {shapes}; {DAMAGED}")
        return found

    @property
    def transitions(self) -> np.ndarray:
        """Which label follows which (labels, labels)."""
        return self.first_places.pairs[..., 0] >= 0

    @property
    def starts(self) -> np.ndarray:
        """Which labels are the first of a sequence."""
        return self.first_places.starts[:, 0] >= 0

    @property
    def ends(self) -> np.ndarray:
        """Which labels are the last of a sequence."""
        return self.first_places.ends[:, 0] >= 0

    @property
    def observed(self) -> scipy.sparse.csr_array | None:
        """Which attribute occurs with which label (attributes, labels); None for dense inputs."""
        return None if self.kind == "dense" else self._pairs("observed", self.width, len(self.classes))

    @property
    def observed_edges(self) -> scipy.sparse.csr_array | None:
        """Which attribute of pairs occurs with which pair of labels (attributes, labels * labels), if there are any."""
        if self.pair_width is None:
            return None
        return self._pairs("observed_pairs", self.pair_width, len(self.classes) ** 2)

    def open(self, i: int) -> Shard:
        """One shard.

        Parameters
        ----------
        i : int
            Which.
        """
        entry = self.manifest.shards[i]
        known = (self._place.name, entry["file"], entry["checksum"])
        first = known not in CHECKED
        path = self._place.file(entry, first)
        arrays = mapped(path)
        contents = Contents(path, arrays, entry)
        contents.check_shapes(self.kind == "dense", self.width, self.pair_width is not None, self.weighted)
        if first:
            contents.check_values(self.width, self.pair_width, len(self.classes))
            CHECKED.add(known)
        pairs = None
        if self.pair_width is not None:
            pairs = csr_of({name: arrays[f"pair_{name}"] for name in ("indptr", "indices", "data")}, self.pair_width)
        matrix = arrays["matrix"] if self.kind == "dense" else csr_of(arrays, self.width)
        return Shard(matrix, arrays["lengths"], arrays["labels"], arrays.get("weights"), pairs)

    def reader(self) -> ReaderState:
        """What reads new sequences as these were read."""
        settings = self.manifest.settings
        vectorizer = self._vectorizer()
        return ReaderState(self.kind, self.width, vectorizer, settings["columns"], settings["delimiter"])

    @property
    def templates(self) -> Templates | None:
        """What made attributes of columns, without what it has learnt."""
        made = self.manifest.settings["templates"]
        return None if made is None else Templates(made["patterns"], made["padding"], made["syntax"])

    def attributes(self) -> list[Attribute]:
        """The attributes of tokens, in the order of their numbers."""
        arrays = self._open_table(NAMES)
        with self._blamed():
            found = Texts(arrays["letters"], arrays["ends"]).decoded()
            self._check_width(len(found))
            return found

    def _vectorizer(self) -> AttributeVectorizer | Templates | None:
        if self.kind not in ("attributes", "columns"):
            return None
        templates, bits = self.templates, self.manifest.settings["hash_bits"]
        if bits is not None:
            return HashedAttributes(bits) if templates is None else HashedTemplates(templates, bits)
        if templates is not None:
            arrays = self._open_table(NAMES)
            with self._blamed():
                found = unpacked_templates(templates, arrays)
                self._check_width(found.width)
                self._check_width(found.pair_width, self.pair_width or 0, " of pairs")
                return found
        vectorizer = AttributeVectorizer(self.manifest.settings["separator"])
        vectorizer.vocabulary = {attribute: k for k, attribute in enumerate(self.attributes())}
        return vectorizer

    def _check_width(self, found: int, expected: int | None = None, what: str = "") -> None:
        wanted = self.width if expected is None else expected
        if found != wanted:
            raise ValueError(f"it has {found} attributes{what}, the manifest says {wanted}")

    @contextmanager
    def _blamed(self) -> Iterator[None]:
        """Whatever cannot be made of the file with names is the fault of that file."""
        try:
            yield
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise ShardError(f"{self._named(NAMES)}: {error}; {DAMAGED}") from None

    def _pairs(self, name: str, attributes: int, labels: int) -> scipy.sparse.csr_array:
        keys = self._open_table(TABLES).get(name)
        if keys is None or keys.dtype != np.int64 or keys.ndim != 1:
            raise ShardError(f"{self._named(TABLES)}: the array {name!r} is missing; {DAMAGED}")
        if len(keys) and not (keys[0] >= 0 and keys[-1] < attributes * labels and (keys[1:] > keys[:-1]).all()):
            raise ShardError(f"{self._named(TABLES)}: pairs of attributes and labels are not in order; {DAMAGED}")
        return pairs_of(keys, attributes, labels)

    def _open_table(self, name: str) -> Arrays:
        """The arrays of a file that belongs to all shards, mapped."""
        entry = next(entry for entry in self.manifest.tables if entry["file"] == name)
        known = (self._place.name, name, entry["checksum"])
        path = self._place.file(entry, known not in CHECKED)
        CHECKED.add(known)
        return mapped(path)

    def _named(self, file: str) -> str:
        """What messages call a file."""
        return f"{self._place.name}/{file}"

    def _counted(self, name: str) -> np.ndarray:
        return np.array([shard[name] for shard in self.manifest.shards], np.int64)
