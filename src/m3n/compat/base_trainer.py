"""What scripts ask of ``pycrfsuite.BaseTrainer``: sequences one by one, parameters by name, a model file, and the news.

A trainer says how it goes in the words of CRFsuite's log, text by text, to ``message``.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable, Mapping
from typing import Any, Self

import numpy as np
import scipy.sparse

from m3n.compat import training_news as news
from m3n.compat.crf_training import Task, algorithm_of, plan_of
from m3n.compat.crfsuite import Weights
from m3n.compat.crfsuite_writer import model_bytes
from m3n.compat.exports import weights_of
from m3n.compat.items import ItemSequence, plain_labels
from m3n.compat.trainer_parameters import TITLES, Parameters
from m3n.compat.training_data import TrainingData
from m3n.compat.training_log import TrainingLog, scores_of
from m3n.estimators import SequenceTagger
from m3n.estimators.trained import history
from m3n.io.files import check_writable, write_atomically
from m3n.run.loop import Snapshot
from m3n.structures import Chain

Labelled = tuple[list[dict[str, float]], list[str]]  # tokens and their labels


class BaseTrainer:
    """Collects sequences and trains a model on them.

    Parameters
    ----------
    algorithm : {"lbfgs", "l2sgd", "ap", "pa", "arow"} or None
        See ``select``.
    params : mapping or None
        See ``set_params``.
    verbose : bool
        Whether to show messages.

    Attributes
    ----------
    model_ : SequenceTagger
        The model, with its certificate. Not there before ``train``, or if that had nothing to train on.
    """

    verbose: Any
    model_: SequenceTagger

    def __new__(cls, *given: Any, **words: Any) -> Self:
        """Subclasses of python-crfsuite's trainers may leave out ``super().__init__()``."""
        del given, words
        trainer = super().__new__(cls)
        trainer._parameters, trainer.verbose = Parameters("lbfgs"), None
        trainer._data, trainer._told = [], TrainingLog()
        return trainer

    def __init__(self, algorithm: str | None = None, params: Mapping[str, Any] | None = None, verbose: bool = True):
        if algorithm is not None:
            self.select(algorithm)
        if params is not None:
            self.set_params(params)
        self.verbose = verbose

    _parameters: Parameters
    _data: list[tuple[list[dict[str, float]], list[str], int]]  # tokens, labels and group
    _told: TrainingLog

    def message(self, message: str) -> None:
        """Receive what training says; by default it is shown if the trainer is verbose.

        Parameters
        ----------
        message : str
            A line or less.
        """
        if self.verbose:
            sys.stdout.write(message)

    def append(self, xseq: Any, yseq: Any, group: int = 0) -> None:
        """Add a sequence.

        Parameters
        ----------
        xseq : sequence of tokens, or ItemSequence
            As ``ItemSequence`` takes them.
        yseq : sequence of texts
            The labels, one per token.
        group : int
            The number of a group, which ``train`` may hold out.
        """
        tokens, labels = ItemSequence(xseq).counted(), list(plain_labels(yseq))
        if len(tokens) != len(labels):
            raise ValueError(f"the sequence has {len(tokens)} tokens, but there are {len(labels)} labels")
        for label in labels:
            if not isinstance(label, str):
                raise TypeError(f"labels must be texts, got {label!r:.60}")
        self._data.append((tokens, [str(label) for label in labels], int(group)))

    def select(self, algorithm: str, type: str = "crf1d") -> None:
        """Choose an algorithm; all parameters have their defaults then.

        Parameters
        ----------
        algorithm : {"lbfgs", "l2sgd", "ap", "averaged-perceptron", "pa", "passive-aggressive", "arow"}
            The first two minimise the negative log-likelihood with penalties; for the others a max-margin network
            stands in.
        type : {"crf1d"}
            The kind of model.
        """
        if type != "crf1d":
            raise ValueError(f"unknown type {type!r}; there is only 'crf1d'")
        self._parameters = Parameters(algorithm_of(algorithm))

    def params(self) -> list[str]:
        """The names of the parameters of the chosen algorithm."""
        return list(self._parameters.known)

    def set_params(self, params: Mapping[str, Any]) -> None:
        """Set parameters.

        Parameters
        ----------
        params : mapping
            From names to values.
        """
        for name, value in params.items():
            self.set(name, value)

    def get_params(self) -> dict[str, Any]:
        """All parameters with their values."""
        return dict(self._parameters.values)

    def set(self, name: str, value: Any) -> None:
        """Set a parameter.

        Parameters
        ----------
        name : str
            Which.
        value : str or number
            Its value.
        """
        self._parameters[name] = value

    def get(self, name: str) -> Any:
        """The value of a parameter.

        Parameters
        ----------
        name : str
            Which.
        """
        return self._parameters[name]

    def help(self, name: str) -> str:
        """What a parameter means.

        Parameters
        ----------
        name : str
            Which.
        """
        return self._parameters.known[self._parameters.checked(name)].help

    def clear(self) -> None:
        """Forget all sequences."""
        self._data.clear()

    def train(self, model: str | bytes | os.PathLike[str] | None, holdout: int = -1) -> None:
        """Train, and write the model as a file of CRFsuite.

        Parameters
        ----------
        model : path
            Where to; nothing is written if it is empty.
        holdout : int
            The sequences of this group are not trained on but tested on; -1 trains on all.
        """
        path = os.fsdecode(model) if model else None
        if path is not None:
            check_writable(path)
        self._before_train()
        self._say(news.beginning(holdout))
        chosen = [(tokens, labels) for tokens, labels, group in self._data if labels and group != holdout]
        held = [(tokens, labels) for tokens, labels, group in self._data if labels and group == holdout]
        self._store(self._trained(chosen, held), path)

    def _before_train(self) -> None:
        self._told = TrainingLog()

    def _say(self, texts: Iterable[news.News]) -> None:
        """Note texts, and what has happened with them, and hand them on."""
        for text, event in texts:
            self._told.note(text, event)
            self.message(text)

    def _trained(self, chosen: list[Labelled], held: list[Labelled]) -> Weights:
        """The best weights; none if there is nothing to train on."""
        vars(self).pop("model_", None)
        plan, began, told = plan_of(self._parameters.arguments()), time.perf_counter(), self._told
        data = TrainingData.of(*zip(*chosen, strict=True)) if chosen else None
        task = Task.of(data.matrix, data.gold, len(data.labels), plan) if data else None
        told.featgen_num_features, told.featgen_seconds = task.size if task else 0, time.perf_counter() - began
        title = TITLES[self._parameters.algorithm]
        self._say(news.reading(told, title, self.get_params()))
        if data is None or task is None:
            self._say(news.nothing(title))
            return Weights()
        self._say([("\n", "prepared")])
        result = task.minimize(plan, [_Watch(self, data, task, held)])
        self.model_ = data.model(task, result.w, plan)
        vars(self.model_).update(history(result))
        told.training_seconds = result.trace[-1].seconds
        self._say(news.optimised(title, str(result.status), told.training_seconds))
        return weights_of(self.model_)

    def _store(self, weights: Weights, path: str | None) -> None:
        """Write the file, and say so."""
        began = time.perf_counter()
        attributes = len(self.model_.reader_.vectorizer.vocabulary) if "model_" in vars(self) else 0
        self._say(news.storing(weights, self._told.featgen_num_features or 0, attributes))
        if path is not None:
            write_atomically(path, model_bytes(weights))
        self._told.storing_seconds = time.perf_counter() - began
        self._say(news.stored(self._told.storing_seconds))


