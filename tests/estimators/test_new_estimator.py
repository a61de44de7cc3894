"""A new estimator is its declaration: files, summary, pages, kernels and the command follow."""

import json
import pickle

import numpy as np
import pytest
from sklearn.model_selection import cross_val_score
from typer.testing import CliRunner

import m3n
from m3n.cli.app import app
from m3n.estimators import summary, top_weights
from m3n.estimators.forms import Form
from m3n.estimators.indicators import TableReader
from m3n.estimators.registry import KINDS
from m3n.estimators.trained import KERNEL, TRAINING, Trained
from m3n.estimators.training import Examples, Setup
from m3n.features import Stack
from m3n.packed import Threads
from m3n.structures import Multiclass


class Single(Form):
    """One label per example."""

    kind, example, position, inputs = "labels", "example", "label", "a matrix with a row per example"
    files, table = False, None

    def predicted(self, model, X):
        return [[label] for label in model.predict(X).tolist()]

    def right(self, y, X, predicted, model):
        return [[label] for label in self.rows(np.asarray(y).tolist(), len(predicted))]

    def texts(self, X, i, predicted, model):
        return [str(i)]


class Classifier(Trained):
    """One of several labels for every example.

    Examples
    --------
    >>> Classifier(lam=0.1)
    Classifier(lam=0.1)
    """

    _parameters = (*TRAINING, "C", *KERNEL)
    _reader = TableReader
    _form = Single()

    def fit(self, X, y, sample_weight=None):
        return self._fit(X, y, sample_weight)

    def predict(self, X):
        self._check_fitted()
        scores = self._attribute_scores(self.reader_.read(X).matrix, Threads(self.n_jobs))
        return self.classes_[scores.argmax(axis=1)]

    def score(self, X, y):
        return float(np.mean(self.predict(X) == y))

    def _read(self, reader, X, y):
        table = reader.fit(X)
        return Examples(table, *np.unique(y, return_inverse=True))

    def _setup(self, examples, node):
        return Setup(Multiclass(len(examples.outputs), len(examples.classes)), Stack(node))

    def _named_weights(self, features, w):
        return {"coef_": w}


@pytest.fixture
def data(random):
    X = random.normal(size=(60, 3))
    return X, np.array(["a", "b", "c"])[np.argmax(X, axis=1)]


@pytest.mark.parametrize("settings", [{}, {"kernel": "rbf"}, {"kernel": "rbf", "approximation": "nystroem"}])
def test_everything_follows(data, settings, tmp_path, monkeypatch):
    X, y = data
    model = Classifier(lam=1e-3, tol=1e-2, n_jobs=1, **settings).fit(X, y)
    assert model.score(X, y) > 0.9
    monkeypatch.setitem(KINDS, "Classifier", Classifier)
    model.save(tmp_path / "model.m3n")
    again = m3n.load(tmp_path / "model.m3n")
    for other in (again, pickle.loads(pickle.dumps(model))):
        assert (other.predict(X) == model.predict(X)).all()
    assert summary(again)["kind"] == "Classifier"
    assert "Classifier, fitted" in again._repr_html_()
    page = m3n.report(None, again, X, y).html
    assert "of 60 labels are right" in page
    assert "no scores for pairs of neighbouring labels" in page
    shown = CliRunner().invoke(app, ["inspect", str(tmp_path / "model.m3n"), "--json"])
    assert json.loads(shown.output)["labels"] == ["a", "b", "c"]
    refused = CliRunner().invoke(app, ["predict", str(tmp_path / "model.m3n"), "-m", str(tmp_path / "model.m3n")])
    assert refused.exit_code == 2


def test_conventions_and_weights(data):
    X, y = data
    model = Classifier(lam=1e-3, tol=1e-2, n_jobs=1)
    assert cross_val_score(model, X, y, cv=3).mean() > 0.8
    assert list(top_weights(model.fit(X, y), 1)) == ["a", "b", "c"]
    weights = (y != "c").astype(float)
    some = Classifier(lam=1e-3, tol=1e-2, n_jobs=1).fit(X, y, weights)
    assert set(some.predict(X[y != "c"])) == {"a", "b"}
    assert "objective : {" in Classifier.__doc__
    assert ">>> Classifier(lam=0.1)" in Classifier.__doc__
