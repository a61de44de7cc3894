"""Tokens and labels as python-crfsuite takes them: texts may be bytes, numbers whatever ``float`` understands."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import repeat
from typing import Any, TypeVar

import numpy as np

from m3n.compat.imported import SEPARATOR

Answer = TypeVar("Answer")


class ItemSequence:
    """The tokens of a sequence, with their attributes by their texts.

    Parameters
    ----------
    pyseq : iterable of dicts, or of collections of texts
        A text value stands behind its name and a colon, {"word": "dog"} being "word:dog"; a number is the weight of
        the attribute, and so are True and False, 1 and 0. A value may be a dict, list or set itself. Bytes are UTF-8.

    Examples
    --------
    >>> ItemSequence([["the"], {"word": {"lower": "dog", "length": 3}}]).items()
    [{'the': 1.0}, {'word:lower:dog': 1.0, 'word:length': 3.0}]
    """

    def __init__(self, pyseq: Any):
        if is_items(pyseq):
            self._tokens = [list(item.items()) for item in pyseq.items()]
            return
        self._tokens = []
        for t, token in enumerate(pyseq):
            try:
                self._tokens.append(list(_pairs(token)))
            except (TypeError, ValueError) as error:
                raise _placed(error, f"position {t}: ") from None

    def items(self) -> list[dict[str, float]]:
        """For every token a dict from attribute to weight, the last one if an attribute comes twice."""
        return [dict(pairs) for pairs in self._tokens]

    def counted(self) -> list[dict[str, float]]:
        """The same with the sum, which is what counts in training and prediction."""
        tokens = []
        for pairs in self._tokens:
            tokens.append(total := dict.fromkeys((name for name, _ in pairs), 0.0))
            for name, weight in pairs:
                total[name] += weight
        return tokens

    def __len__(self) -> int:
        return len(self._tokens)

    def __repr__(self) -> str:
        return f"<ItemSequence of size {len(self)}>"


def is_items(xseq: Any) -> bool:
    """Whether this is an ``ItemSequence``, of python-crfsuite or ours.

    Parameters
    ----------
    xseq : object
        A sequence.
    """
    return type(xseq).__name__ == "ItemSequence"


def listed(xseq: Any) -> list[Any]:
    """The tokens of a sequence.

    Parameters
    ----------
    xseq : iterable of tokens, or ItemSequence
        The sequence.
    """
    if isinstance(xseq, ItemSequence):
        return xseq.counted()
    return list(xseq.items() if is_items(xseq) else xseq)


def reading(read: Callable[[list[list[Any]]], Answer], sequences: list[list[Any]], begin: int = 0) -> Answer:
    """What a function makes of tokens or, if it does not know their types, of what ``ItemSequence`` makes of them.

    Parameters
    ----------
    read : function of a list of sequences
        Knows dicts and lists of ``str``, ``int``, ``float`` and ``bool``, and reads these quickly.
    sequences : list of lists of tokens
        Any that python-crfsuite takes.
    begin : int
        The number of the first of them, for errors.
    """
    try:
        return read(sequences)
    except TypeError:
        plain = list(_counted(sequences, begin))
    return read(plain)


def _counted(sequences: Iterable[Any], begin: int) -> Iterator[list[dict[str, float]]]:
    for i, xseq in enumerate(sequences, start=begin):
        try:
            yield ItemSequence(xseq).counted()
        except (TypeError, ValueError) as error:
            raise _placed(error, f"sequence {i}, ") from None


def _placed(error: TypeError | ValueError, place: str) -> TypeError | ValueError:
    """An error that begins with the place where it is; bytes that are not UTF-8 make an error of another kind."""
    return (TypeError if isinstance(error, TypeError) else ValueError)(f"{place}{error}")


def plain_labels(yseq: Any) -> Any:
    """Labels as texts and numbers: bytes are decoded, arrays of one value without axes give it.

    Parameters
    ----------
    yseq : iterable of labels
        Of one sequence; what is none is returned as it is.
    """
    if isinstance(yseq, (str, bytes)) or not isinstance(yseq, Iterable):
        return yseq
    yseq = yseq.tolist() if isinstance(yseq, np.ndarray) and yseq.ndim else yseq
    return [plain_label(label) if isinstance(label, (bytes, np.ndarray)) else label for label in yseq]


def plain_label(label: Any) -> Any:
    """A label as text or number.

    Parameters
    ----------
    label : str, bytes, number or array without axes
        The label.
    """
    label = _unwrapped(label)
    return label.decode() if isinstance(label, bytes) else label


def _pairs(token: Any) -> Iterator[tuple[str, float]]:
    """The attributes of a token with their weights."""
    if isinstance(token, (str, bytes)) or not isinstance(token, Collection):
        raise TypeError(f"a token must be a dict or a collection of texts, got {token!r:.100}")
    entries: Iterable[tuple[Any, Any]] = token.items() if isinstance(token, Mapping) else zip(token, repeat(True))
    for key, value in entries:
        name, value = _text(key), _unwrapped(value)
        if isinstance(value, (dict, list, set)):
            yield from ((f"{name}{SEPARATOR}{inner}", weight) for inner, weight in _pairs(value))
        elif isinstance(value, (str, bytes)):
            yield f"{name}{SEPARATOR}{_text(value)}", 1.0
        elif value is not None:
            yield name, _number(name, value)


def _text(key: Any) -> str:
    key = _unwrapped(key)
    if not isinstance(key, (str, bytes)):
        raise TypeError(f"names of attributes must be texts, got {key!r:.100}")
    return key.decode() if isinstance(key, bytes) else str(key)


def _number(name: str, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise TypeError(f"attribute {name!r} must be a string, a number or a bool, got {value!r:.100}") from None


def _unwrapped(value: Any) -> Any:
    """The value in an array without axes."""
    return value.item() if isinstance(value, np.ndarray) and value.ndim == 0 else value
