"""Multilabel models against enumeration and, without pairs, against one classifier per label."""

import itertools
import pickle

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone, is_classifier
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, hamming_loss
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import m3n
from m3n import Problem, losses, minimize
from m3n.checks import check_problem
from m3n.compiled.sweeps.visits import local_scores
from m3n.estimators import MultilabelClassifier
from m3n.features import BinaryLabels, Dense, Sparse, Stack, Table
from m3n.io import model_file
from m3n.losses import Hamming
from m3n.solvers import ExcessiveGap, SequentialDual
from m3n.structures import Factors, Graph, Multilabel, multilabel_pairs
from tests.tiny import Enumerated

LABELS = 3
OUTPUTS = np.array(list(itertools.product((0, 1), repeat=LABELS)))


def data(random, n=40, attributes=4):
    """Labels that depend on the inputs and on one another."""
    X = random.normal(size=(n, attributes))
    Y = (X @ random.normal(size=(attributes, LABELS)) + random.normal(size=(n, LABELS)) > 0).astype(int)
    copied = random.random(n) < 0.6
    Y[copied, 2] = Y[copied, 0]
    return X, Y


def output_scores(model, X):
    """The score of every output of every example (n, outputs), from the model's public attributes."""
    node = np.asarray(X) @ model.coef_ + model.intercept_
    pairs = sum(
        (table[OUTPUTS[:, i], OUTPUTS[:, j]] for (i, j), table in zip(model.pairs_, model.tables_, strict=True)),
        np.zeros(len(OUTPUTS)),
    )
    return node @ OUTPUTS.T + pairs


@pytest.mark.parametrize("intercept", [False, True])
def test_without_pairs_it_is_one_logistic_regression_per_label(intercept, random):
    X, Y = data(random)
    model = MultilabelClassifier("none", "crf", lam=0.05, tol=1e-10, intercept=intercept, n_jobs=1).fit(X, Y)
    inputs = np.hstack([X, np.ones((len(X), 1))]) if intercept else X
    for label in range(LABELS):
        theirs = LogisticRegression(C=1 / (0.05 * len(X)), fit_intercept=False, tol=1e-10).fit(inputs, Y[:, label])
        np.testing.assert_allclose(model.coef_[:, label], theirs.coef_[0, : X.shape[1]], atol=1e-4)
        np.testing.assert_allclose(model.predict_proba(X)[:, label], theirs.predict_proba(inputs)[:, 1], atol=1e-4)
        if intercept:
            assert model.intercept_[label] == pytest.approx(theirs.coef_[0, -1], abs=1e-4)
    assert intercept or not model.intercept_.any()
    assert model.pairs_.shape == (0, 2)
    assert model.tables_.shape == (0, 2, 2)


def test_without_pairs_it_is_one_support_vector_machine_per_label(random):
    X, Y = data(random)
    C = 1 / (0.05 * len(X))
    model = MultilabelClassifier("none", C=C, tol=1e-6, intercept=False, n_jobs=1).fit(X, Y)
    for label in range(LABELS):
        theirs = LinearSVC(C=C, loss="hinge", fit_intercept=False, tol=1e-9, max_iter=1_000_000).fit(X, Y[:, label])
        np.testing.assert_allclose(model.coef_[:, label], theirs.coef_[0], atol=2e-3)
        np.testing.assert_allclose(model.decision_function(X)[:, label], theirs.decision_function(X), atol=1e-2)


def tiny_problem(temperature, sparse=False):
    X, Y = data(np.random.default_rng(0), n=5, attributes=2)
    pairs = multilabel_pairs(Y)
    features = Stack(BinaryLabels((Sparse if sparse else Dense)(X, LABELS)), *(Table(2, 2) for _ in pairs))
    settings = {"lam": 0.1, "temperature": temperature, "loss": None if temperature else Hamming(), "n_jobs": 1}
    return Problem(Multilabel(len(Y), LABELS, pairs), features, Y, **settings)


@pytest.mark.parametrize("sparse", [False, True])
def test_problems_against_enumeration(sparse):
    check_problem(tiny_problem(0.0, sparse))


