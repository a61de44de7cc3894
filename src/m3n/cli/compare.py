"""``m3n compare``: several solvers on one problem: print the table, write JSON and a picture.

The problem comes from the digits that the package makes, or from a file in a format that it knows: sequences, or trees
with the features of our parsers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from scipy.sparse import csr_array

from m3n import losses
from m3n.cli.options import INTERRUPTED
from m3n.cli.settings import fitting, seeded
from m3n.cli.trees import read_trees
from m3n.comparison import Comparison, compare, label_solvers
from m3n.comparison.table import print_table
from m3n.datasets import digit_strings
from m3n.estimators import ConstituencyParser, DependencyParser
from m3n.estimators.forms import ARCS, PHRASES
from m3n.estimators.inputs import read_labels
from m3n.estimators.training import OBJECTIVES
from m3n.features import Dense, FeatureMap, Sparse, Templates, chain_features
from m3n.io import Data
from m3n.io.columns import read_columns
from m3n.io.files import Source, hold, name_of, write_atomically
from m3n.io.formats import detect
from m3n.io.letters import ALPHABET, read_letters
from m3n.problem import Problem
from m3n.solvers import Solver
from m3n.structures import Chain

BITS = 16  # arcs and labels have 2^16 weights each: some solvers keep many vectors of them
FOLDS = tuple(range(1, 10))  # the usual training folds of the OCR words; fold 0 is for testing


@dataclass(frozen=True)
class Task:
    """Labelled sequences, ready to become a problem.

    Attributes
    ----------
    name : str
        What they are, for a headline.
    node : FeatureMap
        The map of the positions.
    labels : list of lists of int
        Label numbers of every sequence.
    classes : int
        How many labels there are.
    """

    name: str
    node: FeatureMap
    labels: list[list[int]]
    classes: int

    @property
    def count(self) -> int:
        """How many examples there are."""
        return len(self.labels)

    @property
    def examples(self) -> str:
        """What there is one of for every example, for a headline."""
        return f"sequences, {self.classes} labels"

    def first(self, limit: int | None) -> Task:
        """The first sequences only; all of them without a limit."""
        if limit is None or limit >= len(self.labels):
            return self
        labels = self.labels[:limit]
        node = self.node.select((slice(0, sum(map(len, labels))),))
        return Task(f"{self.name}, first {limit}", node, labels, self.classes)

    def problem(self, lam: float, loss: str | None, objective: str, n_jobs: int | None) -> Problem:
        """The chain problem; without a loss that of the objective: the share of wrong labels, or none for a CRF."""
        _check_names(loss, objective)
        kind = OBJECTIVES[objective]
        chosen = losses.BY_NAME[loss]() if loss else losses.NormalizedHamming() if kind.has_loss else None
        structure = Chain([len(sequence) for sequence in self.labels], self.classes)
        features = chain_features(self.node, self.classes)
        settings: dict[str, Any] = {
            "lam": lam,
            "temperature": kind.temperature,
            "rescale": kind.rescale,
            "n_jobs": n_jobs,
        }
        return Problem(structure, features, self.labels, loss=chosen, **settings)


@dataclass(frozen=True)
class TreeTask:
    """Sentences with their trees, ready to become a problem.

    Attributes
    ----------
    name : str
        What they are, for a headline.
    data : Data
        The sentences and their trees.
    """

    name: str
    data: Data

    @property
    def count(self) -> int:
        """How many examples there are."""
        return len(self.data.X)

    @property
    def examples(self) -> str:
        """What there is one of for every example, for a headline."""
        return "dependency trees" if self.data.format == "conllu" else "phrase structure trees"

    def first(self, limit: int | None) -> TreeTask:
        """The first trees only; all of them without a limit."""
        if limit is None or limit >= len(self.data.X):
            return self
        trees = (self.data.y or [])[:limit]
        return TreeTask(f"{self.name}, first {limit}", Data(self.data.X[:limit], trees, self.data.format))

    def problem(self, lam: float, loss: str | None, objective: str, n_jobs: int | None) -> Problem:
        """The problem of a parser; without a loss the share of wrong parts, or none for a CRF."""
        _check_names(loss, objective)
        settings: dict[str, Any] = {
            "lam": lam,
            "loss": loss or ("hamming" if objective == "crf" else "normalized_hamming"),  # a CRF ignores its default
            "objective": "softmax_margin" if loss and objective == "crf" else objective,
            "n_jobs": n_jobs,
        }
        dependencies = self.data.format == "conllu"
        parser = DependencyParser(bits=BITS, **settings) if dependencies else ConstituencyParser(**settings)
        return parser._training_problem(self.data.X, self.data.y)


def _check_names(loss: str | None, objective: str) -> None:
    if objective not in OBJECTIVES:
        raise ValueError(f"unknown objective {objective!r}; choose from {', '.join(OBJECTIVES)}")
    if loss is not None and loss not in losses.BY_NAME:
        raise ValueError(f"unknown loss {loss!r}; choose from {', '.join(losses.BY_NAME)}")


def load_data(path: Path | None, seed: int = 0, folds: list[int] | None = None) -> Task | TreeTask:
    """The noisy digit strings without a path, else the sequences or trees of a file.

    Parameters
    ----------
    path : Path or None
        A file ``letter.data``, a column file, CoNLL-U, or trees in brackets.
    seed : int
        Seed of the digit strings.
    folds : list of int, optional
        Which folds of ``letter.data`` to take; the default is 1 to 9.
    """
    source = None if path is None else hold(path)
    kind = "digits" if source is None else detect(source)
    if folds is not None and kind != "letters":
        raise ValueError(f"only letter.data has folds; leave --folds away for {path or 'the digit strings'}")
    if source is None:
        train, _ = digit_strings(seed=seed)
        return Task(f"noisy digit strings (seed {seed})", Dense(np.concatenate(train.inputs), 10), train.labels, 10)
    if kind in ("conllu", "brackets"):
        form = ARCS if kind == "conllu" else PHRASES
        return TreeTask(_title(source), read_trees(source, form, kind))
    if kind not in ("letters", "columns"):
        known = "letter.data, a column file, CoNLL-U or brackets"
        raise ValueError(f"solvers are compared on {known}, but {name_of(source)} is of {kind}")
    return _letters(source, folds or FOLDS) if kind == "letters" else _columns(source)


def _letters(path: Source, folds: list[int] | tuple[int, ...]) -> Task:
    read = read_letters(path, folds)
    pixels = np.hstack([read.pixels, np.ones((len(read.pixels), 1))])  # three quarters of it are zero
    return Task(f"{_title(path)}, folds {_ranges(folds)}", Sparse(csr_array(pixels), len(ALPHABET)), read.words, 26)


def _columns(path: Source) -> Task:
    read = read_columns(path)
    classes, labels = read_labels(read.labels, read.lengths)
    matrix = _plain_templates(len(read.columns)).fit_transform(read.with_column(str.lower))
    return Task(_title(path), Sparse(matrix, len(classes)), labels, len(classes))


def _title(path: Source) -> str:
    return Path(name_of(path)).name


def _plain_templates(columns: int) -> Templates:
    """All columns and the word in lower case, which stands behind them; the same of both neighbours; a constant."""
    names = [*map(str, range(columns)), "lower"]
    places = {0: "", -1: "-1:", 1: "+1:"}
    patterns = [f"{at}{name}=%x[{row},{k}]" for row, at in places.items() for k, name in enumerate(names)]
    return Templates(["bias", *patterns], padding="none")


def _ranges(numbers: list[int] | tuple[int, ...]) -> str:
    first, last = numbers[0], numbers[-1]
    whole = list(numbers) == list(range(first, last + 1)) and first < last
    return f"{first}-{last}" if whole else ", ".join(map(str, numbers))


@dataclass(frozen=True)
class Wanted:
    """What was asked for.

    Attributes
    ----------
    solvers : list of Solver
        Who takes part; empty for everyone who can.
    tol, max_passes, max_seconds : float
        Goal and budget of each.
    seed : int
        Seed of solvers that draw random numbers.
    json, plot : Path or None
        Files to write.
    quiet : bool
        No progress bar.
    """

    solvers: list[Solver[Any]]
    tol: float
    max_passes: float
    max_seconds: float
    seed: int = 0
    json: Path | None = None
    plot: Path | None = None
    quiet: bool = False


def run(problem: Problem, task: Task | TreeTask, wanted: Wanted) -> int:
    """Run the solvers and report; returns the exit code.

    Parameters
    ----------
    problem : Problem
        What to minimise.
    task : Task or TreeTask
        Where it came from.
    wanted : Wanted
        What was asked for.
    """
    console = Console()
    labelled = label_solvers(wanted.solvers or fitting(problem))
    console.print(_headline(problem, task), highlight=False, markup=False, soft_wrap=True)
    result = compare(
        problem,
        {name: seeded(solver, wanted.seed) for name, solver in labelled.items()},
        tol=wanted.tol,
        max_passes=wanted.max_passes,
        max_seconds=wanted.max_seconds,
        progress=not wanted.quiet,
    )
    result = replace(result, problem={"data": task.name, **result.problem})
    print_table(result, console)
    _write(result, wanted)
    if result.interrupted:
        return INTERRUPTED
    return 1 if result.contradiction or not any(entry.status for entry in result.entries) else 0


def check_picture(path: Path) -> None:
    """Refuse a path to which no picture can be written.

    Parameters
    ----------
    path : Path
        Where to write it.
    """
    if find_spec("matplotlib") is None:
        raise ValueError('a picture needs matplotlib; `pip install "m3n[plot]"` brings it')
    from matplotlib.backend_bases import FigureCanvasBase

    if path.suffix.lstrip(".").lower() not in FigureCanvasBase.get_supported_filetypes():
        raise ValueError(f"unknown kind of picture {path.suffix!r}; let the name end in .png, .pdf or .svg")


def _headline(problem: Problem, task: Task | TreeTask) -> str:
    threads = problem.threads.count
    return (
        f"{task.name}: {problem.n} {task.examples}, {problem.dim:,} weights, lam = {problem.lam:g}, "
        f"{_kind(problem.temperature, problem.rescale)}, {threads} thread{'s' * (threads > 1)}"
    )


def _kind(temperature: float, rescale: str) -> str:
    """The kind of objective; a CRF may have a loss in its exponent."""
    return "CRF" if temperature else "M3N" if rescale == "margin" else "slack-rescaled M3N"


def _write(result: Comparison, wanted: Wanted) -> None:
    if wanted.json is not None:
        result.save_json(wanted.json)
    if wanted.plot is not None:
        write_atomically(wanted.plot, _picture(result, wanted.plot.suffix.lstrip(".").lower()))


def _picture(result: Comparison, kind: str) -> bytes:
    from matplotlib.figure import Figure

    from m3n.reports import comparison_size, plot_comparison

    figure = Figure(figsize=comparison_size(result), layout="constrained")
    plot_comparison(result, figure)
    about = result.problem
    objective = _kind(about["temperature"], about["rescale"])
    figure.suptitle(f"{about['data']}, {objective}, lam = {about['lam']:.3g}", fontsize=10)
    content = BytesIO()
    figure.savefig(content, format=kind, dpi=150)
    return content.getvalue()
