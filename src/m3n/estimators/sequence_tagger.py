"""Tagging sequences: a linear chain M3N or CRF with a scikit-learn interface."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from functools import partial
from itertools import chain
from numbers import Integral
from typing import Any, TypeVar

import numpy as np
import scipy.sparse

from m3n.estimators import files
from m3n.estimators.answer_sets import Coverage
from m3n.estimators.approximation import ApproximationReport, compare_with_kernel
from m3n.estimators.chains import (
    GROUPS,
    MASKS,
    Scored,
    chain_maps,
    chain_of,
    chain_stack,
    chain_weights,
    check_constraints,
    check_decoding,
    check_temperature,
    learn_constraints,
    named_constraints,
    read_fixed,
)
from m3n.estimators.contributions import explain
from m3n.estimators.coverage import Covered
from m3n.estimators.declaration import learnt
from m3n.estimators.direct import direct_labels, direct_scores
from m3n.estimators.explanation import Explanation
from m3n.estimators.files import Content
from m3n.estimators.final import Ball, FinalPredictions, distance, gathered
from m3n.estimators.going_on import GoesOn, Old
from m3n.estimators.held_out import Pair, Score, divided, read_validation, share_to_reach
from m3n.estimators.inputs import (
    Inputs,
    SequenceReader,
    check_label_count,
    flat_labels,
    label_sequences,
    number_labels,
    read_labels,
    share_right,
)
from m3n.estimators.kernel_scores import KernelSettings
from m3n.estimators.labels import side_by_side
from m3n.estimators.matrices import pair_scores
from m3n.estimators.packed_inputs import PackedInputs
from m3n.estimators.partial_labels import AllowedLoss, Known, Round, check_rounds, read_known
from m3n.estimators.predictions import Predictions
from m3n.estimators.sharded import SequenceShards, Wishes, constraints_of
from m3n.estimators.trained import KERNEL, TRAINING, Trained
from m3n.estimators.training import Examples, Setup, read_weights, resolve_objective, resolve_strengths
from m3n.features import Stack, Templates
from m3n.losses import NoLoss
from m3n.packed import SERIAL, Threads
from m3n.packed.threads import single_threaded_blas
from m3n.shards import Shards
from m3n.structures import Transitions

Answer = TypeVar("Answer")

DENSE = "observed_only=True is for sparse inputs; dense attributes occur with every label"
UNCALIBRATED = {"temperature_": 1.0, "coverage_": None}  # what fit leaves to calibration
MOST_SCORES = 1 << 25  # that a prediction holds at a time, 256 MB


class SequenceModel(Trained):
    """An estimator whose inputs are sequences, with scores of neighbouring labels and of both ends.

    Parameters
    ----------
    templates : Templates or None
        Attributes to make of tokens in columns, such as ``m3n.features.CHUNKING``; X is then what
        ``m3n.io.read_columns`` returns, or lists of tokens with one string per column.

    Attributes
    ----------
    transitions_ : array (labels, labels)
        Scores of pairs of neighbouring labels.
    start_, end_ : array (labels,)
        Scores of the first and the last label.
    """

    templates: Templates | None = None

    transitions_: np.ndarray = learnt("labels", "labels", weights=True)
    start_: np.ndarray = learnt("labels", weights=True)
    end_: np.ndarray = learnt("labels", weights=True)

    _reader = SequenceReader

    def _tables(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Copies of the scores that do not depend on inputs, for oracles to write on."""
        return self.transitions_.copy(), self.start_.copy(), self.end_.copy()


