"""Models as CRFsuite's binary files, which CRFsuite and everything built on it reads.

All numbers are little-endian, and places count from the beginning of the file but for those inside of a table of names:

    header       "lCRF", size, "FOMC", 100, 0, labels, attributes, then the places of the five parts that follow
    features     "FEAT", size, number, then per feature: kind (0 attribute and label, 1 two labels), from, to, weight
    names        of labels, then of attributes: a hash table in which a name is looked up, see below
    references   of labels ("LFRF", with two more for the ends of sequences, which have none), then of attributes
                 ("AFRF"): size, number, the place of each list; lists of how many and which features begin there

A table of names is a constant quark database (CQDB):

    head         "CQDB", size, 0, byte order, names, where the backward table is, then place and size of 256 hash tables
    records      number, length, text with a final 0
    tables       a name is in table hash % 256; of twice as many places as names it has the first free one from
                 (hash // 256) % size on, as hash and place of its record
    backward     the place of every name by its number

The hash is Jenkins's lookup3 (http://burtleburtle.net/bob/hash/), here of many names at once.
"""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from m3n.compat.crfsuite import FEATURE, HEADER, MAGIC, TRANSITION, Weights
from m3n.compat.imported import ExportError

VERSION = 100
BYTE_ORDER = 0x62445371  # how the writer of CRFsuite marks little-endian numbers
TABLES = 256
HEAD = 24 + 8 * TABLES  # bytes of a table of names before its first record
SEED = 0xDEADBEEF
MIX = ((0, 2, 4, 1), (1, 0, 6, 2), (2, 1, 8, 0), (0, 2, 16, 1), (1, 0, 19, 2), (2, 1, 4, 0))
LAST = ((2, 1, 14), (0, 2, 11), (1, 0, 25), (2, 1, 16), (0, 2, 4), (1, 0, 14), (2, 1, 24))


def model_bytes(weights: Weights) -> bytes:
    """The content of a model file.

    Parameters
    ----------
    weights : Weights
        A model whose attributes all have a weight.
    """
    states, transitions = sorted(weights.states), sorted(weights.transitions)
    labels, attributes = len(weights.labels), len(weights.attributes)
    parts = [_features(states, transitions), _names(weights.labels), _names(weights.attributes)]
    parts[-1] += b"\0" * (-sum(map(len, parts)) % 4)  # references begin at a multiple of four, as the header ends there
    moves = [(source, len(states) + k) for k, (source, _, _) in enumerate(transitions)]
    places = list(_places(parts))
    parts.append(_references(b"LFRF", moves, labels, 2, places[3]))
    places = list(_places(parts))
    parts.append(_references(b"AFRF", [(a, k) for k, (a, _, _) in enumerate(states)], attributes, 0, places[4]))
    size = HEADER.size + sum(map(len, parts))
    header = HEADER.pack(MAGIC, size, b"FOMC", VERSION, 0, labels, attributes, *places)
    return b"".join([header, *parts])


def size_of(weights: Weights) -> int:
    """How many bytes ``model_bytes`` has, without making them.

    Parameters
    ----------
    weights : Weights
        A model.
    """
    features, tables = len(weights.states) + len(weights.transitions), [weights.labels, weights.attributes]
    size = HEADER.size + 12 + FEATURE.itemsize * features
    for names in tables:  # a record has 9 bytes beside the text; two places of 8 bytes and one of 4 lead to it
        size += HEAD + sum(29 + len(_encoded(name)) for name in names)
    size += -size % 4
    return size + 2 * 12 + 8 + 8 * (len(weights.labels) + len(weights.attributes)) + 4 * features


def _places(parts: Sequence[bytes]) -> Iterator[int]:
    """Where parts begin, and where the next one would."""
    yield from np.cumsum([HEADER.size, *map(len, parts)]).tolist()


def _features(states: list[tuple[int, int, float]], transitions: list[tuple[int, int, float]]) -> bytes:
    rows = [(0, *state) for state in states] + [(TRANSITION, *transition) for transition in transitions]
    table = np.array(rows, dtype=FEATURE)
    return struct.pack("<4sII", b"FEAT", 12 + table.nbytes, len(table)) + table.tobytes()