def test_solvers_find_the_optimum():
    margin, crf = tiny_problem(0.0), tiny_problem(1.0)
    best = Enumerated.of(margin).optimum()
    for solver in (ExcessiveGap(), SequentialDual()):
        certificate = minimize(margin, solver, tol=1e-3, max_passes=2000).certificate
        assert certificate.gap <= 1e-3
        assert certificate.dual - 1e-8 <= best <= certificate.primal + 1e-8
    certificate = minimize(crf, "lbfgs", tol=1e-8).certificate
    assert certificate.primal == pytest.approx(Enumerated.of(crf).optimum(), abs=2e-8)


@pytest.mark.parametrize("repeated", [False, True])
def test_block_methods_see_the_same_scores(repeated, random):
    """One row per example, whether its tables are shared or its own."""
    X, Y = data(random, n=6)
    pairs, n = multilabel_pairs(Y, "tree"), len(Y)
    structure = Multilabel(n, LABELS, pairs)
    tables = [Table(2, 2) for _ in pairs]
    if repeated:
        own = Factors.packed(np.tile(pairs, (n, 1)), np.arange(n + 1) * len(pairs), shared=False)
        structure, tables = Graph(np.full(n, LABELS), 2, [own]), [Dense(np.tile(np.eye(len(pairs)), (n, 1)), (2, 2))]
    features = Stack(BinaryLabels(Dense(X, LABELS)), *tables)
    problem = Problem(structure, features, Y, temperature=1.0, lam=0.1, n_jobs=1)
    w, blocks = random.normal(size=problem.dim), problem.blocks
    for i in range(n):
        alone, rows = structure.select(np.array([i]))
        theta = features.select(rows).scores(w, alone.empty())
        found = local_scores(blocks.rows, blocks.costs, i, w, np.empty(blocks.largest))
        np.testing.assert_allclose(found, np.concatenate([part.ravel() for part in theta]))


@pytest.mark.parametrize("pairs", ["full", "tree", "none"])
def test_predictions_against_enumeration(pairs, random):
    X, Y = data(random)
    model = MultilabelClassifier(pairs, lam=0.02, rtol=0.0, n_jobs=2).fit(X, Y)
    assert model.certificate_.gap <= 1e-3
    assert len(model.pairs_) == {"full": 3, "tree": 2, "none": 0}[pairs]
    scores = output_scores(model, X)
    predicted = model.predict(X)
    np.testing.assert_array_equal(predicted, OUTPUTS[scores.argmax(axis=1)])
    for temperature in (1.0, 0.3):
        weights = np.exp((scores - scores.max(axis=1, keepdims=True)) / temperature)
        expected = weights @ OUTPUTS / weights.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(model.predict_proba(X, temperature), expected, atol=1e-9)
    on = np.stack([scores[:, OUTPUTS[:, label] == 1].max(axis=1) for label in range(LABELS)], axis=1)
    off = np.stack([scores[:, OUTPUTS[:, label] == 0].max(axis=1) for label in range(LABELS)], axis=1)
    np.testing.assert_allclose(model.decision_function(X), on - off, atol=1e-9)
    np.testing.assert_array_equal(model.decision_function(X) > 0, predicted == 1)
    assert model.score(X, Y) == pytest.approx(accuracy_score(Y, predicted))
    times = random.integers(1, 4, size=len(Y))
    assert model.score(X, Y, times) == pytest.approx(accuracy_score(Y, predicted, sample_weight=times))


def test_pairs_help_where_labels_depend_on_one_another(random):
    """All labels say the same but for noise: together they are predicted alike."""
    on = random.integers(2, size=60)
    X = on[:, None] + 1.5 * random.normal(size=(60, LABELS))
    Y = on[:, None] ^ (random.random((60, LABELS)) < 0.15)
    alike = {}
    for pairs in ("none", "full"):
        model = MultilabelClassifier(pairs, "crf", lam=0.01, n_jobs=1).fit(X, Y)
        alike[pairs] = np.mean(np.ptp(model.predict(X), axis=1) == 0)
    assert alike["full"] > 0.95
    assert alike["none"] < 0.9


