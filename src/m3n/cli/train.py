"""``m3n train``: from a data file to a model file, with its certificate, scores and report."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from m3n.cli.options import INTERRUPTED, console, print_json
from m3n.cli.sequences import Reading, all_scores
from m3n.compiled.sweeps.sequential import sweep
from m3n.estimators import SequenceTagger
from m3n.features import Templates
from m3n.io import Data
from m3n.run.loop import Status
from m3n.scores import Scores


@dataclass(frozen=True)
class Wishes:
    """What was asked for besides the data."""

    model: Path  # where the model goes
    reading: Reading  # how files are read
    templates: Templates | None = None  # which attributes to make of columns
    settings: dict[str, Any] = field(default_factory=dict)  # arguments of ``SequenceTagger``
    test: Path | None = None  # labelled data to score the model on
    report: Path | None = None  # where the report goes
    json: bool = False  # print JSON and nothing else
    quiet: bool = False  # print nothing


def run(data: Data, held_out: Data | None, wishes: Wishes) -> int:
    """Train, save, score and report; returns the exit code.

    Parameters
    ----------
    data : Data
        The training data.
    held_out : Data or None
        Other data, to score the model on.
    wishes : Wishes
        What was asked for.
    """
    out = console(errors=wishes.json)
    shown = not (wishes.json or wishes.quiet)
    begin = time.perf_counter()
    if shown:
        tokens = sum(map(len, data.y or []))
        out.print(f"{len(data.y or []):,} sequences with {tokens:,} labels to learn from ({data.format})")
        if _first_time():
            out.print("The first run compiles for this processor, which takes a minute; later runs begin at once.")
    verbose = shown and console(errors=True).is_terminal
    tagger = SequenceTagger(templates=wishes.templates, verbose=verbose, **wishes.settings)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what stopped training early is said below
        tagger.fit(data.X, data.y)
    tagger.save(wishes.model)
    trained = time.perf_counter() - begin
    scores = {} if held_out is None else all_scores(held_out.y or [], tagger.predict(held_out.X))
    if wishes.report is not None:
        _report(tagger, held_out or data, wishes.report, wishes.model.name)
    if wishes.json:
        print_json(_summary(tagger, wishes, trained, scores))
    elif not wishes.quiet:
        _tell(out, tagger, wishes, trained, scores)
    return INTERRUPTED if tagger.status_ is Status.INTERRUPTED else 0


def _first_time() -> bool:
    """Whether there is no compiled kernel on disk yet."""
    folder = sweep.stats.cache_path
    return folder is not None and not any(Path(folder).glob("*.nbi"))


def _report(tagger: SequenceTagger, data: Data, path: Path, name: str) -> None:
    from m3n.reports import report

    report(None, tagger, data.X, data.y, title=name).save(path)


def _summary(tagger: SequenceTagger, wishes: Wishes, seconds: float, scores: dict[str, Scores]) -> dict[str, Any]:
    known, last = tagger.certificate_, tagger.trace_[-1]
    return {
        "model": str(wishes.model),
        "status": str(tagger.status_),
        "primal": known.primal,
        "dual": known.dual,
        "gap": known.gap,
        "lam": tagger.lam_,
        "solver": type(tagger.solver_).__name__,
        "passes": last.passes,
        "seconds": seconds,
        "labels": tagger.classes_.tolist(),
        "attributes": tagger.n_features_in_,
        "scores": {name: score.as_dict() for name, score in scores.items()},
    }


def _tell(out: Any, tagger: SequenceTagger, wishes: Wishes, seconds: float, scores: dict[str, Scores]) -> None:
    known, status = tagger.certificate_, tagger.status_
    share = known.gap / known.primal if known.primal > 0 else 0.0
    out.print(
        f"{len(tagger.classes_)} labels, {tagger.n_features_in_:,} attributes; {type(tagger.solver_).__name__}, "
        f"{tagger.trace_[-1].passes:.0f} passes, {seconds:.1f} s with reading features"
    )
    if status is Status.INTERRUPTED:
        out.print("Interrupted: the best weights so far are kept.")
    elif status is not Status.TOLERANCE:
        out.print(f"Stopped early: {status}.")
    out.print(
        f"Certificate: objective {known.primal:.5g}, and no weights can get below {known.dual:.5g}, "
        f"which is {share:.1%} less."
    )
    out.print(f"Model: {wishes.model}")
    for name, score in scores.items():
        what = f"chunk F1 {score.f1:.2%}" if name == "chunks" else f"labels right {score.accuracy:.2%}"
        out.print(f"{wishes.test}: {what}")
    if wishes.report is not None:
        out.print(f"Report: {wishes.report}")
