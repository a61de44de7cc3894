"""What outputs of a kind of model look like to those who only read them: reports, scores and the command.

    form        example     position    label                                   estimator
    Sequences   sequence    token       its label                               SequenceTagger
    Segments    sequence    token       IOB label of its segment                SegmentTagger
    Graphs      graph       node        its label                               GraphLabeler
    Sets        example     label       the label's name, or that it is off     MultilabelClassifier
    Phrases     sentence    word        its part of speech                      ConstituencyParser
    Arcs        sentence    word        label of the arc to its head            DependencyParser
    Alignments  pair        link        the link itself                         WordAligner, HMMAligner

Right and predicted outputs of all of them have one form: a list of labels per example; outputs that are trees have
their labels beside what they are, and links are compared as sets, since a pair may have any number of them. An
estimator declares its form; models of others are taken for taggers of sequences, and may have fewer methods.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from m3n.estimators.segments import to_iob
from m3n.io.alignments import Alignment
from m3n.io.brackets import ParseTree

OFF = "(off)"
WORDS = ("w[0]", "word", "w", "token", "form", "text", "word.lower()", "word.lower")  # names of what a token itself is


class Form:
    """Sequences of labels, and what other forms do otherwise.

    Attributes
    ----------
    kind, example, position : str
        What the data and their parts are, in words.
    inputs : str
        What X is.
    files : bool
        Whether the command reads such inputs from files.
    named : bool
        Whether a position has one of the labels that the model knows.
    exclusive : bool
        Whether a position has one of several labels, which may be taken for one another.
    trees : bool
        Whether outputs are trees, which labels of positions do not make up: see ``Trees``.
    table : str or None
        The attribute with the scores of pairs of labels, if there is one.
    """

    kind: str = "sequences"
    example: str = "sequence"
    position: str = "token"
    inputs: str = "sequences"
    files: bool = True
    named: bool = True
    exclusive: bool = True
    trees: bool = False
    table: str | None = "transitions_"

    def predicted(self, model: Any, X: Any) -> list[list[Any]]:
        """The labels that a model finds."""
        return [_plain(labels) for labels in model.predict(X)]

    def right(self, y: Any, X: Any, predicted: list[list[Any]], model: Any) -> list[list[Any]]:
        """The labels that were given, as ``fit`` takes them."""
        return [_plain(labels) for labels in self.rows(y, len(predicted))]

    def texts(self, X: Any, i: int, predicted: list[list[Any]], model: Any) -> list[str]:
        """What a reader takes for the positions of an example."""
        return token_texts(X[i])

    def runners_up(self, model: Any, X: Any) -> list[list[tuple[Any, ...]]]:
        """The two best answers for every example; nothing where a model has only one."""
        ranked = getattr(model, "predict_k_best", None)
        return [] if ranked is None else ranked(X, 2)

    def given(self, y: Any, length: int) -> list[Any]:
        """The right outputs, as ``predict`` writes them."""
        return list(self.rows(y, length))

    def class_of(self, label: Any, model: Any) -> Any:
        """The class whose probability is that of a label."""
        return label

    def rows(self, y: Any, length: int) -> Any:
        """The outputs, if there are as many as inputs."""
        if len(y) != length:
            raise ValueError(f"X has {length} {self.example}s but y has {len(y)}")
        return y


class Segments(Form):
    """Segments, position by position as IOB labels."""

    kind, named = "segments", False

    def predicted(self, model: Any, X: Any) -> list[list[Any]]:
        return model.predict_iob(X)

    def right(self, y: Any, X: Any, predicted: list[list[Any]], model: Any) -> list[list[Any]]:
        return [_iob(given, found) for given, found in zip(self.rows(y, len(predicted)), predicted, strict=True)]

    def class_of(self, label: Any, model: Any) -> Any:
        name = label.partition("-")[2]
        return next((known for known in model.classes_.tolist() if str(known) == name), model.outside)


class Graphs(Form):
    """Labels of nodes."""

    kind, example, position, inputs = "graphs", "graph", "node", "graphs of node features, edges and edge features"
    table = "pairs_"

    def predicted(self, model: Any, X: Any) -> list[list[Any]]:
        return [_of_nodes(labels, X[i]) for i, labels in enumerate(model.predict(X))]

    def right(self, y: Any, X: Any, predicted: list[list[Any]], model: Any) -> list[list[Any]]:
        return [_of_nodes(labels, X[i]) for i, labels in enumerate(self.rows(y, len(predicted)))]

    def texts(self, X: Any, i: int, predicted: list[list[Any]], model: Any) -> list[str]:
        return _numbers(len(predicted[i]))


class Sets(Form):
    """Sets of labels: every label of every example is a position, with its name where it is on."""

    kind, example, position, inputs = "sets", "example", "label", "a matrix with a row per example"
    named, exclusive, table = False, False, None

    def predicted(self, model: Any, X: Any) -> list[list[Any]]:
        names, texts = np.asarray(model.classes_).tolist(), self.texts(X, 0, [], model)
        return [_marked(_switched(_several(row), names), texts) for row in model.predict(X)]

    def right(self, y: Any, X: Any, predicted: list[list[Any]], model: Any) -> list[list[Any]]:
        names, texts = np.asarray(model.classes_).tolist(), self.texts(X, 0, predicted, model)
        rows = self.rows(y.toarray() if hasattr(y, "toarray") else y, len(predicted))
        return [_marked(_switched(_several(row), names), texts) for row in rows]

    def texts(self, X: Any, i: int, predicted: list[list[Any]], model: Any) -> list[str]:
        return [str(name) for name in np.asarray(model.classes_).tolist()]


class Trees(Form):
    """Trees over words, and the labels of words in them."""

    example, position, trees, table = "sentence", "word", True, None

    def predicted(self, model: Any, X: Any) -> list[list[Any]]:
        return [self.labels(tree) for tree in model.predict(X)]

    def right(self, y: Any, X: Any, predicted: list[list[Any]], model: Any) -> list[list[Any]]:
        return [self.labels(tree) for tree in self.given(y, len(predicted))]

    def runners_up(self, model: Any, X: Any) -> list[list[tuple[Any, ...]]]:
        return []  # the second best tree often has the same labels

    def labels(self, tree: Any) -> list[Any]:
        """The labels of the words of a tree."""
        raise NotImplementedError

    def tags(self, X: Any) -> list[list[str]] | None:
        """The parts of speech of all words, if inputs have them."""
        return None


class Phrases(Trees):
    """Phrase structure trees, word by word as their parts of speech."""

    kind, inputs = "phrases", "lists of words"

    def given(self, y: Any, length: int) -> list[Any]:
        return [ParseTree.of(tree) for tree in self.rows(y, length)]

    def labels(self, tree: Any) -> list[Any]:
        return [tag.label for tag in tree.tags()]

    def texts(self, X: Any, i: int, predicted: list[list[Any]], model: Any) -> list[str]:
        return X[i].words() if isinstance(X[i], ParseTree) else token_texts(X[i])


class Arcs(Trees):
    """Dependency trees, word by word as the labels of the arcs to their heads; without these, as numbers of heads."""

    kind, inputs = "dependencies", "sentences of words with attributes"

    def labels(self, tree: Any) -> list[Any]:
        return [entry[1] if isinstance(entry, tuple | list) else entry for entry in tree]

    def tags(self, X: Any) -> list[list[str]] | None:
        found = [[_part_of_speech(word) for word in words] for words in X]
        return found if any(tag for tags in found for tag in tags) else None


class Alignments(Form):
    """Links between the words of sentence pairs."""

    kind, example, position, inputs = "alignments", "pair", "link", "pairs of source words and target words"
    named, exclusive, table = False, False, None

    def given(self, y: Any, length: int) -> list[Any]:
        return [Alignment.of(links) for links in self.rows(y, length)]


SEQUENCES, SEGMENTS, GRAPHS, SETS, PHRASES, ARCS = Form(), Segments(), Graphs(), Sets(), Phrases(), Arcs()
ALIGNMENTS = Alignments()


def form_of(model: Any) -> Form:
    """What an estimator says about its outputs; those of other models are taken for sequences.

    Parameters
    ----------
    model : estimator
        Fitted.
    """
    return getattr(model, "_form", SEQUENCES)


def token_texts(sequence: Any) -> list[str]:
    """What a reader takes for the tokens of a sequence; their numbers where there are only numbers.

    Parameters
    ----------
    sequence : sequence of tokens, array or sparse matrix
        As a tagger takes it.
    """
    shape = getattr(sequence, "shape", None)
    return _numbers(shape[0]) if shape is not None else [_token(token, t) for t, token in enumerate(sequence)]


def _token(token: Any, t: int) -> str:
    if isinstance(token, str):
        return token
    if isinstance(token, Mapping):
        named = [str(token[name]) for name in WORDS if name in token]
        return named[0] if named else next((f"{name}={value}" for name, value in token.items()), "")
    if isinstance(token, tuple) and all(isinstance(value, str) for value in token):
        return token[0] if token else ""
    if isinstance(token, Iterable):
        attributes = [value for value in token if isinstance(value, str)]
        named = [a.partition("=")[2] for name in WORDS for a in attributes if a.partition("=")[0] == name]
        return (named or attributes or _numbers(t + 1)[-1:])[0]
    return _numbers(t + 1)[-1]


def _numbers(length: int) -> list[str]:
    return [f"#{t + 1}" for t in range(length)]


def _plain(labels: Any) -> list[Any]:
    return labels.ravel().tolist() if isinstance(labels, np.ndarray) else list(labels)


def _of_nodes(labels: Any, graph: Any) -> list[Any]:
    """Labels in the order of the nodes; dictionaries by node belong to networkx graphs."""
    return [labels[node] for node in graph.nodes] if isinstance(labels, Mapping) else _plain(labels)


def _iob(given: Sequence[Any], predicted: list[str]) -> list[str]:
    """IOB labels as they are, or those of segments (begin, end, label)."""
    if all(isinstance(label, str) for label in given) and (len(given) > 0 or not predicted):
        return list(given)
    return to_iob(given, len(predicted))


def _part_of_speech(word: Any) -> str:
    """Of a word as a ``DependencyParser`` takes it; the empty text where there is none."""
    if isinstance(word, Mapping):
        return str(word.get("upos") or "")
    if isinstance(word, str):
        return ""
    return str(word[2] if len(word) > 2 else word[1])  # form, lemma and part of speech, or a pair


def _marked(switches: Iterable[Any], names: list[str]) -> list[str]:
    """The names of labels that are on; names are texts, as what stands for the others is."""
    return [name if on else OFF for name, on in zip(names, switches, strict=True)]


def _several(row: Any) -> Any:
    """A set of one for a label that stands alone."""
    return {row} if isinstance(row, str) or np.isscalar(row) else row


def _switched(row: Any, names: list[Any]) -> list[bool]:
    """Which labels are on, in a row of zeros and ones or in a set of labels."""
    values = list(row)
    indicator = not isinstance(row, (set, frozenset)) and len(values) == len(names) and set(values) <= {0, 1}
    if indicator:
        return values
    unknown = [label for label in values if label not in names]
    if unknown:
        raise ValueError(f"the model does not know the label {unknown[0]!r}; it knows {names!r:.300}")
    return [name in values for name in names]
