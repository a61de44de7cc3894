"""The stand-in beside sklearn-crfsuite itself, on the same data."""

import copy
import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import make_scorer
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.utils.validation import check_is_fitted

import m3n
from m3n.compat.sklearn_crfsuite import CRF
from tests.compat.sentences import objective, sentences

original = pytest.importorskip("sklearn_crfsuite")
metrics = pytest.importorskip("sklearn_crfsuite.metrics")
pycrfsuite = pytest.importorskip("pycrfsuite")

SELECTIONS = [
    {},
    {"all_possible_states": True},
    {"all_possible_transitions": True},
    {"all_possible_states": True, "all_possible_transitions": True},
    {"min_freq": 4.0},
    {"min_freq": 4.0, "all_possible_states": True, "all_possible_transitions": True},
    {"min_freq": -1000.0},
]


@pytest.fixture(scope="module")
def data():
    random = np.random.default_rng(0)
    X, y = sentences(random, 30)
    return X, y, sentences(random, 30)[0]


@pytest.fixture(scope="module")
def fitted(data):
    return CRF(c2=0.2).fit(*data[:2])


def as_lists(predicted):
    return [list(labels) for labels in predicted]


@pytest.mark.parametrize("selection", SELECTIONS, ids=str)
@pytest.mark.parametrize(("c1", "c2"), [(0.0, 0.1), (0.5, 0.1)])
def test_the_same_objective_and_predictions(c1, c2, selection, data):
    X, y, new = data
    settings = {"c1": c1, "c2": c2, **selection}
    ours = CRF(**settings, delta=1e-8).fit(X, y)
    theirs = original.CRF(**settings, delta=1e-10, epsilon=1e-8, max_iterations=5000).fit(X, y)
    value = objective(ours, X, y, c1, c2)
    assert value == pytest.approx(objective(theirs, X, y, c1, c2), rel=1e-4)
    assert value == pytest.approx(theirs.training_log_.last_iteration["loss"], rel=1e-4)
    assert ours.training_log_.last_iteration["loss"] == pytest.approx(value, rel=1e-9)
    assert len(y) * ours.certificate_.primal == pytest.approx(value, rel=1e-9)
    assert ours.predict(new) == as_lists(theirs.predict(new))
    assert ours.classes_ == theirs.classes_
    assert ours.training_log_.featgen_num_features == theirs.training_log_.featgen_num_features
    if c1 == 0.0:  # which weights an l1 penalty makes 0 depends on the last digits
        assert set(ours.state_features_) == set(theirs.state_features_)
        assert set(ours.transition_features_) == set(theirs.transition_features_)
        assert set(ours.attributes_) == set(theirs.attributes_)
        assert ours.num_attributes_ == theirs.num_attributes_
        assert ours.state_features_ == pytest.approx(theirs.state_features_, abs=5e-3)


def test_the_selections_differ(data):
    """Else the test above would show nothing about them."""
    X, y, _ = data
    models = [CRF(**selection).fit(X, y) for selection in SELECTIONS]
    found = [(frozenset(crf.state_features_), frozenset(crf.transition_features_)) for crf in models]
    assert found[4] == found[5]  # what does not occur has the frequency 0
    assert len(set(found)) == len(found) - 1


def test_default_settings(data):
    X, y, _ = data
    ours, theirs = CRF().fit(X, y), original.CRF().fit(X, y)
    assert objective(ours, X, y, 0.0, 1.0) == pytest.approx(objective(theirs, X, y, 0.0, 1.0), rel=1e-4)
    assert set(ours.get_params()) == set(theirs.get_params())


def test_without_a_square_penalty_training_ends_when_the_objective_has_settled(data):
    X, y, _ = data
    ours, theirs = CRF(c1=0.5, c2=0.0).fit(X, y), original.CRF(c1=0.5, c2=0.0, delta=1e-9).fit(X, y)
    assert ours.model_.status_ in (m3n.Status.CALLBACK, m3n.Status.TOLERANCE)
    assert objective(ours, X, y, 0.5, 0.0) == pytest.approx(theirs.training_log_.last_iteration["loss"], rel=1e-4)
    hasty = CRF(c1=0.5, c2=0.0, period=3, delta=0.01).fit(X, y)
    assert hasty.model_.status_ is m3n.Status.CALLBACK
    assert len(hasty.training_log_.iterations) < len(ours.training_log_.iterations)
    losses = [iteration["loss"] for iteration in hasty.training_log_.iterations]
    assert losses[-4] - losses[-1] <= 0.01 * losses[-1]


