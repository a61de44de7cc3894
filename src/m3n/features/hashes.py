"""Numbers for attributes by hashing, so that no dictionary is needed; and 64-bit keys of texts in general.

The keys of a text are the first and the second 8 bytes, little endian, of its BLAKE2b hash of 16 bytes, with the seed
as salt: the same on every machine. The keys of a tuple of numbers c_1, c_2, ... are h <- mix(h xor c_j), where mix is
the finaliser of SplitMix64, from two different beginnings.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

import numpy as np

BEGINNINGS = (0x9E3779B97F4A7C15, 0xD1B54A32D192ED03)
BYTES = 16


def text_hashes(texts: Iterable[bytes], count: int, seed: int = 0) -> np.ndarray:
    """Two keys (texts, 2) of every text.

    Parameters
    ----------
    texts : iterable of bytes
        The texts.
    count : int
        How many there are.
    seed : int
        Other seeds give other keys.
    """
    start = hashlib.blake2b(digest_size=BYTES, salt=seed.to_bytes(8, "little"))
    found = np.empty((count, 2), np.uint64)
    flat = found.view(np.uint8).reshape(count, BYTES)

    def digest(text: bytes) -> bytes:
        own = start.copy()
        own.update(text)
        return own.digest()

    flat.reshape(-1)[:] = np.frombuffer(b"".join(map(digest, texts)), np.uint8)
    return found


def joined_hashes(columns: Sequence[np.ndarray], seed: int = 0) -> np.ndarray:
    """Two keys (tuples, 2) of every tuple.

    Parameters
    ----------
    columns : sequence of arrays of uint64 (tuples,) or (tuples, 2)
        The first numbers of all tuples, the second ones, ...; one for both keys or one for each.
    seed : int
        Other seeds give other keys.
    """
    found = np.empty((len(columns[0]), len(BEGINNINGS)), np.uint64)
    for half, beginning in enumerate(BEGINNINGS):
        key = np.full(len(found), (beginning + seed * 0xA24BAED4963EE407) % 2**64, np.uint64)
        for column in columns:
            key = mixed(key ^ (column if column.ndim == 1 else column[:, half]))
        found[:, half] = key
    return found


def mixed(key: np.ndarray) -> np.ndarray:
    """The finaliser of SplitMix64: a permutation of 64-bit numbers in which every bit depends on all.

    Parameters
    ----------
    key : array of uint64
        The numbers.
    """
    key = (key ^ (key >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    key = (key ^ (key >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return key ^ (key >> np.uint64(31))


def encoded(attribute: str | tuple[str, str]) -> bytes:
    """An attribute as bytes: ``:text``, or the length of a name, a colon, name and value, such as ``4:wordParis``.

    Parameters
    ----------
    attribute : str or pair of str
        The attribute.
    """
    if isinstance(attribute, str):
        return b":" + attribute.encode("utf-8", "surrogatepass")
    name = attribute[0].encode("utf-8", "surrogatepass")
    return b"%d:%b%b" % (len(name), name, attribute[1].encode("utf-8", "surrogatepass"))


def decoded(written: bytes) -> str | tuple[str, str]:
    """The attribute again.

    Parameters
    ----------
    written : bytes
        What ``encoded`` has made.
    """
    length, _, rest = written.partition(b":")
    if not length:
        return rest.decode("utf-8", "surrogatepass")
    size = int(length)
    return rest[:size].decode("utf-8", "surrogatepass"), rest[size:].decode("utf-8", "surrogatepass")
