"""Several labels per example: an M3N or CRF over binary variables, with a scikit-learn interface."""

from __future__ import annotations

from typing import Any

import numpy as np

from m3n.estimators.chains import check_temperature
from m3n.estimators.declaration import learnt
from m3n.estimators.forms import SETS
from m3n.estimators.indicators import TableReader, add_ones, read_outputs
from m3n.estimators.kernel_scores import KernelSettings
from m3n.estimators.matrices import linear_map
from m3n.estimators.trained import KERNEL, TRAINING, Trained
from m3n.estimators.training import Examples, Setup, resolve_strengths, split_weights, stacked
from m3n.features import BinaryLabels, Stack, Table
from m3n.packed import Threads
from m3n.packed.threads import single_threaded_blas
from m3n.structures import Multilabel, Parts, multilabel_pairs

GROUPS = ("attributes", "pairs")


class MultilabelClassifier(Trained):
    """Any number of labels for every example, chosen together, trained to a certified optimum.

    Every label that an example has scores <x, W[:, l]>, and every pair of labels scores by whether they are on or off.

    Parameters
    ----------
    pairs : {"full", "tree", "none"}
        Which pairs of labels have scores: all, which takes time exponential in the number of labels; a tree of the
        pairs that say most about one another (Chow and Liu); or none, that is one classifier per label.
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
        The labels, sorted; 0, 1, ... if Y was an indicator matrix.
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

    pairs: str = "full"
    intercept: bool = True

    intercept_: np.ndarray = learnt("labels", weights=True)
    pairs_: np.ndarray = learnt("scored", 2, limits=(0, "labels"))
    tables_: np.ndarray = learnt("scored", 2, 2, weights=True)

    _estimator_type = "classifier"  # for scikit-learn before 1.6
    _parameters = ("pairs", *TRAINING, "intercept", "C", "l1", "strengths", *KERNEL)
    _reader = TableReader
    _form = SETS
    _groups = GROUPS
    _outputs = np.arange(2)  # on or off

    def fit(self, X: Any, Y: Any, sample_weight: Any = None) -> MultilabelClassifier:
        """Train on labelled examples.

        Ctrl-C ends training early; the model then holds the best weights so far, with their certificate.

        Parameters
        ----------
        X : array or sparse matrix (examples, attributes)
            Inputs.
        Y : array or sparse matrix (examples, labels), or sets of labels
            Zeros and ones, or for every example the labels that it has.
        sample_weight : array (examples,), optional
            How often every example counts: 2 is the same as the example twice, 0 leaves it out.

        Returns
        -------
        MultilabelClassifier
            The fitted estimator itself.
        """
        return self._fit(X, Y, sample_weight)

    def predict(self, X: Any) -> np.ndarray:
        """The labels with the highest score together, as an indicator matrix (examples, labels) of integers.

        Parameters
        ----------
        X : array or sparse matrix (examples, attributes)
            Inputs.
        """
        structure, theta, threads = self._scores(X)
        return structure.hard(theta, threads)[1].reshape(-1, len(self.classes_)) if structure else self._nothing(int)

    def predict_sets(self, X: Any) -> list[set[Any]]:
        """The same labels by their names, one set per example.

        Parameters
        ----------
        X : array or sparse matrix (examples, attributes)
            Inputs.
        """
        return [set(self.classes_[row > 0].tolist()) for row in self.predict(X)]

    def predict_proba(self, X: Any, temperature: float = 1.0) -> np.ndarray:
        """Probability of every label under exp(score / temperature), shape (examples, labels).

        Parameters
        ----------
        X : array or sparse matrix (examples, attributes)
            Inputs.
        temperature : float
            Small values sharpen the distribution towards the prediction, large ones flatten it.
        """
        check_temperature(temperature)
        structure, theta, threads = self._scores(X)
        if structure is None:
            return self._nothing(float)
        _, (node, *_) = structure.soft(theta, temperature, threads)
        return node[:, 1].reshape(-1, len(self.classes_)).copy()

    def decision_function(self, X: Any) -> np.ndarray:
        """By how much the best labels with a label on score above the best with it off, shape (examples, labels).

        Positive where ``predict`` says 1. It takes one prediction per label.

        Parameters
        ----------
        X : array or sparse matrix (examples, attributes)
            Inputs.
        """
        structure, theta, threads = self._scores(X)
        if structure is None:
            return self._nothing(float)
        best, labelling = structure.hard(theta, threads)
        node, chosen = theta[0].reshape(len(best), -1, 2), labelling.reshape(len(best), -1)
        margins, everyone = np.empty(chosen.shape), np.arange(len(best))
        for label in range(chosen.shape[1]):
            kept = node[:, label].copy()
            node[everyone, label, chosen[:, label]] = -np.inf
            margins[:, label] = best - structure.hard(theta, threads)[0]
            node[:, label] = kept
        return np.where(chosen == 1, margins, -margins)

    def score(self, X: Any, Y: Any, sample_weight: Any = None) -> float:
        """Share of examples of which all labels are right, as scikit-learn's multilabel classifiers have it.

        Parameters
        ----------
        X : array or sparse matrix (examples, attributes)
            Inputs.
        Y : array or sparse matrix (examples, labels), or sets of labels
            The right labels.
        sample_weight : array (examples,), optional
            How often every example counts.
        """
        predicted = self.predict(X)
        _, gold = read_outputs(Y, len(predicted), self.classes_)
        return float(np.average((predicted == gold).all(axis=1), weights=sample_weight))

    def __sklearn_tags__(self) -> Any:
        """scikit-learn's description of an estimator: a classifier with several labels."""
        from sklearn.utils import ClassifierTags

        tags = super().__sklearn_tags__()
        tags.estimator_type = "classifier"
        tags.classifier_tags = ClassifierTags(multi_class=False, multi_label=True)
        tags.target_tags.required = True
        tags.input_tags.sparse = True
        return tags

    def _read(self, reader: TableReader, X: Any, y: Any) -> Examples:
        table = reader.fit(X)
        return Examples(table, *read_outputs(y, table.matrix.shape[0]))

    def _attribute_map(self, kernel: KernelSettings | None, examples: Examples) -> tuple[Any, Any]:
        if self.intercept and kernel is None:
            return linear_map(add_ones(examples.inputs.matrix), len(examples.classes)), None
        return super()._attribute_map(kernel, examples)

    def _setup(self, examples: Examples, node: Any) -> Setup:
        pairs = multilabel_pairs(examples.outputs, self.pairs, examples.weights)
        structure = Multilabel(len(examples.outputs), len(examples.classes), pairs)
        groups = [(BinaryLabels(node), "attributes"), *((Table(2, 2), "pairs") for _ in pairs)]
        return Setup(structure, stacked(groups, resolve_strengths(self.strengths, GROUPS)), {"pairs_": pairs})

    def _named_weights(self, features: Stack, w: np.ndarray) -> dict[str, Any]:
        own, *tables = split_weights(features, w)
        return {"coef_": own, "tables_": np.array(tables).reshape(-1, 2, 2)}

    def _attribute_weights(self, kernel: KernelSettings | None, node: Any, transformer: Any, w: Any) -> dict[str, Any]:
        labels = node.shapes[0][1]
        intercept = np.zeros(labels)
        if kernel is None and self.intercept:
            w, intercept = w[:-labels], w[-labels:].copy()
        return {"intercept_": intercept} | super()._attribute_weights(kernel, node, transformer, w)

    def _answers(self, X: Any, marginals: bool) -> tuple[list[list[Any]], list[np.ndarray]]:
        labels = [self.classes_[row > 0].tolist() for row in self.predict(X)]
        return labels, list(self.predict_proba(X)) if marginals else []

    def _scores(self, X: Any) -> tuple[Multilabel | None, Parts, Threads]:
        """The scores of some examples; no structure if there are none."""
        self._check_fitted()
        matrix, threads = self.reader_.read(X).matrix, Threads(self.n_jobs)
        if not matrix.shape[0]:
            return None, (), threads
        structure = Multilabel(matrix.shape[0], len(self.classes_), self.pairs_)
        node = np.zeros(structure.shapes[0])
        with single_threaded_blas():
            node[:, 1] = (self._attribute_scores(matrix, threads) + self.intercept_).ravel()
        return structure, (node, *self.tables_.copy()), threads

    def _nothing(self, kind: type) -> np.ndarray:
        return np.empty((0, len(self.classes_)), kind)
