"""Probabilities of whole chunks: that labels write a chunk of one kind from one position up to another.

A chunk of a kind at positions b..e-1 stands there if every label is of that kind, if no label within begins another
chunk, and if the chunk before ends at b and this one at e. All of that speaks of pairs of neighbouring labels: label j
*goes on* with the chunk of the label i before it or does not. So with the marginals of pairs of a chain,

    v_b(j)     = sum over i with which j does not go on of p(y_{b-1} = i, y_b = j)       (p(y_0 = j) at the beginning)
    v_{t+1}(j) = sum over i with which j goes on of v_t(i) p(y_{t+1} = j | y_t = i)
    P(chunk)   = sum over i of v_{e-1}(i) * sum over j that does not go on of p(y_e = j | y_{e-1} = i)

which is exact, since labels are a Markov chain given x; labels of another kind never enter. Labels are read as
conlleval reads them, which for valid labels is how their scheme means them. O(length labels^2) for a sequence.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from m3n.estimators.chains import Scored
from m3n.io.schemes import BEGIN, END, INSIDE, OUTSIDE, Chunk, chunks, parse
from m3n.structures import Chain


class Span(NamedTuple):
    """A predicted chunk.

    Attributes
    ----------
    begin, end : int
        Its first position, and the one behind its last.
    label : str
        Its kind.
    probability : float
        That exactly this chunk stands there.
    """

    begin: int
    end: int
    label: str
    probability: float


class Reading(NamedTuple):
    """How labels write chunks."""

    kinds: dict[str, np.ndarray]  # of every kind the labels that belong to it, (labels,)
    goes_on: np.ndarray  # (labels, labels): whether label j goes on with the chunk of label i before it


class Pairs(NamedTuple):
    """Marginals of a sequence."""

    node: np.ndarray  # (positions, labels)
    pair: np.ndarray  # (positions - 1, labels, labels)


def read_classes(classes: list[Any]) -> Reading:
    """How the labels of a model write chunks.

    Parameters
    ----------
    classes : list of labels
        The labels of the model.
    """
    try:
        prefixes, numbers, kinds = parse(classes, "conll")
    except (ValueError, AttributeError) as error:
        raise ValueError(f"the labels of this model write no chunks: {error}") from None
    inside = prefixes != OUTSIDE
    same = inside[:, None] & inside & (numbers[:, None] == numbers)
    goes_on = same & np.isin(prefixes, (BEGIN, INSIDE))[:, None] & np.isin(prefixes, (INSIDE, END))
    return Reading({kind: inside & (numbers == k) for k, kind in enumerate(kinds)}, goes_on)


def predicted_spans(scored: Scored, temperature: float, reading: Reading) -> Iterator[list[Span]]:
    """The chunks of the best labels of every sequence, with their probabilities.

    Parameters
    ----------
    scored : Scored
        Sequences with their scores.
    temperature : float
        Of the probabilities.
    reading : Reading
        How labels write chunks.
    """
    for i, labels in enumerate(scored.best()):
        found = chunks(labels)
        known = pairs_of(scored.alone(i), temperature) if found else None
        yield [] if known is None else list(map(partial(_span, known=known, reading=reading), found))


def pairs_of(scored: Scored, temperature: float) -> Pairs:
    """The marginals of a single sequence, by a chain whose pairs have scores of their own.

    Parameters
    ----------
    scored : Scored
        One sequence with its scores.
    temperature : float
        Of the probabilities.
    """
    plain = scored.structure
    structure = Chain(plain.lengths, plain.labels, edges=True, **plain.masks.arguments)
    edge = scored.theta[4].copy() if plain.edges else np.zeros(structure.shapes[4])
    theta = (*(array.copy() for array in scored.theta[:4]), edge)
    marginals = structure.soft(theta, temperature)[1]
    return Pairs(marginals[0], marginals[4])


def _span(chunk: Chunk, known: Pairs, reading: Reading) -> Span:
    return Span(chunk.begin, chunk.end, chunk.kind, share_of(chunk, known, reading))


def share_of(chunk: Chunk, known: Pairs, reading: Reading) -> float:
    """The probability that exactly this chunk stands there.

    Parameters
    ----------
    chunk : Chunk
        The chunk.
    known : Pairs
        Marginals of its sequence.
    reading : Reading
        How labels write chunks.
    """
    kind, (begin, end) = reading.kinds[chunk.kind], (chunk.begin, chunk.end)
    before = known.node[0] if begin == 0 else (known.pair[begin - 1] * ~reading.goes_on).sum(axis=0)
    shares = before * kind
    for t in range(begin, end - 1):
        shares = shares @ (_given(known, t) * reading.goes_on)
    if end < len(known.node):
        shares = shares * (_given(known, end - 1) * ~reading.goes_on).sum(axis=1)
    return float(min(shares.sum(), 1.0))


def _given(known: Pairs, t: int) -> np.ndarray:
    """p(y_{t+1} = j | y_t = i); 0 where y_t = i is impossible."""
    pair = known.pair[t]
    sums = pair.sum(axis=1, keepdims=True)
    return np.divide(pair, sums, out=np.zeros_like(pair), where=sums > 0)