class SequenceTagger(SequenceModel, Covered, GoesOn):
    """Labels for every position of a sequence, trained to a certified optimum.

    Parameters
    ----------
    observed_only : bool
        Whether only pairs of an attribute and a label, and transitions, that occur in the training data get a weight:
        models of text become many times smaller. For sparse inputs.
    boundaries : bool
        Whether the first and the last label of a sequence have scores of their own.
    constraints : str, Transitions or None
        Which labels may follow one another, in training and in every prediction: valid chunks of a scheme ("iob" or
        "iob2", "iob1", "ioe1", "ioe2", "bioes", "bilou", "bmes", "bmewo"), what occurs in the training data
        ("observed"), or what ``m3n.structures.Transitions`` says; None allows everything.
    strengths : mapping from str to float, or None
        How strongly groups of weights are regularised, relative to ``lam``: "attributes", "transitions", "boundaries"
        and "pairs" (attributes of pairs), each 1 if it is not named. An l1 penalty counts sqrt(strength) times.
    min_freq : int
        Attributes that occur less often in the training data are left out.
    rounds : int
        Where some labels of y are unknown: at most so many convex problems one after another.

    Attributes
    ----------
    classes_ : array (labels,)
        The labels, sorted; those of an imported model in its order.
    coef_ : array (attributes, labels)
        Weights of the attributes; a ``scipy.sparse.csr_array`` with ``observed_only``. Not there with a kernel.
    edge_coef_ : array (attributes of pairs, labels, labels) or None
        Weights of the attributes that templates such as ``B01:%x[0,0]`` make; with ``observed_only`` a
        ``scipy.sparse.csr_array`` (attributes of pairs, labels * labels).
    constraints_ : Transitions or None
        The constraints, in the order of ``classes_``.
    temperature_ : float
        That of probabilities where no other is given: 1, or what ``calibrate_temperature`` has found.
    coverage_ : Coverage or None
        The thresholds of ``predict_set`` and ``predict_label_sets``, once ``calibrate`` has found them.
    rounds_ : list of Round or None
        Where some labels of y were unknown: the objective after every round, which is not convex, and the certificate
        of the round; ``certificate_`` is that of the last one. Model files do not hold them.

    Examples
    --------
    >>> import m3n
    >>> X = [[["word=the"], ["word=dog"], ["word=barks"]], [["word=dogs"], ["word=bark"]]]
    >>> y = [["D", "N", "V"], ["N", "V"]]
    >>> tagger = m3n.SequenceTagger().fit(X, y)
    >>> tagger.predict([[["word=the"], ["word=dogs"], ["word=bark"]]])
    [['D', 'N', 'V']]
    >>> tagger.certificate_.gap <= 0.01 * tagger.certificate_.primal
    True
    """

    observed_only: bool = False
    boundaries: bool = True
    constraints: str | Transitions | None = None
    min_freq: int = 1
    rounds: int = 10

    edge_coef_: Any = learnt("pairs", "labels", "labels", weights=True)
    constraints_: Transitions | None = learnt()
    temperature_: float = learnt()
    coverage_: Coverage | None = learnt()
    rounds_: list[Round] | None = learnt()

    _parameters = (
        *TRAINING, "templates", "observed_only", "boundaries", "constraints", "C", "l1", "strengths", "warm_start",
        *KERNEL, "min_freq", "class_weight", "prior", "validation", "patience", "stop",
        "rounds",
    )  # fmt: skip
    _groups = GROUPS

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> SequenceTagger:
        """Train on labelled sequences.

        Ctrl-C ends training early; the model then holds the best weights so far, with their certificate.

        Parameters
        ----------
        X : sequences, or Shards
            Shards (``m3n.pack``) are read where they are, with their labels and weights; y is left away. Sequences are
            each a 2-D array (positions, attributes), a CSR matrix, a data frame with a row per token, or a list of
            tokens; a token is a dict of attributes or a list of strings. With ``templates``, tokens in columns, or
            plain words if there is one column. Empty sequences do not count. One data frame with a column "sentence"
            may hold all sequences. What has no length, such as a generator, is read once, and what was read is let go
            of: the sequences of a file need never be in memory together. ``m3n.io.unzip`` makes two such iterators of
            one of pairs.
        y : sequences of labels
            One label per position: strings or numbers. If X and y are both iterators they are read in step. In lists, a
            position may have None, for a label that is not known, or a set, list or tuple of labels, for one of these.
        sample_weight : array (sequences,), optional
            How often every sequence counts: 2 is the same as the sequence twice, 0 leaves it out.

        Returns
        -------
        SequenceTagger
            The fitted estimator itself.
        """
        return self._fit(X, y, sample_weight)

    def predict(
        self, X: Any, *, fixed: Any = None, decoding: str = "viterbi", temperature: float | None = None
    ) -> list[list[Any]]:
        """The best label of every position.

        Parameters
        ----------
        X : sequences, or Shards
            As in ``fit``; attributes that were not seen in training are ignored. Shards are read one after another.
        fixed : sequences of labels and None, optional
            Labels that are known already, None where one is to be predicted; the others are predicted given these. None
            instead of a list: nothing is known about this sequence.
        decoding : {"viterbi", "posterior"}
            The labels with the highest score together, or those with the least expected number of errors under
            exp(score / temperature), that is the largest sum of marginals; among those that ``constraints`` allow.
        temperature : float, optional
            For ``decoding="posterior"``; the default is ``temperature_``.

        Returns
        -------
        list of lists
            One list of labels per sequence, always.
        """
        check_decoding(decoding)
        warmth = self._warmth(temperature)
        self._check_fitted()
        if fixed is None and decoding == "viterbi" and (labels := direct_labels(self, X)) is not None:
            return Predictions(labels)
        ask = Scored.best if decoding == "viterbi" else partial(Scored.posterior, temperature=warmth)
        return Predictions(self._each(X, fixed, ask, []))

    def predict_k_best(
        self, X: Any, k: int, *, fixed: Any = None, probabilities: bool = False, temperature: float | None = None
    ) -> list[list[tuple[Any, ...]]]:
        """The k best label sequences with their scores, best first.

        Parameters
        ----------
        X : sequences
            As in ``fit``.
        k : int
            How many; a sequence has fewer where fewer are possible.
        fixed : sequences of labels and None, optional
            Labels that are known already, as in ``predict``.
        probabilities : bool
            Whether to add the probability of every answer under exp(score / temperature).
        temperature : float, optional
            For ``probabilities``; the default is ``temperature_``.

        Returns
        -------
        list of lists of tuples
            Per sequence: (labels, score), or (labels, score, probability).
        """
        warmth = self._warmth(temperature)
        ask = partial(Scored.k_best, k=k, temperature=warmth if probabilities else None)
        return self._each(X, fixed, ask, [([], 0.0, 1.0) if probabilities else ([], 0.0)])

    def predict_marginals(self, X: Any, temperature: float | None = None, fixed: Any = None) -> list[np.ndarray]:
        """Probability of every label at every position under exp(score / temperature).

        Parameters
        ----------
        X : sequences
            As in ``fit``.
        temperature : float, optional
            Small values sharpen the distribution towards the prediction, large ones flatten it; the default is
            ``temperature_``. Probabilities of a max-margin model at 1 are much too flat: ``calibrate_temperature``.
        fixed : sequences of labels and None, optional
            Labels that are known already, as in ``predict``: probabilities given these.

        Returns
        -------
        list of arrays (positions, labels)
            Columns in the order of ``classes_``.
        """
        ask = partial(Scored.split_marginals, temperature=self._warmth(temperature))
        return self._each(X, fixed, ask, self._no_marginals)

    def certify(self, X: Any, radius: float | None = None) -> FinalPredictions:
        """Which predictions are proven to be those of the exact optimum.

        Training stops at a gap, so the weights are not quite the best ones. A label is final if the best ones predict
        it, too: more passes would change nothing. What is not final may change or not. The smaller the gap, the more
        is final.

        Parameters
        ----------
        X : sequences
            As in ``fit``.
        radius : float, optional
            How far the weights in question are from those of the model, in the norm of the regulariser; the default is
            ``radius_``, for the optimum.

        Returns
        -------
        FinalPredictions
            The labels, and for every position whether its label is final; ``print`` shows the share.
        """
        self._check_fitted()
        return self._certified(self.reader_.read(X), radius)

    def _certified(self, inputs: Inputs, radius: float | None) -> FinalPredictions:
        ball = self._ball(radius)
        return gathered(self._proven(ball, inputs), inputs.lengths, ball.radius)

    def _proven(self, ball: Ball, inputs: Inputs) -> Iterator[tuple[Scored, np.ndarray, np.ndarray]]:
        for piece, given, numbers in self._parts(inputs, None):
            scored = self._scores_of(piece, given, numbers)
            labelling, possible = ball.possible(scored, piece)
            yield scored, labelling, possible

    def _ball(self, radius: float | None) -> Ball:
        """Where the optimum is."""
        factors = resolve_strengths(self.strengths, GROUPS)
        observed = self._linear and scipy.sparse.issparse(self.coef_) and not self.l1  # zeros are left out with l1
        pattern = scipy.sparse.csr_array(self.coef_, copy=True) if observed else None
        if pattern is not None:
            pattern.data = np.ones(pattern.nnz)
        model = None if self._linear else self.kernel_model_
        return Ball(
            distance(self, radius, factors["attributes"]), len(self.classes_), factors, self.boundaries, pattern, model
        )

    def explain(self, x: Any, labels: Any = None, *, top: int | None = 10) -> Explanation:
        """Why one sequence has its labels: the contributions of attributes and transitions to their score.

        Parameters
        ----------
        x : sequence
            One sequence, as in ``fit``. Attributes that were not seen in training contribute nothing and are not shown.
        labels : list of labels, optional
            The labels to explain; None explains the prediction.
        top : int or None
            How many attributes to list at a position, those with the largest differences to the best other label; the
            others are added up. None lists them all.

        Returns
        -------
        Explanation
            ``print`` shows it as text, a notebook as a table; ``as_dict()`` is ready for JSON.
        """
        return explain(self, x, labels, top)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Share of positions that are labelled correctly.

        Parameters
        ----------
        X : sequences, or Shards
            As in ``fit``.
        y : sequences of labels, optional
            The right labels; those of shards are there.
        sample_weight : array (sequences,), optional
            How often every sequence counts; that of shards is there.
        """
        if isinstance(X, Shards):
            return self._score_of_shards(X, y, sample_weight)
        predicted = self.predict(X)
        return share_right(y, predicted, read_weights(sample_weight, len(predicted)))

    def _score_of_shards(self, shards: Shards, y: Any, sample_weight: Any) -> float:
        """The share of positions of all shards, one after another."""
        if y is not None or sample_weight is not None:
            raise ValueError("shards have labels and weights of their own: leave y and sample_weight away")
        self._check_fitted()
        packed, right, total = PackedInputs(shards, self.reader_), 0.0, 0.0
        for i in range(len(shards)):
            shard = shards.open(i)
            weights = np.ones(len(shard.lengths)) if shard.weights is None else shard.weights
            weight = float(weights @ shard.lengths)
            right += weight * share_right(packed.labels(shard), self.predict(packed.inputs(shard)), shard.weights)
            total += weight
        return right / total

    def approximation_report(self, X: Any, y: Any, sequences: int = 200) -> ApproximationReport:
        """How far the approximate features of this model are from the exact kernel, on a part of the data.

        Both are trained on some sequences, drawn by ``random_state``, with this model's features and ``lam_``, and
        compared on the others.

        Parameters
        ----------
        X : sequences
            As in ``fit``; the training data, or others.
        y : sequences of labels
            The right labels.
        sequences : int
            How many to train on. The exact kernel takes time and memory for the square of their positions.
        """
        self._check_fitted()
        settings = self._kernel_settings()
        if settings is None or settings.kernel is None or settings.approximation is None:
            raise ValueError("there is nothing to compare: give a kernel and an approximation, and fit")
        inputs = self.reader_.read(X)
        outputs = number_labels(y, inputs.lengths, self.classes_)
        learnt = {"constraints_": self.constraints_}
        examples = Examples(inputs, self.classes_, outputs, learnt=learnt, usable=inputs.lengths > 0)
        examples = examples.weighted(None, self._form.example)
        plain = copy.copy(self)
        plain.checkpoint = None  # it belongs to the fit
        return compare_with_kernel(plain, settings, examples, sequences)

    def _check_words(self) -> None:
        super()._check_words()
        check_constraints(self.constraints)
        if not isinstance(self.min_freq, Integral) or self.min_freq < 1:
            raise ValueError(f"min_freq must be a whole number from 1, got {self.min_freq!r}")
        if self.observed_only and self._kernel_settings() is not None:
            raise ValueError("observed_only=True is for linear models of text; use it without a kernel")

    def _read(self, reader: SequenceReader, X: Any, y: Any) -> Examples:
        X, y = side_by_side(X, y)
        inputs = reader.fit(X, self.templates, self.min_freq, None if self.prior is None else self.prior.reader_)
        if (open_labels := read_known(y, inputs.lengths, self._known_labels)) is not None:
            return self._partly_known(reader, inputs, open_labels)
        classes, outputs = read_labels(y, inputs.lengths, self._known_labels)
        if not isinstance(self.constraints, Transitions):
            check_label_count(len(classes), int(inputs.lengths.sum()))
        earlier = None if self.prior is None else self.prior.constraints_
        constraints = learn_constraints(self.constraints, classes, outputs, earlier)
        if self.observed_only and reader.kind == "dense":
            raise ValueError(DENSE)
        known = {"constraints_": constraints, "rounds_": None, **UNCALIBRATED}
        old = Old.of(self.prior, reader, classes)
        return Examples(inputs, classes, outputs, learnt=known, usable=inputs.lengths > 0, old=old)

    def _partly_known(self, reader: SequenceReader, inputs: Inputs, known: Known) -> Examples:
        """Examples of which some labels are None or one of several."""
        check_rounds(self)
        rules, names = self.constraints, known.classes.tolist()
        if rules is not None:
            rules = named_constraints(rules, names, known.place_of)
        learnt = {"constraints_": rules, **UNCALIBRATED}
        old = Old.of(self.prior, reader, known.classes)
        usable = inputs.lengths > 0
        return Examples(
            inputs, known.classes, known.outputs, learnt=learnt, usable=usable, old=old, allowed=known.allowed
        )

    def _hold_out(self, examples: Examples, reader: Any) -> tuple[Examples, Score | None]:
        given = read_validation(self.validation, self.patience)
        if given is None:
            return examples, None
        if isinstance(given, Pair):  # read once
            inputs = reader.read(given.X)
            labels, weights = label_sequences(given.y, inputs.lengths), None
            flat_labels(labels, inputs.lengths)  # a mistake shows before training
        else:
            examples, apart = divided(examples, given, self.random_state)
            inputs, weights = apart.inputs, apart.weights
            labels = [examples.classes[own].tolist() for own in apart.outputs]
        if share_to_reach(self.stop, self.validation, self) is not None:
            return examples, lambda model: model._certified(inputs, model.radius_).share
        return examples, lambda model: share_right(labels, model._each(inputs, None, Scored.best, []), weights)

    def _source(self, shards: Shards) -> tuple[SequenceShards, dict[str, Any]]:
        if self._kernel_settings() is not None:
            raise ValueError("a kernel compares all positions of the data: train on shards without one")
        if self.min_freq > 1 or self.templates is not None:
            raise ValueError("min_freq and templates have been settled when the shards were packed; leave them away")
        if self.observed_only and shards.kind == "dense":
            raise ValueError(DENSE)
        objective, classes = resolve_objective(self.objective), shards.classes
        constraints = constraints_of(self.constraints, shards)
        loss = self._bound_loss(classes) or NoLoss()
        wishes = Wishes(
            temperature=objective.temperature, rescale=objective.rescale, loss=loss.counted(shards.label_counts),
            constraints=constraints, observed_only=self.observed_only, boundaries=self.boundaries,
            strengths=self.strengths,
        )  # fmt: skip
        learnt = {"classes_": classes, "constraints_": constraints, "rounds_": None, **UNCALIBRATED}
        return SequenceShards(shards, wishes), learnt | files.known_inputs(SequenceReader(**shards.reader()._asdict()))

    def _attribute_map(self, kernel: KernelSettings | None, examples: Examples) -> tuple[Any, Any]:
        return (None, None) if self.observed_only else super()._attribute_map(kernel, examples)

    def _setup(self, examples: Examples, node: Any) -> Setup:
        inputs, labels, loss = examples.inputs, len(examples.classes), self._bound_loss(examples.classes)
        edges = inputs.pairs is not None or (loss is not None and loss.needs_edges)
        maps = chain_maps(inputs, examples.outputs, labels, node, examples.old)
        factors = resolve_strengths(self.strengths, GROUPS)
        features = chain_stack(maps, factors, boundaries=self.boundaries, edges=edges)
        if loss is not None and examples.allowed is not None:
            loss = AllowedLoss(loss, np.concatenate(examples.allowed))
        chain = chain_of(inputs.lengths, labels, examples.learnt["constraints_"], edges=edges)
        return Setup(chain, features, loss=loss)

    def _named_weights(self, features: Stack, w: np.ndarray) -> dict[str, Any]:
        named = chain_weights(features, w)
        for matrix in (named["coef_"], named["edge_coef_"]):
            if self.l1 and scipy.sparse.issparse(matrix):
                matrix.eliminate_zeros()  # a sparse model is a small one
        return named

    def _packed(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        rules = self.constraints_
        masks = {f"constraints_{m}": getattr(rules, m).astype(np.uint8) for m in MASKS if rules is not None}
        coverage = vars(self).get("coverage_")  # an imported model has none
        settled = None if coverage is None else asdict(coverage)
        return {"temperature": self._warmth(None), "coverage": settled}, masks

    def _unpacked(self, content: Content) -> dict[str, Any]:
        temperature = content.meta.get("temperature", 1.0)  # files once had none
        check_temperature(temperature)
        settled = content.meta.get("coverage")  # likewise
        known = {"temperature_": temperature, "coverage_": None if settled is None else Coverage(**settled)}
        if "constraints_forbidden" not in content.tensors:
            return {"constraints_": None, "rounds_": None} | known
        masks = (content.tensors[f"constraints_{name}"] for name in MASKS)
        rules = Transitions(tuple(content.meta["classes"]), *masks)
        return {"constraints_": rules, "rounds_": None} | known

    def _answers(
        self, X: Any, marginals: bool, temperature: float | None = None
    ) -> tuple[list[list[Any]], list[np.ndarray]]:
        """Labels and, if asked for, their marginals, from scores that are computed once."""
        if not marginals:
            return self._each(X, None, Scored.best, []), []
        ask = partial(_labels_and_marginals, temperature=self._warmth(temperature))
        both: list[tuple[list[Any], np.ndarray]] = self._each(X, None, ask, ([], self._no_marginals))
        return [labels for labels, _ in both], [shares for _, shares in both]

    @property
    def _no_marginals(self) -> np.ndarray:
        """Those of an empty sequence."""
        return np.empty((0, len(self.classes_)))

    def _each(self, X: Any, fixed: Any, ask: Callable[[Scored], Iterable[Answer]], nothing: Answer) -> list[Answer]:
        """What sequences with their scores are asked, and a copy of ``nothing`` for empty ones."""
        self._check_fitted()
        if isinstance(X, Shards):
            if fixed is not None:
                raise ValueError("fixed is for sequences, not for shards")
            return [answer for x in PackedInputs(X, self.reader_) for answer in self._each(x, None, ask, nothing)]
        plain = direct_scores(self, X) if fixed is None else None
        if plain is not None:
            structure = chain_of(plain[0], len(self.classes_), self.constraints_)
            theta = plain[1], *self._tables()
            return list(ask(Scored(structure, theta, self.classes_, None, SERIAL, np.arange(structure.n))))
        inputs = X if isinstance(X, Inputs) else self.reader_.read(X)
        given = read_fixed(fixed, inputs.lengths, self.classes_)
        answers = chain.from_iterable(ask(piece) for piece in self._scored(inputs, given))
        if inputs.lengths.all():
            return list(answers)
        return [next(answers) if length else copy.deepcopy(nothing) for length in inputs.lengths.tolist()]

    def _scored(self, inputs: Inputs, given: np.ndarray | None) -> Iterator[Scored]:
        """Sequences with their scores, as many at a time as memory should hold."""
        return (self._scores_of(*part) for part in self._parts(inputs, given))

    def _parts(
        self, inputs: Inputs, given: np.ndarray | None
    ) -> Iterator[tuple[Inputs, np.ndarray | None, np.ndarray]]:
        """Sequences that are not empty, as many at a time as memory should hold; what is given; their numbers."""
        numbers, inputs = np.flatnonzero(inputs.lengths), inputs.occupied()
        width = len(self.classes_) ** (1 if self.edge_coef_ is None else 2)
        ends = np.concatenate([[0], np.cumsum(inputs.lengths)])
        for low, high in _pieces(inputs.lengths, max(MOST_SCORES // width, 1)):
            fixed = None if given is None else given[ends[low] : ends[high]]
            yield inputs.between(low, high), fixed, numbers[low:high]

    def _scores_of(self, inputs: Inputs, given: np.ndarray | None, numbers: np.ndarray) -> Scored:
        """The scores of some sequences, which have these numbers among all."""
        threads, labels = Threads(self.n_jobs), len(self.classes_)
        structure = chain_of(inputs.lengths, labels, self.constraints_, edges=self.edge_coef_ is not None)
        with single_threaded_blas():
            theta = [self._attribute_scores(inputs.matrix, threads), *self._tables()]
            if self.edge_coef_ is not None:
                theta.append(pair_scores(inputs.pairs, self.edge_coef_, labels, threads))
        return Scored(structure, tuple(theta), self.classes_, given, threads, numbers)


def _labels_and_marginals(scored: Scored, temperature: float) -> Iterator[tuple[list[Any], np.ndarray]]:
    """Of every sequence; the labels first, because marginals are written over the scores."""
    labels = scored.best()
    return zip(labels, scored.split_marginals(temperature), strict=True)


def _pieces(lengths: np.ndarray, most: int) -> Iterator[tuple[int, int]]:
    """Ranges of sequences with at most so many positions each, at least one sequence in each."""
    ends, low = np.cumsum(lengths), 0
    while low < len(lengths):
        before = ends[low - 1] if low else 0
        high = max(int(np.searchsorted(ends, before + most, side="right")), low + 1)
        yield low, high
        low = high
