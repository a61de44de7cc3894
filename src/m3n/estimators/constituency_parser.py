"""Phrase structure trees of sentences: a context-free M3N or CRF with a scikit-learn interface."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from m3n import losses
from m3n.estimators.chains import check_temperature
from m3n.estimators.declaration import learnt
from m3n.estimators.files import Content, check_shape
from m3n.estimators.forms import PHRASES
from m3n.estimators.matrices import linear_scores
from m3n.estimators.predictions import Predictions
from m3n.estimators.trained import TRAINING, Trained
from m3n.estimators.training import Examples, Setup, read_weights
from m3n.estimators.treebanks import ParserInputs, Sentence, TreeReader, read_sentences, read_trees
from m3n.features import NoFeatures, Sparse, Stack, Table
from m3n.grammars.binary import Binarisation
from m3n.grammars.surface import rule_classes
from m3n.grammars.treebank import Charts, NotDerivable, TreebankGrammar
from m3n.grammars.words import Vocabulary
from m3n.io.brackets import ParseTree
from m3n.packed import Threads
from m3n.scores.brackets import bracket_scores
from m3n.structures import Grammar, Parts, Rules

FEATURES = ("spans", "rules")
DECODERS = ("best", "risk")
CHOICES = ("refuse", "nearest")
SURFACE = ("begin_coef_", "split_coef_", "end_coef_", "span_coef_")
SPURIOUS = 0.5  # price of a spurious span, where missed ones cost 1
STRENGTHS = {"spans": 15.0, "rules": 1.0}  # lam in units of 1/n
CRF_STRENGTHS = STRENGTHS | {"spans": 8.0}
HIDDEN = 0.01  # what a right tag is worth beside a right span, where trees must be as near as possible


class ConstituencyParser(Trained):
    """Phrase structure trees of sentences, trained to a certified optimum.

    Rules, and which words have which tags, are read from the training trees. The score of a tree is the sum of the
    weights of its rules, of the words below its tags, and of what the surface of the sentence says about its spans.

    Parameters
    ----------
    features : {"spans", "rules"}
        "rules": weights of rules, and of words and their neighbours with tags. "spans": besides, words and usual tags
        at the first and last position of a span, around it and at its split, with the rule; and its length, shape and
        ends, with its label.
    vertical, horizontal : int
        How much rules remember: the labels of a phrase and of those around it (1 or more), and how many labels to the
        left the rest of a phrase knows (0 or more). Surface features make up for a short memory; with "rules" alone
        take ``vertical=2, horizontal=1``.
    rare_rules : int
        Rules that occur less often in the training trees are left out.
    rare_words : int
        Words that occur less often are seen by their signature: ending, capital letters, digits, hyphen.
    rule_features : int
        With "spans": a rule that occurs so often has surface weights of its own beside those of its parent.
    underivable : {"refuse", "nearest"}
        What to do with a training tree that needs a rule which is left out: an error, or the tree with the most spans
        in common that the rules allow. ``replaced_`` counts these.
    decode : {"best", "risk"}
        What ``predict`` looks for: the tree with the highest score, or the tree with the least expected number of
        missed and spurious spans under exp(score).
    lam : float or None
        Weight of the regulariser lam/2 |w|^2 against the mean loss; None means 1/n with "rules", 15/n with "spans",
        or 8/n if these make a CRF. The sum of sample weights, if there are any, takes the place of n.
    loss : {"hamming", "normalized_hamming"} or Loss
        Loss of every objective but "crf". "hamming": 1 for a missed labelled span and for a wrong tag, 1/2 for a
        spurious span, as there are more trees with many spans than with few; "normalized_hamming": the same divided by
        the numbers of right spans and of words; or an object such as ``m3n.losses.SpanLoss(missed=2.0)``.
    rtol : float
        Stop when the duality gap is at most this part of the objective, if that comes before ``tol``.

    Attributes
    ----------
    classes_ : array (labels,)
        The parts of speech.
    labels_ : list of str
        The labels of phrases.
    coef_ : array (attributes, labels)
        Weights of words with tags.
    rules_ : array (rules,)
        Weights of rules.
    begin_coef_, split_coef_, end_coef_ : array (attributes of positions, classes of rules)
        Surface weights; empty without ``features="spans"``.
    span_coef_ : array (attributes of spans, labels of phrases)
        Weights of spans; empty without ``features="spans"``.
    replaced_ : int
        How many training trees were replaced.
    n_features_in_ : int
        Number of attributes of a word.

    Examples
    --------
    >>> import m3n
    >>> trees = ["(S (NP (DT the) (NN dog)) (VP (VBZ barks)))", "(S (NP (DT a) (NN cat)) (VP (VBZ sleeps)))"]
    >>> sentences = [["the", "dog", "barks"], ["a", "cat", "sleeps"]]
    >>> parser = m3n.ConstituencyParser(rare_words=1, features="rules").fit(sentences, trees)
    >>> print(parser.predict([["the", "cat", "barks"]])[0])
    (S (NP (DT the) (NN cat)) (VP (VBZ barks)))
    """

    rtol: float = 0.01
    features: str = "spans"
    vertical: int = 1
    horizontal: int = 0
    rare_rules: int = 1
    rare_words: int = 2
    rule_features: int = 100
    underivable: str = "refuse"
    decode: str = "best"

    labels_: list[str] = learnt()
    rules_: np.ndarray = learnt("rules", weights=True)
    begin_coef_: np.ndarray = learnt("begins", "rule_classes", weights=True)
    split_coef_: np.ndarray = learnt("splits", "rule_classes", weights=True)
    end_coef_: np.ndarray = learnt("ends", "rule_classes", weights=True)
    span_coef_: np.ndarray = learnt("spans", "phrases", weights=True)
    replaced_: int = learnt()

    _parameters = (
        "features", *TRAINING, "vertical", "horizontal", "rare_rules", "rare_words", "rule_features", "underivable",
        "decode", "C", "l1", "warm_start", "checkpoint",
    )  # fmt: skip
    _reader = TreeReader
    _form = PHRASES

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> ConstituencyParser:
        """Train on sentences with their trees.

        Ctrl-C ends training early; the model then holds the best weights so far, with their certificate.

        Parameters
        ----------
        X : sequence of lists of str
            Words of every sentence; trees are taken for their words.
        y : sequence of trees
            ``m3n.io.ParseTree`` objects, brackets, or nested pairs of a label and children.
        sample_weight : array (sentences,), optional
            How often every sentence counts: 2 is the same as the sentence twice, 0 leaves it out.

        Returns
        -------
        ConstituencyParser
            The fitted estimator itself.
        """
        return self._fit(*_counting(X, y, sample_weight))

    def predict(self, X: Any) -> list[ParseTree]:
        """The trees of sentences, as ``decode`` says.

        The words of a sentence without a derivation may have any tag; if that does not help, its tree is flat.

        Parameters
        ----------
        X : sequence of lists of str
            Words.
        """
        return Predictions(self._decoded(self._scored(X), self.decode))

    def predict_brackets(self, X: Any) -> list[str]:
        """The same trees in brackets.

        Parameters
        ----------
        X : sequence of lists of str
            Words.
        """
        return [str(tree) for tree in self.predict(X)]

    def predict_k_best(self, X: Any, k: int = 5) -> list[list[tuple[ParseTree, float]]]:
        """The k trees with the highest scores, the best first, with their scores; fewer where there are not so many.

        Parameters
        ----------
        X : sequence of lists of str
            Words.
        k : int
            How many trees of every sentence.
        """
        scored = self._scored(X)
        found = [[(self.reader_.grammar.flat(words), -np.inf)] for words in scored.sentences]
        if scored.charts.structure is not None:
            scores, packed = scored.charts.structure.k_best(scored.theta, k, scored.threads)
            ranks = zip(*map(scored.charts.structure.unpack, packed), strict=True)
            for i, derivations, values in zip(scored.charts.kept.tolist(), ranks, scores.tolist(), strict=True):
                ranked = zip(derivations, values, strict=True)
                found[i] = [self._ranked(steps, scored.sentences[i], score) for steps, score in ranked if steps]
        return found

    def _ranked(self, steps: list[int], words: Sentence, score: float) -> tuple[ParseTree, float]:
        return self.reader_.grammar.tree(steps, words), score

    def predict_marginals(
        self, X: Any, temperature: float = 1.0, least: float = 1e-3
    ) -> list[dict[tuple[int, int, str], float]]:
        """Probabilities of labelled spans under exp(score / temperature).

        Parameters
        ----------
        X : sequence of lists of str
            Words.
        temperature : float
            Small values sharpen the distribution towards the prediction, large ones flatten it.
        least : float
            Spans with smaller probabilities are left out.

        Returns
        -------
        list of dict
            For every sentence from (begin, end, label), end exclusive, to the probability.
        """
        check_temperature(temperature)
        scored = self._scored(X)
        found: list[dict[tuple[int, int, str], float]] = [{} for _ in scored.sentences]
        if scored.charts.structure is not None:
            span = scored.marginals(temperature)[-1]
            cells = scored.charts.structure.cells()
            for row, label in np.argwhere(span >= least).tolist():
                i, begin, end = cells[row].tolist()
                found[int(scored.charts.kept[i])][begin, end, self.labels_[label]] = float(span[row, label])
        return found

    def score(self, X: Any, y: Any) -> float:
        """F1 of labelled brackets by EVALB's conventions, see ``m3n.scores.bracket_scores``.

        Parameters
        ----------
        X : sequence of lists of str
            Words.
        y : sequence of trees
            The right trees.
        """
        sentences = read_sentences(X)
        return bracket_scores(read_trees(y, sentences), self.predict(sentences)).f1

    def _check_words(self) -> None:
        super()._check_words()
        for name, known in (("features", FEATURES), ("decode", DECODERS), ("underivable", CHOICES)):
            if getattr(self, name) not in known:
                raise ValueError(f"{name}={getattr(self, name)!r} is not available; choose one of {known}")

    def _bound_loss(self, classes: np.ndarray) -> losses.Loss | None:
        bound = super()._bound_loss(classes)
        if bound is None or not isinstance(self.loss, str):
            return bound
        return bound + losses.SpanLoss(spurious=SPURIOUS, normalized=self.loss == "normalized_hamming")

    def _usual_strength(self) -> float:
        return (CRF_STRENGTHS if self.objective == "crf" else STRENGTHS)[self.features]

    def _read(self, reader: TreeReader, X: Any, y: Any) -> Examples:
        sentences = read_sentences(X)
        trees = read_trees(y, sentences)
        binarisation, vocabulary = Binarisation(self.vertical, self.horizontal), Vocabulary(self.rare_words)
        grammar = TreebankGrammar.read(trees, binarisation, vocabulary, self.rare_rules)
        outputs, replaced = self._derivations(grammar, trees)
        inputs = reader.fit(sentences, grammar, self.features == "spans")
        settled = {"labels_": grammar.labels, "replaced_": replaced}
        return Examples(inputs, np.array(grammar.tags), outputs, learnt=settled, given=[grammar] * len(sentences))

    def _derivations(self, grammar: TreebankGrammar, trees: list[ParseTree]) -> tuple[list[list[int]], int]:
        """The derivations of trees, and how many trees were replaced."""
        found, replaced = [], 0
        for i, tree in enumerate(trees):
            try:
                found.append(grammar.steps(tree))
            except NotDerivable as error:
                if self.underivable == "refuse":
                    raise NotDerivable(
                        f"tree {i} is not derivable: {error}; lower rare_rules={self.rare_rules}, or train on the "
                        "nearest tree that is: underivable='nearest'"
                    ) from None
                found.append(nearest(grammar, tree, i))
                replaced += 1
        return found, replaced

    def _setup(self, examples: Examples, node: Any) -> Setup:
        grammar: TreebankGrammar = (examples.given or [])[0]
        rules, inputs = self._rules(grammar), examples.inputs
        structure: Any = grammar.charts(inputs.sentences, rules).structure  # all have a derivation
        return Setup(structure, Stack(node, Table(rules.count), *_surface_maps(inputs, rules, structure)))

    def _rules(self, grammar: TreebankGrammar) -> Rules:
        return grammar.plain(rule_classes(grammar, self.rule_features) if self.features == "spans" else None)

    def _named_weights(self, features: Stack, w: np.ndarray) -> dict[str, Any]:
        tag, rules, *surface = features.split(w)
        widths = [shape[-1] for shape in features.shapes[2:]]
        arrays = (piece.reshape(-1, width or 1) for piece, width in zip(surface, widths, strict=True))
        return {"coef_": tag, "rules_": rules} | dict(zip(SURFACE, arrays, strict=True))

    def _packed(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        return {"labels": self.labels_, "replaced": self.replaced_}, {}

    def _unpacked(self, content: Content) -> dict[str, Any]:
        reader, fitted = content.fitted["reader_"], content.fitted
        rules = self._rules(reader.grammar)
        check_shape("rules_", fitted["rules_"], (rules.count,))
        if self.features == "spans":
            columns = (*[rules.classes_count] * 3, rules.labels)
            for name, shape in zip(SURFACE, zip(reader.surface.widths, columns, strict=True), strict=True):
                check_shape(name, fitted[name], shape)
        return {"labels_": list(content.meta["labels"]), "replaced_": int(content.meta["replaced"])}

    def _answers(
        self, X: Any, marginals: bool, temperature: float | None = None
    ) -> tuple[list[list[Any]], list[np.ndarray]]:
        """Parts of speech and, if asked for, their probabilities; those of a sentence without a derivation are even."""
        scored = self._scored(X)
        tags = [[tag.label for tag in tree.tags()] for tree in self._decoded(scored, self.decode)]
        found = [np.full((len(words), len(self.classes_)), 1.0 / len(self.classes_)) for words in scored.sentences]
        if marginals and scored.charts.structure is not None:
            warmth = 1.0 if temperature is None else temperature
            pieces = np.split(scored.marginals(warmth)[0], scored.charts.structure.offsets[1:-1])
            for i, piece in zip(scored.charts.kept.tolist(), pieces, strict=True):
                found[i] = piece
        return tags, found if marginals else []

    def _scored(self, X: Any) -> _Scored:
        """Output spaces and scores of sentences."""
        self._check_fitted()
        sentences, threads, grammar = read_sentences(X), Threads(self.n_jobs), self.reader_.grammar
        charts = grammar.charts(sentences, self._rules(grammar))
        if charts.structure is None:
            return _Scored(sentences, charts, (), threads)
        inputs: ParserInputs = self.reader_.read([sentences[i] for i in charts.kept])
        coefficients = [getattr(self, name) for name in SURFACE]
        theta = [self._attribute_scores(inputs.matrix, threads), self.rules_]
        for matrix, weights, shape in zip(inputs.matrices[1:], coefficients, charts.structure.shapes[2:], strict=True):
            theta.append(np.zeros(shape) if matrix is None else linear_scores(matrix, weights, threads))
        return _Scored(sentences, charts, tuple(theta), threads)

    def _decoded(self, scored: _Scored, decode: str) -> list[ParseTree]:
        grammar, charts = self.reader_.grammar, scored.charts
        trees = [grammar.flat(words) for words in scored.sentences]
        if charts.structure is not None:
            theta = scored.theta if decode == "best" else scored.risks()
            _, packed = charts.structure.hard(theta, scored.threads)
            for i, steps in zip(charts.kept.tolist(), charts.structure.unpack(packed), strict=True):
                trees[i] = grammar.tree(steps, scored.sentences[i])
        return trees


def _counting(X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Any]:
    """Sentences, trees and weights without those of weight 0, whose rules and words must not count either."""
    X, y = list(X), list(y)
    weights = read_weights(sample_weight, len(X), "sentence")
    if weights is None or weights.all() or len(X) != len(y):
        return X, y, weights
    chosen = np.flatnonzero(weights)
    return [X[i] for i in chosen], [y[i] for i in chosen], weights[chosen]


class _Scored(NamedTuple):
    """Sentences with what may be derived of them, and its scores."""

    sentences: list[Sentence]
    charts: Charts
    theta: Parts
    threads: Threads

    def marginals(self, temperature: float) -> Parts:
        """Of all parts."""
        structure: Any = self.charts.structure
        return structure.soft(tuple(array.copy() for array in self.theta), temperature, self.threads)[1]

    def risks(self) -> Parts:
        """Scores whose maximum is the least expected number of missed and spurious spans and wrong tags."""
        tag, *others, span = self.marginals(1.0)
        return (tag, *(np.zeros_like(array) for array in others), 2.0 * span - 1.0)


def nearest(grammar: TreebankGrammar, tree: ParseTree, i: int = 0) -> list[int]:
    """The derivation with the most labelled spans in common with a tree, spurious ones counted against it.

    Parameters
    ----------
    grammar : TreebankGrammar
        The rules.
    tree : ParseTree
        A tree that they do not derive.
    i : int
        Its number, for errors.
    """
    words, rules = tree.words(), grammar.plain()
    charts = grammar.charts([words], rules)
    if charts.structure is None:
        raise NotDerivable(
            f"tree {i}: no tree of {' '.join(words)!r:.60} is derivable; leave it out, or keep rarer rules"
        )
    theta = tuple(np.zeros(shape) for shape in charts.structure.shapes)
    place = {(begin, end): row for row, (_, begin, end) in enumerate(charts.structure.cells().tolist())}
    theta[-1][:] = -1.0
    number = {label: k for k, label in enumerate(grammar.labels)}
    for label, begin, end in _spans(tree):
        if label in number:  # else all of its rules are left out
            theta[-1][place[begin, end], number[label]] = 1.0
    theta[0][np.arange(len(words)), [grammar.tags.index(tag.label) for tag in tree.tags()]] = HIDDEN
    return charts.structure.unpack(charts.structure.hard(theta)[1])[0]


def _spans(tree: ParseTree, begin: int = 0) -> list[tuple[str, int, int]]:
    """The labelled spans of a tree."""
    if tree.is_tag:
        return []
    found, end = list[tuple[str, int, int]](), begin
    for child in tree.children:
        found += _spans(child, end)
        end += sum(1 for _ in child.tags())
    return [*found, (tree.label, begin, end)]


def _surface_maps(inputs: ParserInputs, rules: Rules, structure: Grammar) -> list[Any]:
    """Maps of begins, splits, ends and spans."""
    pairs = zip(inputs.matrices[1:], structure.shapes[2:], strict=True)
    return [NoFeatures(*shape) if matrix is None else Sparse(matrix, shape[1]) for matrix, shape in pairs]
