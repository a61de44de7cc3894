"""Tagging sequences: a linear chain M3N with a scikit-learn interface."""

from __future__ import annotations

import os
import warnings
from contextlib import ExitStack
from typing import Any

import numpy as np

from m3n import losses
from m3n.backends import Threads
from m3n.backends.threads import single_threaded_blas
from m3n.callbacks import ProgressBar
from m3n.estimators import persistence
from m3n.estimators.base import Estimator
from m3n.estimators.inputs import SequenceReader, flat_labels, read_labels
from m3n.features import Stack, Templates, chain_features
from m3n.loop import Result, Status, minimize
from m3n.problem import Problem
from m3n.solvers import Solver, resolve_solver
from m3n.structures import Chain, Parts

OBJECTIVES = ("margin",)


class SequenceTagger(Estimator):
    """Labels for every position of a sequence, trained to a certified optimum.

    Parameters
    ----------
    objective : {"margin"}
        Training objective: the max-margin Markov network (structural SVM).
    solver : str or Solver
        "auto", a solver's name, or a solver object.
    lam : float or None
        Weight of the regulariser lam/2 |w|^2 against the mean loss; None means 1/n.
    tol : float
        Stop when the duality gap is at most this.
    loss : {"hamming", "normalized_hamming"} or Loss
        Label loss: wrong labels, wrong labels / length, or an object.
    max_passes : float or None
        Stop after so many passes over the data.
    max_seconds : float or None
        Stop after this much time.
    rtol : float
        Stop when the duality gap is at most this part of the objective, if that comes before ``tol``.
    n_jobs : int or None
        Threads; None takes every core.
    random_state : int
        Seed of a solver that draws random numbers, if it is given by its name.
    verbose : bool
        Show a progress bar.
    templates : Templates or None
        Attributes to make of tokens in columns, such as ``m3n.features.CHUNKING``; X is then what
        ``m3n.io.read_columns`` returns, or lists of tokens with one string per column.

    Attributes
    ----------
    classes_ : array (labels,)
        The labels, sorted.
    coef_ : array (attributes, labels)
        Weights of the attributes.
    transitions_ : array (labels, labels)
        Scores of pairs of neighbouring labels.
    start_, end_ : array (labels,)
        Scores of the first and the last label.
    certificate_ : Certificate
        primal, dual and gap of the training objective.
    trace_ : list of Record
        How the certificate came about.
    status_ : Status
        Why training stopped.
    solver_ : Solver
        The solver that was used.
    reason_ : str
        Why ``solver="auto"`` chose it.
    lam_ : float
        The regularisation that was used.
    n_features_in_ : int
        Number of attributes.

    Examples
    --------
    >>> import m3n
    >>> X = [[["word=the"], ["word=dog"], ["word=barks"]], [["word=dogs"], ["word=bark"]]]
    >>> y = [["D", "N", "V"], ["N", "V"]]
    >>> tagger = m3n.SequenceTagger().fit(X, y)
    >>> tagger.predict([[["word=the"], ["word=dogs"], ["word=bark"]]])
    [['D', 'N', 'V']]
    >>> tagger.certificate_.gap <= 1e-3
    True
    """

    def __init__(
        self,
        objective: str = "margin",
        solver: str | Solver[Any] = "auto",
        lam: float | None = None,
        tol: float = 1e-3,
        loss: str | losses.Loss = "hamming",
        max_passes: float | None = None,
        max_seconds: float | None = None,
        rtol: float = 0.0,
        n_jobs: int | None = None,
        random_state: int = 0,
        verbose: bool = False,
        templates: Templates | None = None,
    ):
        self.objective = objective
        self.solver = solver
        self.lam = lam
        self.tol = tol
        self.rtol = rtol
        self.loss = loss
        self.max_passes = max_passes
        self.max_seconds = max_seconds
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.templates = templates

    def fit(self, X: Any, y: Any) -> SequenceTagger:
        """Train on labelled sequences.

        Ctrl-C ends training early; the model then holds the best weights so far, with their certificate.

        Parameters
        ----------
        X : sequences
            Each a 2-D array (positions, attributes), a CSR matrix, or a list of tokens; a token is a dict of
            attributes or a list of strings. With ``templates``, tokens in columns.
        y : sequences of labels
            One label per position: strings or numbers.

        Returns
        -------
        SequenceTagger
            The fitted estimator itself.
        """
        if self.objective not in OBJECTIVES:
            raise ValueError(f"objective={self.objective!r} is not available; choose one of {OBJECTIVES}")
        loss = resolve_loss(self.loss)
        resolve_solver(self.solver)  # a wrong name is refused before the data are read
        reader = SequenceReader()
        matrix, lengths = reader.fit(X, self.templates)
        classes, labels = read_labels(y, lengths)
        features = chain_features(reader.node_map(matrix, len(classes)), len(classes))
        structure = Chain(lengths, len(classes))
        problem = Problem(structure, features, labels, loss=loss, lam=self.lam, n_jobs=self.n_jobs)
        result = self._minimize(problem)
        self.reader_ = reader
        self.classes_ = classes
        self.lam_ = problem.lam
        self._set_weights(features, result.w)
        self.certificate_, self.trace_, self.status_ = result.certificate, result.trace, result.status
        self.solver_, self.reason_ = result.solver, result.reason
        return self

    def predict(self, X: Any) -> list[list[Any]]:
        """The best label of every position.

        Parameters
        ----------
        X : sequences
            As in ``fit``; attributes that were not seen in training are ignored.

        Returns
        -------
        list of lists
            One list of labels per sequence, always.
        """
        structure, theta, threads = self._scores(X)
        if structure is None:
            return []
        names = np.array(self.classes_.tolist(), dtype=object)  # plain strings and numbers, looked up all at once
        return structure.unpack(names[structure.hard(theta, threads)[1]])

    def predict_marginals(self, X: Any, temperature: float = 1.0) -> list[np.ndarray]:
        """Probability of every label at every position under exp(score / temperature).

        Parameters
        ----------
        X : sequences
            As in ``fit``.
        temperature : float
            Small values sharpen the distribution towards the prediction, large ones flatten it.

        Returns
        -------
        list of arrays (positions, labels)
            Columns in the order of ``classes_``.
        """
        if not temperature > 0:
            raise ValueError(f"temperature must be positive, got {temperature}")
        structure, theta, threads = self._scores(X)
        if structure is None:
            return []
        marginals = structure.soft(theta, temperature, threads)[1]
        return np.split(marginals[0], structure.offsets[1:-1])

    def score(self, X: Any, y: Any) -> float:
        """Share of positions that are labelled correctly.

        Parameters
        ----------
        X : sequences
            As in ``fit``.
        y : sequences of labels
            The right labels.
        """
        predicted = self.predict(X)
        gold = flat_labels(y, np.array([len(sequence) for sequence in predicted]))
        found = [label for sequence in predicted for label in sequence]
        return float(np.mean([a == b for a, b in zip(gold, found, strict=True)]))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file that ``m3n.load`` reads.

        Parameters
        ----------
        path : path
            Where to; an existing file is replaced in one step.
        """
        self._check_fitted()
        persistence.save_tagger(self, path)

    def _minimize(self, problem: Problem) -> Result:
        with ExitStack() as stack:
            callbacks = [stack.enter_context(ProgressBar())] if self.verbose else []
            result = minimize(
                problem,
                self.solver,
                tol=self.tol,
                rtol=self.rtol,
                seed=self.random_state,
                max_passes=self.max_passes,
                max_seconds=self.max_seconds,
                callbacks=callbacks,
            )
        if result.status is not Status.TOLERANCE:
            from sklearn.exceptions import ConvergenceWarning

            text = f"{result.status} at a gap of {result.certificate.gap:.3g}, above tol={self.tol:g}"
            text += f" and rtol={self.rtol:g} of the objective" if self.rtol else ""
            warnings.warn(f"training stopped early: {text}", ConvergenceWarning, stacklevel=3)
        return result

    def _set_weights(self, features: Stack, w: np.ndarray) -> None:
        labels = len(self.classes_)
        coef, transitions, self.start_, self.end_ = features.split(w)
        self.coef_ = coef.reshape(-1, labels)
        self.transitions_ = transitions.reshape(labels, labels)
        self.n_features_in_ = len(self.coef_)

    def _scores(self, X: Any) -> tuple[Chain | None, Parts, Threads]:
        self._check_fitted()
        matrix, lengths = self.reader_.read(X)
        threads = Threads(self.n_jobs)
        if not len(lengths):
            return None, (), threads
        labels = len(self.classes_)
        structure = Chain(lengths, labels)
        features = self.reader_.node_map(matrix, labels)
        with single_threaded_blas():
            node = features.scores(self.coef_.ravel(), (np.empty(structure.shapes[0]),), threads)
        return structure, (*node, self.transitions_.copy(), self.start_.copy(), self.end_.copy()), threads


def resolve_loss(loss: str | losses.Loss) -> losses.Loss:
    """Turn a loss's name into an object."""
    if isinstance(loss, losses.Loss):
        return loss
    if loss not in losses.BY_NAME:
        raise ValueError(f"unknown loss {loss!r}; choose a Loss object or one of {sorted(losses.BY_NAME)}")
    return losses.BY_NAME[loss]()
