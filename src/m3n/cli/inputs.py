"""Examples for commands: read a file as the model wants it, and score its labels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

from m3n.cli.alignments import read_pairs
from m3n.cli.options import console
from m3n.cli.predicted import are_probabilities
from m3n.cli.trees import read_trees
from m3n.estimators.forms import ALIGNMENTS, ARCS, GRAPHS, SEQUENCES, SETS, Form, form_of
from m3n.estimators.graph_inputs import GraphReader
from m3n.estimators.inputs import SequenceReader
from m3n.features import Templates, word_templates
from m3n.io import Data, DataFileError, Sentences, detect, read_graphs, read_label_sets, read_sequences, read_template
from m3n.io.detection import recognise
from m3n.io.files import STANDARD, Held, Source, hold, name_of
from m3n.io.schemes import READ
from m3n.io.streams import batches
from m3n.scores import Scores, chunk_scores, set_scores, token_scores
from m3n.scores.labels import are_chunks

FORMATS = {GRAPHS: "json_lines", SETS: "svmlight"}  # of what is not sequences
TASK_OF = {"conllu": "dependencies", "brackets": "phrases", "parallel": "alignments"}  # what is learnt from a format
TAB = "\t"
SCHEMES = ("auto", *READ, "none")


def task_of(source: Source, format: str | None, delimiter: str | None) -> str:
    """What to learn from a file: trees of its kind, alignments of sentence pairs, or labels of sequences.

    Parameters
    ----------
    source : Path or Held
        The file.
    format, delimiter : str or None
        What was said about it.
    """
    if format is None and delimiter is None and str(source) != STANDARD:
        try:
            format = detect(source)
        except DataFileError:  # its reader says it with the place
            return "sequences"
    return TASK_OF.get(format or "", "sequences")


@dataclass(frozen=True)
class Reading:
    """How to read a data file.

    Attributes
    ----------
    format : str or None
        Its format; None looks at its beginning.
    delimiter : str or None
        What separates columns.
    label : int
        The column of the label.
    first_feature : int or None
        The number of the first feature, for sets of labels; None looks whether 0 occurs.
    single_root : bool
        Whether a dependency tree with a second root is refused.
    links : Path or None
        A file with the links of sentence pairs.
    shown : bool
        Whether to say which format a file is taken for, and why.
    """

    format: str | None = None
    delimiter: str | None = None
    label: int = -1
    first_feature: int | None = None
    single_root: bool = True
    links: Path | None = None
    shown: bool = False

    def labelled(self, path: Source, form: Form = SEQUENCES, like: Data | None = None) -> Data:
        """The examples of a file with labels.

        Parameters
        ----------
        path : Path
            The file.
        form : Form
            What it holds: sequences, sets of labels, graphs, trees or sentence pairs.
        like : Data, optional
            Other examples, as many features as which these must have.
        """
        whole = self._whole(path, form, gold=True)
        if whole is not None:
            return whole
        width, labels, reader = None, None, GraphReader()
        if like is not None:
            width, labels = width_of(like.X), set(chain.from_iterable(like.y or []))
            reader = reader if form is not GRAPHS else reader.like(like.X[0])
        data = self._others(path, form, width, labels, reader)
        if data is None:
            kind = None if like is None else like.format
            read = self._read(path, label=self.label, width=width, expected=kind)
            data = replace(read, X=_columns(read.X))
            if are_probabilities(list(set(chain.from_iterable(data.y or [])))):
                said = "holds probabilities where labels should be, as m3n predict --confidence writes them"
                raise ValueError(f"{name_of(path)} {said}; --label -2 is the column before")
        return _with_labels(data, path, "learn from or to compare with")

    def for_model(self, path: Source, model: Any, *, scored: bool = False) -> Data:
        """The examples of a file in a format of the model's form, with labels or without.

        Parameters
        ----------
        path : Path
            The file.
        model : estimator
            The model that will read them.
        scored : bool
            Whether labels are wanted, to compare others with them.
        """
        form = form_of(model)
        whole = self._whole(path, form, gold=scored)
        if whole is not None:
            return whole
        labels = model.classes_.tolist() if scored else None
        data = self._others(path, form, model.n_features_in_, labels, model.reader_)
        data = data or self._sequences(path, model.reader_)
        return _with_labels(data, path, "compare with") if scored else data

    def parts_for(self, path: Path, model: Any, encoding: str | None = None) -> Iterator[Data]:
        """The examples of a file of any size, or of a pipe, part by part as they come.

        Parameters
        ----------
        path : Path
            The file.
        model : estimator
            The model that will read them.
        encoding : str or None
            The encoding of the file; None for UTF-8.
        """
        reading, width = self, None

        def format_of(head: Held) -> str:
            nonlocal reading
            found = self.format or self._format_for(head, model)
            between = TAB if self.delimiter is None and found == "columns" and _holds_blanks(model) else self.delimiter
            reading = replace(self, format=found, delimiter=between, shown=False)
            return found

        for part in batches(path, format_of, encoding):
            data = reading.for_model(part, model)
            found = len(data.X.columns) + (data.X.label is not None) if isinstance(data.X, Sentences) else None
            if width is not None and found != width:
                raise DataFileError.at(part, 1, f"expected {width} columns as in the lines before, found {found}")
            width = found
            yield data

    def _format_for(self, head: Held, model: Any) -> str:
        """The format of a file by its beginning, for a model; said if there was a choice."""
        form = form_of(model)
        if not form.files:
            raise ValueError(f"the model takes {form.inputs}, which no file holds; call its predict(X) in Python")
        if form is ALIGNMENTS or form in FORMATS:
            return FORMATS.get(form, "parallel")
        if form is ARCS:
            return "conllu"
        if form.trees:
            return "brackets" if recognise(head, labelled=False).format == "brackets" else "text"
        if self.delimiter is not None:
            return "columns"
        kind = "columns" if model.reader_.kind == "columns" else "attributes"
        found = recognise(head, labelled=False, kind=kind)
        if self.shown:
            whole = found.format == "columns" and _holds_blanks(model)
            why = "columns between tabs, as the model learnt from" if whole else found.why
            console(errors=True).print(f"{head.name}: read as {found.format}, for {why}")
        return found.format

    def _whole(self, path: Source, form: Form, gold: bool) -> Data | None:
        """Sentences or sentence pairs, with trees or links if these are wanted; None for labels of positions."""
        if self.links is not None and form is not ALIGNMENTS:
            raise ValueError(f"a file of links is for sentence pairs, not for {form.kind}")
        if not form.trees and form is not ALIGNMENTS:
            return None
        self._check_columns(form)
        if form.trees:
            return read_trees(path, form, self.format, self.single_root, gold)
        return read_pairs(path, self.format, self.links, gold)

    def _check_features(self, form: Form) -> None:
        if self.first_feature is not None and form is not SETS:
            raise ValueError(f"--first-feature is for sets of labels, not for {form.kind}")

    def _check_columns(self, form: Form) -> None:
        self._check_features(form)
        if self.delimiter is not None or self.label != -1:
            raise ValueError(f"--delimiter and --label are for columns, and {form.kind} have none")

    def _others(self, path: Source, form: Form, width: int | None, labels: Any, reader: GraphReader) -> Data | None:
        """Sets of labels, or graphs; None for sequences."""
        if not form.files:
            raise ValueError(f"the model takes {form.inputs}, which no file holds; call its predict(X) in Python")
        if form not in FORMATS:
            self._check_features(form)
            return None
        if self.format not in (None, FORMATS[form]):
            raise ValueError(f"{form.kind} come in the format {FORMATS[form]}, not {self.format}")
        self._check_columns(form)
        if form is GRAPHS:
            return Data(*read_graphs(path, reader.read_one), FORMATS[form])
        return Data(*read_label_sets(path, width=width, labels=labels, first=self.first_feature), FORMATS[form])

    def _read(self, path: Source, **settings: Any) -> Data:
        """Sequences, and a remark about their format if it was not named."""
        data = read_sequences(path, self.format, delimiter=self.delimiter, **settings)
        if self.shown and data.why:
            console(errors=True).print(f"{name_of(path)}: read as {data.format}, for {data.why}")
        return data

    def _sequences(self, path: Source, reader: SequenceReader) -> Data:
        """Sequences with or without labels; the number of columns tells which."""
        source = hold(path)
        if reader.kind != "columns":
            data = self._read(source, width=reader.width, expected="attributes")
            if isinstance(data.X, Sentences):
                raise ValueError(f"{name_of(path)} is a column file, but the model was not trained on columns")
            return data
        data = self._read(source, labelled=False, expected="columns")
        X = _columns(data.X)
        if not isinstance(X, Sentences):
            raise ValueError(f"{name_of(path)} is no column file, but the model was trained on columns")
        if data.format != "columns" or len(X.columns) == (reader.columns or len(X.columns)):
            return replace(data, X=X)
        if len(X.columns) == reader.columns + 1:
            return replace(self, format="columns", shown=False).labelled(source)
        wanted = f"the model was trained on {_count(reader.columns)}, which a label may follow"
        raise ValueError(f"{name_of(path)} has {_count(len(X.columns))}, but {wanted}")


def _holds_blanks(model: Any) -> bool:
    """Whether a line without a tab is one token, blanks and all: tabs separated it from the label in training."""
    reader = model.reader_
    return isinstance(reader, SequenceReader) and reader.columns == 1 and reader.delimiter == TAB


def _with_labels(data: Data, path: Source, purpose: str) -> Data:
    if data.y is None:
        raise ValueError(f"{name_of(path)} has no labels to {purpose}")
    return data


def _count(columns: int) -> str:
    return f"{columns} column{'s' * (columns != 1)}"


def _columns(X: Any) -> Any:
    """Tokens that are single strings, or lists of them, as columns."""
    if isinstance(X, list) and X and isinstance(X[0], list) and X[0]:
        if isinstance(X[0][0], str):
            return Sentences.of([[(token,) for token in sequence] for sequence in X])
        if isinstance(X[0][0], list) and X[0][0] and isinstance(X[0][0][0], str):
            return Sentences.of(X)
    return X


def width_of(X: Any) -> int | None:
    """The number of features of matrices; None for other inputs.

    Parameters
    ----------
    X : inputs
        What was read.
    """
    if hasattr(X, "shape"):
        return int(X.shape[1])
    return int(X[0].shape[1]) if isinstance(X, list) and X and hasattr(X[0], "shape") else None


def templates_for(X: Any, template: Source | None) -> Templates | None:
    """The templates of a file, the usual ones, or none where attributes are given.

    Parameters
    ----------
    X : sequences
        What was read.
    template : Path or None
        A template file.
    """
    if not isinstance(X, Sentences):
        if template is not None:
            raise ValueError("templates are for column files; these data have their attributes already")
        return None
    if template is None:
        return word_templates(len(X.columns))
    templates = Templates(read_template(template))
    templates.check(X)
    return templates


def all_scores(
    gold: list[list[Any]], found: list[list[Any]], scheme: str = "auto", model: Any = None
) -> dict[str, Scores]:
    """Scores of tokens, nodes or labels, by this name, and of chunks if the labels have any.

    Parameters
    ----------
    gold, found : lists of labels
        The right ones and the predicted ones, as files have them.
    scheme : str
        How chunks are written; "auto" looks at the labels, "none" leaves them alone.
    model : estimator, optional
        The model, whose form says what the labels belong to; tokens without.
    """
    if scheme not in SCHEMES:
        raise ValueError(f"unknown scheme {scheme!r}; choose one of {', '.join(SCHEMES)}")
    form = form_of(model)
    if form is SETS:
        return {"labels": set_scores(gold, found, model.classes_)}
    scores = {f"{form.position}s": token_scores(gold, found)}
    if scheme == "auto":
        scheme = "conll" if are_chunks(gold, found) else "none"
    return scores if scheme == "none" else scores | {"chunks": chunk_scores(gold, found, scheme)}
