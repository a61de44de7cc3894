"""Sets of answers of sequences with their scores: which outputs, and which labels of a position, are likely enough.

An output is in the set of its sequence if it is the best one, or if -log p is at most the threshold ``surprise``; a
label is in the set of its position if it is the likeliest one, or if its probability is at least the threshold
``share``. The likely outputs are found by the k best with more and more k. A set has at most exp(surprise) members
besides the best one, since each has a probability of exp(-surprise) at least.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from m3n.estimators.calibration import UNKNOWN
from m3n.estimators.chains import Scored
from m3n.estimators.conformal import check_alpha

SLACK = 1e-9  # scores of one output differ by rounding from one way of adding them up to another
FIRST, FACTOR = 16, 4  # how many best outputs are looked at first, and how many times as many next


@dataclass(frozen=True)
class Coverage:
    """What ``calibrate`` has settled.

    Attributes
    ----------
    alpha : float
        How often a set of outputs may miss the right one.
    label_alpha : float
        The share of positions whose right label may be missing in the sets of labels.
    sequences : int
        How many held-out sequences the thresholds come from.
    temperature : float
        Of the probabilities that are compared with the thresholds.
    surprise : float
        The largest -log p of an output in a set.
    share : float
        The smallest probability of a label in a set.
    """

    alpha: float
    label_alpha: float
    sequences: int
    temperature: float
    surprise: float
    share: float

    def __post_init__(self) -> None:
        check_alpha(self.alpha)
        check_alpha(self.label_alpha, "label_alpha")
        if not (self.temperature > 0 and self.surprise >= 0 and 0 <= self.share <= 1 and self.sequences >= 1):
            raise ValueError(f"these are no thresholds: {self}")


@dataclass(frozen=True)
class OutputSet:
    """Outputs of one sequence, of which one is right as often as ``calibrate`` was asked for.

    Attributes
    ----------
    outputs : list of tuples
        Labels and probability of every output, best first.
    complete : bool
        Whether that is the whole set. If not, there were more than should be listed, and the promise is one about the
        whole set, not about this part of it.
    """

    outputs: list[tuple[list[Any], float]]
    complete: bool

    def __len__(self) -> int:
        return len(self.outputs)

    def __iter__(self) -> Iterator[tuple[list[Any], float]]:
        return iter(self.outputs)

    def __contains__(self, labels: object) -> bool:
        """Whether these labels, a list, are one of the outputs that are listed."""
        return any(labels == output for output, _ in self.outputs)


class Right(NamedTuple):
    """How surprising right outputs are, and the probabilities of right labels, as ``conformal`` wants them."""

    surprises: np.ndarray  # (sequences,): 0 for the best output, inf where no set can hold the right one
    shares: np.ndarray  # (positions,): inf for the likeliest label, -inf for one that the model does not know
    sizes: np.ndarray  # (positions,): of sets of labels, 0 where these are not known yet


class Likely(NamedTuple):
    """The likely enough outputs of a sequence, best first."""

    logs: np.ndarray  # (outputs,): of their probabilities
    labellings: np.ndarray  # (outputs, positions): numbers of labels
    complete: bool  # whether these are all


def judged(scored: Scored, right: np.ndarray, temperature: float, coverage: Coverage | None = None) -> Right:
    """What a model thinks of right labels; its scores are used up.

    Parameters
    ----------
    scored : Scored
        Sequences with their scores.
    right : array of int (positions,)
        The numbers of the right labels, or UNKNOWN.
    temperature : float
        Of the probabilities.
    coverage : Coverage or None
        Thresholds, for the sizes of sets of labels.
    """
    structure, labelling = scored.structure, np.maximum(right, 0)
    gold = structure.score(scored.theta, labelling, scored.threads)
    best, found = structure.hard(scored.theta, scored.threads)
    scored._check(best)
    values, (shares, *_) = structure.soft(scored.theta, temperature, scored.threads)
    surprises = np.maximum((values - gold) / temperature, 0.0)
    surprises[np.logical_and.reduceat(right == found, structure.offsets[:-1])] = 0.0
    surprises[~_possible(scored, right)] = np.inf
    own = shares[np.arange(len(right)), labelling]
    own[shares.argmax(axis=1) == labelling] = np.inf
    own[right == UNKNOWN] = -np.inf
    sizes = np.zeros(len(right), np.int64) if coverage is None else _set_sizes(shares, coverage)
    return Right(surprises, own, sizes)


def joined(parts: Iterable[Right]) -> Right:
    """What is known about several pieces of the data, one after another.

    Parameters
    ----------
    parts : iterable of Right
        About every piece.
    """
    return Right(*map(np.concatenate, zip(*parts, strict=True)))


def label_sets(scored: Scored, coverage: Coverage) -> Iterator[list[list[Any]]]:
    """The labels of every position that are likely enough, sequence by sequence; the scores are used up.

    Parameters
    ----------
    scored : Scored
        Sequences with their scores.
    coverage : Coverage
        The thresholds.
    """
    shares, names = scored.marginals(coverage.temperature), scored.classes.tolist()
    order, sizes = np.argsort(-shares, axis=1, kind="stable").tolist(), _set_sizes(shares, coverage).tolist()
    sets = [[names[k] for k in row[:size]] for row, size in zip(order, sizes, strict=True)]
    ends = scored.structure.offsets.tolist()
    return (sets[low:high] for low, high in pairwise(ends))


def output_sets(scored: Scored, coverage: Coverage, most: int) -> list[OutputSet]:
    """The likely enough outputs of every sequence.

    Parameters
    ----------
    scored : Scored
        Sequences with their scores.
    coverage : Coverage
        The thresholds.
    most : int
        How many outputs of a sequence are listed at most.
    """
    names = np.array(scored.classes.tolist(), dtype=object)  # plain strings and numbers
    return [
        OutputSet(list(zip(names[found.labellings].tolist(), np.exp(found.logs).tolist(), strict=True)), found.complete)
        for found in likely_outputs(scored, coverage, most)
    ]


def likely_outputs(scored: Scored, coverage: Coverage, most: int) -> Iterator[Likely]:
    """The same as arrays, by k best outputs, with more and more k where all of them are in the set.

    Parameters
    ----------
    scored, coverage, most
        As in ``output_sets``.
    """
    copied = tuple(array.copy() for array in scored.theta)
    values = scored.structure.soft(copied, coverage.temperature, scored.threads)[0]
    for i, found in enumerate(_among_best(scored, values, coverage, min(FIRST, most))):
        whole = found.complete or most <= FIRST
        yield found if whole else _grown(scored.alone(i), values[i : i + 1], coverage, most)


def _grown(scored: Scored, values: np.ndarray, coverage: Coverage, most: int) -> Likely:
    """The set of a single sequence, from ever more best outputs."""
    k = min(FIRST * FACTOR, most)
    while not (found := next(_among_best(scored, values, coverage, k))).complete and k < most:
        k = min(k * FACTOR, most)
    return found


def _among_best(scored: Scored, values: np.ndarray, coverage: Coverage, k: int) -> Iterator[Likely]:
    """Sets by the k best outputs; complete where one of these is outside, or where there are no more outputs."""
    scores, labellings = scored.structure.k_best(scored.theta, k, scored.threads)
    scored._check(scores[:, 0])
    logs = (scores - values[:, None]) / coverage.temperature
    inside = logs >= -most_surprise(coverage)
    complete = ~inside[:, -1] | (scores.shape[1] < k)
    counts, ends = np.maximum(inside.sum(axis=1), 1).tolist(), scored.structure.offsets.tolist()
    for i, count in enumerate(counts):
        yield Likely(logs[i, :count], labellings[:count, ends[i] : ends[i + 1]], bool(complete[i]))


def _set_sizes(shares: np.ndarray, coverage: Coverage) -> np.ndarray:
    """How many labels every position has."""
    return np.maximum((shares >= least_share(coverage)).sum(axis=1), 1)


def most_surprise(coverage: Coverage) -> float:
    """The largest surprise in a set, with room for rounding.

    Parameters
    ----------
    coverage : Coverage
        The thresholds.
    """
    return coverage.surprise + SLACK * (1.0 + coverage.surprise)


def least_share(coverage: Coverage) -> float:
    """The smallest probability in a set, with room for rounding.

    Parameters
    ----------
    coverage : Coverage
        The thresholds.
    """
    return coverage.share * (1.0 - SLACK)


def _possible(scored: Scored, right: np.ndarray) -> np.ndarray:
    """Whether the right labels of a sequence are an output of the model at all."""
    structure, masks = scored.structure, scored.structure.masks
    possible = np.logical_and.reduceat(right != UNKNOWN, structure.offsets[:-1])
    if not masks.nothing:
        for i in np.flatnonzero(possible):
            possible[i] = masks.allows(right[structure.offsets[i] : structure.offsets[i + 1]])
    return possible
