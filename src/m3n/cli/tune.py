"""``m3n tune``: which settings, by scores on data that are held out, and what is proven about lam."""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import m3n
from m3n.cli.inputs import Reading, templates_for
from m3n.cli.options import INTERRUPTED, blaming, console, print_json
from m3n.cli.packed import packed_at
from m3n.cli.settings import parse_strength
from m3n.cli.train import make_estimator
from m3n.estimators.forms import Form
from m3n.io import Data
from m3n.io.files import Source, name_of, recoded


@dataclass(frozen=True)
class Wishes:
    """What was asked for besides the data."""

    task: str  # what is learnt
    settings: dict[str, Any] = field(default_factory=dict)  # arguments of the estimator
    grid: dict[str, list[Any]] = field(default_factory=dict)  # values that are tried
    search: dict[str, Any] = field(default_factory=dict)  # arguments of ``m3n.tune``
    model: Path | None = None  # where the model goes
    report: Path | None = None  # where the report goes
    json: bool = False  # print JSON and nothing else
    quiet: bool = False  # print nothing


def read_data(source: Source, reading: Reading, form: Form) -> Data:
    """The labelled examples; those that cannot be cut into folds are refused.

    Parameters
    ----------
    source : Path or Held
        Where from.
    reading : Reading
        How.
    form : Form
        Of what is learnt.
    """
    if packed_at(source) is not None:
        raise ValueError(f"{name_of(source)} holds packed sequences, which are not cut into folds: give a file")
    data = reading.labelled(source, form)
    if data.weights is not None:
        raise ValueError(f"{name_of(source)} gives sequences weights, which tune does not know")
    return data


def parse_lams(text: str, count: int) -> int | list[float]:
    """A number of values, or values such as ``10/n,1/n``.

    Parameters
    ----------
    text : str
        What was typed.
    count : int
        How many examples there are.
    """
    if text.strip().isdecimal():
        return int(text)
    return [parse_strength(item, count) for item in text.split(",")]


def parse_templates(X: Any, paths: list[Path] | None, encoding: str | None) -> list[Any]:
    """The templates to try; for columns the usual ones if none are given.

    Parameters
    ----------
    X : sequences
        What was read.
    paths : list of Path or None
        Template files.
    encoding : str or None
        Theirs.
    """
    return [templates_for(X, recoded(path, encoding)) for path in paths] if paths else [templates_for(X, None)]


def chosen(values: dict[str, list[Any]]) -> tuple[dict[str, Any], dict[str, list[Any]]]:
    """What is settled, and what is to be tried: parameters with several values.

    Parameters
    ----------
    values : mapping
        Values by parameter.
    """
    settled = {name: given[0] for name, given in values.items() if len(given) == 1}
    return settled, {name: given for name, given in values.items() if len(given) > 1}


def run(data: Data, validation: Data | None, wishes: Wishes) -> int:
    """Search, save and report; returns the exit code.

    Parameters
    ----------
    data : Data
        What is learnt from.
    validation : Data or None
        What models are scored on, if there is something besides.
    wishes : Wishes
        What was asked for.
    """
    try:
        found = _search(data, validation, wishes)
    except KeyboardInterrupt:
        console(errors=True).print("Interrupted: nothing has been chosen.")
        return INTERRUPTED
    _write(found, data, validation, wishes)
    if wishes.json:
        print_json(found.as_dict() | {"model": None if wishes.model is None else os.fspath(wishes.model)})
    elif not wishes.quiet:
        _tell(found, wishes)
    return 0


def _search(data: Data, validation: Data | None, wishes: Wishes) -> Any:
    """The search itself, with a bar on a terminal."""
    verbose = not (wishes.json or wishes.quiet) and console(errors=True).is_terminal
    estimator = make_estimator(wishes.task, wishes.settings, verbose=False)
    held_out = None if validation is None else (validation.X, validation.y)
    refit = wishes.model is not None or wishes.report is not None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # gaps are in the table
        return m3n.tune(
            estimator, data.X, data.y, grid=wishes.grid, validation=held_out, verbose=verbose, refit=refit,
            **wishes.search,
        )  # fmt: skip


def _tell(found: Any, wishes: Wishes) -> None:
    out = console()
    out.print(f"{found}\n{found.seconds:.1f} s, {found.passes:.0f} passes")
    for name, path in (("Model", wishes.model), ("Report", wishes.report)):
        if path is not None:
            out.print(f"{name}: {path}")


def _write(found: Any, data: Data, validation: Data | None, wishes: Wishes) -> None:
    if wishes.model is not None:
        found.estimator.save(wishes.model)
    if wishes.report is not None:
        with blaming("--report"):
            seen = validation or data
            name = (wishes.model or wishes.report).name
            page = m3n.report(None, found.estimator, seen.X, seen.y, title=name, tuning=found)
            page.save(wishes.report)