def test_strengths_scale_the_groups(random):
    X, Y = data(random)
    settings = {"objective": "crf", "tol": 1e-9, "intercept": False, "n_jobs": 1}
    strong = MultilabelClassifier(lam=0.05, strengths={"pairs": 1e4}, **settings).fit(X, Y)
    alone = MultilabelClassifier("none", lam=0.05, **settings).fit(X, Y)
    assert 0 < np.abs(strong.tables_).max() < 1e-2
    np.testing.assert_allclose(strong.coef_, alone.coef_, atol=2e-2)


def test_sparse_inputs_and_outputs(random):
    X, Y = data(random)
    model = MultilabelClassifier("tree", "crf", tol=1e-8, n_jobs=1)
    dense = clone(model).fit(X, Y)
    sparse = clone(model).fit(scipy.sparse.csr_matrix(X), scipy.sparse.csr_array(Y))
    np.testing.assert_allclose(dense.coef_, sparse.coef_, atol=1e-3)
    np.testing.assert_allclose(dense.predict_proba(X), sparse.predict_proba(scipy.sparse.csr_array(X)), atol=1e-3)


def test_weights_are_repetitions(random):
    X, Y = data(random)
    times = random.integers(0, 3, size=len(X))
    model = MultilabelClassifier("tree", "crf", lam=0.05, tol=1e-9, n_jobs=1)
    weighed = clone(model).fit(X, Y, sample_weight=times)
    repeated = clone(model).fit(np.repeat(X, times, axis=0), np.repeat(Y, times, axis=0))
    np.testing.assert_array_equal(weighed.pairs_, repeated.pairs_)
    np.testing.assert_allclose(weighed.coef_, repeated.coef_, atol=1e-3)
    assert weighed.certificate_.primal == pytest.approx(repeated.certificate_.primal, abs=1e-8)


def test_labels_by_name(random):
    X, Y = data(random)
    names = np.array(["dog", "cat", "bird"])
    sets = [set(names[row > 0].tolist()) for row in Y]
    model = MultilabelClassifier("tree", n_jobs=1).fit(X, sets)
    assert model.classes_.tolist() == ["bird", "cat", "dog"]
    predicted = model.predict(X)
    assert model.predict_sets(X) == [set(model.classes_[row > 0].tolist()) for row in predicted]
    assert model.score(X, sets) == pytest.approx(accuracy_score(Y[:, ::-1], predicted))
    assert hamming_loss(Y[:, ::-1], predicted) < 0.3


def test_no_examples(random):
    model = MultilabelClassifier(n_jobs=1).fit(*data(random))
    nothing = np.empty((0, 4))
    for answer in (model.predict(nothing), model.predict_proba(nothing), model.decision_function(nothing)):
        assert answer.shape == (0, LABELS)
    assert model.predict_sets(nothing) == []


def test_conventions_of_scikit_learn(random):
    X, Y = data(random)
    model = MultilabelClassifier("tree", "crf", n_jobs=1)
    with pytest.raises(NotFittedError, match="MultilabelClassifier is not fitted yet"):
        model.predict(X)
    assert is_classifier(model)
    search = GridSearchCV(make_pipeline(StandardScaler(), model), {"multilabelclassifier__lam": [0.01, 0.1]}, cv=2)
    assert 0.0 < search.fit(X, Y).best_score_ <= 1.0
    fitted = clone(model).fit(X, Y)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(fitted)).predict(X), fitted.predict(X))
    with pytest.warns(ConvergenceWarning, match="training stopped early"):
        clone(model).set_params(max_passes=1, tol=1e-12).fit(X, Y)


def test_all_objectives_and_losses(random):
    X, Y = data(random, n=15)
    for objective, loss in (("softmax_margin", "normalized_hamming"), ("slack", "hamming")):
        model = MultilabelClassifier("tree", objective, loss=loss, lam=0.3, tol=1e-2, n_jobs=1).fit(X, Y)
        assert 0.0 <= model.certificate_.gap <= 1e-2
    careful = MultilabelClassifier("tree", loss=losses.Hamming(class_weight={1: 3.0}), lam=0.3, n_jobs=1).fit(X, Y)
    plain = MultilabelClassifier("tree", lam=0.3, n_jobs=1).fit(X, Y)
    assert careful.predict(X).sum() > plain.predict(X).sum()  # missing a label costs more


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"pairs": "star"}, "pairs='star' is not available"),
        ({"objective": "hinge"}, "objective='hinge' is not available"),
        ({"strengths": {"transitions": 2.0}}, r"there are \('attributes', 'pairs'\)"),
        ({"lam": 0.1, "C": 1.0}, "give either lam"),
    ],
)
def test_wrong_words_are_refused(settings, message, random):
    with pytest.raises(ValueError, match=message):
        MultilabelClassifier(**settings).fit(*data(random))


