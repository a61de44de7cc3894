"""Names of the columns of data frames: what ``fit`` saw, later inputs must have, in the same order."""

from __future__ import annotations

import warnings
from typing import Any

SHOWN = 5  # names in a message


def column_names(X: Any) -> list[str] | None:
    """The names of a data frame's columns; None for everything else, and for columns that have numbers."""
    columns = getattr(X, "columns", None)
    if columns is None:
        return None
    names = list(columns)
    texts = [isinstance(name, str) for name in names]
    if any(texts) and not all(texts):
        strange = names[texts.index(False)]
        raise TypeError(
            f"Feature names are only supported if all of them are strings, but X has the column {strange!r}; "
            "rename it, for example by X.columns = X.columns.astype(str)"
        )
    return names if names and all(texts) else None


def check_columns(known: list[str] | None, X: Any) -> None:
    """Refuse other columns than ``fit`` saw, or another order; warn where names are on one side only."""
    names = column_names(X)
    if (names is None) != (known is None):
        sides = ("X has feature names, but the model", "without") if known is None else (
            "X does not have valid feature names, but the model", "with")  # fmt: skip
        warnings.warn(f"{sides[0]} was fitted {sides[1]} feature names", UserWarning, stacklevel=4)
    if names is None or known is None or names == known:
        return
    new, missing = ([name for name in some if name not in others] for some, others in ((names, known), (known, names)))
    text = "The feature names should match those that were passed during fit.\n"
    text += _listed("Feature names unseen at fit time", new) + _listed(
        "Feature names seen at fit time, yet now missing", missing
    )
    if not (new or missing):
        text += "Feature names must be in the same order as they were in fit.\n"
    raise ValueError(text)


def _listed(title: str, names: list[str]) -> str:
    shown = [*sorted(names)[:SHOWN], *(["..."] if len(names) > SHOWN else [])]
    return f"{title}:\n" + "".join(f"- {name}\n" for name in shown) if names else ""