class _Watch:
    """A callback that tells a trainer how it goes, with scores on the sequences that were held out."""

    def __init__(self, trainer: BaseTrainer, data: TrainingData, task: Task, held: list[Labelled]):
        self.trainer, self.data, self.task = trainer, data, task
        self.held, self.before = held, 0.0
        if held:
            self.matrix = data.vectorizer.transform([tokens for tokens, _ in held])
            self.chain = Chain([len(tokens) for tokens, _ in held], len(data.labels))

    def __call__(self, snapshot: Snapshot) -> None:
        record, n = snapshot.record, len(self.data.gold)
        entry: dict[str, Any] = {"num": round(record.passes), "scores": {}, "loss": n * record.primal}
        entry |= {"gap": n * record.gap, "feature_norm": float(np.linalg.norm(snapshot.w))}
        entry |= {"active_features": int(np.count_nonzero(snapshot.w)), "time": record.seconds - self.before}
        entry |= self._scores(snapshot.w) if self.held else {}
        self.before = record.seconds
        self.trainer._told.iterations.append(entry)
        self.trainer._say(news.iteration(entry))

    def _scores(self, w: np.ndarray) -> dict[str, Any]:
        """How well these weights label the sequences that were held out."""
        (coef, transitions), labels = self.task.weights(w), self.data.labels
        node, ends = self.matrix @ coef, np.zeros(len(labels))
        dense = node.toarray() if scipy.sparse.issparse(node) else node
        theta = (np.ascontiguousarray(dense), transitions.copy(), ends, ends.copy())
        found = [[labels[k] for k in numbers] for numbers in self.chain.unpack(self.chain.hard(theta)[1])]
        return scores_of([given for _, given in self.held], found, labels)
