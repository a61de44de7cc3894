import pickle

import pytest
from sklearn import config_context
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.validation import check_is_fitted

import m3n
from m3n.estimators.declaration import Estimator


class Mean(Estimator):
    """A model of one number."""

    def __init__(self, shift=0.0, inner=None):
        self.shift = shift
        self.inner = inner

    def fit(self, X, y=None):
        self.mean_ = sum(X) / len(X) + self.shift
        return self

    def predict(self, X):
        self._check_fitted()
        return [self.mean_] * len(X)


def test_parameters_are_the_arguments():
    outer = Mean(1.0, inner=Mean(2.0))
    assert outer.get_params(deep=False) == {"shift": 1.0, "inner": outer.inner}
    assert outer.get_params() == {"shift": 1.0, "inner": outer.inner, "inner__shift": 2.0, "inner__inner": None}
    assert outer.set_params(shift=3.0, inner__shift=4.0) is outer
    assert (outer.shift, outer.inner.shift) == (3.0, 4.0)
    with pytest.raises(ValueError, match=r"Mean has no parameter 'shifts'; it has \['shift', 'inner'\]"):
        outer.set_params(shifts=1.0)


def test_clones_are_independent_and_unfitted():
    model = Mean(1.0, inner=Mean(2.0)).fit([1.0])
    copy = clone(model)
    assert copy.get_params()["inner__shift"] == 2.0
    assert copy.inner is not model.inner
    assert not hasattr(copy, "mean_")
    assert pickle.loads(pickle.dumps(model)).mean_ == 2.0


def test_text_shows_what_differs_from_the_default():
    assert repr(Mean()) == "Mean()"
    assert repr(Mean(shift=2.0)) == "Mean(shift=2.0)"
    assert repr(m3n.SequenceTagger(lam=0.1, loss=m3n.losses.Hamming())).startswith("SequenceTagger(lam=0.1, loss=")


def test_unfitted_models_say_so():
    with pytest.raises(NotFittedError, match="this Mean is not fitted yet; call fit first"):
        Mean().predict([1.0])
    with pytest.raises(NotFittedError):
        check_is_fitted(Mean())
    check_is_fitted(Mean().fit([1.0]))
    assert Mean().fit([1.0]).predict([1.0]) == [1.0]


@pytest.mark.parametrize("routing", [False, True])
def test_tools_of_scikit_learn_accept_it(routing):
    """Tags, pipelines, searches and the HTML of a pipeline, with metadata routing and without."""
    with config_context(enable_metadata_routing=routing):
        assert not is_classifier(Mean())
        pipeline = make_pipeline(FunctionTransformer(lambda X: [2 * x for x in X]), Mean())
        assert pipeline.set_params(mean__shift=1.0).fit([1.0, 2.0]).predict([0.0]) == [4.0]
        search = GridSearchCV(Mean(), {"shift": [0.0, 5.0]}, cv=2, scoring=lambda model, X, y: model.mean_)
        assert search.fit([1.0, 2.0, 3.0, 4.0], [0, 0, 0, 0]).best_params_ == {"shift": 5.0}
        assert "Mean" in Pipeline([("mean", Mean(shift=2.0))])._repr_html_()
