"""``m3n train``: from a data file to a model file, with its certificate, scores and report."""

from __future__ import annotations

import warnings
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import m3n
from m3n.cli.inputs import Reading, all_scores
from m3n.cli.options import INTERRUPTED, blaming, console, print_json
from m3n.cli.packed import FORMAT, labels_of, packed_at
from m3n.cli.remarks import remarks_on
from m3n.cli.trees import scores_of
from m3n.compiled.progress import clock
from m3n.estimators.chains import scheme_of
from m3n.estimators.coverage import check_enough
from m3n.estimators.files import kind_of
from m3n.estimators.final import proof_of
from m3n.estimators.forms import ALIGNMENTS, SEQUENCES, Form, form_of
from m3n.features import Templates
from m3n.io import Data
from m3n.io.files import Source, name_of, recoded
from m3n.io.places import place_of
from m3n.io.schemes import LabelError, repair
from m3n.run.loop import Status
from m3n.scores import Scores, alignment_scores
from m3n.shards import Shards

TASKS = {  # the estimators of m3n
    "sequences": "SequenceTagger", "labels": "MultilabelClassifier", "graphs": "GraphLabeler",
    "dependencies": "DependencyParser", "phrases": "ConstituencyParser", "alignments": "WordAligner",
}  # fmt: skip
# settings with options of another name
MOST = 0.9  # of the labels: where so many are proven, nobody is told how to prove more
LOST = "Workers were lost. The same command goes on from --checkpoint {}."
OPTIONS = {"projective": "crossing", "single_root": "no-single-root", "boundaries": "no-boundaries"}


@dataclass(frozen=True)
class Files:
    """Where labelled data come from."""

    data: Source  # what is learnt from
    test: Path | None = None  # what the model is scored on
    test_links: Path | None = None  # the links of that
    calibrate: Path | None = None  # what its probabilities are made true on
    encoding: str | None = None  # of all of them
    validation: Path | None = None  # what training is stopped by


@dataclass(frozen=True)
class Material:
    """Labelled data that have been read."""

    files: Files
    data: Data
    held_out: Data | None = None  # to score the model on
    calibration: Data | None = None  # to make its probabilities true
    mended: str = ""  # what was said about labels that were repaired
    validation: Data | None = None  # to stop training by

    @property
    def count(self) -> float:
        """How many examples there are to learn from, or the sum of their weights."""
        if isinstance(self.data.X, Shards):
            return self.data.X.total_weight
        return sum(self.data.weights or [1] * len(self.data.y or []))

    @property
    def watched(self) -> tuple[Any, Any] | None:
        """The pair of inputs and outputs to stop training by."""
        return None if self.validation is None else (self.validation.X, self.validation.y)

    @property
    def labels(self) -> list[list[Any]]:
        """All labels; of shards every one once."""
        return [self.data.X.classes.tolist()] if isinstance(self.data.X, Shards) else self.data.y or []

    def repaired(self, constraints: str | None) -> Material:
        """The same with labels to learn from that are as the constraints want them.

        Parameters
        ----------
        constraints : str or None
            Their name.
        """
        if constraints is None:
            raise ValueError("there is nothing to break: say which scheme by --constraints, such as iob")
        if isinstance(self.data.X, Shards):
            raise ValueError("labels are mended before they are packed: by m3n.io.schemes.repair in Python")
        scheme = scheme_of(constraints)
        try:
            mended = repair(self.data.y or [], scheme)
        except LabelError as error:
            raise ValueError(f"{self.place(error)}: {error.what}; correct it, or leave --repair away") from None
        labels, sequences = _number(mended.positions, "label"), _number(mended.sequences, "sequence")
        said = (
            f"{name_of(self.files.data)}: {labels} in {sequences} mended: read as conlleval does, written as {scheme}"
        )
        return replace(self, data=replace(self.data, y=mended.labels), mended=said)

    def place(self, error: LabelError) -> str:
        """Where a wrong label stands.

        Parameters
        ----------
        error : LabelError
            About the labels to learn from.
        """
        if isinstance(self.data.X, Shards):
            return f"{self.data.X.path}: sequence {error.sequence}, position {error.position} of what was packed"
        y = self.data.y or []
        return place_of(self.files.data, self.data.format, y, error.sequence, error.position)