def test_files(random, tmp_path):
    X, Y = data(random)
    model = MultilabelClassifier(pairs="tree", lam=0.05, tol=1e-2, n_jobs=1).fit(X, Y)
    model.save(tmp_path / "model.m3n")
    again = m3n.load(tmp_path / "model.m3n")
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    assert again.get_params() == model.get_params()
    assert again.certificate_ == model.certificate_


@pytest.mark.parametrize(("name", "message"), [("tables_", "tables_ has shape"), ("pairs_", "outside of 0..2")])
def test_damaged_files(name, message, random, tmp_path):
    X, Y = data(random)
    MultilabelClassifier(lam=0.05, tol=1e-2, n_jobs=1).fit(X, Y).save(tmp_path / "model.m3n")
    kind, meta, tensors = model_file.read(tmp_path / "model.m3n")
    tensors[name] = tensors[name][:-1] if name == "tables_" else tensors[name] + 1
    model_file.write(tmp_path / "model.m3n", kind, meta, tensors)
    with pytest.raises(model_file.ModelFileError, match=message):
        m3n.load(tmp_path / "model.m3n")


@pytest.mark.parametrize("settings", [{"kernel": "rbf"}, {"kernel": "rbf", "approximation": "nystroem"}])
def test_kernels(settings, random, tmp_path):
    """Labels that depend on the product of two attributes."""
    X = random.normal(size=(80, 2))
    Y = np.stack([X[:, 0] * X[:, 1] > 0, X[:, 0] * X[:, 1] < 0.5], axis=1).astype(int)
    model = MultilabelClassifier(lam=0.01, tol=1e-2, n_jobs=1, **settings).fit(X, Y)
    assert model.certificate_.gap <= 1e-2
    assert model.score(X, Y) > 0.8 > MultilabelClassifier(lam=0.01, tol=1e-2).fit(X, Y).score(X, Y) + 0.2
    assert not hasattr(model, "coef_")
    model.save(tmp_path / "model.m3n")
    np.testing.assert_array_equal(m3n.load(tmp_path / "model.m3n").predict_proba(X), model.predict_proba(X))


def test_own_pairs(tmp_path):
    random = np.random.default_rng(0)
    X, names = random.normal(size=(20, 2)), ["sea", "sky", "town"]
    Y = [{name for name, on in zip(names, row, strict=True) if on} or {"sky"} for row in random.random((20, 3)) < 0.5]
    by_name = MultilabelClassifier(pairs=[("sky", "sea"), ("sky", 2)], lam=0.1).fit(X, Y)
    assert by_name.pairs_.tolist() == [[1, 0], [1, 2]]
    by_number = MultilabelClassifier(pairs=np.array([[1, 0], [1, 2]]), lam=0.1).fit(X, Y)
    np.testing.assert_array_equal(by_name.tables_, by_number.tables_)
    by_name.save(tmp_path / "model.m3n")
    again = m3n.load(tmp_path / "model.m3n")
    assert again.pairs == [["sky", "sea"], ["sky", 2]]
    np.testing.assert_array_equal(again.predict(X), by_name.predict(X))
    assert MultilabelClassifier(pairs=[], lam=0.1).fit(X, Y).pairs_.shape == (0, 2)


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ([("sea", "fog")], "pairs names the label 'fog', which does not exist; the labels are"),
        ([(0, 2)], r"pairs: \(0, 2\) must be two different labels of 0..1"),
        ([(1, 1)], "must be two different labels"),
        ([(0, 1), (1, 0)], r"pairs: \(1, 0\) is listed twice"),
        ([(0, 1, 2)], "pairs must be pairs of numbers of labels"),
        ("some", "pairs='some' is not available"),
    ],
)
def test_wrong_pairs(pairs, message):
    with pytest.raises(ValueError, match=message):
        MultilabelClassifier(pairs=pairs).fit([[1.0], [2.0]], [{"sea"}, {"sky"}])
