"""Dependency trees of sentences: an M3N or CRF over arcs, with a scikit-learn interface."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import chain
from typing import Any

import numpy as np

from m3n import losses
from m3n.estimators.arc_explanation import explain
from m3n.estimators.arc_filter import ArcFilter, right_arcs
from m3n.estimators.arc_labels import ArcLabels
from m3n.estimators.chains import check_temperature
from m3n.estimators.declaration import learnt
from m3n.estimators.explanation import TreeExplanation
from m3n.estimators.files import Content, check_shape
from m3n.estimators.forms import ARCS
from m3n.estimators.kernel_scores import KernelSettings
from m3n.estimators.predictions import Predictions
from m3n.estimators.projective import lifted
from m3n.estimators.trained import TRAINING, Trained
from m3n.estimators.training import (
    Examples,
    Setup,
    resolve_loss,
    resolve_objective,
    resolve_strengths,
    split_weights,
    stacked,
)
from m3n.estimators.words import WordReader, read_trees
from m3n.features import Codes, Stack
from m3n.features.arcs import ArcTemplates, arc_codes, grandchild_codes, label_codes, sibling_codes
from m3n.features.words import WordTable
from m3n.packed import Threads
from m3n.packed.ragged import batches
from m3n.scores import attachment_scores
from m3n.structures import Arcs, NonProjectiveTree, Parts, ProjectiveTree, k_best

GROUPS = ("arcs", "labels", "siblings", "grandchildren")
WEIGHTS = {"arcs": "coef_", "labels": "label_coef_", "siblings": "sibling_coef_", "grandchildren": "grandchild_coef_"}
SECOND = ("siblings", "grandchildren")
NO_LABELS = np.array([""])  # the classes of trees without labels
FILTER = {1: 1e-3, 2: 1e-2}  # by order
FILTER_BITS = 18  # at most
AT_ONCE = 1_000_000  # arcs that are looked at together, so that memory does not grow with the number of sentences
Structure = ProjectiveTree | NonProjectiveTree


class DependencyParser(Trained):
    """Trees of words, each with the word that it depends on, trained to a certified optimum.

    A tree scores the sum over its arcs from a head to a dependent, over their labels and, with ``order=2``, over
    neighbouring dependents of one head and over arcs below arcs. Each of these parts scores the weights of its
    features, about a hundred for an arc: forms, lemmas, tags and morphology of its words and of those around and
    between them, hashed to the number of a weight. A filter, a small model of arcs, first leaves out arcs that are
    hardly ever right; the certificate speaks of the trees over the others.

    Parameters
    ----------
    lam : float or None
        Weight of the regulariser lam/2 |w|^2 against the mean loss; None means 30/n, as an arc has about a hundred
        features. The sum of sample weights, if there are any, takes the place of n.
    loss : {"hamming", "normalized_hamming"} or Loss
        What wrong trees cost, with every objective but "crf": wrong words, that is words with a wrong head or label,
        or their share; or an object of ``m3n.losses``, such as ``PartLoss``.
    rtol : float
        Stop when the duality gap is at most this part of the objective, if that comes before ``tol``. Trees hardly
        become better below a tenth.
    order : {1, 2}
        1 for scores of single arcs; 2 also scores pairs of arcs, see ``second_order``.
    second_order : {"both", "siblings", "grandchildren"}
        Which pairs of arcs ``order=2`` scores: neighbouring dependents on the same side of a head, an arc below
        another one, or both.
    projective : bool
        Whether trees must be drawn without crossing arcs. Without that there is ``order=1`` only.
    single_root : bool
        Whether exactly one word of a sentence depends on the root.
    filter : float or None
        Arcs are left out whose probability by the filter is less than this part of that of the likeliest head of the
        same word; 0 keeps all arcs. None means 0.001, and 0.01 with ``order=2``, as arcs have many pairs.
    bits : int
        Features of each kind are hashed to 2^bits weights.

    Attributes
    ----------
    classes_ : array (labels,)
        The labels of arcs, sorted; a single empty text if trees have none.
    coef_, label_coef_, sibling_coef_, grandchild_coef_ : array (2^bits,)
        Weights of the features of arcs, labels, siblings and grandchildren; empty where there are no such features.
    filter_coef_ : array (weights,)
        Weights of the filter.
    lifted_ : int
        How many trees of the training data had crossing arcs that were lifted, with ``projective=True``.
    n_features_in_ : int
        Number of attributes of a word.

    Examples
    --------
    >>> import m3n
    >>> X = [[("dogs", "NOUN"), ("bark", "VERB")], [("big", "ADJ"), ("dogs", "NOUN"), ("bark", "VERB")]]
    >>> y = [[(2, "nsubj"), (0, "root")], [(2, "amod"), (3, "nsubj"), (0, "root")]]
    >>> parser = m3n.DependencyParser(bits=12).fit(X, y)
    >>> parser.predict([[("cats", "NOUN"), ("sleep", "VERB")]])
    [[(2, 'nsubj'), (0, 'root')]]
    """

    rtol: float = 0.1
    order: int = 1
    second_order: str = "both"
    projective: bool = True
    single_root: bool = True
    filter: float | None = None
    bits: int = 22

    coef_: np.ndarray = learnt("arc weights", weights=True)
    label_coef_: np.ndarray = learnt("label weights", weights=True)
    sibling_coef_: np.ndarray = learnt("sibling weights", weights=True)
    grandchild_coef_: np.ndarray = learnt("grandchild weights", weights=True)
    filter_coef_: np.ndarray = learnt("filter weights", weights=True)
    label_kinds_: np.ndarray = learnt("kinds", limits=(0, None))
    label_firsts_: np.ndarray = learnt("kinds and one", limits=(0, None))
    label_lists_: np.ndarray = learnt("listed", limits=(0, "labels"))
    lifted_: int = learnt()

    _parameters = (
        *TRAINING, "order", "second_order", "projective", "single_root", "filter", "bits", "C", "l1", "strengths",
        "warm_start", "checkpoint",
    )  # fmt: skip
    _reader = WordReader
    _form = ARCS
    _has_names = False  # hashed features have none
    _groups = GROUPS
    _weight_names = WEIGHTS
    _strength = 30.0

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> DependencyParser:
        """Train on sentences with their trees.

        Parameters
        ----------
        X : sequences of words
            A word is a dict with some of the attributes form, lemma, upos, xpos and feats, a tuple of these five, a
            pair of form and part of speech, or a form. ``m3n.io.read_conllu`` reads such sentences.
        y : sequences of trees
            For every word its head, 0 for the root, or a pair of its head and the label of the arc. None takes the
            trees of a ``Treebank``.
        sample_weight : array (sentences,), optional
            How often every sentence counts: 2 is the same as the sentence twice, 0 leaves it out.

        Returns
        -------
        DependencyParser
            The fitted estimator itself.
        """
        return self._fit(X, X.trees if y is None and hasattr(X, "trees") else y, sample_weight)

    def predict(self, X: Any) -> list[list[Any]]:
        """The tree with the highest score of every sentence: heads, or pairs of head and label.

        Parameters
        ----------
        X : sequences of words
            As in ``fit``.
        """
        scored = (self._best(structure, theta, threads) for structure, theta, threads in self._scored(X))
        return Predictions(chain.from_iterable(scored))

    def predict_marginals(self, X: Any, temperature: float = 1.0) -> list[np.ndarray]:
        """Probability of every arc under exp(score / temperature).

        Parameters
        ----------
        X : sequences of words
            As in ``fit``.
        temperature : float
            Small values sharpen the distribution towards the prediction, large ones flatten it.

        Returns
        -------
        list of arrays (words, words + 1)
            Row t has the probabilities of the heads of word t + 1: column 0 for the root, column h for word h.
        """
        check_temperature(temperature)
        found: list[np.ndarray] = []
        for structure, theta, threads in self._scored(X):
            _, (marginal, *_) = structure.soft(theta, temperature, threads)
            found += _tables(structure.arcs, marginal)
        return found

    def predict_min_risk(self, X: Any, temperature: float = 1.0) -> list[list[Any]]:
        """The tree with the most right words to be expected, each with the label that is likeliest for its arc.

        Parameters
        ----------
        X : sequences of words
            As in ``fit``.
        temperature : float
            As in ``predict_marginals``.
        """
        check_temperature(temperature)
        found: list[list[Any]] = []
        for structure, theta, threads in self._scored(X):
            _, marginals = structure.soft(theta, temperature, threads)
            gain = tuple(np.zeros(len(array)) for array in theta)
            gain[1 if self._labelled else 0][:] = marginals[1 if self._labelled else 0]
            found += self._best(structure, gain, threads)
        return found

    def predict_k_best(self, X: Any, k: int) -> list[list[tuple[list[Any], float]]]:
        """The k trees with the highest scores of every sentence, best first, with their scores.

        Parameters
        ----------
        X : sequences of words
            As in ``fit``.
        k : int
            How many; fewer where there are fewer trees.
        """
        found = []
        for structure, theta, _ in self._scored(X):
            for i in range(structure.n):
                ranked = k_best(structure, i, structure.own(theta, i), k, (1 if self._labelled else 0,))
                found.append([(self._named(structure.output_of(parts, i)), score) for score, parts in ranked])
        return found

    def explain(self, x: Any, tree: Any = None, *, top: int | None = 10) -> TreeExplanation:
        """Why every word of a sentence has its head and label: the features that speak for them, and for another one.

        Parameters
        ----------
        x : sequence of words
            One sentence.
        tree : sequence, optional
            The tree to explain, as in ``fit``; None explains the prediction.
        top : int or None
            How many features of a word are listed, those that make the largest difference; None lists all.

        Returns
        -------
        TreeExplanation
            Word by word the terms of the score, beside those of the best tree in which the word has another head or
            label. Print it, or look at ``positions``.
        """
        return explain(self, x, tree, top)

    def score(self, X: Any, y: Any = None) -> float:
        """Share of words with the right head and label (LAS), or with the right head where trees have no labels (UAS).

        Parameters
        ----------
        X : sequences of words
            As in ``fit``.
        y : sequences of trees
            The right trees; None takes those of a ``Treebank``.
        """
        return attachment_scores(X.trees if y is None else y, self.predict(X)).las

    # training

    def _check_words(self) -> None:
        super()._check_words()
        if self.order not in (1, 2):
            raise ValueError(f"order must be 1 or 2, got {self.order!r}")
        if self.second_order not in ("both", *SECOND):
            raise ValueError(f"second_order must be one of {('both', *SECOND)}, got {self.second_order!r}")
        if self.order == 2 and not self.projective:
            raise ValueError(
                "trees with crossing arcs have order=1 only: best trees of order 2 cannot be found exactly"
            )
        if not 0.0 <= self._share < 1.0:
            raise ValueError(f"filter must be at least 0 and below 1, got {self.filter}")

    def _read(self, reader: WordReader, X: Any, y: Any) -> Examples:
        words = reader.fit(X)
        heads, labels = read_trees(y, words.lengths)
        changed = 0
        if self.projective:
            heads, changed = lifted(heads)
        if labels is None:
            return Examples(words, NO_LABELS, heads, learnt={"lifted_": changed})
        classes, numbers = np.unique(np.array([label for tree in labels for label in tree]), return_inverse=True)
        if len(classes) == 1:  # nothing to choose
            return Examples(words, classes, heads, learnt={"lifted_": changed})
        cuts = np.split(numbers, np.cumsum(words.lengths)[:-1])
        trees = [list(zip(tree, own.tolist(), strict=True)) for tree, own in zip(heads, cuts, strict=True)]
        return Examples(words, classes, trees, learnt={"lifted_": changed})

    def _attribute_map(self, kernel: KernelSettings | None, examples: Examples) -> tuple[Any, Any]:
        return None, None

    def _setup(self, examples: Examples, node: Any) -> Setup:
        words, threads, labelled = examples.inputs, self._threads, len(examples.classes) > 1
        heads = [[entry[0] for entry in tree] for tree in examples.outputs] if labelled else examples.outputs
        everything, sieve = Arcs.all(words.lengths), self._sieve
        coef = sieve.train(words, heads, examples.weights, self.n_jobs) if self._share else np.zeros(0)
        right = right_arcs(everything, heads)
        arcs = everything.only(right | sieve.kept(words, coef, threads))
        lists = ArcLabels.none()
        if labelled:
            numbers = np.concatenate([[label for _, label in tree] for tree in examples.outputs])
            lists = ArcLabels.learn(words, everything.only(right), numbers, len(examples.classes), examples.weights)
            arcs = lists.allow(words, arcs, (np.flatnonzero(right_arcs(arcs, heads)), numbers))
        listed = {"label_kinds_": lists.keys, "label_firsts_": lists.first, "label_lists_": lists.labels}
        groups = [(codes, name) for name, codes in self._codes(words, arcs, examples.classes, threads).items()]
        features = stacked(groups, resolve_strengths(self.strengths, GROUPS))
        return Setup(self._space(arcs), features, {"filter_coef_": coef} | listed)

    def _named_weights(self, features: Stack, w: np.ndarray) -> dict[str, Any]:
        labelled = len(features.maps) > len(self._kinds(False))
        found = zip(self._kinds(labelled), split_weights(features, w), strict=True)
        return {name: np.zeros(0) for name in WEIGHTS.values()} | {WEIGHTS[kind]: piece for kind, piece in found}

    def _packed(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        return {"lifted": self.lifted_}, {}

    def _unpacked(self, content: Content) -> dict[str, Any]:
        fitted, templates = content.fitted, self._templates
        kinds = self._kinds(len(fitted["classes_"]) > 1)
        for kind, name in WEIGHTS.items():
            check_shape(name, fitted[name], (templates.arcs.dim if kind in kinds else 0,))
        check_shape("filter_coef_", fitted["filter_coef_"], (templates.filter.dim if self._share else 0,))
        keys, first, listed = (fitted[name] for name in ("label_kinds_", "label_firsts_", "label_lists_"))
        check_shape("label_firsts_", first, (len(keys) + 1,))
        if first[0] != 0 or first[-1] != len(listed) or (np.diff(first) < 0).any() or (np.diff(keys) <= 0).any():
            raise ValueError("label_kinds_, label_firsts_ and label_lists_ do not fit together")
        return {"lifted_": int(content.meta["lifted"])}

    def _bound_loss(self, classes: np.ndarray) -> losses.Loss | None:
        if not resolve_objective(self.objective).has_loss or not isinstance(self.loss, str):
            return super()._bound_loss(classes)
        resolve_loss(self.loss)
        arrays = (1 if len(classes) > 1 else 0,)
        return losses.PartLoss(0.0, 1.0, arrays, normalized=self.loss == "normalized_hamming")

    # what training and prediction share

    @property
    def _threads(self) -> Threads:
        return Threads(self.n_jobs)

    @property
    def _templates(self) -> ArcTemplates:
        return ArcTemplates(self.bits, min(self.bits, FILTER_BITS))

    @property
    def _share(self) -> float:
        return FILTER[self.order] if self.filter is None else self.filter

    @property
    def _sieve(self) -> ArcFilter:
        return ArcFilter(self._templates.filter, self._trees, self._share)

    @property
    def _labelled(self) -> bool:
        return len(self.classes_) > 1

    @property
    def _trees(self) -> Any:
        """From candidate arcs to trees over them, of the first order."""
        return partial(ProjectiveTree if self.projective else NonProjectiveTree, single_root=self.single_root)

    @property
    def _pairs(self) -> list[str]:
        """Which pairs of arcs are scored."""
        return [name for name in SECOND if self.order == 2 and self.second_order in ("both", name)]

    def _space(self, arcs: Arcs) -> Structure:
        if self.order == 1:
            return self._trees(arcs)
        return self._trees(arcs, **{name: name in self._pairs for name in SECOND})

    def _kinds(self, labelled: bool) -> list[str]:
        """The kinds of parts, in the order of the arrays of theta."""
        return ["arcs", *["labels"] * labelled, *self._pairs]

    def _codes(self, words: WordTable, arcs: Arcs, classes: np.ndarray, threads: Threads) -> dict[str, Codes]:
        """The features of all parts."""
        templates = self._templates
        makers: dict[str, Any] = {
            "arcs": lambda: arc_codes(templates.arcs, words, arcs, threads),
            "labels": lambda: label_codes(templates.labels, words, arcs, [str(name) for name in classes], threads),
            "siblings": lambda: sibling_codes(templates.siblings, words, arcs, threads),
            "grandchildren": lambda: grandchild_codes(templates.grandchildren, words, arcs, threads),
        }
        return {kind: makers[kind]() for kind in self._kinds(arcs.labels > 1)}

    def _scored(self, X: Any) -> Iterator[tuple[Structure, Parts, Threads]]:
        """Trees and scores of their parts, some sentences at a time."""
        self._check_fitted()
        table, threads = self.reader_.read(X), self._threads
        for low, high in batches(table.lengths**2, AT_ONCE):
            words = table.between(low, high)
            everything = Arcs.all(words.lengths)
            arcs = everything.only(self._sieve.kept(words, self.filter_coef_, threads))
            if self._labelled:
                arcs = self._label_lists.allow(words, arcs)
            codes = self._codes(words, arcs, self.classes_, threads)
            theta = tuple(
                found.scores(getattr(self, WEIGHTS[kind]), (np.empty(found.shapes[0]),), threads)[0]
                for kind, found in codes.items()
            )
            yield self._space(arcs), theta, threads

    @property
    def _label_lists(self) -> ArcLabels:
        return ArcLabels(self.label_kinds_, self.label_firsts_, self.label_lists_, len(self.classes_))

    def _best(self, structure: Structure, theta: Parts, threads: Threads) -> list[list[Any]]:
        return [self._named(tree) for tree in structure.unpack(structure.hard(theta, threads)[1])]

    def _numbered(self, tree: Any, length: int) -> list[Any]:
        """A tree with the numbers of its labels."""
        (heads,), labels = read_trees([tree], np.array([length]))
        if not self._labelled:
            return heads
        if labels is None:
            raise ValueError("the tree has heads alone; give pairs of head and label, as the model predicts them")
        names = self.classes_.tolist()
        unknown = [label for label in labels[0] if label not in names]
        if unknown:
            raise ValueError(f"the model does not know the label {unknown[0]!r}; it knows {names!r:.300}")
        return [(head, names.index(label)) for head, label in zip(heads, labels[0], strict=True)]

    def _named(self, tree: list[Any]) -> list[Any]:
        """A tree with the names of its labels."""
        names = self.classes_.tolist()
        if self._labelled:
            return [(head, names[label]) for head, label in tree]
        return tree if names == NO_LABELS.tolist() else [(head, names[0]) for head in tree]


def _tables(arcs: Arcs, values: np.ndarray) -> list[np.ndarray]:
    """Numbers of arcs as a table for every sentence, 0 for those that are no candidates: (words, words + 1)."""
    found = [np.zeros((length, length + 1)) for length in arcs.lengths.tolist()]
    for i, table in enumerate(found):
        own = slice(arcs.first[i], arcs.first[i + 1])
        table[arcs.dependent[own] - 1, arcs.head[own]] = values[own]
    return found