class Promise(NamedTuple):
    """What sets of answers may miss."""

    alpha: float  # how often the right output
    label_alpha: float | None  # the share of right labels; None for the same

    def check(self, data: Data) -> None:
        """Refuse held-out data that are too few, before the training that would be for nothing.

        Parameters
        ----------
        data : Data
            The held-out data.
        """
        check_enough(sum(map(bool, data.y or [])), min(self.alpha, self.label_alpha or 1.0))


@dataclass(frozen=True)
class Wishes:
    """What was asked for besides the data."""

    model: Path  # where the model goes
    task: str = "sequences"  # what is learnt
    settings: dict[str, Any] = field(default_factory=dict)  # arguments of the estimator
    unlabelled: list[Any] | None = None  # further examples whose outputs are not known
    report: Path | None = None  # where the report goes
    json: bool = False  # print JSON and nothing else
    quiet: bool = False  # print nothing
    promise: Promise | None = None  # how much sets of answers hold, if they are wanted


def read_material(files: Files, reading: Reading, form: Form, promise: Promise | None = None) -> Material:
    """Read what there is.

    Parameters
    ----------
    files : Files
        Where from.
    reading : Reading
        How.
    form : Form
        Of what is learnt.
    promise : Promise or None
        What the data to calibrate on must be enough for.
    """
    with blaming("DATA"):
        shards = packed_at(files.data)
        data = reading.labelled(files.data, form) if shards is None else Data(shards, None, FORMAT)
        if shards is not None and form is not SEQUENCES:
            raise ValueError(f"{files.data} holds packed sequences, not {form.kind}")
    with blaming("--test"):
        if files.test is None and files.test_links is not None:
            raise ValueError("--test-links has the links of --test, which is missing")
        other, links = files.test, replace(reading, links=files.test_links)
        packed = None if other is None else packed_at(other)
        held_out = None if packed is None else Data(packed, None, FORMAT)
        if other is not None and packed is None:
            held_out = links.labelled(recoded(other, files.encoding), form, data)
    with blaming("--calibrate"):
        other = files.calibrate
        if other is not None and form is not SEQUENCES:
            raise ValueError(f"temperatures are fitted for labels of sequences, not for {form.kind}; leave it away")
        calibration = None if other is None else reading.labelled(recoded(other, files.encoding), form, data)
        if calibration is not None and promise is not None:
            promise.check(calibration)
    with blaming("--validation"):
        other = files.validation
        watched = None if other is None else reading.labelled(recoded(other, files.encoding), form, data)
    return Material(files, data, held_out, calibration, validation=watched)


def load_prior(path: Path | None, task: str) -> Any:
    """The model to go on from, if there is one.

    Parameters
    ----------
    path : Path or None
        Its file.
    task : str
        What is learnt.
    """
    model = None if path is None else m3n.load(path)
    if model is not None and kind_of(model) != TASKS[task]:
        raise ValueError(f"{path} holds a {kind_of(model)}, but --task {task} trains a {TASKS[task]}")
    return model


def templates_of(model: Any) -> Templates | None:
    """The templates that a model was trained with, if it was with any.

    Parameters
    ----------
    model : estimator or None
        The model.
    """
    made = getattr(getattr(model, "reader_", None), "vectorizer", None)
    return made.unfitted() if isinstance(made, Templates) else None


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
    return {"tol": 0.0} if form.trees else {"tol": 0.0, "rtol": 0.01, "lam": "5/n"}


def run(material: Material, wishes: Wishes) -> int:
    """Train, save, score and report; returns the exit code.

    Parameters
    ----------
    material : Material
        The data.
    wishes : Wishes
        What was asked for.
    """
    out, data = console(errors=wishes.json), material.data
    shown = not (wishes.json or wishes.quiet)
    if wishes.report is not None and isinstance((material.held_out or data).X, Shards):
        raise ValueError("--report shows examples, which shards do not hold: give it some by --test FILE")
    begin = clock()
    model = make_estimator(wishes.task, wishes.settings, verbose=shown and console(errors=True).is_terminal)
    if shown:
        _announce(out, material, form_of(model), wishes)
    _fit(model, material, wishes)
    remarks = [material.mended] if material.mended else []
    if material.validation is not None:
        remarks.append(_watched(model, material.files.validation))
    model.save(wishes.model)
    if material.calibration is not None:  # which may fail: labels that the model does not know, say
        remarks.append(_calibrated(model, material, wishes.promise))
        model.save(wishes.model)
    trained = clock() - begin
    remarks += remarks_on(model, data, material.count)
    remarks += [LOST.format(wishes.settings.get("checkpoint"))] if model.status_ is Status.LOST else []
    scores = {} if material.held_out is None else _scores(model, material.held_out)
    final = None if material.held_out is None else _final(model, material.held_out)
    covered = _covered(model, material.held_out)
    if wishes.report is not None:
        from m3n.reports import report

        shown_data = material.held_out or data
        report(None, model, shown_data.X, shown_data.y, title=wishes.model.name).save(wishes.report)
    if wishes.json:
        sets = {} if covered is None else {"coverage": asdict(covered)}
        print_json(_summary(model, wishes, trained, scores) | {"final": final} | sets | {"remarks": remarks})
    elif not wishes.quiet:
        _tell(out, model, wishes, trained)
        found = [*(_said(name, score) for name, score in scores.items()), *_proven(final)]
        found += [] if covered is None else [str(covered)]
        _tell_more(out, [*remarks, *(f"{material.files.test}: {words}" for words in found)], wishes.report)
    return INTERRUPTED if model.status_ is Status.INTERRUPTED else 0