def test_l2sgd_reaches_the_optimum_of_lbfgs(data, fitted):
    X, y, _ = data
    ours = CRF("l2sgd", c2=0.2, calibration_eta=0.2).fit(X, y)
    assert objective(ours, X, y, 0.0, 0.2) == pytest.approx(objective(fitted, X, y, 0.0, 0.2), rel=1e-5)


@pytest.mark.parametrize(
    ("settings", "C"),
    [
        ({"algorithm": "ap"}, 1.0),
        ({"algorithm": "pa", "c": 0.5, "pa_type": 2}, 0.5),
        ({"algorithm": "arow", "variance": 2.0, "gamma": 4.0}, 0.5),
    ],
)
def test_a_max_margin_network_stands_in_for_online_algorithms(settings, C, data):
    X, y, _ = data
    with pytest.warns(UserWarning, match="max-margin network") as caught:
        crf = CRF(**settings).fit(X, y)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert crf.model_.objective == "margin"
    assert crf.model_.lam_ == pytest.approx(1 / (C * len(X)))
    with pytest.warns(UserWarning, match="max-margin network"):
        weights = crf.model_.coef_.data, crf.model_.transitions_
        everything = CRF(**settings, all_possible_states=True, all_possible_transitions=True, min_freq=-1e9).fit(X, y)
    assert all(np.isfinite(array).all() for array in weights)
    items = [pycrfsuite.ItemSequence(xseq).items() for xseq in X]
    same = m3n.SequenceTagger(C=C, tol=1e-4, boundaries=False).fit(items, y)  # our own reading, our own problem
    assert everything.certificate_.dual <= same.certificate_.primal
    assert same.certificate_.dual <= everything.certificate_.primal
    assert everything.certificate_.gap <= 1e-2 * everything.certificate_.primal


def test_answers_of_a_given_model(data, fitted):
    """Marginals, probabilities and labels by enumeration of all labellings, from the dicts of weights."""
    new = data[2]
    states, transitions, labels = fitted.state_features_, fitted.transition_features_, fitted.classes_
    for xseq, marginals in zip(new[:5], fitted.predict_marginals(new[:5]), strict=True):
        items = pycrfsuite.ItemSequence(xseq).items()
        node = np.array([[sum(v * states.get((a, b), 0.0) for a, v in item.items()) for b in labels] for item in items])
        paths = np.array(np.meshgrid(*[range(len(labels))] * len(xseq), indexing="ij")).reshape(len(xseq), -1).T
        table = np.array([[transitions.get((a, b), 0.0) for b in labels] for a in labels])
        score = np.array([sum(node[t, k] for t, k in enumerate(p)) + table[p[:-1], p[1:]].sum() for p in paths])
        share = np.exp(score - score.max()) / np.exp(score - score.max()).sum()
        for t, row in enumerate(marginals):
            assert list(row) == labels
            assert list(row.values()) == pytest.approx([share[paths[:, t] == k].sum() for k in range(len(labels))])
        tagger = fitted.tagger_
        tagger.set(xseq)
        best = [labels[k] for k in paths[np.argmax(score)]]
        assert tagger.tag() == fitted.predict_single(xseq) == best
        assert tagger.probability(best) == pytest.approx(share.max())
        assert tagger.probability([labels[k] for k in paths[3]]) == pytest.approx(share[3])
        assert tagger.marginal(labels[1], 0) == pytest.approx(marginals[0][labels[1]])
    assert fitted.predict_marginals_single(new[0]) == fitted.predict_marginals(new[:1])[0]


def test_tagger_like_access(fitted, tmp_path, capsys):
    tagger = fitted.tagger_
    assert tagger is fitted.tagger_
    assert tagger.labels() == fitted.classes_
    info = tagger.info()
    assert info.state_features == fitted.state_features_
    assert info.transitions == fitted.transition_features_
    assert list(info.labels) == fitted.classes_
    assert info.labels[fitted.classes_[1]] == "1"
    assert int(info.header["num_attrs"]) == fitted.num_attributes_ == len(fitted.attributes_) == len(info.attributes)
    assert fitted.size_ > 20 * len(fitted.state_features_)
    tagger.dump(tmp_path / "model.txt")
    tagger.dump()
    assert capsys.readouterr().out == (tmp_path / "model.txt").read_bytes().decode()
    again = m3n.compat.convert(tmp_path / "model.txt")
    assert again.transitions_ == pytest.approx(fitted.model_.transitions_, abs=1e-6)
    opened = type(tagger)().open(tmp_path / "model.txt")
    assert opened.info().state_features == pytest.approx(fitted.state_features_, abs=1e-6)
    with pytest.raises(ValueError, match="does not know the label 'Z'"):
        tagger.marginal("Z", 0)
    with pytest.raises(ValueError, match="call set"):
        opened.tag()
    with pytest.raises(ValueError, match="call open"):
        type(tagger)().labels()


