"""A stand-in for ``sklearn_crfsuite.CRF``: change the import, keep the script.

The arguments, methods and attributes are those of sklearn-crfsuite 0.5, and so is the model: attributes named as
python-crfsuite names them, weights only for what occurs unless more is asked for, no scores for the ends of a sequence.
``algorithm="lbfgs"`` and "l2sgd" minimise CRFsuite's objective, here until a duality gap certifies the optimum.

What differs:

- ``predict`` and ``predict_marginals`` return a list of lists, which is compared as an array is. The original returns
  an array of lists, which becomes a 2-D array of labels if all sequences are equally long.
- ``algorithm="ap"``, "pa" and "arow" have no objective; a max-margin network is trained instead, with a warning.
- There is no temporary file until ``modelfile.name`` is asked for. ``model_filename`` is written in m3n's format if its
  name ends in ``.m3n``, else in CRFsuite's.
- Labels that occur only in ``y_dev`` do not become labels of the model.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from m3n.compat.base_trainer import BaseTrainer
from m3n.compat.crf_training import Task, algorithm_of, plan_of
from m3n.compat.crfsuite_writer import model_bytes
from m3n.compat.exports import export, weights_of
from m3n.compat.items import listed, plain_labels, reading
from m3n.compat.sklearn_crfsuite.answers import Answers
from m3n.compat.sklearn_crfsuite.model_file import ModelFile
from m3n.compat.tagger import ModelInfo, Tagger, read_model
from m3n.compat.trainer_parameters import EVERYONE, PARAMETERS
from m3n.compat.training_data import TrainingData
from m3n.compat.training_log import TrainingLog, log_of, scores_of
from m3n.estimators import SequenceTagger
from m3n.estimators.declaration import Declared, learnt
from m3n.estimators.inputs import share_right
from m3n.estimators.notebook import estimator_page
from m3n.estimators.trained import history
from m3n.io.files import check_writable
from m3n.run.certificate import Certificate, Record

__all__ = ["CRF"]

ALL_PARAMETERS = EVERYONE | {name: known for own in PARAMETERS.values() for name, known in own.items()}


class CRF(Declared):
    """A linear chain CRF with the interface of sklearn-crfsuite.

    Parameters
    ----------
    algorithm : {"lbfgs", "l2sgd", "ap", "pa", "arow"} or None
        The first two minimise the negative log-likelihood with penalties; None is "lbfgs". For the others a max-margin
        network stands in. "averaged-perceptron", "passive-aggressive" and capitals are understood.
    min_freq : float or None
        The smallest frequency of a pair of an attribute and a label, or of a transition, that gets a weight.
    all_possible_states, all_possible_transitions : bool or None
        Whether pairs that do not occur in the data get a weight too.
    c1, c2 : float or None
        Weights of the penalties c1 |w|_1 and c2 |w|^2 beside the sum of losses; None means 0 and 1.
    max_iterations : int or None
        The most passes over the data. None: no limit for "lbfgs", 1000 for "l2sgd", 100 for the others.
    num_memories, epsilon : number or None
        Accepted; the solver is another one.
    period, delta : int, float or None
        Training ends when the objective is certainly within the part ``delta`` of its optimum; None means 1e-5, or 1e-6
        for "l2sgd", or 1e-3 with c1 and ``max_iterations``. With c1 it also ends when ``period`` passes, or 10, have
        brought no more than that.
    linesearch : str or None
        Accepted.
    max_linesearch : int or None
        Accepted.
    calibration_eta, calibration_rate, calibration_samples : float or None
        Accepted; there is no learning rate.
    calibration_candidates, calibration_max_trials : int or None
        Accepted.
    pa_type : int or None
        Accepted.
    c : float or None
        For "pa": the weight of the losses against 1/2 |w|^2; None means 1.
    error_sensitive, averaging : bool or None
        Accepted; the loss is the number of wrong labels.
    variance, gamma : float or None
        For "arow": losses weigh variance/gamma against 1/2 |w|^2; None means 1.
    verbose : bool
        Show a progress bar.
    model_filename : path or None
        Where ``fit`` writes the model: in m3n's format if the name ends in ``.m3n``, else in CRFsuite's, without the
        certificate. Before ``fit``, a model to predict with: of m3n, CRFsuite or CRF++.
    keep_tempfiles : bool
        Whether the file of ``modelfile`` stays when the model goes.
    trainer_cls : class or None
        A subclass of ``m3n.compat.BaseTrainer``, whose hooks hear how training goes. python-crfsuite's own trainers are
        not used, with a warning.

    Attributes
    ----------
    model_ : SequenceTagger
        The model; ``model_.save`` writes it.
    certificate_ : Certificate
        primal, dual and gap of the objective divided by the number of sequences.
    """

    algorithm: str | None = None
    min_freq: float | None = None
    all_possible_states: bool | None = None
    all_possible_transitions: bool | None = None
    c1: float | None = None
    c2: float | None = None
    max_iterations: int | None = None
    num_memories: int | None = None
    epsilon: float | None = None
    period: int | None = None
    delta: float | None = None
    linesearch: str | None = None
    max_linesearch: int | None = None
    calibration_eta: float | None = None
    calibration_rate: float | None = None
    calibration_samples: float | None = None
    calibration_candidates: int | None = None
    calibration_max_trials: int | None = None
    pa_type: int | None = None
    c: float | None = None
    error_sensitive: bool | None = None
    averaging: bool | None = None
    variance: float | None = None
    gamma: float | None = None
    verbose: bool = False
    model_filename: str | os.PathLike[str] | None = None
    keep_tempfiles: bool = False
    trainer_cls: Any = None

    model_: SequenceTagger = learnt()
    training_log_: TrainingLog | None = None
    _has_weights = True
    _tagger: Tagger | None = None
    _modelfile: ModelFile | None = None

    def _repr_html_(self) -> str:
        """For notebooks: the parameters and, once fitted, certificate and weights."""
        return estimator_page(self)

    def fit(self, X: Any, y: Any, X_dev: Any = None, y_dev: Any = None) -> CRF:
        """Train on labelled sequences.

        Parameters
        ----------
        X : list of sequences
            Each a list of tokens: dicts, lists of strings, or ``pycrfsuite.ItemSequence``. Empty ones do not count.
            Iterators are read once, in step with those of y, and nothing of them is kept but numbers.
        y : list of lists of labels
            One label per token.
        X_dev, y_dev : list of sequences, list of lists of labels, optional
            Data to test on; the last entry of ``training_log_`` has the scores.
        """
        if (X_dev is None) != (y_dev is None):
            raise ValueError("give both X_dev and y_dev, or neither")
        if self.model_filename is not None:
            check_writable(self.model_filename)
        if isinstance(self.trainer_cls, type) and issubclass(self.trainer_cls, BaseTrainer):
            self._fit_by(self.trainer_cls, X, y, X_dev, y_dev)
        else:
            self._fit_here(X, y, X_dev, y_dev)
        self.modelfile.cleanup()
        if self.model_filename is not None:
            self._write(self.model_filename)
        return self

    def _fit_here(self, X: Any, y: Any, X_dev: Any, y_dev: Any) -> None:
        plan = plan_of(self.get_params(deep=False))
        data = TrainingData.of(X, y)
        task = Task.of(data.matrix, data.gold, len(data.labels), plan)
        result = task.minimize(plan)
        self.model_ = data.model(task, result.w, plan)
        vars(self.model_).update(history(result))
        self.training_log_ = log_of(result.trace, len(data.gold), task.size)
        if X_dev is not None:
            gold = [list(plain_labels(given)) for given in y_dev]
            self.training_log_.iterations[-1].update(scores_of(gold, self.predict(X_dev), data.labels))

    def _fit_by(self, kind: type[BaseTrainer], X: Any, y: Any, X_dev: Any, y_dev: Any) -> None:
        """Training by a trainer of the user's."""
        algorithm = algorithm_of(self.algorithm)
        given = {name: getattr(self, known.argument) for name, known in ALL_PARAMETERS.items()}
        params = {name: value for name, value in given.items() if value is not None}
        trainer = kind(algorithm=algorithm, params=params, verbose=self.verbose)
        for group, (inputs, outputs) in enumerate(((X, y), (X_dev or [], y_dev or []))):
            for xseq, yseq in zip(inputs, outputs, strict=True):
                trainer.append(xseq, yseq, group)
        trainer.train(None, -1 if X_dev is None else 1)
        if "model_" not in vars(trainer):
            raise ValueError("there is nothing to train on: X has no tokens")
        self.model_, self.training_log_ = trainer.model_, getattr(trainer, "logparser", None)

    def _write(self, path: str | os.PathLike[str]) -> None:
        """Save the model in the format that the name asks for."""
        if Path(path).suffix == ".m3n" or self.model_.classes_.dtype.kind != "U":  # CRFsuite has only texts as labels
            self.model_.save(path)
        else:
            export(self.model_, path, "crfsuite")

    def predict(self, X: Any) -> list[list[Any]]:
        """The best labels of sequences.

        Parameters
        ----------
        X : list of sequences
            As in ``fit``.

        Returns
        -------
        list of lists
            One list of labels per sequence.
        """
        return Answers(_filled(X, self._trained().predict))

    def predict_single(self, xseq: Any) -> list[Any]:
        """The best labels of one sequence.

        Parameters
        ----------
        xseq : list of tokens
            The sequence.
        """
        return self.predict([xseq])[0]

    def predict_marginals(self, X: Any) -> list[list[dict[Any, float]]]:
        """The probability of every label at every position: for every sequence a list of dicts by label.

        Parameters
        ----------
        X : list of sequences
            As in ``fit``.
        """
        model = self._trained()
        labels = model.classes_.tolist()
        arrays = _filled(X, model.predict_marginals)
        return Answers([dict(zip(labels, row, strict=True)) for row in np.asarray(array).tolist()] for array in arrays)

    def predict_marginals_single(self, xseq: Any) -> list[dict[Any, float]]:
        """The probability of every label at every position of one sequence.

        Parameters
        ----------
        xseq : list of tokens
            The sequence.
        """
        return self.predict_marginals([xseq])[0]

    def score(self, X: Any, y: Any) -> float:
        """Share of positions that are labelled correctly.

        Parameters
        ----------
        X : list of sequences
            As in ``fit``.
        y : list of lists of labels
            The right labels.
        """
        return share_right([plain_labels(given) for given in y], self.predict(X))

    @property
    def tagger_(self) -> Tagger | None:
        """The model with the methods of ``pycrfsuite.Tagger``; None before ``fit``, as with all that follows."""
        model = self._known()
        if model is None:
            return None
        if self._tagger is None or self._tagger._model is not model:
            self._tagger = Tagger(model)
        return self._tagger

    @property
    def certificate_(self) -> Certificate | None:
        """How far the weights are from the optimum."""
        model = self._known()
        return model.certificate_ if model else None

    @property
    def trace_(self) -> list[Record] | None:
        """How the certificate came about."""
        model = self._known()
        return model.trace_ if model else None

    @property
    def modelfile(self) -> ModelFile:
        """The model as a file of CRFsuite: ``modelfile.name`` says where it is."""
        known, settings = self._modelfile, (self.model_filename, self.keep_tempfiles)
        if known is None or (known.filename, known.keep_tempfiles) != settings:
            known = self._modelfile = ModelFile(*settings, partial(_content, weakref.ref(self)))
        return known

    @property
    def classes_(self) -> list[Any] | None:
        """The labels, in order of appearance."""
        model = self._known()
        return model.classes_.tolist() if model else None

    @property
    def size_(self) -> int | None:
        """How many bytes the model takes as a file of CRFsuite."""
        return int(self._info.header["size"]) if self._info else None

    @property
    def num_attributes_(self) -> int | None:
        """Number of attributes that have a weight other than 0."""
        return len(self._info.attributes) if self._info else None

    @property
    def attributes_(self) -> list[str] | None:
        """The attributes that have a weight other than 0."""
        return list(self._info.attributes) if self._info else None

    @property
    def state_features_(self) -> dict[tuple[str, Any], float] | None:
        """From (attribute, label) to weight, without those that are 0."""
        return self._info.state_features if self._info else None

    @property
    def transition_features_(self) -> dict[tuple[Any, Any], float] | None:
        """From (label, label) to weight, without those that are 0."""
        return self._info.transitions if self._info else None

    def __getstate__(self) -> Any:
        """For pickles: without files."""
        return {name: value for name, value in vars(self).items() if name not in ("_tagger", "_modelfile")}

    def __sklearn_is_fitted__(self) -> bool:
        return self._fitted

    @property
    def _fitted(self) -> bool:
        return self._known() is not None

    @property
    def _holder(self) -> SequenceTagger:
        return self.model_

    @property
    def _info(self) -> ModelInfo | None:
        return self.tagger_.info() if self.tagger_ else None

    def _known(self) -> SequenceTagger | None:
        """The model of ``fit``, else that of the file."""
        if "model_" not in vars(self) and self.model_filename is not None and Path(self.model_filename).is_file():
            self.model_ = read_model(self.model_filename)
        return vars(self).get("model_")

    def _trained(self) -> SequenceTagger:
        self._check_fitted()
        return self.model_


def _filled(X: Any, answer: Callable[[list[Any]], list[Any]]) -> list[Any]:
    """The answers for all sequences, those for empty ones being empty."""
    sequences = [listed(xseq) for xseq in X]
    answers = iter(reading(answer, [xseq for xseq in sequences if xseq]))
    return [next(answers) if xseq else [] for xseq in sequences]


def _content(crf: weakref.ref[CRF]) -> bytes | None:
    """The model as a file of CRFsuite; None if there is none. (A file must not keep the model alive.)"""
    known = crf()
    model = known._known() if known else None
    return None if model is None else model_bytes(weights_of(model))
