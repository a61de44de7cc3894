"""``m3n inspect``: what a model file holds: labels, weights, transitions, and how training went."""

from __future__ import annotations

from typing import Any

from m3n.cli.options import console, print_json
from m3n.estimators.model_summary import summary, top_weights

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
    known, weights = summary(model), top_weights(model, top)
    if label is not None:
        named = {str(name): name for name in weights}
        if label not in named:
            raise ValueError(f"the model does not know the label {label!r}; it knows {', '.join(named)}")
        weights = {named[label]: weights[named[label]]}
    if as_json:
        print_json(known | {"weights": {str(name): listed for name, listed in weights.items()}, **_tables(model)})
        return
    out = console()
    for name, value in known.items():
        if value is not None:
            out.print(f"{name.replace('_', ' ')}: {_text(value)}")
    for name, listed in weights.items():
        out.print(f"\n{name}")
        for attribute, weight in listed:
            out.print(f"  {weight:+10.4f}  {attribute}")
    if label is None and hasattr(model, "transitions_"):
        _print_transitions(out, model)


def _tables(model: Any) -> dict[str, Any]:
    names = ("transitions_", "start_", "end_")
    return {name.rstrip("_"): getattr(model, name).tolist() for name in names if hasattr(model, name)}


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_text(entry)}" for name, entry in value.items()) or "-"
    if isinstance(value, (list, tuple)):
        return ", ".join(map(str, value))
    text = f"{value:.6g}" if isinstance(value, float) else f"{value:,}" if type(value) is int else str(value)
    return text if len(text) <= LONGEST else text[:LONGEST] + " ..."


def _print_transitions(out: Any, model: Any) -> None:
    """From the label of a row to the label of a column; a long list instead of a table that does not fit."""
    names = [str(name) for name in model.classes_.tolist()]
    out.print("\ntransitions")
    if len(names) > WIDEST:
        order = abs(model.transitions_).ravel().argsort()[::-1][: 4 * WIDEST]
        for k in order.tolist():
            a, b = divmod(k, len(names))
            out.print(f"  {model.transitions_[a, b]:+10.4f}  {names[a]} -> {names[b]}")
        return
    from rich.table import Table

    table = Table("from \\ to", *names, box=None, pad_edge=False)
    for name, row in zip(names, model.transitions_, strict=True):
        table.add_row(name, *(f"{weight:+.2f}" for weight in row))
    out.print(table)