def test_models_that_crfsuite_could_not_hold(data, fitted, tmp_path):
    X, y, new = data
    path = tmp_path / "model.m3n"
    items = [pycrfsuite.ItemSequence(xseq).items() for xseq in X]
    model = m3n.SequenceTagger(tol=0.1).fit(items, y)
    model.save(path)
    tagger = type(fitted.tagger_)().open(path)
    assert tagger.tag(items[0]) == model.predict(items[:1])[0]
    with pytest.raises(ValueError, match="CRFsuite has no place"):
        tagger.info()
    fitted.model_.save(path)
    assert tagger.open(path).info().state_features == fitted.state_features_
    assert tagger.tag(new[0]) == fitted.predict_single(new[0])
    m3n.MultilabelClassifier(tol=0.1).fit(np.eye(2), [[0, 1], [1, 0]]).save(path)
    with pytest.raises(ValueError, match="holds a MultilabelClassifier, not a SequenceTagger"):
        tagger.open(path)


def test_progress_is_shown_on_request(data, capsys):
    X, y, _ = data
    CRF(c2=0.2, verbose=True).fit(X, y)
    shown = capsys.readouterr()
    assert "gap" in shown.err and not shown.out


def test_where_the_original_breaks(data):
    """Equal lengths make it return a 2-D array, and scikit-learn takes it for fitted from the beginning."""
    X, y, _ = data
    equal = [X[0][:1], X[1][:1]]
    assert original.CRF(c2=0.2).fit(X, y).predict(equal).shape == (2, 1)
    assert all(type(labels) is list for labels in CRF(c2=0.2).fit(X, y).predict(equal))
    check_is_fitted(original.CRF())
    with pytest.raises(NotFittedError):
        check_is_fitted(CRF())
    with pytest.raises(AttributeError):
        original.CRF().predict(X)
    with pytest.raises(NotFittedError, match="call fit"):
        CRF().predict(X)


def test_scikit_learn(data, fitted):
    X, y, new = data
    search = GridSearchCV(CRF(), {"c1": [0.0, 0.1], "c2": [0.1, 1.0]}, cv=2).fit(X, y)
    assert search.best_estimator_.predict(new[:2]) == search.predict(new[:2])
    scorer = make_scorer(metrics.flat_f1_score, average="weighted")
    scores = cross_val_score(CRF(c2=0.2), X, y, cv=2, scoring=scorer)
    theirs = cross_val_score(original.CRF(c2=0.2), X, y, cv=2, scoring=scorer)
    assert scores == pytest.approx(theirs, abs=0.05)
    twin = clone(fitted)
    assert twin.get_params() == fitted.get_params()
    assert twin.classes_ is None and twin.training_log_ is None and twin.state_features_ is None
    assert repr(twin) == "CRF(c2=0.2)"
    for other in (pickle.loads(pickle.dumps(fitted)), copy.deepcopy(fitted)):
        assert other.predict(new) == fitted.predict(new)
        assert other.state_features_ == fitted.state_features_
    gold = [label for labels in y for label in labels]
    found = [label for labels in fitted.predict(X) for label in labels]
    assert fitted.score(X, y) == np.mean([a == b for a, b in zip(gold, found, strict=True)]) > 0.5


def test_metrics_of_the_original_take_our_predictions(data, fitted):
    X, y, _ = data
    assert metrics.flat_accuracy_score(y, fitted.predict(X)) == fitted.score(X, y)


