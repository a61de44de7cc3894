"""scikit-learn's conventions: its own checks of estimators, and its tools around ours."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.exceptions import DataConversionWarning
from sklearn.feature_selection import SelectFromModel
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

import m3n
from m3n.compat.sklearn_crfsuite import CRF
from m3n.solvers.base import seed_of

EXACT = {"objective": "crf", "solver": "lbfgs", "tol": 1e-14, "n_jobs": 1}
NOT_TO_THE_BIT = (
    "two fits of one objective agree to the certified gap, not to seven digits; they do in the model of the "
    "next case, whose tolerance is tighter"
)
MARGIN = m3n.MultilabelClassifier(n_jobs=1)
FAILING = {
    MARGIN: {
        "check_sample_weight_equivalence_on_dense_data": NOT_TO_THE_BIT,
        "check_sample_weight_equivalence_on_sparse_data": NOT_TO_THE_BIT,
    }
}
# inputs of these are lists of structures; their tags say so, and scikit-learn checks parameters, clones and the like
STRUCTURED = [
    m3n.SequenceTagger(), m3n.SegmentTagger(), m3n.GraphLabeler(), m3n.DependencyParser(), m3n.ConstituencyParser(),
    m3n.WordAligner(), m3n.HMMAligner(), CRF(),
]  # fmt: skip


def checks(*models):
    """Of all models; scikit-learn warns that they do not derive from its base class, see ``estimators.declaration``."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*does not inherit from|Can't test estimator")
        return parametrize_with_checks(models, expected_failed_checks=lambda model: FAILING.get(model, {}))


@pytest.mark.filterwarnings("ignore")  # of data on which scikit-learn's own models do not converge either
@checks(MARGIN, m3n.MultilabelClassifier(**EXACT))
def test_checks_of_matrices(estimator, check):
    check(estimator)


@checks(*STRUCTURED)
def test_checks_of_structures(estimator, check):
    check(estimator)


def test_tags_are_honest():
    matrices, sequences = get_tags(m3n.MultilabelClassifier()), get_tags(m3n.SequenceTagger())
    assert matrices.input_tags.two_d_array
    assert matrices.input_tags.sparse
    assert not matrices.input_tags.pairwise
    assert get_tags(m3n.MultilabelClassifier(kernel="precomputed")).input_tags.pairwise
    assert matrices.classifier_tags.multi_label
    assert matrices.target_tags.one_d_labels
    assert not sequences.input_tags.two_d_array
    assert sequences.target_tags.required
    assert not get_tags(m3n.HMMAligner()).target_tags.required
    with pytest.raises(ValueError, match=r"sequence 0: expected a 2-D array \(positions, attributes\)"):
        m3n.SequenceTagger().fit(np.zeros((3, 2)), [0, 1, 0])


# one label per example


def classes(random, n=60, labels=3):
    X = random.normal(size=(n, 4))
    return X, np.array(["ant", "bee", "cat"])[np.argmax(X[:, :labels] + random.normal(size=(n, labels)), axis=1)]


def test_single_labels_are_a_multiclass_machine(random):
    """The model of Crammer and Singer, as LIBLINEAR trains it, and multinomial logistic regression."""
    X, y = classes(random)
    settings = {"lam": 1 / len(y), "intercept": False, "n_jobs": 1}
    ours = m3n.MultilabelClassifier(tol=1e-7, **settings).fit(X, y)
    theirs = LinearSVC(multi_class="crammer_singer", fit_intercept=False, tol=1e-9, max_iter=100_000).fit(X, y)
    np.testing.assert_allclose(ours.coef_.T, theirs.coef_, atol=2e-3)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    ours = m3n.MultilabelClassifier(**(EXACT | settings)).fit(X, y)
    theirs = LogisticRegression(fit_intercept=False, tol=1e-10).fit(X, y)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-5)
    assert ours.score(X, y) == theirs.score(X, y)
    assert ours.classes_.tolist() == theirs.classes_.tolist()
    np.testing.assert_array_equal(ours.classes_[ours.decision_function(X).argmax(axis=1)], ours.predict(X))


def test_two_labels_have_one_decision(random):
    X, y = classes(random, labels=2)
    model = m3n.MultilabelClassifier(lam=0.1, n_jobs=1).fit(X, y)
    assert model.decision_function(X).shape == (60,)
    np.testing.assert_array_equal(model.classes_[(model.decision_function(X) > 0).astype(int)], model.predict(X))
    assert model.predict_sets(X)[0] == {model.predict(X)[0]}


