"""Constructors, docstrings and attributes that follow from declarations."""

import inspect
import pickle

import numpy as np
import pytest
from numpydoc.docscrape import NumpyDocString
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import m3n
from m3n.compat.sklearn_crfsuite import CRF
from m3n.estimators.declaration import Declared, learnt
from m3n.estimators.registry import KINDS
from m3n.estimators.trained import TRAINING
from m3n.problem import Problem


class Base(Declared):
    """What all share.

    Parameters
    ----------
    depth : int
        How deep.
    low, high : float
        From where
        to where.

    Attributes
    ----------
    classes_ : array (labels,)
        The labels.
    certificate_ : Certificate
        How well.
    """

    depth: int = 3
    low: float = 0.0
    high: float = 1.0
    classes_: np.ndarray = learnt()


class Derived(Base):
    """What is special.

    Parameters
    ----------
    depth : int
        How deep, otherwise.
    name : str
        Of it.

    Attributes
    ----------
    tables_ : array (labels, 2)
        Scores.

    Examples
    --------
    >>> 1 + 1
    2
    """

    name: str = "x"
    tables_: np.ndarray = learnt("labels", 2, weights=True)
    _parameters = ("name", "depth", "low", "high")


def test_the_signature_is_that_of_the_declarations():
    assert str(inspect.signature(Base)).startswith("(depth: int = 3, low: float = 0.0, high: float = 1.0)")
    assert list(inspect.signature(Derived.__init__).parameters) == ["self", "name", "depth", "low", "high"]
    made = Derived("y", high=2.0)
    assert made.get_params() == {"name": "y", "depth": 3, "low": 0.0, "high": 2.0}
    assert repr(made) == "Derived(name='y', high=2.0)"
    assert clone(made).get_params() == pickle.loads(pickle.dumps(made)).get_params() == made.get_params()
    with pytest.raises(TypeError, match="unexpected keyword argument 'width'"):
        Derived(width=1)
    with pytest.raises(TypeError, match="multiple values for argument 'name'"):
        Derived("x", name="y")


def test_documentation_is_inherited_in_the_order_of_the_signature():
    read = NumpyDocString(inspect.cleandoc(Derived.__doc__))
    assert read["Summary"] == ["What is special."]
    assert [entry.name for entry in read["Parameters"]] == ["name", "depth", "low, high"]
    assert [entry.name for entry in read["Attributes"]] == ["classes_", "tables_", "certificate_"]
    assert read["Parameters"][1].desc == ["How deep, otherwise."]
    assert read["Parameters"][2].desc == ["From where", "to where."]
    assert ">>> 1 + 1" in Derived.__doc__


def test_subclasses_of_users():
    class Silent(Derived):
        pass

    class More(Derived):
        """More."""

        extra: int = 7

    class Old(Derived):
        def __init__(self, extra, name="z"):
            super().__init__(name)
            self.extra = extra

    assert Silent("a").name == "a"
    assert list(inspect.signature(More).parameters) == ["name", "depth", "low", "high", "extra"]
    assert "How deep, otherwise." in More.__doc__
    assert (Old(1).name, Old(1).depth, Old(1).get_params()) == ("z", 3, {"extra": 1, "name": "z"})


def test_attributes_appear_with_fit():
    made = Derived()
    assert not hasattr(made, "tables_")
    with pytest.raises(AttributeError, match="this Derived has no tables_"):
        _ = made.tables_
    made.tables_ = np.ones((3, 2))
    assert hasattr(made, "tables_")
    assert [(entry.name, entry.shape) for entry in Derived._arrays()] == [("tables_", ("labels", 2))]


def test_positions_of_parameters_are_public():
    after = {
        m3n.SequenceTagger: ["templates", "observed_only", "boundaries", "constraints", "C", "l1", "strengths"],
        m3n.SegmentTagger: ["max_length", "outside", "segment_features", "templates", "C", "kernel"],
        m3n.GraphLabeler: ["inference", "budget", "agreement", "C", "kernel"],
    }
    for kind, names in after.items():
        found = list(inspect.signature(kind).parameters)
        assert found[:11] == list(TRAINING)
        assert found[11 : 11 + len(names)] == names
        assert found.index("support_tol") + 1 == found.index("checkpoint") < found.index("class_weight")
    found = list(inspect.signature(m3n.MultilabelClassifier).parameters)
    assert found[:2] == ["pairs", "objective"]
    assert found[12:16] == ["intercept", "C", "l1", "strengths"]
    assert list(inspect.signature(CRF).parameters)[:3] == ["algorithm", "min_freq", "all_possible_states"]


