"""How other programmes write the same objectives: every line of the table in docs/regularisation.md, by numbers."""

import warnings

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from m3n import Problem, minimize
from m3n.features import AttributeVectorizer, Dense, ObservedTable, Sparse, Stack, Table
from m3n.losses import Hamming
from m3n.structures import Chain, Multiclass

LABELS = 3


def sentences(random, n=30):
    """Attribute lists and labels that need each other."""
    for _ in range(n):
        labels = random.integers(LABELS, size=random.integers(1, 6))
        noise = random.integers(8, size=len(labels))
        rows = [[f"a{label if k % 3 else k % LABELS}", f"b{k}"] for label, k in zip(labels, noise, strict=True)]
        yield rows, labels


@pytest.mark.parametrize(("c1", "c2"), [(0.0, 1.0), (0.0, 0.1), (0.5, 0.5), (1.0, 0.0)])
def test_crfsuite(c1, c2, random, tmp_path):
    """sum of losses + c1 |w|_1 + c2 |w|^2 = n J with lam = 2 c2 / n and l1 = c1 / n; no weights for the ends."""
    pycrfsuite = pytest.importorskip("pycrfsuite")
    data = list(sentences(random))
    trainer = pycrfsuite.Trainer(verbose=False)
    trainer.set_params({"c1": c1, "c2": c2, "epsilon": 1e-9, "delta": 1e-12, "max_iterations": 3000})
    trainer.set_params({"feature.possible_states": True, "feature.possible_transitions": True})
    for rows, labels in data:
        trainer.append(rows, [str(label) for label in labels])
    trainer.train(str(tmp_path / "model"))
    theirs = trainer.logparser.iterations[-1]["loss"]

    n, vectorizer = len(data), AttributeVectorizer()
    node = Sparse(vectorizer.fit_transform([rows for rows, _ in data]), LABELS)
    nothing = ObservedTable(np.zeros(LABELS, bool))
    features = Stack(node, Table(LABELS, LABELS), nothing, nothing)
    structure = Chain([len(labels) for _, labels in data], LABELS)
    strength = {"lam": 2 * c2 / n, "l1": c1 / n}
    problem = Problem(structure, features, [labels for _, labels in data], temperature=1.0, n_jobs=1, **strength)
    ours = minimize(problem, tol=0.0, rtol=1e-8, max_passes=20_000).certificate
    assert n * ours.primal == pytest.approx(theirs, rel=1e-6)
    assert n * ours.dual == pytest.approx(theirs, rel=1e-6)


def inputs(random, n=40):
    X = random.normal(size=(n, 3))
    return X, np.argmax(X @ random.normal(size=(3, LABELS)) + random.normal(size=(n, LABELS)), axis=1)


@pytest.mark.parametrize("C", [0.1, 3.0])
def test_linear_svc(C, random):
    """1/2 |w|^2 + C sum of losses: divided by C n it is J with lam = 1/(C n)."""
    X, y = inputs(random)
    settings = {"loss": "hinge", "multi_class": "crammer_singer", "fit_intercept": False, "tol": 1e-9}
    theirs = LinearSVC(C=C, max_iter=1_000_000, random_state=0, **settings).fit(X, y)
    problem = Problem(Multiclass(len(y), LABELS), Dense(X, LABELS), y, loss=Hamming(), lam=1 / (C * len(y)), n_jobs=1)
    ours = minimize(problem, tol=1e-7, max_passes=5000)
    assert problem.primal(theirs.coef_.T.ravel()) == pytest.approx(ours.certificate.primal, rel=1e-6)
    np.testing.assert_allclose(ours.w.reshape(-1, LABELS), theirs.coef_.T, atol=2e-3)


@pytest.mark.parametrize("C", [0.1, 3.0])
def test_logistic_regression(C, random):
    """1/2 |w|^2 + C sum of log losses; scikit-learn and liblinear write C as for support vectors."""
    X, y = inputs(random)
    theirs = LogisticRegression(C=C, fit_intercept=False, tol=1e-10, max_iter=10_000).fit(X, y)
    lam = 1 / (C * len(y))
    problem = Problem(Multiclass(len(y), LABELS), Dense(X, LABELS), y, temperature=1.0, lam=lam, n_jobs=1)
    ours = minimize(problem, tol=1e-10)
    np.testing.assert_allclose(ours.w.reshape(-1, LABELS), theirs.coef_.T, atol=1e-4)


@pytest.mark.parametrize("ratio", [0.5, 1.0])
def test_elastic_net_of_logistic_regression(ratio, random):
    """l1_ratio r: r |w|_1 + (1 - r)/2 |w|^2 + C sum of log losses."""
    X, y = inputs(random)
    settings = {"solver": "saga", "fit_intercept": False, "tol": 1e-9, "max_iter": 100_000, "random_state": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # the name of the penalty is on its way out
        theirs = LogisticRegression(penalty="elasticnet", l1_ratio=ratio, C=2.0, **settings).fit(X, y)
    strength = {"lam": (1 - ratio) / (2.0 * len(y)), "l1": ratio / (2.0 * len(y))}
    problem = Problem(Multiclass(len(y), LABELS), Dense(X, LABELS), y, temperature=1.0, n_jobs=1, **strength)
    ours = minimize(problem, tol=1e-8, max_passes=5000)
    assert problem.primal(theirs.coef_.T.ravel()) == pytest.approx(ours.certificate.primal, rel=1e-6)