def test_single_labels_in_files_and_reports(random, tmp_path):
    X, y = classes(random)
    model = m3n.MultilabelClassifier(lam=0.1, n_jobs=1).fit(X, y)
    model.save(tmp_path / "model.m3n")
    again = m3n.load(tmp_path / "model.m3n")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert again.predict(np.empty((0, 4))).shape == (0,)
    assert "ant" in m3n.report(None, model, X, y).html


def test_outputs_of_another_kind_than_in_training(random):
    X, y = classes(random)
    single = m3n.MultilabelClassifier(lam=0.1, n_jobs=1).fit(X, y)
    with pytest.raises(ValueError, match="trained with one label per example"):
        single.score(X, [{label} for label in y])
    with pytest.raises(ValueError, match="label 'dog' was not in the training data"):
        single.score(X[:1], ["dog"])
    several = m3n.MultilabelClassifier(lam=0.1, n_jobs=1).fit(X, [{label} for label in y])
    with pytest.raises(ValueError, match="trained with sets of labels per example"):
        several.score(X, y)
    assert set(several.predict(X).ravel()) == {0, 1}


def test_a_column_of_marks_is_one_label_that_is_on_or_off(random):
    X, y = classes(random, labels=2)
    column = (y == "bee").astype(int)[:, None]
    assert m3n.MultilabelClassifier(lam=0.1, n_jobs=1).fit(X, column).predict(X).shape == (60, 1)
    with pytest.warns(DataConversionWarning, match="column-vector"):
        assert m3n.MultilabelClassifier(lam=0.1, n_jobs=1).fit(X, column + 1).predict(X).shape == (60,)


@pytest.mark.filterwarnings("error")
def test_the_former_name_of_y(random):
    X, y = classes(random)
    with pytest.warns(FutureWarning, match="fit: the argument Y is called y now"):
        model = m3n.MultilabelClassifier(lam=0.1, n_jobs=1).fit(X, Y=y)
    with pytest.warns(FutureWarning, match="score: the argument Y"):
        assert model.score(X, Y=y) == model.score(X, y=y)


# random states


@pytest.mark.parametrize("make", [np.random.RandomState, np.random.default_rng])
def test_generators_are_random_states(make, random):
    train, _ = m3n.datasets.digit_strings(n_train=8, n_test=1)
    X, y = train.inputs, train.labels

    def seeds(state, fits=2):
        model = m3n.SequenceTagger(lam=0.1, tol=0.5, solver="block_frank_wolfe", random_state=state, n_jobs=1)
        return [model.fit(X, y).solver_.seed for _ in range(fits)]

    assert seeds(7) == [7, 7]
    assert seeds(np.int32(7)) == [7, 7]
    first = seeds(make(3))
    assert first == seeds(make(3))
    assert first[0] != first[1]
    assert seeds(None)[0] != seeds(None)[0]
    assert m3n.minimize(tiny(), "sequential_dual", seed=make(3), tol=0.1).solver.seed == first[0]


def tiny():
    from tests.tiny import chain_problem

    return chain_problem()


def test_random_states_of_approximations(random):
    X, y = classes(random)
    settings = {"kernel": "rbf", "approximation": "random", "components": 5, "lam": 0.1, "tol": 0.1, "n_jobs": 1}
    found = [
        m3n.MultilabelClassifier(random_state=state, **settings).fit(X, y).kernel_model_.transformer.random_weights_
        for state in (np.random.default_rng(1), np.random.default_rng(1), None)
    ]
    np.testing.assert_array_equal(found[0], found[1])
    assert not np.array_equal(found[0], found[2])


@pytest.mark.parametrize("wrong", [-1, "one", 0.5, True])
def test_what_is_no_random_state(wrong):
    with pytest.raises(ValueError, match="a random state must be a whole number"):
        seed_of(wrong)


# data frames


def frame(X):
    return pd.DataFrame(X, columns=["height", "width", "depth", "weight"])


