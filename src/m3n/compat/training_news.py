"""What training says, text by text, in the words of CRFsuite's log, and what has happened with a text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from m3n.compat.crfsuite import Weights
from m3n.compat.training_log import LabelScore, TrainingLog

News = tuple[str, str | None]
PROGRESS = [text for tenth in range(10) for text in (str(tenth), *"....")] + ["10"]  # of reading the data


def beginning(holdout: int) -> Iterator[News]:
    """Which sequences are held out.

    Parameters
    ----------
    holdout : int
        Their group; -1 for none.
    """
    if holdout >= 0:
        yield f"Holdout group: {holdout + 1}\n", "start"
        yield "\n", None
    yield "Feature generation\n", None if holdout >= 0 else "start"


def reading(told: TrainingLog, title: str, params: Mapping[str, Any]) -> Iterator[News]:
    """Which weights there are, and what the parameters are.

    Parameters
    ----------
    told : TrainingLog
        Knows how many, and how long it took; is told the percents.
    title : str
        What follows.
    params : mapping
        The parameters.
    """
    yield "type: CRF1d\n", None
    own = [name for name in params if name.startswith("feature.")]
    yield from ((_line(name, params[name]), None) for name in own)
    for text in PROGRESS:
        told.featgen_percent += 2
        yield text, "featgen_progress"
    yield "\n", None
    yield f"Number of features: {told.featgen_num_features}\n", None
    yield f"Seconds required: {told.featgen_seconds:.3f}\n", "featgen_end"
    yield "\n", None
    yield f"{title}\n", None
    yield from ((_line(name, value), None) for name, value in params.items() if name not in own)


def nothing(title: str) -> Iterator[News]:
    """There are no sequences.

    Parameters
    ----------
    title : str
        What should have followed.
    """
    yield "\n", None
    yield f"{title} terminated with error: there are no sequences to train on\n", "prepare_error"
    yield from _total(0.0)


def iteration(entry: Mapping[str, Any]) -> Iterator[News]:
    """A certificate.

    Parameters
    ----------
    entry : mapping
        Of ``TrainingLog.iterations``.
    """
    yield f"***** Iteration #{entry['num']} *****\n", None
    yield f"Loss: {entry['loss']:f}\n", None
    yield f"Gap: {entry['gap']:f}\n", None
    yield f"Feature norm: {entry['feature_norm']:f}\n", None
    yield f"Active features: {entry['active_features']}\n", None
    yield f"Seconds required for this iteration: {entry['time']:.3f}\n", None
    if entry["scores"]:
        yield from ((text, None) for text in _performance(entry))
    yield "\n", "iteration"


def optimised(title: str, status: str, seconds: float) -> Iterator[News]:
    """The weights are found.

    Parameters
    ----------
    title, status : str
        What has ended, and why.
    seconds : float
        How long it took.
    """
    yield f"{title} ended: {status}\n", None
    yield from _total(seconds)


def storing(weights: Weights, features: int, attributes: int) -> Iterator[News]:
    """What the file will hold.

    Parameters
    ----------
    weights : Weights
        The weights that are not 0.
    features, attributes : int
        How many there could be.
    """
    active, labels = len(weights.states) + len(weights.transitions), len(weights.labels)
    yield "Storing the model\n", None
    yield f"Number of active features: {active} ({features})\n", None
    yield f"Number of active attributes: {len(weights.attributes)} ({attributes})\n", None
    yield f"Number of active labels: {labels} ({labels})\n", None


def stored(seconds: float) -> Iterator[News]:
    """The file is written.

    Parameters
    ----------
    seconds : float
        How long it took.
    """
    yield f"Seconds required: {seconds:.3f}\n", None
    yield "\n", "end"


def _total(seconds: float) -> Iterator[News]:
    yield f"Total seconds required for training: {seconds:.3f}\n", None
    yield "\n", "optimization_end"


def _line(name: str, value: Any) -> str:
    if isinstance(value, float):
        return f"{name}: {value:f}\n"
    return f"{name}: {value if isinstance(value, str) else int(value)}\n"


def _performance(entry: Mapping[str, Any]) -> Iterator[str]:
    yield "Performance by label (#match, #model, #ref) (precision, recall, F1):\n"
    for label, score in entry["scores"].items():
        yield f"    {label}: ({score.match}, {score.model}, {score.ref}) ({_ratios(score)})\n"
    averages = ", ".join(f"{entry[f'avg_{name}']:f}" for name in ("precision", "recall", "f1"))
    yield f"Macro-average precision, recall, F1: ({averages})\n"
    for name in ("Item", "Instance"):
        share = entry[f"{name.lower()}_accuracy"]
        yield f"{name} accuracy: {share.numerator} / {share.denominator} ({float(share):.4f})\n"


def _ratios(score: LabelScore) -> str:
    ratios = (score.precision, score.recall, score.f1)
    return ", ".join("******" if ratio is None else f"{ratio:.4f}" for ratio in ratios)
