"""How training went, in the words of python-crfsuite's log: a list of dicts, one per certificate."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NamedTuple

from m3n.run.certificate import Record


class LabelScore(NamedTuple):
    """How well a label was found: items that match, that the model found, that there are; and their ratios."""

    match: int
    model: int
    ref: int
    precision: float | None
    recall: float | None
    f1: float | None


@dataclass
class TrainingLog:
    """What there is to know about a run.

    Attributes
    ----------
    featgen_num_features : int or None
        Number of weights.
    training_seconds : float or None
        How long training took, without reading the data.
    iterations : list of dicts
        "num", the passes so far; "loss", the value of CRFsuite's objective; "gap", how far it is at most from the
        optimum; "time", the seconds since the entry before; "scores", empty but in the last entry if there were data
        to test on, which then also has "avg_precision", "avg_recall", "avg_f1", "item_accuracy", "instance_accuracy".
        Those of a ``Trainer`` have these scores in every entry, and "feature_norm" and "active_features".
    featgen_percent : int
        How much of the data has been read.
    featgen_seconds, storing_seconds : float or None
        How long reading the data and writing the model took.
    log : list of str
        What a ``Trainer`` has said.
    events : list of (str, int, int)
        What has happened, and which part of ``log`` tells of it.
    """

    featgen_num_features: int | None = None
    training_seconds: float | None = None
    iterations: list[dict[str, Any]] = field(default_factory=list)
    featgen_percent: int = -2
    featgen_seconds: float | None = None
    storing_seconds: float | None = None
    log: list[str] = field(default_factory=list)
    events: list[tuple[str, int, int]] = field(default_factory=list)

    @property
    def last_iteration(self) -> dict[str, Any] | None:
        """The last of ``iterations``."""
        return self.iterations[-1] if self.iterations else None

    @property
    def last_log(self) -> str:
        """What was said from the last event but one until the last."""
        _, begin, end = self.events[-1]
        return "".join(self.log[begin:end])

    def note(self, text: str, event: str | None) -> None:
        """Keep what a trainer says.

        Parameters
        ----------
        text : str
            A line or less.
        event : str or None
            What has happened with it.
        """
        self.log.append(text)
        if event:
            self.events.append((event, self.events[-1][2] if self.events else 0, len(self.log)))


def log_of(trace: Sequence[Record], count: int, features: int) -> TrainingLog:
    """The log of a run.

    Parameters
    ----------
    trace : sequence of Record
        What the run noted.
    count : int
        Number of sequences: CRFsuite adds up losses.
    features : int
        Number of weights.
    """
    log, before = TrainingLog(features, trace[-1].seconds if trace else 0.0), 0.0
    for record in trace:
        numbers = {"loss": count * record.primal, "gap": count * record.gap, "time": record.seconds - before}
        log.iterations.append({"num": round(record.passes), "scores": {}} | numbers)
        before = record.seconds
    return log


def scores_of(gold: Sequence[Sequence[Any]], found: Sequence[Sequence[Any]], labels: Sequence[Any]) -> dict[str, Any]:
    """Precision, recall and F1 of all labels, and how many items and sequences are right.

    Parameters
    ----------
    gold, found : sequences of labels
        The right labels, and those of the model.
    labels : sequence of labels
        Those of the model.
    """
    pairs = [pair for one, other in zip(gold, found, strict=True) for pair in zip(one, other, strict=True)]
    match = Counter(right for right, label in pairs if right == label)
    model, ref = Counter(label for _, label in pairs), Counter(right for right, _ in pairs)
    scores = {label: _score(match[label], model[label], ref[label]) for label in labels}
    averages = {
        f"avg_{name}": sum(getattr(score, name) or 0.0 for score in scores.values()) / max(len(scores), 1)
        for name in ("precision", "recall", "f1")
    }
    items = Fraction(match.total(), max(len(pairs), 1))
    whole = Fraction(sum(list(one) == list(other) for one, other in zip(gold, found, strict=True)), max(len(gold), 1))
    accuracies = {"item_accuracy": items, "item_accuracy_float": float(items)}
    accuracies |= {"instance_accuracy": whole, "instance_accuracy_float": float(whole)}
    return {"scores": scores} | averages | accuracies


def _score(match: int, model: int, ref: int) -> LabelScore:
    if not model and not ref:
        return LabelScore(match, model, ref, None, None, None)
    precision, recall = match / model if model else 0.0, match / ref if ref else 0.0
    both = precision + recall
    return LabelScore(match, model, ref, precision, recall, 2 * precision * recall / both if both else 0.0)
