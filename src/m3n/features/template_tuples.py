"""What templates have seen, spelled out as far as it must be: words, and tuples of their numbers.

Attributes of templates have numbers that mean something to the ``Templates`` alone that have learnt them. To find the
same attribute elsewhere, in another part of the data or by a hash, it is written as its template and the words that its
macros saw: values of columns, or what stands beyond a sentence, which is another word even if it has the same letters.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from m3n.features.hashes import joined_hashes
from m3n.features.templates import Templates
from m3n.io.template_syntax import Key

VALUE, BEYOND = b"0", b"1"  # before the letters of a word
NO_WORD = -1  # behind the last macro


class Words(NamedTuple):
    """The words of all columns and of forms of them.

    Attributes
    ----------
    texts : list of bytes
        A sign for what it is, and the letters.
    begins : array of int (keys + 1,)
        Where the words of every column or form begin, in the order of ``keys_of``.
    """

    texts: list[bytes]
    begins: np.ndarray

    @classmethod
    def of(cls, templates: Templates) -> Words:
        """The words that fitted templates know."""
        texts, begins = list[bytes](), [0]
        for key in keys_of(templates):
            values = len(templates.values[key])
            for k, word in enumerate(templates.words(key)):
                texts.append((VALUE if k < values else BEYOND) + word.encode("utf-8", "surrogatepass"))
            begins.append(len(texts))
        return cls(texts, np.array(begins, np.int64))


def keys_of(templates: Templates) -> list[Key]:
    """The columns and forms of them that templates read, in a fixed order.

    Parameters
    ----------
    templates : Templates
        The templates.
    """
    return sorted({key for template in templates.parsed for _, key in template.macros}, key=str)


def tuples_of(local: Templates, words: Words, pair: bool) -> tuple[np.ndarray, np.ndarray]:
    """How many attributes each template has, and for every attribute (attributes, macros) the numbers of its words.

    Parameters
    ----------
    local : Templates
        Fitted ones.
    words : Words
        Their words.
    pair : bool
        Whether attributes of pairs are wanted, or of tokens.
    """
    own = [(t, made) for t, made in zip(local.parsed, local.attributes, strict=True) if t.pair == pair]
    counts = np.array([len(made) for _, made in own], np.int64)
    codes = np.full((int(counts.sum()), max(len(t.macros) for t, _ in own)), NO_WORD, np.int32)
    begins, low = dict(zip(keys_of(local), words.begins.tolist(), strict=False)), 0
    for template, made in own:
        for j, ((_, key), part) in enumerate(zip(template.macros, made.split(), strict=False)):
            codes[low : low + len(made), j] = begins[key] + part
        low += len(made)
    return counts, codes


def tuple_keys(counts: np.ndarray, codes: np.ndarray, hashes: np.ndarray, seed: int = 0) -> np.ndarray:
    """Two keys (attributes, 2) of every attribute.

    Parameters
    ----------
    counts, codes : arrays
        What ``tuples_of`` gives.
    hashes : array of uint64 (words, 2)
        Two keys of every word.
    seed : int
        Other seeds give other keys.
    """
    known = np.concatenate([hashes, np.zeros((1, 2), np.uint64)])  # the last row is that of NO_WORD
    owners = np.repeat(np.arange(len(counts), dtype=np.uint64), counts)
    return joined_hashes([owners, *(known[column] for column in codes.T)], seed)