def _announce(out: Any, material: Material, form: Form, wishes: Wishes) -> None:
    """What there is to learn from."""
    data = material.data
    if isinstance(data.X, Shards):
        count, labels = int(data.X.sequences.sum()), int(data.X.positions.sum())
        out.print(f"{count:,} sequences with {labels:,} labels to learn from ({_number(len(data.X), 'shard')})")
        return
    out.print(f"{len(data.y or []):,} {form.example}s with {_contents(data, form)} to learn from ({data.format})")
    if wishes.unlabelled is not None:
        out.print(f"{len(wishes.unlabelled):,} {form.example}s more to learn translations from, which comes first")


def _fit(model: Any, material: Material, wishes: Wishes) -> None:
    """Train; labels that break the constraints are named by their line."""
    more: dict[str, Any] = {} if wishes.unlabelled is None else {"unlabelled": wishes.unlabelled}
    if material.data.weights is not None:
        more["sample_weight"] = material.data.weights
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what stopped training early is said below
            model.fit(material.data.X, material.data.y, **more)
    except LabelError as error:
        constraints = wishes.settings["constraints"]
        mend = "leave --constraints away" if constraints == "observed" else "mend all such labels by --repair"
        what = error.what.replace(f"constraints={constraints!r} forbid", f"--constraints {constraints} forbids")
        remedy = f"correct it, {mend}, or choose another scheme"
        raise ValueError(f"{material.place(error)}: {what}; {remedy}") from None


def promised(coverage: float | None, label_coverage: float | None, calibrate: Path | None) -> Promise | None:
    """What sets of answers may miss, if somebody wants such sets.

    Parameters
    ----------
    coverage, label_coverage : float or None
        How much they are to hold.
    calibrate : Path or None
        The data that settle how large they must be.
    """
    if coverage is None and label_coverage is None:
        return None
    if coverage is None or calibrate is None:
        raise ValueError("sets of answers are settled by data: give --calibrate HELD_OUT and --coverage, such as 0.9")
    for share in (coverage, label_coverage):
        if share is not None and not 0.0 < share < 1.0:
            raise ValueError(f"a coverage lies between 0 and 1, such as 0.9, got {share}")
    return Promise(_missed(coverage), None if label_coverage is None else _missed(label_coverage))


def _missed(coverage: float) -> float:
    return round(1.0 - coverage, 12)  # 0.1, and not 0.09999999999999998


def _calibrated(model: Any, material: Material, promise: Promise | None) -> str:
    """Fit the temperature of probabilities, and thresholds of sets if they are wanted; what that brought, in words."""
    data = material.calibration or material.data
    before = model.log_loss(data.X, data.y)
    if promise is None:
        model.calibrate_temperature(data.X, data.y)
    else:
        model.calibrate(data.X, data.y, promise.alpha, label_alpha=promise.label_alpha)
    after, found = model.log_loss(data.X, data.y), model.temperature_
    path = material.files.calibrate
    return f"Probabilities: temperature {found:.3g}, log loss {after:.4f} on {path}, {before:.4f} before"


def _covered(model: Any, data: Data | None) -> Any:
    """How often sets of answers hold the right one on the test data, if there are such sets."""
    if data is None or isinstance(data.X, Shards) or getattr(model, "coverage_", None) is None:
        return None
    return model.coverage_report(data.X, data.y)


