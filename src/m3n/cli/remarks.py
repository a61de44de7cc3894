"""What a user should be told about a model that works, but hardly as it was meant."""

from __future__ import annotations

from itertools import chain
from typing import Any

from m3n.estimators.forms import ALIGNMENTS, SETS, form_of
from m3n.estimators.packed_inputs import PackedInputs
from m3n.io import Data
from m3n.shards import Shards

LOOKED_AT = 1000  # examples
STRONG = 1000.0  # lam in units of 1/n that nobody means
FLAT = (
    "These probabilities are too flat: a max-margin model is not trained for them. m3n train --calibrate HELD_OUT "
    "makes them true, --temperature 0.3 sharper, --objective crf trains for them."
)


def remarks_on(model: Any, data: Data, count: float) -> list[str]:
    """Remarks about a model that was just trained: one answer for everything, and a regulariser that is too strong.

    Parameters
    ----------
    model : estimator
        Fitted.
    data : Data
        What it has learnt from.
    count : float
        How many examples that are, or the sum of their weights.
    """
    form, strength = form_of(model), model.lam_ * count
    if form.trees or form is ALIGNMENTS:
        return []
    example = f"lam = {model.lam_:.3g} is {float(f'{strength:.3g}'):,g}/n"
    said = _only_answer(model, data)
    if said and strength > 10.0:
        return [f"{said} {example}, too strong a regulariser; try --lam 5/n."]
    if said:
        return [f"{said} Train for longer (--rtol, --max-passes), or with less --lam; {example}."]
    weak = f"{example}: so strong a regulariser leaves small weights. --lam 5/n divides by the number of {form.kind}."
    return [weak] if strength > STRONG else []


def _only_answer(model: Any, data: Data) -> str:
    """Words about a model that gives the same label to everything; nothing if it does not, or is right to do so."""
    form, packed = form_of(model), isinstance(data.X, Shards)
    X, y = _sample(model, data.X) if packed else (data.X[:LOOKED_AT], (data.y or [])[:LOOKED_AT])
    found = set(chain.from_iterable(model._answers(X, marginals=False)[0]))
    if form is SETS:
        return "" if found or not any(y) else "The model gives no example any label."
    if len(found) != 1 or len(set(chain.from_iterable(y))) < 2:
        return ""
    return f"The model gives every {form.position} the label {found.pop()}."


def _sample(model: Any, shards: Shards) -> tuple[Any, list[list[Any]]]:
    """Some sequences of the first shard, and their labels."""
    packed, shard = PackedInputs(shards, model.reader_), shards.open(0)
    most = min(LOOKED_AT, len(shard.lengths))
    return packed.inputs(shard).between(0, most), packed.labels(shard)[:most]


def is_flat(model: Any) -> bool:
    """Whether the probabilities of a model are those of a max-margin model that nobody has calibrated.

    Parameters
    ----------
    model : estimator
        Fitted.
    """
    margin = getattr(model, "objective", "") in ("margin", "slack")
    return margin and getattr(model, "temperature_", 1.0) == 1.0
