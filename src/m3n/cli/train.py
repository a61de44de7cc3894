"""``m3n train``: from a data file to a model file, with its certificate, scores and report."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import m3n
from m3n.cli.inputs import all_scores
from m3n.cli.options import INTERRUPTED, console, print_json
from m3n.cli.trees import scores_of
from m3n.estimators.forms import ALIGNMENTS, Form, form_of
from m3n.io import Data
from m3n.run.loop import Status
from m3n.scores import Scores, alignment_scores

TASKS = {  # the estimators of m3n
    "sequences": "SequenceTagger", "labels": "MultilabelClassifier", "graphs": "GraphLabeler",
    "dependencies": "DependencyParser", "phrases": "ConstituencyParser", "alignments": "WordAligner",
}  # fmt: skip
OPTIONS = {"projective": "crossing", "single_root": "no-single-root"}  # settings with options of another name


@dataclass(frozen=True)
class Wishes:
    """What was asked for besides the data."""

    model: Path  # where the model goes
    task: str = "sequences"  # what is learnt
    settings: dict[str, Any] = field(default_factory=dict)  # arguments of the estimator
    unlabelled: list[Any] | None = None  # further examples whose outputs are not known
    test: Path | None = None  # labelled data to score the model on
    report: Path | None = None  # where the report goes
    json: bool = False  # print JSON and nothing else
    quiet: bool = False  # print nothing


def estimator_for(task: str) -> Any:
    """The estimator of a task.

    Parameters
    ----------
    task : str
        Its name.
    """
    if task not in TASKS:
        raise ValueError(f"unknown task {task!r}; choose from {', '.join(TASKS)}")
    return getattr(m3n, TASKS[task])


def usual_settings(form: Form) -> dict[str, Any]:
    """Settings of the command where none are given; those of estimators that know better are their own.

    Parameters
    ----------
    form : Form
        Of what is learnt.
    """
    if form is ALIGNMENTS:
        return {}
    return {"tol": 0.0} if form.trees else {"tol": 0.0, "rtol": 0.05, "lam": "5/n"}


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
    verbose = shown and console(errors=True).is_terminal
    model = _estimator(wishes, verbose)
    form = form_of(model)
    if shown:
        out.print(f"{len(data.y or []):,} {form.example}s with {_contents(data, form)} to learn from ({data.format})")
    more: dict[str, Any] = {} if wishes.unlabelled is None else {"unlabelled": wishes.unlabelled}
    if shown and more:
        out.print(f"{len(more['unlabelled']):,} {form.example}s more to learn translations from, which comes first")
    if data.weights is not None:
        more["sample_weight"] = data.weights
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what stopped training early is said below
        model.fit(data.X, data.y, **more)
    model.save(wishes.model)
    trained = time.perf_counter() - begin
    scores = {} if held_out is None else _scores(model, held_out)
    if wishes.report is not None:
        from m3n.reports import report

        shown_data = held_out or data
        report(None, model, shown_data.X, shown_data.y, title=wishes.model.name).save(wishes.report)
    if wishes.json:
        print_json(_summary(model, wishes, trained, scores))
    elif not wishes.quiet:
        _tell(out, model, wishes, trained, scores)
    return INTERRUPTED if model.status_ is Status.INTERRUPTED else 0


def _contents(data: Data, form: Form) -> str:
    """What examples are made of, in words."""
    if form is ALIGNMENTS:
        return f"{sum(len(links.sure) for links in data.y or []):,} sure links"
    return f"{sum(map(len, data.X)):,} words" if form.trees else f"{sum(map(len, data.y or [])):,} labels"


def _scores(model: Any, data: Data) -> dict[str, Any]:
    form = form_of(model)
    if form is ALIGNMENTS:
        return {"links": alignment_scores(data.y or [], model.predict(data.X))}
    if form.trees:
        return scores_of(form, data.y, model.predict(data.X), data.X)
    found, _ = model._answers(data.X, marginals=False)
    return all_scores(data.y or [], found, model=model)


def _estimator(wishes: Wishes, verbose: bool) -> Any:
    """The estimator of the task, with the settings that it has; others must be those of nobody who asked for them."""
    kind = estimator_for(wishes.task)
    known = kind._parameter_names()
    given = {name: value for name, value in wishes.settings.items() if value is not None}
    strange = [name for name, value in given.items() if name not in known and (value or name in OPTIONS)]
    if strange:
        option = OPTIONS.get(strange[0], strange[0].replace("_", "-"))
        raise ValueError(f"--{option} is not for --task {wishes.task}; leave it away")
    return kind(verbose=verbose, **{name: value for name, value in given.items() if name in known})


def _summary(model: Any, wishes: Wishes, seconds: float, scores: dict[str, Any]) -> dict[str, Any]:
    known, last = model.certificate_, model.trace_[-1]
    return {
        "model": str(wishes.model),
        "status": str(model.status_),
        "primal": known.primal,
        "dual": known.dual,
        "gap": known.gap,
        "lam": model.lam_,
        "solver": type(model.solver_).__name__,
        "passes": last.passes,
        "seconds": seconds,
        "labels": model.classes_.tolist(),
        "attributes": model.n_features_in_,
        "scores": {name: score.as_dict() for name, score in scores.items()},
    }


def _tell(out: Any, model: Any, wishes: Wishes, seconds: float, scores: dict[str, Any]) -> None:
    known, status = model.certificate_, model.status_
    share = known.gap / known.primal if known.primal > 0 else 0.0
    known_labels = "" if form_of(model) is ALIGNMENTS else f"{len(model.classes_)} labels, "
    out.print(
        f"{known_labels}{model.n_features_in_:,} attributes; {type(model.solver_).__name__}, "
        f"{model.trace_[-1].passes:.0f} passes, {seconds:.1f} s with reading features"
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
        out.print(f"{wishes.test}: {_said(name, score)}")
    if wishes.report is not None:
        out.print(f"Report: {wishes.report}")


def _said(name: str, score: Any) -> str:
    if not isinstance(score, Scores):
        return f"{score}" if name in ("words", "brackets", "links") else f"{name}: {score}"
    return f"chunk F1 {score.f1:.2%}" if name == "chunks" else f"labels right {score.accuracy:.2%}"