def _watched(model: Any, path: Path | None) -> str:
    """What stopping by held-out data has come to, in words."""
    final = [record.metrics["final"] for record in model.trace_ if "final" in record.metrics]
    if final:
        return f"{path}: {final[-1]:.1%} of the labels are proven to be those of the exact optimum"
    scores = [record.metrics["held_out"] for record in model.trace_ if "held_out" in record.metrics]
    return f"{path}: score {max(scores):.2%} at the weights that are kept, {scores[-1]:.2%} at the last ones"


def _number(count: int, what: str) -> str:
    return f"{count:,} {what}{'s' * (count != 1)}"


def _contents(data: Data, form: Form) -> str:
    """What examples are made of, in words."""
    if form is ALIGNMENTS:
        return f"{sum(len(links.sure) for links in data.y or []):,} sure links"
    return f"{sum(map(len, data.X)):,} words" if form.trees else f"{sum(map(len, data.y or [])):,} labels"


def _scores(model: Any, data: Data) -> dict[str, Any]:
    form = form_of(model)
    if isinstance(data.X, Shards):
        return all_scores(*labels_of(data.X, model), model=model)
    if form is ALIGNMENTS:
        return {"links": alignment_scores(data.y or [], model.predict(data.X))}
    if form.trees:
        return scores_of(form, data.y, model.predict(data.X), data.X)
    found, _ = model._answers(data.X, marginals=False)
    return all_scores(data.y or [], found, model=model)


def _final(model: Any, data: Data) -> float | None:
    """The share of predictions that the exact optimum shares for sure; None where that cannot be told."""
    proof = None if isinstance(data.X, Shards) else proof_of(model, data.X)
    return None if proof is None else proof.share


def make_estimator(task: str, settings: dict[str, Any], *, verbose: bool) -> Any:
    """The estimator of the task, with the settings that it has; others must be those of nobody who asked for them.

    Parameters
    ----------
    task : str
        What is learnt.
    settings : dict
        Arguments of its constructor, and of others'.
    verbose : bool
        Whether it shows a progress bar.
    """
    kind = estimator_for(task)
    known = kind._parameter_names()
    given = {name: value for name, value in settings.items() if value is not None}
    strange = [name for name, value in given.items() if name not in known and (value or name in OPTIONS)]
    if strange:
        option = OPTIONS.get(strange[0], strange[0].replace("_", "-"))
        raise ValueError(f"--{option} is not for --task {task}; leave it away")
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
        "temperature": getattr(model, "temperature_", None),
        "scores": {name: score.as_dict() for name, score in scores.items()},
    }


def _tell(out: Any, model: Any, wishes: Wishes, seconds: float) -> None:
    known, status = model.certificate_, model.status_
    share = known.gap / known.primal if known.primal > 0 else 0.0
    known_labels = "" if form_of(model) is ALIGNMENTS else f"{len(model.classes_)} labels, "
    out.print(
        f"{known_labels}{model.n_features_in_:,} attributes; {type(model.solver_).__name__}, "
        f"{model.trace_[-1].passes:.0f} passes, {seconds:.1f} s with reading features"
    )
    if status is Status.INTERRUPTED:
        out.print("Interrupted: the best weights so far are kept.")
    elif status is Status.FINAL:
        out.print("Trained until enough predictions were final.")
    elif status is not Status.TOLERANCE:
        out.print(f"Stopped early: {status}.")
    out.print(
        f"Certificate: objective {known.primal:.5g}, and no weights can get below {known.dual:.5g}, "
        f"which is {share:.1%} less."
    )
    out.print(f"Model: {wishes.model}")


def _tell_more(out: Any, remarks: list[str], report: Path | None) -> None:
    """What is to be thought of, what became of other data, and where more is said."""
    for remark in [*remarks, *([] if report is None else [f"Report: {report}"])]:
        out.print(remark)


def _proven(final: float | None) -> list[str]:
    """The share of final predictions in words, if it is known."""
    if final is None:
        return []
    more = "; a smaller --rtol proves more" if final < MOST else ""
    return [f"{final:.1%} of the labels are proven to be those of the exact optimum{more}"]


def _said(name: str, score: Any) -> str:
    if not isinstance(score, Scores):
        return f"{score}" if name in ("words", "brackets", "links") else f"{name}: {score}"
    return f"chunk F1 {score.f1:.2%}" if name == "chunks" else f"labels right {score.accuracy:.2%}"
