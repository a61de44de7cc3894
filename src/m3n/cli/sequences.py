"""Sequences for commands: read a file as the model wants it, and score its labels."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from m3n.estimators import load
from m3n.estimators.forms import form_of
from m3n.features import Templates, word_templates
from m3n.io import Data, Sentences, read_sequences, read_template
from m3n.io.files import Source, hold, name_of
from m3n.io.schemes import PREFIXES
from m3n.scores import Scores, chunk_scores, token_scores

SCHEMES = ("auto", "conll", "iob1", "iob2", "bioes", "none")


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
    """

    format: str | None = None
    delimiter: str | None = None
    label: int = -1

    def labelled(self, path: Source, width: int | None = None) -> Data:
        """The sequences of a file with labels.

        Parameters
        ----------
        path : Path
            The file.
        width : int, optional
            How many features those of SVM-hmm have.
        """
        data = read_sequences(path, self.format, delimiter=self.delimiter, label=self.label, width=width)
        if data.y is None:
            raise ValueError(f"{name_of(path)} has no labels to learn from or to compare with")
        return Data(_columns(data.X), data.y, data.format)

    def for_model(self, path: Source, model: Any) -> Data:
        """The sequences of a file with or without labels; the number of columns tells which.

        Parameters
        ----------
        path : Path
            The file.
        model : SequenceTagger or SegmentTagger
            The model that will read them.
        """
        source, reader = hold(path), model.reader_
        if reader.kind != "columns":
            data = read_sequences(source, self.format, delimiter=self.delimiter, width=reader.width)
            if isinstance(data.X, Sentences):
                raise ValueError(f"{name_of(path)} is a column file, but the model was not trained on columns")
            return data
        data = read_sequences(source, self.format, labelled=False, delimiter=self.delimiter)
        X = _columns(data.X)
        if not isinstance(X, Sentences):
            raise ValueError(f"{name_of(path)} is no column file, but the model was trained on columns")
        if data.format != "columns" or len(X.columns) == (reader.columns or len(X.columns)):
            return Data(X, data.y, data.format)
        if len(X.columns) == reader.columns + 1:
            return self.labelled(source)
        wanted = f"the model was trained on {_count(reader.columns)}, which a label may follow"
        raise ValueError(f"{name_of(path)} has {_count(len(X.columns))}, but {wanted}")


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
    X : sequences
        What was read.
    """
    return int(X[0].shape[1]) if isinstance(X, list) and X and hasattr(X[0], "shape") else None


def templates_for(X: Any, template: Path | None) -> Templates | None:
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


def load_tagger(path: Path) -> Any:
    """The model in a file, of any kind whose inputs files of sequences hold.

    Parameters
    ----------
    path : Path
        A model file.
    """
    model = load(path)
    form = form_of(model)
    if not form.files:
        kind = type(model).__name__
        raise ValueError(
            f"{str(path)!r} holds a {kind}, whose inputs are {form.inputs}, not sequences that a file holds: "
            f"m3n inspect shows it, and in Python m3n.load({str(path)!r}).predict(X) uses it, .score(X, y) scores it"
        )
    return model


def all_scores(gold: list[list[Any]], found: list[list[Any]], scheme: str = "auto") -> dict[str, Scores]:
    """Scores of tokens, and of chunks if the labels have any.

    Parameters
    ----------
    gold, found : lists of labels
        The right ones and the predicted ones.
    scheme : str
        How chunks are written; "auto" looks at the labels, "none" leaves them alone.
    """
    if scheme not in SCHEMES:
        raise ValueError(f"unknown scheme {scheme!r}; choose one of {', '.join(SCHEMES)}")
    scores = {"tokens": token_scores(gold, found)}
    if scheme == "auto":
        scheme = "conll" if _has_chunks(gold) else "none"
    return scores if scheme == "none" else scores | {"chunks": chunk_scores(gold, found, scheme)}


def _has_chunks(gold: list[list[Any]]) -> bool:
    """Labels such as O, B-NP and I-NP."""
    labels = {str(label) for sequence in gold for label in sequence}
    return "O" in labels and all(label == "O" or (label[:1] in PREFIXES[1:] and label[1:2] == "-") for label in labels)