def _references(magic: bytes, owned: Iterable[tuple[int, int]], count: int, more: int, begin: int) -> bytes:
    """The features of every label or attribute; some more have none."""
    lists = defaultdict[int, list[int]](list)
    for owner, feature in owned:
        lists[owner].append(feature)
    packed = [struct.pack(f"<{len(own) + 1}I", len(own), *own) for own in (lists[k] for k in range(count))]
    first = begin + 12 + 4 * (count + more)
    places = [first, *(first + np.cumsum([len(own) for own in packed[:-1]])).tolist()] if packed else []
    size = 12 + 4 * (count + more) + sum(map(len, packed))
    head = struct.pack(f"<4sII{count + more}I", magic, size, count + more, *places, *[0] * more)
    return b"".join([head, *packed])


def _names(names: Sequence[str]) -> bytes:
    """A table in which names are looked up."""
    texts = [_encoded(name) + b"\0" for name in names]
    records = [struct.pack("<II", k, len(text)) + text for k, text in enumerate(texts)]
    places = (HEAD + np.cumsum([0, *map(len, records[:-1])])).tolist() if records else []
    entries = defaultdict[int, list[tuple[int, int]]](list)
    for value, place in zip(hashes(texts).tolist(), places, strict=True):
        entries[value % TABLES].append((value, place))
    place = HEAD + sum(map(len, records))
    directory, tables = [0] * (2 * TABLES), []
    for number in sorted(entries):
        tables.append(_hash_table(entries[number]))
        directory[2 * number : 2 * number + 2] = place, 2 * len(entries[number])
        place += len(tables[-1])
    backward = struct.pack(f"<{len(places)}I", *places)
    head = struct.pack("<4s5I", b"CQDB", place + len(backward), 0, BYTE_ORDER, len(names), place if places else 0)
    return b"".join([head, struct.pack(f"<{len(directory)}I", *directory), *records, *tables, backward])


def _hash_table(entries: Sequence[tuple[int, int]]) -> bytes:
    """Hashes and places of records, each at the first free place from where its hash says."""
    size = 2 * len(entries)
    table: list[tuple[int, int] | None] = [None] * size
    for value, place in entries:
        at = (value // TABLES) % size
        while table[at] is not None:
            at = (at + 1) % size
        table[at] = value, place
    return b"".join(struct.pack("<II", *(entry or (0, 0))) for entry in table)


def _encoded(name: str) -> bytes:
    """A name as UTF-8, which ends at a 0."""
    try:
        text = str(name).encode()
    except UnicodeEncodeError as error:
        raise ExportError(f"the name {name!r:.60} cannot be written as UTF-8: {error.reason}") from None
    if b"\0" in text:
        raise ExportError(f"the name {name!r:.60} has a character 0, at which a name ends in a file of CRFsuite")
    return text


def hashes(texts: Sequence[bytes]) -> np.ndarray:
    """lookup3 of texts that are not empty.

    Parameters
    ----------
    texts : sequence of bytes
        What to hash.

    Returns
    -------
    array of uint32
        One per text.
    """
    found = np.empty(len(texts), np.uint32)
    lengths = np.array([len(text) for text in texts], dtype=np.int64)
    blocks = (lengths + 11) // 12
    for count in np.unique(blocks).tolist():  # texts of as many blocks are hashed together
        chosen = np.flatnonzero(blocks == count)
        padded = b"".join(texts[k].ljust(12 * count, b"\0") for k in chosen.tolist())
        words = np.frombuffer(padded, "<u4").reshape(len(chosen), count, 3)
        found[chosen] = _hashed(words, lengths[chosen])
    return found


def _hashed(words: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """lookup3 of rows of blocks of three words; sums are modulo 2^32."""
    state = np.repeat((SEED + lengths).astype(np.uint32)[None], 3, axis=0)  # (3, texts): a, b, c
    for k in range(words.shape[1] - 1):
        state += words[:, k].T
        for one, other, by, third in MIX:
            state[one] -= state[other]
            state[one] ^= _rotated(state[other], by)
            state[other] += state[third]
    state += words[:, -1].T
    for one, other, by in LAST:
        state[one] ^= state[other]
        state[one] -= _rotated(state[other], by)
    return state[2]


def _rotated(values: np.ndarray, by: int) -> np.ndarray:
    return (values << np.uint32(by)) | (values >> np.uint32(32 - by))