WORDS = [[["a"], ["b"]], [["b"], ["a"]], [["a"]]]
NODES = [(np.eye(2), [[0, 1]]), (np.eye(2)[::-1], [[0, 1]]), (np.eye(2)[:1], np.empty((0, 2), int))]
DATA = {
    "SequenceTagger": (WORDS, [["X", "Y"], ["Y", "X"], ["X"]]),
    "SegmentTagger": (WORDS, [["B-X", "O"], ["O", "B-X"], ["B-X"]]),
    "GraphLabeler": (NODES, [[0, 1], [1, 0], [0]]),
    "MultilabelClassifier": (np.eye(3), np.eye(3, dtype=int)),
    "ConstituencyParser": ([["a", "b"], ["b"], ["c", "a"]], ["(S (A a) (B b))", "(S (B b))", "(T (C c) (A a))"]),
    "WordAligner": (
        [(["a", "b"], ["x", "y"]), (["b"], ["y"]), (["a"], ["z", "x"])],
        [[(0, 0), (1, 1)], [(0, 0)], [(0, 1)]],
    ),
    "DependencyParser": ([["a", "b"], ["b"], ["c", "a"]], [[(2, "x"), (0, "r")], [(0, "r")], [(0, "r"), (1, "y")]]),
}


@pytest.mark.parametrize("name", sorted(KINDS))
def test_a_fit_that_fails_leaves_no_trace(name, monkeypatch):
    """No attribute before, the old model after: whatever step fails."""
    X, y = DATA[name]
    model, broken = KINDS[name](n_jobs=1, tol=1e-2).fit(X, y), KINDS[name](n_jobs=1, tol=1e-2)
    before = dict(vars(model))

    def fail(*given, **words):
        raise RuntimeError("no")

    monkeypatch.setattr(Problem, "__init__", fail)
    for estimator in (model, broken):
        with pytest.raises(RuntimeError, match="no"):
            estimator.fit(X, y)
    assert vars(model) == before
    with pytest.raises(NotFittedError):
        broken.predict(X)
    assert not [key for key in vars(broken) if key.endswith("_")]


@pytest.mark.parametrize("name", sorted(KINDS))
def test_a_weight_of_0_leaves_an_example_out(name):
    X, y = DATA[name]
    some = KINDS[name](n_jobs=1, tol=1e-2).fit(X, y, sample_weight=[1.0, 2.0, 0.0])
    same = KINDS[name](n_jobs=1, tol=1e-2).fit(X[:2], y[:2], sample_weight=[1.0, 2.0])
    assert some.certificate_.primal == pytest.approx(same.certificate_.primal, abs=2e-2)
    assert some.lam_ == pytest.approx(same.lam_)
    with pytest.raises(ValueError, match="sample_weight is zero everywhere"):
        KINDS[name]().fit(X, y, sample_weight=np.zeros(3))


def test_attributes_of_segments_follow_the_weights():
    """Features of segments are asked for of the sequences that count, and of no others."""
    asked = []

    def features(sequence, begin, end):
        asked.append(sequence)
        return [f"length={end - begin}"]

    X, y = DATA["SegmentTagger"]
    m3n.SegmentTagger(segment_features=features, n_jobs=1, tol=1e-2).fit(X, y, sample_weight=[1.0, 0.0, 1.0])
    assert WORDS[1] not in asked
    assert WORDS[0] in asked


@pytest.mark.parametrize("method", ["predict", "predict_iob"])
def test_inputs_of_segments_are_read_once(method, monkeypatch):
    X, y = DATA["SegmentTagger"]
    model, calls = m3n.SegmentTagger(n_jobs=1, tol=1e-2).fit(X, y), []
    read = model.reader_.read
    monkeypatch.setattr(model.reader_, "read", lambda X: calls.append(1) or read(X))
    getattr(model, method)(X)
    model.score(X, y)
    assert len(calls) == 2