def test_kinds_of_input(data, fitted):
    X, y, _ = data
    packed = [pycrfsuite.ItemSequence(xseq) for xseq in X]
    assert fitted.predict(packed) == fitted.predict(X)
    texts = [[[name for name, value in item.items() if value > 0.5] for item in x.items()] for x in packed]
    lists = CRF(c2=0.2).fit(texts, y)
    theirs = original.CRF(c2=0.2, delta=1e-10).fit(texts, y)
    assert objective(lists, texts, y, 0.0, 0.2) == pytest.approx(theirs.training_log_.last_iteration["loss"], rel=1e-4)
    with_gaps = CRF(c2=0.2).fit([[], *X, []], [[], *y, []])
    assert with_gaps.state_features_ == fitted.state_features_
    assert with_gaps.predict([[], X[0], []]) == [[], *fitted.predict(X[:1]), []]
    assert fitted.predict_marginals([[]]) == [[]]
    assert fitted.predict([]) == []
    assert fitted.tagger_.tag([]) == []
    assert fitted.tagger_.probability([]) == 1.0


def test_data_to_test_on(data):
    X, y, _ = data
    ours = CRF(c2=0.2).fit(X[:20], y[:20], X[20:], y[20:])
    theirs = original.CRF(c2=0.2, delta=1e-10).fit(X[:20], y[:20], X[20:], y[20:])
    found, expected = ours.training_log_.last_iteration, theirs.training_log_.last_iteration
    for name in ("item_accuracy", "instance_accuracy"):
        assert found[name] == expected[name]
    for name in ("avg_precision", "avg_recall", "avg_f1"):
        assert found[name] == pytest.approx(expected[name], abs=1e-6)
    for label in ours.classes_:
        assert tuple(found["scores"][label]) == pytest.approx(tuple(expected["scores"][label]), abs=1e-4)  # printed
    with pytest.raises(ValueError, match="both X_dev and y_dev"):
        CRF().fit(X, y, X)


def test_a_limit_of_passes_ends_training_without_a_warning(data):
    X, y, _ = data
    crf = CRF(c1=0.1, c2=0.1, max_iterations=5).fit(X, y)
    assert crf.model_.status_ is m3n.Status.PASS_LIMIT
    assert crf.training_log_.last_iteration["num"] <= 5
    assert crf.training_log_.last_iteration["gap"] > 0


def test_model_file(data, fitted, tmp_path):
    X, y, new = data
    path = tmp_path / "model.m3n"
    CRF(c2=0.2, model_filename=path).fit(X, y)
    for reader in (CRF(model_filename=path), m3n.load(path)):
        assert reader.predict(new) == fitted.predict(new)
    theirs = original.CRF(c2=0.2, model_filename=str(tmp_path / "model.crfsuite")).fit(X, y)
    ours = CRF(model_filename=tmp_path / "model.crfsuite")
    check_is_fitted(ours)
    assert ours.predict(new) == as_lists(theirs.predict(new))
    assert ours.state_features_ == pytest.approx(theirs.state_features_, abs=1e-6)
    assert ours.certificate_ is None
    assert ours.attributes_ == theirs.attributes_


def test_arguments_that_crfsuite_refuses(data):
    X, y, _ = data
    for settings in ({"algorithm": "l2sgd", "c1": 0.1}, {"algorithm": "pa", "c2": 1.0}, {"algorithm": "sgd"}):
        with pytest.raises(ValueError):
            original.CRF(**settings).fit(X, y)
        with pytest.raises(ValueError, match="algorithm"):
            CRF(**settings).fit(X, y)
    with pytest.raises(ValueError, match="must not be negative"):
        CRF(c2=-1.0).fit(X, y)


def test_mistakes_in_the_data(data):
    X, y, _ = data
    with pytest.raises(ValueError, match="sequence 1 has 1 positions in X but 2 labels in y"):
        CRF().fit([X[0], X[1][:1]], [y[0], ["N", "V"]])
    with pytest.raises(ValueError, match="no tokens"):
        CRF().fit([[]], [[]])
    with pytest.raises(ValueError, match="all strings or all numbers"):
        CRF().fit([[["a"], ["b"]]], [["N", 1]])
    with pytest.raises(TypeError, match="sequence 0, position 0: attribute 'a' must be"):
        CRF().fit([[{"a": object()}]], [["N"]])


def test_other_warnings(data):
    X, y, _ = data
    with pytest.warns(UserWarning, match="trainer_cls is not used"):
        CRF(trainer_cls=pycrfsuite.Trainer, max_iterations=2).fit(X, y)
    with pytest.warns(UserWarning, match=r"c2=0.0001 is used"):
        crf = CRF(c1=0, c2=0, max_iterations=3).fit(X, y)
    assert crf.model_.lam_ == pytest.approx(2e-4 / len(X))
