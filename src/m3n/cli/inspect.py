"""``m3n inspect``: what a model file holds: labels, weights, transitions, and how training went."""

from __future__ import annotations

from typing import Any

import numpy as np

from m3n.cli.options import console, print_json
from m3n.estimators.forms import form_of
from m3n.estimators.model_summary import summary, top_weights
from m3n.estimators.trained import Trained

LONGEST = 100  # characters of a value; --json has all of it
WIDEST = 24  # labels of a table that still fits a terminal


def run(model: Any, top: int, label: str | None, as_json: bool) -> None:
    """Print what there is to know.

    Parameters
    ----------
    model : estimator
        A fitted model.
    top : int
        How many weights of every label.
    label : str or None
        Only this label.
    as_json : bool
        Whether to print JSON.
    """
    if not isinstance(model, Trained):
        _tell_translations(model, label, as_json)
        return
    known = summary(model)
    named = top and model._linear and model._has_names
    weights = top_weights(model, top) if named else {name: [] for name in known["labels"]}
    if label is not None:
        labels = {str(name): name for name in weights}
        if label not in labels:
            raise ValueError(f"the model does not know the label {label!r}; it knows {', '.join(labels)}")
        weights = {labels[label]: weights[labels[label]]}
    if as_json:
        print_json(known | {"weights": {str(name): listed for name, listed in weights.items()}, **_tables(model)})
        return
    out = console()
    print_facts(out, known)
    for name, listed in weights.items() if any(weights.values()) else ():
        out.print(f"\n{name}")
        for attribute, weight in listed:
            out.print(f"  {weight:+10.4f}  {attribute}")
    table = form_of(model).table
    if label is None and table is not None:
        _print_table(out, table.rstrip("_"), model.classes_, getattr(model, table))


def _tell_translations(model: Any, label: str | None, as_json: bool) -> None:
    """What there is to know of a model without weights: an aligner that has learnt from plain text."""
    if label is not None:
        raise ValueError(f"a {type(model).__name__} has no labels")
    learnt = model.model_
    known = {
        "kind": type(model).__name__,
        "source_words": len(learnt.lexica.source),
        "target_words": len(learnt.lexica.target),
        "pairs_of_words": len(learnt.types),
        "log_likelihoods": dict(zip(("forward", "backward"), model.likelihoods_[-1], strict=True)),
        "parameters": model._changed(),
    }
    if as_json:
        print_json(known)
    else:
        print_facts(console(), known)


def print_facts(out: Any, known: dict[str, Any]) -> None:
    """Print what is known, a line each.

    Parameters
    ----------
    out : Console
        Where to.
    known : dict
        What by its name.
    """
    for name, value in known.items():
        if value is not None:
            out.print(f"{name.replace('_', ' ')}: {_text(value)}")


def _tables(model: Any) -> dict[str, Any]:
    """What is learnt about labels, and not about attributes: transitions, starts, ends, intercepts, ..."""
    names = [entry.name for entry in model._arrays() if entry.shape[0] == "labels"]
    return {name.rstrip("_"): getattr(model, name).tolist() for name in names}


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_text(entry)}" for name, entry in value.items()) or "-"
    if isinstance(value, (list, tuple)):
        return ", ".join(map(str, value))
    text = f"{value:.6g}" if isinstance(value, float) else f"{value:,}" if type(value) is int else str(value)
    return text if len(text) <= LONGEST else text[:LONGEST] + " ..."


def _print_table(out: Any, title: str, classes: np.ndarray, scores: np.ndarray) -> None:
    """From the label of a row to the label of a column; a long list instead of a table that does not fit."""
    names = [str(name) for name in classes.tolist()]
    out.print(f"\n{title}")
    if len(names) > WIDEST:
        order = abs(scores).ravel().argsort()[::-1][: 4 * WIDEST]
        for k in order.tolist():
            a, b = divmod(k, len(names))
            out.print(f"  {scores[a, b]:+10.4f}  {names[a]} -> {names[b]}")
        return
    from rich.table import Table

    table = Table("from \\ to", *names, box=None, pad_edge=False)
    for name, row in zip(names, scores, strict=True):
        table.add_row(name, *(f"{weight:+.2f}" for weight in row))
    out.print(table)
