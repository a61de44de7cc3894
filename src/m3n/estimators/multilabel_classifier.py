"""Several labels per example: an M3N or CRF over binary variables, with a scikit-learn interface."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from m3n.estimators.chains import check_temperature
from m3n.estimators.declaration import learnt, renamed
from m3n.estimators.files import Content
from m3n.estimators.final import FinalPredictions, distance, final_by_changes, input_squares
from m3n.estimators.forms import SETS
from m3n.estimators.indicators import TableReader, add_ones, read_outputs
from m3n.estimators.kernel_scores import KernelSettings
from m3n.estimators.matrices import linear_map
from m3n.estimators.trained import KERNEL, TRAINING, Trained
from m3n.estimators.training import Examples, Setup, resolve_loss, resolve_strengths, split_weights, stacked
from m3n.features import BinaryLabels, Stack, Table
from m3n.packed import Threads
from m3n.packed.threads import single_threaded_blas
from m3n.structures import Multiclass, Multilabel, Parts, multilabel_pairs

GROUPS = ("attributes", "pairs")


class MultilabelClassifier(Trained):
    """Any number of labels for every example, chosen together, trained to a certified optimum.

    Every label that an example has scores <x, W[:, l]>, and every pair of labels scores by whether they are on or off.
    Where y names one label per example, the labels exclude each other: this is the multiclass support vector machine of
    Crammer and Singer, or multinomial logistic regression, without pairs.

    Parameters
    ----------
    pairs : {"full", "tree", "none"} or pairs of labels
        Which pairs of labels have scores: all, which takes time exponential in the number of labels; a tree of the
        pairs that say most about one another (Chow and Liu); none, that is one classifier per label; or those that are
        listed, by the names of labels or by their numbers (columns of an indicator matrix).
    loss : {"hamming", "normalized_hamming"} or Loss
        Label loss of every objective but "crf": wrong labels, wrong labels / number of labels, or an object of
        ``m3n.losses`` that speaks of the values 0 and 1.
    intercept : bool
        Whether every label has a score that does not depend on x, regularised like the weight of an attribute.
    strengths : mapping from str to float, or None
        How strongly groups of weights are regularised, relative to ``lam``: "attributes" (with the intercept) and
        "pairs", each 1 if it is not named. An l1 penalty counts sqrt(strength) times.
    kernel : str, callable or None
        A kernel on the inputs, as in ``SequenceTagger``; it takes the place of ``intercept``, too.

    Attributes
    ----------
    classes_ : array (labels,)
        The labels, sorted; 0, 1, ... if y was an indicator matrix.
    exclusive_ : bool
        Whether every example has exactly one label, as y had it.
    feature_names_in_ : array (attributes,)
        Names of the columns, if X was a data frame with names; ``predict`` wants the same, in the same order.
    intercept_ : array (labels,)
        Scores of the labels that do not depend on x.
    pairs_ : array of int (m, 2)
        Pairs of labels that have scores.
    tables_ : array (m, 2, 2)
        Their scores: [value of the first, value of the second].

    Examples
    --------
    >>> from m3n.estimators import MultilabelClassifier
    >>> X = [[1.0, 0.0], [1.0, 0.2], [0.0, 1.0], [0.1, 1.0]]
    >>> Y = [{"sea", "sky"}, {"sea", "sky"}, {"town"}, {"sky", "town"}]
    >>> model = MultilabelClassifier(pairs="tree", lam=0.01).fit(X, Y)
    >>> model.classes_.tolist()
    ['sea', 'sky', 'town']
    >>> model.predict([[0.9, 0.1]])
    array([[1, 1, 0]])
    """

    pairs: str | Sequence[Any] | np.ndarray = "full"
    intercept: bool = True

    exclusive_: bool = learnt()
    feature_names_in_: np.ndarray = learnt()
    intercept_: np.ndarray = learnt("labels", weights=True)
    pairs_: np.ndarray = learnt("scored", 2, limits=(0, "labels"))
    tables_: np.ndarray = learnt("scored", 2, 2, weights=True)

    _estimator_type = "classifier"  # for scikit-learn before 1.6
    _parameters = ("pairs", *TRAINING, "intercept", "C", "l1", "strengths", *KERNEL, "validation", "patience", "stop")
    _reader = TableReader
    _form = SETS
    _groups = GROUPS
    _outputs = np.arange(2)  # on or off

    @renamed(Y="y")
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> MultilabelClassifier:
        """Train on labelled examples.

        Ctrl-C ends training early; the model then holds the best weights so far, with their certificate.

        Parameters
        ----------
        X : array, sparse matrix or data frame (examples, attributes)
            Inputs.
        y : array or sparse matrix (examples, labels), sets of labels, or array (examples,)
            Zeros and ones; or for every example the labels that it has; or the only label that it has.
        sample_weight : array (examples,), optional
            How often every example counts: 2 is the same as the example twice, 0 leaves it out.

        Returns
        -------
        MultilabelClassifier
            The fitted estimator itself.
        """
        return self._fit(X, y, sample_weight)

    def predict(self, X: Any) -> np.ndarray:
        """The labels with the highest score together, as an indicator matrix (examples, labels) of integers.

        For a model of single labels, these labels themselves (examples,).

        Parameters
        ----------
        X : array, sparse matrix or data frame (examples, attributes)
            Inputs.
        """
        found = self._best(X)
        return self.classes_[found] if self.exclusive_ else found

    def predict_sets(self, X: Any) -> list[set[Any]]:
        """The same labels by their names, one set per example.

        Parameters
        ----------
        X : array, sparse matrix or data frame (examples, attributes)
            Inputs.
        """
        return [set(labels) for labels in self._names_on(self._best(X))]

    def predict_proba(self, X: Any, temperature: float = 1.0) -> np.ndarray:
        """Probability of every label under exp(score / temperature), shape (examples, labels).

        Parameters
        ----------
        X : array, sparse matrix or data frame (examples, attributes)
            Inputs.
        temperature : float
            Small values sharpen the distribution towards the prediction, large ones flatten it.
        """
        check_temperature(temperature)
        structure, theta, threads = self._scores(X)
        if structure is None:
            return np.empty((0, len(self.classes_)))
        _, (node, *_) = structure.soft(theta, temperature, threads)
        return node if self.exclusive_ else node[:, 1].reshape(-1, len(self.classes_)).copy()

    def decision_function(self, X: Any) -> np.ndarray:
        """By how much the best labels with a label on score above the best with it off, shape (examples, labels).

        Positive where ``predict`` says 1. It takes one prediction per label. For a model of single labels, their
        scores, the largest of which ``predict`` takes; of two labels, by how much the second scores above the first,
        shape (examples,), as scikit-learn has it.

        Parameters
        ----------
        X : array, sparse matrix or data frame (examples, attributes)
            Inputs.
        """
        structure, theta, threads = self._scores(X)
        if self.exclusive_:
            scores = theta[0] if structure else np.empty((0, len(self.classes_)))
            return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores
        if structure is None:
            return np.empty((0, len(self.classes_)))
        best, labelling = structure.hard(theta, threads)
        node, chosen = theta[0].reshape(len(best), -1, 2), labelling.reshape(len(best), -1)
        margins, everyone = np.empty(chosen.shape), np.arange(len(best))
        for label in range(chosen.shape[1]):
            kept = node[:, label].copy()
            node[everyone, label, chosen[:, label]] = -np.inf
            margins[:, label] = best - structure.hard(theta, threads)[0]
            node[:, label] = kept
        return np.where(chosen == 1, margins, -margins)

    @renamed(Y="y")
    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Share of examples of which all labels are right, as scikit-learn's multilabel classifiers have it.

        Parameters
        ----------
        X : array, sparse matrix or data frame (examples, attributes)
            Inputs.
        y : array or sparse matrix (examples, labels), sets of labels, or array (examples,)
            The right labels, as in ``fit``.
        sample_weight : array (examples,), optional
            How often every example counts.
        """
        found = self._best(X)
        _, gold = read_outputs(y, len(found), self.classes_)
        if gold.ndim != found.ndim:
            wanted = "one label" if self.exclusive_ else "sets of labels"
            raise ValueError(f"y: the model was trained with {wanted} per example")
        return float(np.average((found == gold).reshape(len(gold), -1).all(axis=1), weights=sample_weight))

    def certify(self, X: Any, radius: float | None = None) -> FinalPredictions:
        """Which predictions are proven to be those of the exact optimum, see ``SequenceTagger.certify``.

        Parameters
        ----------
        X : array, sparse matrix or data frame (examples, attributes)
            Inputs.
        radius : float, optional
            How far the weights in question are from those of the model, in the norm of the regulariser; the default is
            ``radius_``, for the optimum.

        Returns
        -------
        FinalPredictions
            What ``predict`` says of every example, and which of its labels (for single labels: its label) are final.
        """
        self._check_fitted()
        factors = resolve_strengths(self.strengths, GROUPS)
        matrix, radius = self.reader_.read(X).matrix, distance(self, radius, factors["attributes"])
        structure, theta, threads = self._scores(X)
        if structure is None:
            return FinalPredictions([], [], radius, self._form.example)
        squares = factors["attributes"] ** 2 * self._input_squares(matrix)
        if self.exclusive_:
            squares = 2.0 * squares
        else:  # a label that is off has no attributes; pairs have tables of their own
            pairs = np.bincount(self.pairs_.ravel(), minlength=len(self.classes_))
            squares = (squares[:, None] + 2.0 * factors["pairs"] ** 2 * pairs).ravel()
        offsets = np.linspace(0, len(squares), structure.n + 1).astype(np.int64)
        labelling, final = final_by_changes(structure, theta, offsets, radius * np.sqrt(squares), threads)
        labels = self.classes_[labelling] if self.exclusive_ else labelling.reshape(structure.n, -1)
        return FinalPredictions(list(labels), np.split(final, offsets[1:-1]), radius, self._form.example)

    def _input_squares(self, matrix: Any) -> np.ndarray:
        """|x|^2 of every example, with the one of the intercept."""
        squares = input_squares(None if self._linear else self.kernel_model_, matrix)
        return squares + 1.0 if self._linear and self.intercept else squares

    def __sklearn_tags__(self) -> Any:
        """scikit-learn's description of an estimator: a classifier with several labels, or one."""
        from sklearn.utils import ClassifierTags

        tags = super().__sklearn_tags__()
        tags.estimator_type = "classifier"
        tags.classifier_tags = ClassifierTags(multi_class=True, multi_label=True)
        tags.target_tags.one_d_labels = tags.target_tags.two_d_labels = True
        tags.input_tags.two_d_array = tags.input_tags.sparse = True
        return tags

    def _read(self, reader: TableReader, X: Any, y: Any) -> Examples:
        table = reader.fit(X)
        classes, outputs = read_outputs(y, table.matrix.shape[0])
        return Examples(table, classes, outputs, learnt={"exclusive_": outputs.ndim == 1})

    def _attribute_map(self, kernel: KernelSettings | None, examples: Examples) -> tuple[Any, Any]:
        if self.intercept and kernel is None:
            return linear_map(add_ones(examples.inputs.matrix), len(examples.classes)), None
        return super()._attribute_map(kernel, examples)

    def _setup(self, examples: Examples, node: Any) -> Setup:
        count, labels, factors = len(examples.outputs), len(examples.classes), resolve_strengths(self.strengths, GROUPS)
        if examples.learnt["exclusive_"]:
            loss = resolve_loss(self.loss).bind(examples.classes.tolist())
            nothing = {"pairs_": np.empty((0, 2), np.int64)}
            return Setup(Multiclass(count, labels), stacked([(node, "attributes")], factors), nothing, loss=loss)
        listed = _numbered(self.pairs, examples.classes.tolist())
        pairs = multilabel_pairs(examples.outputs, listed, examples.weights)
        groups = [(BinaryLabels(node), "attributes"), *((Table(2, 2), "pairs") for _ in pairs)]
        return Setup(Multilabel(count, labels, pairs), stacked(groups, factors), {"pairs_": pairs})

    def _named_weights(self, features: Stack, w: np.ndarray) -> dict[str, Any]:
        own, *tables = split_weights(features, w)
        return {"coef_": own, "tables_": np.array(tables).reshape(-1, 2, 2)}

    def _attribute_weights(self, kernel: KernelSettings | None, node: Any, transformer: Any, w: Any) -> dict[str, Any]:
        labels = node.shapes[0][1]
        intercept = np.zeros(labels)
        if kernel is None and self.intercept:
            w, intercept = w[:-labels], w[-labels:].copy()
        return {"intercept_": intercept} | super()._attribute_weights(kernel, node, transformer, w)

    def _packed(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        return {"exclusive": self.exclusive_}, {}

    def _unpacked(self, content: Content) -> dict[str, Any]:
        exclusive = bool(content.meta.get("exclusive", False))  # models were of sets alone once
        if exclusive and len(content.fitted["pairs_"]):
            raise ValueError("pairs_: labels that exclude each other have no pairs")
        return {"exclusive_": exclusive}

    def _answers(
        self, X: Any, marginals: bool, temperature: float | None = None
    ) -> tuple[list[list[Any]], list[np.ndarray]]:
        warmth = 1.0 if temperature is None else temperature
        return self._names_on(self._best(X)), list(self.predict_proba(X, warmth)) if marginals else []

    def _best(self, X: Any) -> np.ndarray:
        """An indicator matrix (examples, labels), or the numbers (examples,) of single labels."""
        structure, theta, threads = self._scores(X)
        shape = (-1,) if self.exclusive_ else (-1, len(self.classes_))
        return structure.hard(theta, threads)[1].reshape(shape) if structure else np.empty((0, *shape[1:]), int)

    def _names_on(self, found: np.ndarray) -> list[list[Any]]:
        """The labels of every example."""
        if self.exclusive_:
            return [[label] for label in self.classes_[found].tolist()]
        return [self.classes_[row > 0].tolist() for row in found]

    def _scores(self, X: Any) -> tuple[Multilabel | Multiclass | None, Parts, Threads]:
        """The scores of some examples; no structure if there are none."""
        self._check_fitted()
        matrix, threads, labels = self.reader_.read(X).matrix, Threads(self.n_jobs), len(self.classes_)
        if not matrix.shape[0]:
            return None, (), threads
        with single_threaded_blas():
            scores = self._attribute_scores(matrix, threads) + self.intercept_
        if self.exclusive_:
            return Multiclass(len(scores), labels), (scores,), threads
        node = np.stack([np.zeros(scores.size), scores.ravel()], axis=1)
        return Multilabel(len(scores), labels, self.pairs_), (node, *self.tables_.copy()), threads


def _numbered(pairs: Any, classes: list[Any]) -> Any:
    """Pairs of labels by number, where they are listed."""
    if isinstance(pairs, str):
        return pairs
    listed = pairs.tolist() if isinstance(pairs, np.ndarray) else list(pairs)
    return [tuple(_number(label, classes) for label in pair) for pair in listed]


def _number(label: Any, classes: list[Any]) -> Any:
    """The number of a label by its name; what is no name stays, as the number that it must be."""
    if isinstance(label, str) and label not in classes:
        raise ValueError(f"pairs names the label {label!r}, which does not exist; the labels are {classes!r:.300}")
    return classes.index(label) if label in classes else label
