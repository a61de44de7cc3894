"""Predictions of different sizes are lists for people, and one column for scikit-learn's ``cross_val_predict``."""

import copy
import json
import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold, cross_val_predict

import m3n
from m3n.compat.sklearn_crfsuite import CRF
from m3n.estimators import Predictions
from m3n.io import ParseTree
from tests.estimators.trees import heads_of, sentences

LABELS = np.array(["a", "b"])
RAGGED, EQUAL = [2, 3, 1, 4, 2, 3], [3] * 6


def vectors(random, lengths):
    X = [random.normal(size=(length, 2)) for length in lengths]
    return X, [LABELS[(x[:, 0] > 0).astype(int)].tolist() for x in X]


def numbers(random, lengths):
    X, _ = vectors(random, lengths)
    return X, [(x[:, 0] > 0).astype(int).tolist() for x in X]


def segments(random, lengths):
    X, y = vectors(random, lengths)
    return X, [[f"B-{label}" for label in labels] for labels in y]


def graphs(random, lengths):
    X, y = vectors(random, lengths)
    return [(x, np.array([(t, t + 1) for t in range(len(x) - 1)]).reshape(-1, 2)) for x in X], y


def dicts(random, lengths):
    X, y = vectors(random, lengths)
    return [[{"positive": bool(value > 0), "bias": 1.0} for value in x[:, 0]] for x in X], y


def arcs(random, lengths):
    X, y = sentences(0, 60)
    X, y = X[:6], y[:6]
    if len(set(lengths)) == 1:
        words, tree = X[0], y[0]
        X, y = [words] * 6, [tree] * 6
    return X, y


def heads(random, lengths):
    X, y = arcs(random, lengths)
    return X, heads_of(y)


def brackets(random, lengths):
    nouns = ["dog", "cat", "rat"]
    texts = [f"(S (NP (DT the){f' (NN {nouns[k % 3]})' * (length - 1)}) (VP sees))" for k, length in enumerate(lengths)]
    trees = [ParseTree.parse(text) for text in texts]
    return [tree.words() for tree in trees], trees


def pairs(random, lengths):
    words = [[str(word) for word in random.choice(list("defgh"), size=length)] for length in lengths]
    return [(source, [word.upper() for word in source]) for source in words], [
        [(t, t) for t in range(length)] for length in lengths
    ]


PLAIN = {"tol": 0.1, "lam": 0.1, "n_jobs": 1}
CASES = {
    "chain": (m3n.SequenceTagger(**PLAIN), vectors),
    "chain of numbers": (m3n.SequenceTagger(**PLAIN), numbers),
    "segments": (m3n.SegmentTagger(**PLAIN), segments),
    "graph": (m3n.GraphLabeler(**PLAIN), graphs),
    "arcs": (m3n.DependencyParser(bits=10, rtol=0.5, n_jobs=1), arcs),
    "heads": (m3n.DependencyParser(bits=10, rtol=0.5, n_jobs=1), heads),
    "brackets": (m3n.ConstituencyParser(rare_words=1, max_passes=3, n_jobs=1), brackets),
    "links": (m3n.WordAligner(structure="words", rtol=0.5, n_jobs=1), pairs),
    "drop-in": (CRF(max_iterations=5), dicts),
}


@pytest.mark.parametrize("lengths", [RAGGED, EQUAL], ids=["ragged", "equal"])
@pytest.mark.parametrize("case", CASES)
def test_cross_val_predict_joins_the_folds(case, lengths, random):
    model, draw = CASES[case]
    X, y = draw(random, lengths)
    folds = KFold(3, shuffle=True, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        joined = cross_val_predict(model, X, y, cv=folds)
        expected = [None] * len(X)
        for train, test in folds.split(X):
            fold = clone(model).fit([X[i] for i in train], [y[i] for i in train])
            for i, output in zip(test, fold.predict([X[i] for i in test]), strict=True):
                expected[i] = output
    assert joined.shape == (len(X),) and joined.dtype == object
    assert joined.tolist() == expected
    assert [type(output) for output in joined] == [type(output) for output in expected]


def test_cross_val_predict_without_labels(random):
    """The aligner that learns from pairs alone."""
    X, _ = pairs(random, RAGGED)
    joined = cross_val_predict(m3n.HMMAligner(n_jobs=1), X, cv=KFold(2))
    assert joined.shape == (6,) and joined[:3].tolist() == m3n.HMMAligner(n_jobs=1).fit(X[3:]).predict(X[:3])


@pytest.mark.parametrize("outputs", [[], [["a"], ["b", "c"]], [["a", "b"], ["c", "d"]], [[1], []]])
def test_predictions_are_a_list(outputs):
    predictions = Predictions(outputs)
    assert isinstance(predictions, list)
    assert predictions == outputs and outputs == predictions
    assert repr(predictions) == repr(outputs) and json.dumps(predictions) == json.dumps(outputs)
    for twin in (pickle.loads(pickle.dumps(predictions)), copy.deepcopy(predictions), copy.copy(predictions)):
        assert type(twin) is Predictions and twin == outputs
    column = np.asarray(predictions)
    assert column.shape == (len(outputs),) and column.tolist() == outputs


def test_a_number_type_asks_for_the_numbers():
    predictions = Predictions([[1, 2], [3, 4]])
    np.testing.assert_array_equal(np.asarray(predictions, dtype=float), [[1.0, 2.0], [3.0, 4.0]])
    np.testing.assert_array_equal(np.concatenate(predictions), [1, 2, 3, 4])
    with pytest.raises(ValueError):
        np.asarray(Predictions([[1], [2, 3]]), dtype=float)
    with pytest.raises(ValueError, match="copy"):
        np.array(predictions, copy=False)
