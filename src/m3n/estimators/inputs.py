"""Reading what users pass as X and y for sequences, with errors that name the place and the remedy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Any, Self

import numpy as np
import scipy.sparse

from m3n.estimators.labels import LabelStream, check_counts, check_labels, label_list
from m3n.estimators.matrices import Matrix, bad_row
from m3n.estimators.model_parts import packed_vocabulary, restored_vectorizer
from m3n.estimators.sequences import Blocks, as_list, as_sequences, comes_once, length_of
from m3n.features import AttributeVectorizer, HashedAttributes, HashedTemplates, Templates
from m3n.features.vectorizer import GrowingRows
from m3n.io.sentences import numbered
from m3n.packed.ragged import numbers

NOTHING = "X is empty: there is nothing to train on"
KINDS_OF_INPUT = {
    "dense": "arrays", "sparse": "sparse matrices", "attributes": "named attributes", "columns": "tokens in columns",
}  # fmt: skip
MANY = 200  # labels; where pairs of them are more than so many times the positions, they are none


@dataclass(frozen=True)
class Inputs:
    """Sequences as numbers.

    Attributes
    ----------
    matrix : array or csr_array (positions, attributes)
        All positions, sequence after sequence.
    lengths : array of int (sequences,)
        Positions of every sequence; 0 where one is empty.
    pairs : csr_array (pairs of positions, attributes of pairs) or None
        Attributes of neighbouring positions, if templates make any.
    """

    matrix: Matrix
    lengths: np.ndarray
    pairs: Matrix | None = None

    def only(self, chosen: np.ndarray) -> Inputs:
        """Some of the sequences, in the given order."""
        pairs = None if self.pairs is None else self.pairs[chosen_rows(np.maximum(self.lengths - 1, 0), chosen)]
        return Inputs(self.matrix[chosen_rows(self.lengths, chosen)], self.lengths[chosen], pairs)

    def occupied(self) -> Inputs:
        """The sequences that are not empty."""
        return Inputs(self.matrix, self.lengths[self.lengths > 0], self.pairs)

    def between(self, low: int, high: int) -> Inputs:
        """Sequences low..high-1, none of which is empty; these inputs themselves if that is all of them."""
        if (low, high) == (0, len(self.lengths)):
            return self
        ends = np.concatenate([[0], np.cumsum(self.lengths)])
        pairs = None if self.pairs is None else self.pairs[ends[low] - low : ends[high] - high]
        return Inputs(self.matrix[ends[low] : ends[high]], self.lengths[low:high], pairs)

    def arrays(self) -> Iterator[Any]:
        """What tells these inputs from others."""
        yield from (array for array in (self.matrix, self.pairs, self.lengths) if array is not None)


@dataclass(eq=False)
class PlainReader:
    """What readers without a vocabulary share: they know how many attributes there are.

    Attributes
    ----------
    width : int
        Attributes of a position.
    pair_width : int or None
        Attributes of a pair of positions; None if there are none.
    """

    width: int = 0
    pair_width: int | None = None

    def places_of(self, known: Self, *, pair: bool = False) -> np.ndarray:
        """Our columns of the attributes of another reader: columns of matrices have no names, so there must be as many.

        Parameters
        ----------
        known : PlainReader
            The other one, of an earlier model.
        pair : bool
            Whether attributes of pairs are meant.
        """
        if (known.width, known.pair_width) != (self.width, self.pair_width):
            then, now = (f"{r.width} attributes and {r.pair_width or 0} of pairs" for r in (known, self))
            raise ValueError(
                f"prior was trained with {then}, but X has {now}; columns have no names to tell new ones by"
            )
        return np.arange((self.pair_width or 0) if pair else self.width)

    def packed(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """What a model file holds of it, as plain values and arrays."""
        return dict(vars(self)), {}

    @classmethod
    def unpacked(cls, plain: Mapping[str, Any], tensors: Mapping[str, np.ndarray], templates: Any) -> Self:
        """The reader that ``packed`` has written."""
        del tensors, templates  # for readers with vocabularies
        return cls(**plain)


@dataclass(eq=False)
class SequenceReader:
    """Turns sequences of inputs into one matrix with a row per position.

    Sequences may be 2-D arrays, sparse matrices, data frames, or lists of tokens that are dicts or lists of strings;
    with templates they are tokens in columns, or words. Empty ones have no rows. What ``fit`` saw decides what ``read``
    accepts afterwards.

    Attributes
    ----------
    kind : {"dense", "sparse", "attributes", "columns"}
        What the sequences are made of.
    width : int
        Number of attributes (columns).
    vectorizer : AttributeVectorizer, Templates or None
        The vocabulary, for ``kind="attributes"`` and ``kind="columns"``.
    columns : int
        How many columns tokens had, for ``kind="columns"``; 0 if that is not known.
    delimiter : str
        What separated them; a blank stands for blanks and tabs.
    """

    kind: str = ""
    width: int = 0
    vectorizer: AttributeVectorizer | Templates | None = None
    columns: int = 0
    delimiter: str = " "

    @property
    def pair_width(self) -> int | None:
        """Attributes of pairs of neighbours; None if there are none."""
        templates = self.vectorizer
        return templates.pair_width if isinstance(templates, Templates) and templates.has_pairs else None

    def packed(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """What a model file holds of it, as plain values and arrays."""
        separator = getattr(self.vectorizer, "separator", None)  # how names and values are joined, if they are
        plain: dict[str, Any] = {
            "kind": self.kind,
            "width": self.width,
            "columns": self.columns,
            "delimiter": self.delimiter,
        }
        if isinstance(self.vectorizer, Templates):
            made = self.vectorizer
            plain["templates"] = {"patterns": list(made.patterns), "padding": made.padding, "syntax": made.syntax}
        return plain if separator is None else plain | {"separator": separator}, packed_vocabulary(self.vectorizer)

    @classmethod
    def unpacked(
        cls, plain: Mapping[str, Any], tensors: Mapping[str, np.ndarray], templates: Templates | None
    ) -> SequenceReader:
        """The reader that ``packed`` has written."""
        own = dict(plain)
        templates = Templates(**own.pop("templates")) if "templates" in own else templates  # once they were parameters
        vectorizer = restored_vectorizer(tensors, templates, own.pop("separator", None))
        return cls(**own, vectorizer=vectorizer)

    def fit(
        self, X: Any, templates: Templates | None = None, min_freq: int = 1, known: SequenceReader | None = None
    ) -> Inputs:
        """Decide the kind, learn the vocabulary, without attributes that occur less often, and read.

        The vocabulary is that of the ``known`` reader, of an earlier model, and what occurs besides.
        """
        if known is not None and isinstance(known.vectorizer, Templates):
            templates = known.vectorizer if templates is None else templates
        vocabulary = None if known is None else _vocabulary_of(known, templates)
        if templates is None and comes_once(X):
            return self._like(known, self._fit_blocks(Blocks(X), min_freq, vocabulary))
        sequences, lengths = as_sequences(X, templates)
        if not lengths.any():
            raise ValueError(NOTHING)
        self.kind = "columns" if templates else kind_of(sequences[np.flatnonzero(lengths)[0]])
        if self.kind in ("columns", "attributes"):
            separator = getattr(vocabulary, "separator", None)
            self.vectorizer = templates.unfitted() if templates else AttributeVectorizer(separator)
            self._check_kind(known)
            matrix = self.vectorizer.fit_transform(sequences, min_freq, vocabulary)
        else:
            matrix = _join(sequences, self.kind, None)
        self._settle(matrix, min_freq)
        if self.kind == "columns":
            self.columns, self.delimiter = len(sequences.columns), sequences.delimiter
        return self._like(known, Inputs(matrix, lengths, self._pairs(sequences)))

    def places_of(self, known: SequenceReader, *, pair: bool = False) -> np.ndarray:
        """Our columns of the attributes of a reader that ``fit`` was given as known."""
        own, other = self.vectorizer, known.vectorizer
        if isinstance(own, Templates) and isinstance(other, Templates):
            return own.places_of(other, pair=pair)
        if isinstance(own, AttributeVectorizer) and isinstance(other, AttributeVectorizer):
            return own.places_of(other)
        return np.arange(known.width)

    def _check_kind(self, known: SequenceReader | None) -> None:
        """Refuse an earlier model whose inputs were of another kind."""
        if known is not None and self.kind != known.kind:
            raise ValueError(
                f"prior was trained on {KINDS_OF_INPUT[known.kind]}, but X has {KINDS_OF_INPUT[self.kind]}: "
                "give inputs of the same kind"
            )

    def _like(self, known: SequenceReader | None, inputs: Inputs) -> Inputs:
        """The inputs, if an earlier model could have read them, too."""
        self._check_kind(known)
        if known is not None and self.vectorizer is None and self.width != known.width:
            raise ValueError(
                f"prior was trained with {known.width} attributes per position, but X has {self.width}; columns of "
                "matrices have no names by which new ones could be told"
            )
        return inputs

    def _fit_blocks(self, blocks: Blocks, min_freq: int, known: AttributeVectorizer | None = None) -> Inputs:
        """The same for sequences that come once: nothing is kept of them but the rows."""
        separator = None if known is None else known.separator
        rows: Any = None
        for begin, block in blocks:
            first = next((sequence for i, sequence in enumerate(block, begin) if length_of(sequence, i)), None)
            if first is None:
                continue
            if rows is None:
                self.kind = kind_of(first)
                names = self.kind == "attributes"
                rows = GrowingRows(separator, known) if names else _GrowingMatrix(self.kind)
            rows.add(block, begin)
        if rows is None:
            raise ValueError(NOTHING)
        if self.kind == "attributes":
            self.vectorizer = AttributeVectorizer(separator)
            matrix = self.vectorizer.take(rows, min_freq)
        else:
            matrix = rows.matrix()
        self._settle(matrix, min_freq)
        return Inputs(matrix, blocks.lengths)

    def _settle(self, matrix: Matrix, min_freq: int) -> None:
        """Remember the width of the rows; with names, refuse a frequency that leaves none."""
        if self.kind not in ("columns", "attributes") and min_freq > 1:
            raise ValueError("min_freq is for attributes with names; columns of matrices stay as they are")
        self.width = matrix.shape[1]
        if self.vectorizer is not None and not self.width:
            raise ValueError(f"no attribute occurs {min_freq} times or more; lower min_freq")

    def read(self, X: Any) -> Inputs:
        """Read new sequences of the kind that ``fit`` saw."""
        templates = self.vectorizer if isinstance(self.vectorizer, Templates) else None
        sequences, lengths = as_sequences(X, templates)
        if not lengths.any():
            return Inputs(scipy.sparse.csr_array((0, self.width)), lengths)
        if templates is not None and len(sequences.columns) > self.columns > 0:
            raise ValueError(
                f"the tokens have {len(sequences.columns)} columns, but the model was trained on {self.columns}; leave "
                "out labels and other columns that it did not see"
            )
        if self.vectorizer is not None:
            return Inputs(self.vectorizer.transform(sequences), lengths, self._pairs(sequences))
        return Inputs(_join(sequences, self.kind, self.width), lengths)

    def _pairs(self, sequences: Any) -> Matrix | None:
        templates = self.vectorizer
        if not isinstance(templates, Templates) or self.pair_width is None:
            return None
        return templates.transform_pairs(sequences)


def _vocabulary_of(known: SequenceReader, templates: Templates | None) -> Any:
    """The vocabulary of an earlier model, if new inputs can be read with more of it."""
    earlier = known.vectorizer
    if isinstance(earlier, (HashedAttributes, HashedTemplates)):
        raise ValueError("prior has hashed attributes, which have no names; train it on sequences instead of shards")
    given = [(t.patterns, t.padding, t.syntax) for t in (templates, earlier) if isinstance(t, Templates)]
    if len(given) == 2 and given[0] != given[1]:
        raise ValueError("prior has other templates than this estimator: its attributes mean something else")
    return earlier


def read_labels(y: Any, lengths: np.ndarray, known: Sequence[Any] = ()) -> tuple[np.ndarray, list[list[int]]]:
    """The sorted classes, known ones among them, and, for every sequence, the numbers of its labels."""
    codes, found = label_codes(y, lengths)
    found = list(dict.fromkeys([*found, *known]))
    check_one_kind(found)
    order = sorted(range(len(found)), key=found.__getitem__)
    rank = np.argsort(order)[codes].tolist()
    ends = np.cumsum([0, *lengths]).tolist()
    return np.array([found[k] for k in order]), [rank[low:high] for low, high in pairwise(ends)]


def label_codes(y: Any, lengths: np.ndarray) -> tuple[np.ndarray, list[Any]]:
    """The number of every label, in order of appearance, and the labels, all texts or all numbers.

    Parameters
    ----------
    y : sequences of labels, or LabelStream
        One label per position.
    lengths : array of int (sequences,)
        Positions of every sequence.
    """
    if isinstance(y, LabelStream):
        codes, found = y.numbered()
        check_counts(np.array(y.lengths), lengths)
    else:
        flat = flat_labels(y, lengths)
        codes, found = numbered(flat, len(flat))
    check_one_kind(found)
    return codes, found


def check_one_kind(labels: Sequence[Any]) -> None:
    """Refuse texts next to numbers."""
    if len({isinstance(label, str) for label in labels}) > 1:
        raise ValueError("labels must be all strings or all numbers; found both")


def check_label_count(labels: int, positions: int) -> None:
    """Refuse what cannot be labels: words or numbers, of which there are ever new ones.

    Tasks with the most labels, such as 2000 edit scripts of lemmas at 100,000 positions, are far from that.

    Parameters
    ----------
    labels : int
        How many different labels there are.
    positions : int
        How many positions have them.
    """
    if labels > MANY and labels * labels > MANY * positions:
        raise ValueError(
            f"{labels:,} different labels at {positions:,} positions: these look like words or numbers, not labels "
            "(--label chooses the column of a file). If they are labels, name them: "
            "constraints=m3n.structures.Transitions.forbid(labels, []) in Python takes any number of them"
        )


def chosen_rows(lengths: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """The rows of some sequences, in the given order, where sequences of these lengths stand one after another."""
    return numbers((np.cumsum(lengths) - lengths)[chosen], lengths[chosen])


def number_labels(y: Any, lengths: np.ndarray, classes: np.ndarray) -> list[list[int]]:
    """The numbers of known labels, sequence by sequence."""
    numbers = {label: k for k, label in enumerate(classes.tolist())}
    flat = flat_labels(y, lengths)
    unknown = [label for label in flat if label not in numbers]
    if unknown:
        raise ValueError(f"the model does not know the label {unknown[0]!r}; it knows {list(numbers)!r:.300}")
    codes = np.array([numbers[label] for label in flat])
    return [part.tolist() for part in np.split(codes, np.cumsum(lengths)[:-1])]


def flat_labels(y: Any, lengths: np.ndarray) -> list[Any]:
    """All labels in one list, after checking that they fit the sequences."""
    if y is None:
        raise ValueError("y is missing: a list of label sequences, one per sequence of X, is needed")
    checked = [label_list(sequence, i) for i, sequence in enumerate(label_sequences(y, lengths))]
    check_counts(np.fromiter(map(len, checked), np.int64, len(checked)), lengths)
    flat = list(chain.from_iterable(checked))
    if not set(map(type, flat)) <= {str, int}:  # other types are looked at one by one
        check_labels(checked)
    return flat


def share_right(y: Any, predicted: list[list[Any]], weights: np.ndarray | None = None) -> float:
    """The share of positions of which the label is right, every sequence as often as its weight says."""
    lengths = np.array([len(labels) for labels in predicted], dtype=np.int64)
    gold, found = flat_labels(y, lengths), chain.from_iterable(predicted)
    right = [one == other for one, other in zip(gold, found, strict=True)]
    return float(np.average(right, weights=None if weights is None else np.repeat(weights, lengths)))


def label_sequences(y: Any, lengths: np.ndarray) -> list[Any]:
    """The labels of every sequence; a column of a data frame is cut where the sequences end."""
    if hasattr(y, "iloc") and len(y) == lengths.sum() and not any(isinstance(label, (list, np.ndarray)) for label in y):
        return np.split(y.to_numpy(), np.cumsum(lengths)[:-1])
    return as_list(y)


def kind_of(sequence: Any) -> str:
    if scipy.sparse.issparse(sequence):
        return "sparse"
    if isinstance(sequence, np.ndarray) and sequence.dtype.kind in "biuf":
        return "dense"
    first = next(iter(sequence), None) if isinstance(sequence, Iterable) else None
    return "dense" if isinstance(first, np.ndarray) or _is_vector(first) else "attributes"


def _is_vector(token: Any) -> bool:
    """A token written as a plain list of numbers."""
    return isinstance(token, (list, tuple)) and len(token) > 0 and isinstance(token[0], (int, float, np.number))


class _GrowingMatrix:
    """The rows of sequences of vectors that come block by block."""

    def __init__(self, kind: str):
        self.kind = kind
        self.blocks = list[Matrix]()
        self.first = 0  # the first sequence that is not empty; its width is that of all

    def add(self, sequences: list[Any], begin: int) -> None:
        """Some more sequences, the first of which is number ``begin``."""
        if not self.blocks:
            self.first = next(i for i, sequence in enumerate(sequences, begin) if length_of(sequence, i))
        like = (self.blocks[0].shape[1], f"sequence {self.first} has") if self.blocks else None
        self.blocks.append(joined_rows(sequences, self.kind, like, begin))

    def matrix(self) -> Matrix:
        """All rows; the blocks are let go of."""
        blocks, self.blocks = self.blocks, []
        return _stacked(blocks, self.kind)


def _join(sequences: list[Any], kind: str, width: int | None) -> Matrix:
    return joined_rows(sequences, kind, None if width is None else (width, "the model was trained with"))


def joined_rows(sequences: list[Any], kind: str, like: tuple[int, str] | None, begin: int = 0) -> Matrix:
    """The rows of sequences; they are as wide as something else that is named, or as the first of them."""
    read = _dense if kind == "dense" else lambda sequence, i: scipy.sparse.csr_array(sequence, dtype=float)
    parts = {i: read(sequence, i) for i, sequence in enumerate(sequences, begin) if length_of(sequence, i)}
    first = next(iter(parts))
    expected, where = like or (parts[first].shape[1], f"sequence {first} has")
    for i, part in parts.items():
        position = bad_row(part)
        if position is not None:
            raise ValueError(f"sequence {i}, position {position}: NaN or infinite input")
        if part.shape[1] != expected:
            raise ValueError(f"sequence {i} has {part.shape[1]} attributes per position, but {where} {expected}")
    return _stacked(list(parts.values()), kind)


def _stacked(rows: list[Matrix], kind: str) -> Matrix:
    return np.concatenate(rows) if kind == "dense" else scipy.sparse.vstack(rows, format="csr")


def _dense(sequence: Any, i: int) -> np.ndarray:
    try:
        array = np.asarray(sequence.toarray() if scipy.sparse.issparse(sequence) else sequence, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"sequence {i}: its positions are not vectors of numbers of one length") from None
    if array.ndim != 2:
        raise ValueError(f"sequence {i}: expected a 2-D array (positions, attributes), got shape {array.shape}")
    return array