def test_columns_of_data_frames(random, tmp_path):
    X, y = classes(random)
    model = m3n.MultilabelClassifier(lam=0.1, n_jobs=1).fit(frame(X), y)
    assert model.feature_names_in_.tolist() == ["height", "width", "depth", "weight"]
    assert model.n_features_in_ == 4
    model.save(tmp_path / "model.m3n")
    for known in (model, m3n.load(tmp_path / "model.m3n")):
        np.testing.assert_array_equal(known.predict(frame(X)), model.predict(frame(X)))
        with pytest.raises(ValueError, match="Feature names must be in the same order as they were in fit"):
            known.predict(frame(X)[["width", "height", "depth", "weight"]])
        with pytest.raises(ValueError, match=r"unseen at fit time:\n- size\n.*missing:\n- weight\n"):
            known.predict(frame(X).rename(columns={"weight": "size"}))
        with pytest.warns(UserWarning, match="X does not have valid feature names, but the model was fitted with"):
            known.predict(X)
    plain = model.fit(X, y)
    assert not hasattr(plain, "feature_names_in_")
    with pytest.warns(UserWarning, match="X has feature names, but the model was fitted without"):
        plain.predict(frame(X))
    with pytest.raises(TypeError, match=r"all of them are strings, but X has the column 0"):
        plain.fit(pd.DataFrame(X, columns=["a", "b", "c", 0]), y)


# tools


def test_features_are_selected(random):
    """coef_ has a row per attribute, scikit-learn's a row per label: a selection needs the transposed one."""
    X, y = make_classification(60, 8, n_informative=3, n_redundant=0, n_classes=3, random_state=0)
    model = m3n.MultilabelClassifier(lam=0.05, tol=1e-6, intercept=False, n_jobs=1)
    chosen = SelectFromModel(model, importance_getter=lambda fitted: fitted.coef_.T, max_features=3).fit(X, y)
    size = np.abs(clone(model).fit(X, y).coef_).sum(axis=1)
    assert set(np.flatnonzero(chosen.get_support())) == set(np.argsort(size)[-3:])
    assert make_pipeline(StandardScaler(), chosen, clone(model)).fit(X, y).predict(X).shape == (60,)


def test_sample_weights_are_routed(random):
    X, y = classes(random)
    weights = random.integers(1, 4, size=len(y)).astype(float)
    repeated = np.repeat(np.arange(len(y)), weights.astype(int))
    model = m3n.MultilabelClassifier(**EXACT)
    with pytest.raises(RuntimeError, match=r"sklearn\.set_config\(enable_metadata_routing=True\)"):
        model.set_fit_request(sample_weight=True)
    with config_context(enable_metadata_routing=True):
        asking = clone(model).set_fit_request(sample_weight=True).set_score_request(sample_weight=False)
        assert clone(asking).get_metadata_routing().fit.requests == {"sample_weight": True}
        assert asking.get_metadata_routing().predict_proba.requests == {"temperature": None}
        idle = StandardScaler(with_std=False, with_mean=False).set_fit_request(sample_weight=False)
        pipeline = make_pipeline(idle, asking)
        routed = pipeline.fit(X, y, sample_weight=weights).predict_proba(X)
        np.testing.assert_allclose(routed, clone(model).fit(X[repeated], y[repeated]).predict_proba(X), atol=1e-6)
        search = GridSearchCV(asking, {"lam": [0.1, 1.0]}, cv=2).fit(X, y, sample_weight=weights)
        assert search.best_params_["lam"] in (0.1, 1.0)
        with pytest.raises(TypeError, match=r"fit cannot ask for 'groups'; it takes \['sample_weight'\]"):
            model.set_fit_request(groups=True)


def test_sample_weights_of_sequences_are_routed():
    train, _ = m3n.datasets.digit_strings(n_train=12, n_test=1)
    X, y = train.inputs, train.labels
    weights = np.arange(12.0) + 1.0
    with config_context(enable_metadata_routing=True), warnings.catch_warnings():
        warnings.simplefilter("error")
        tagger = m3n.SequenceTagger(lam=0.1, tol=0.3, n_jobs=1).set_fit_request(sample_weight=True)
        tagger.set_score_request(sample_weight=True)
        found = cross_validate(tagger, X, y, cv=2, params={"sample_weight": weights}, return_estimator=True)
    first = found["estimator"][0]
    assert first.lam_ == 0.1
    right = [np.mean(np.array(a) == b) * len(b) for a, b in zip(first.predict(X[:6]), y[:6], strict=True)]
    lengths = np.array([len(labels) for labels in y[:6]])
    assert found["test_score"][0] == pytest.approx(weights[:6] @ right / (weights[:6] @ lengths))
