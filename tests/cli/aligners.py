"""Aligners with the methods that commands call, and no training: word i translates word i."""

import json
from types import SimpleNamespace
from typing import ClassVar

import numpy as np

import m3n
from m3n.estimators.forms import ALIGNMENTS


class Diagonal:
    """What both kinds have in common; ``saved`` files hold parameters alone."""

    _form = ALIGNMENTS
    names = ()
    fits: ClassVar[list] = []  # arguments of all calls of ``fit``

    def __init__(self, **parameters):
        assert set(parameters) <= set(self.names), parameters
        self.parameters = parameters

    def set_params(self, **parameters):
        self.parameters |= parameters
        return self

    def get_params(self, deep=True):
        return self.parameters

    def save(self, path):
        with open(path, "w") as file:
            json.dump({"kind": type(self).__name__, "parameters": self.parameters}, file, default=str)

    def predict_marginals(self, X):
        return [np.where(np.eye(len(source), len(target)), 0.75, 0.125) for source, target in X]

    def predict(self, X):
        threshold = self.parameters.get("threshold", 0.5)
        return [[(i, j) for i, j in np.argwhere(p >= threshold).tolist()] for p in self.predict_marginals(X)]


class HMMAligner(Diagonal):
    names = ("model", "joint", "iterations", "threshold", "n_jobs", "verbose")

    likelihoods_ = ((-20.0, -30.0), (-2.5, -3.5))
    model_ = SimpleNamespace(lexica=SimpleNamespace(source="abc", target="abcd"), types="abcdefg")

    def fit(self, X):
        self.fits.append((self.parameters, X))
        return self

    def _changed(self):
        return self.parameters

    def directions(self, X):
        last = [np.tile(np.arange(len(target)) == len(target) - 1, (len(source), 1)) for source, target in X]
        return list(zip(self.predict_marginals(X), [0.75 * table for table in last], strict=True))


class WordAligner(Diagonal):
    names = ("objective", "solver", "lam", "tol", "rtol", "max_passes", "max_seconds", "n_jobs", "random_state",
             "verbose", "structure", "fertility", "translations", "l1", "checkpoint")  # fmt: skip

    @classmethod
    def _parameter_names(cls):
        return cls.names

    def fit(self, X, y, sample_weight=None, unlabelled=None):
        self.fits.append((self.parameters, X, y, unlabelled))
        self.certificate_ = m3n.Certificate(2.0, 1.5)
        self.trace_ = [m3n.Record(3, 0.1, 0, 6, 2.0, 1.5, 0.5)]
        self.status_ = m3n.Status.TOLERANCE
        self.solver_ = SimpleNamespace()
        self.classes_, self.coef_, self.n_features_in_, self.lam_ = np.array(["link"]), np.zeros((7, 1)), 7, 0.5
        return self


def load(path):
    with open(path) as file:
        content = json.load(file)
    return {kind.__name__: kind for kind in (HMMAligner, WordAligner)}[content["kind"]](**content["parameters"])


def install(monkeypatch):
    """Take the place of the real ones."""
    monkeypatch.setattr(Diagonal, "fits", [])
    for name, thing in (("HMMAligner", HMMAligner), ("WordAligner", WordAligner), ("load", load)):
        monkeypatch.setattr(m3n, name, thing, raising=False)
