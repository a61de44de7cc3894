"""The stand-in beside sklearn-crfsuite itself, on the same data."""

import copy
import pickle
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import make_scorer
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.utils.validation import check_is_fitted

import m3n
from m3n.compat import convert
from m3n.compat.crf_training import Settled
from m3n.compat.sklearn_crfsuite import CRF, scorers, utils
from m3n.compat.sklearn_crfsuite import metrics as our_metrics
from m3n.estimators import summary, top_weights
from m3n.run.certificate import Record
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
    assert len(hasty.training_log_.iterations) < len(ours.training_log_.iterations)


def test_a_limit_and_a_sparse_penalty_ask_for_less_than_the_optimum(data):
    X, y, _ = data
    limited, exact = (CRF(c1=0.5, c2=0.5, max_iterations=500, **delta).fit(X, y) for delta in ({}, {"delta": 1e-5}))
    for crf, part in ((limited, 1e-3), (exact, 1e-5)):
        last = crf.training_log_.last_iteration
        assert 0.0 < last["gap"] <= part * last["loss"]
    assert limited.training_log_.last_iteration["num"] < exact.training_log_.last_iteration["num"] < 500


def test_what_has_settled():
    """Neither the objective falls nor does its lower bound rise by much."""

    def settles(primals, duals):
        settled, wishes = Settled(period=3, delta=0.01), []
        for k, (primal, dual) in enumerate(zip(primals, duals, strict=True)):
            record = Record(2.0 * k, 0.0, 0, 0, primal, dual, primal - dual)
            wishes.append(settled(SimpleNamespace(record=record)))
        return wishes

    assert settles([9.0, 8.0, 7.995, 7.99], [1.0] * 4) == [False, False, False, True]
    assert settles([9.0, 8.0, 8.0, 8.0], [1.0, 1.1, 1.2, 1.3]) == [False] * 4
    assert settles([9.0, 8.0, 7.0, 6.0], [1.0] * 4) == [False] * 4
    assert settles([8.0] * 4, [1.0] * 4) == [False, False, True, True]


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


def test_names_of_algorithms(data):
    X, y, _ = data
    for name in ("LBFGS", "Lbfgs", None):
        assert CRF(name, c2=0.2).fit(X, y).predict(X) == CRF(c2=0.2).fit(X, y).predict(X)
        original.CRF(name, c2=0.2, max_iterations=2).fit(X, y)
    for name, short in (("passive-aggressive", "pa"), ("AVERAGED-perceptron", "ap"), ("ARow", "arow")):
        original.CRF(name, max_iterations=2).fit(X, y)
        with pytest.warns(UserWarning, match=f"stands in for algorithm '{short}'"):
            CRF(name).fit(X, y)


def test_bytes_and_numbers_of_every_kind(data):
    """As python-crfsuite reads them: UTF-8, whatever float understands, arrays without axes."""
    X, y, _ = data

    def others(token):
        size, word = token["size"], token["w"].encode()
        number = [Decimal(size), np.float64(size), np.array(size)][len(word) % 3]
        deep = {"list": [text.encode() for text in token["deep"]["list"]], b"number": np.array(token["deep"]["number"])}
        return {b"w": word, "bias": np.int64(1), b"size": number, "flag": np.array(token["flag"]), "deep": deep}

    strange = [[others(token) for token in xseq] for xseq in X]
    named = [[label.encode() for label in yseq] for yseq in y]
    ours, plain = CRF(c2=0.2).fit(strange, named), CRF(c2=0.2).fit(X, y)
    theirs = original.CRF(c2=0.2, delta=1e-10).fit(strange, named)
    assert ours.classes_ == plain.classes_ == theirs.classes_
    assert ours.state_features_ == pytest.approx(plain.state_features_)
    assert ours.predict(strange) == ours.predict(X) == as_lists(theirs.predict(strange))
    assert ours.score(strange, named) == ours.score(X, y) == pytest.approx(theirs.score(X, y))
    mixed = [[others(token) if k % 2 else token for k, token in enumerate(xseq)] for xseq in X]
    assert ours.predict(mixed) == ours.predict(X)
    with pytest.raises(ValueError, match="sequence 1, position 0: 'utf-8' codec can't decode"):
        ours.predict([X[0], [{"w": b"\xff"}]])
    with pytest.raises(TypeError, match="sequence 0, position 1: attribute 'w' must be a string, a number or a bool"):
        ours.predict([[{"w": b"a"}, {"w": 1j}]])


def test_predictions_compare_as_arrays_do(data, fitted):
    """Since 0.5 the original returns arrays: with one list per sequence, or with two axes."""
    X, y, _ = data
    theirs = original.CRF(c2=0.2).fit(X, y)
    lengths = np.array([len(yseq) for yseq in y])
    chosen = np.flatnonzero(lengths == 3)
    equal, gold = [X[k] for k in chosen], [y[k] for k in chosen]
    for same in (theirs.predict(equal), fitted.predict(equal)):
        assert (same == gold).mean() == pytest.approx(fitted.score(equal, gold))
        assert (same != gold).sum() == pytest.approx((1 - fitted.score(equal, gold)) * 3 * len(chosen))
        assert (gold == same).shape == (len(chosen), 3)
        assert (same == same.tolist()).all() and type(same.tolist()) is list
    ragged = fitted.predict(X)  # the original's cannot be compared
    assert (ragged == ragged.tolist()).all() and (ragged == ragged.tolist()).shape == (len(X),)
    assert bool(same == same.tolist()) is True and bool(same != same.tolist()) is False
    for other in (gold, None, 3, "N", [], gold[:1], [["N"]], ragged):
        assert bool(same == other) is False and bool(same != other) is True
    assert pickle.loads(pickle.dumps(same)) == same and copy.copy(same) == same
    with pytest.raises(TypeError, match="unhashable"):
        hash(same)


def test_cross_validated_predictions(data):
    """Also where all sequences of a fold are equally long, and with one sequence per fold."""
    X, y, _ = data
    order = np.argsort([len(yseq) for yseq in y], kind="stable")[::-1]
    X, y = [X[k] for k in order[:12]], [y[k] for k in order[:12]]
    for folds in (2, 12):
        found = cross_val_predict(CRF(c2=0.2), X, y, cv=folds)
        assert found.shape == (12,)
        assert [len(labels) for labels in found] == [len(yseq) for yseq in y]
    assert list(found[0]) == CRF(c2=0.2).fit(X[1:], y[1:]).predict(X[:1])[0]


def test_metrics_scorers_and_utils(data, fitted):
    X, y, _ = data
    found = fitted.predict(X)
    for name in our_metrics.__all__:
        more = (
            {"average": "weighted"} if name.removeprefix("flat_").split("_")[0] in "precision recall f1 fbeta" else {}
        )
        more |= {"beta": 0.5} if "fbeta" in name else {}
        assert getattr(our_metrics, name)(y, found, **more) == getattr(metrics, name)(y, found, **more)
    labels = ["V", "N"]
    report = our_metrics.flat_classification_report(y, found, labels=labels, digits=3)
    assert report == metrics.flat_classification_report(y, found, labels=labels, digits=3)
    assert our_metrics.sequence_accuracy_score([], []) == metrics.sequence_accuracy_score([], []) == 0
    assert scorers.flat_accuracy(fitted, X, y) == fitted.score(X, y)
    assert scorers.sequence_accuracy(fitted, X, y) == np.mean([a == b for a, b in zip(y, found.tolist(), strict=True)])
    assert utils.flatten(iter([["a"], [], ("b", "c")])) == ["a", "b", "c"]


def test_a_fitted_crf_of_the_original_is_converted(data, tmp_path):
    X, y, new = data
    theirs = original.CRF(c2=0.2).fit(X, y)
    for crf in (theirs, pickle.loads(pickle.dumps(theirs)), copy.deepcopy(theirs)):
        tagger = convert(crf)
        assert tagger.predict(new) == as_lists(theirs.predict(new))
        for shares, row in zip(tagger.predict_marginals(new), theirs.predict_marginals(new), strict=True):
            expected = [[position[label] for label in theirs.classes_] for position in row]
            np.testing.assert_allclose(shares, expected, atol=1e-9)
    (tmp_path / "crf.pkl").write_bytes(pickle.dumps(theirs))
    with pytest.raises(
        m3n.compat.ImportedModelError, match=r"crf.pkl is a pickle, .*: unpickle it and convert the CRF"
    ):
        convert(tmp_path / "crf.pkl")
    with pytest.raises(m3n.compat.ImportedModelError, match="not fitted"):
        convert(original.CRF())
    with pytest.raises(TypeError, match=r"give a model file or a fitted sklearn_crfsuite\.CRF, not a dict"):
        convert({})
    theirs.modelfile.cleanup()
    with pytest.raises((FileNotFoundError, m3n.compat.ImportedModelError)):
        convert(theirs)


def test_the_file_of_the_model(data, tmp_path):
    X, y, new = data
    crf = CRF(c2=0.2)
    assert crf.modelfile.name is None and crf.modelfile.auto and crf.size_ is None
    crf.fit(X, y)
    path = Path(crf.modelfile.name)
    assert path.stat().st_size == crf.size_ > 1000
    assert as_lists(original.CRF(model_filename=str(path)).predict(new)) == crf.predict(new)
    assert convert(crf).predict(new) == crf.predict(new)
    crf.fit(X[:10], y[:10])  # the file of the earlier model goes
    assert not path.exists()
    again, path = pickle.loads(pickle.dumps(crf)), Path(crf.modelfile.name)
    assert Path(again.modelfile.name) != path and Path(again.modelfile.name).read_bytes() == path.read_bytes()
    crf.modelfile.refresh()
    path = Path(crf.modelfile.name)
    assert path.exists()
    del crf
    assert not path.exists()
    kept = CRF(c2=0.2, keep_tempfiles=True).fit(X[:10], y[:10])
    path = Path(kept.modelfile.name)
    del kept
    assert path.exists()
    path.unlink()
    named = CRF(c2=0.2, model_filename=tmp_path / "mine.crfsuite").fit(X, y)
    assert named.modelfile.name == str(tmp_path / "mine.crfsuite") and not named.modelfile.auto
    assert as_lists(original.CRF(model_filename=named.modelfile.name).predict(new)) == named.predict(new)
    del named
    assert (tmp_path / "mine.crfsuite").exists()


def test_model_files_in_other_places(data, tmp_path):
    X, y, _ = data
    with pytest.raises(FileNotFoundError, match="cannot write"):
        CRF(model_filename=tmp_path / "missing" / "model").fit(X, y)
    numbers = [[len(label) for label in yseq] for yseq in y]  # which CRFsuite has no place for
    crf = CRF(c2=0.2, model_filename=tmp_path / "model").fit(X, numbers)
    assert CRF(model_filename=tmp_path / "model").predict(X) == crf.predict(X)
    assert m3n.load(tmp_path / "model").classes_.tolist() == crf.classes_


def test_certificate_and_trace(data, fitted):
    assert fitted.certificate_ is fitted.model_.certificate_
    assert fitted.trace_ is fitted.model_.trace_ and fitted.trace_[-1].gap == fitted.certificate_.gap
    assert 0.0 <= fitted.certificate_.gap <= 1e-5 * fitted.certificate_.primal
    assert CRF().certificate_ is None and CRF().trace_ is None and CRF().tagger_ is None


def test_summary_and_page(data, fitted, tmp_path):
    facts, inner = summary(fitted), summary(fitted.model_)
    assert facts["kind"] == "CRF" and facts["parameters"] == {"c2": 0.2}
    assert {name: value for name, value in facts.items() if name not in ("kind", "parameters")} == {
        name: value for name, value in inner.items() if name not in ("kind", "parameters")
    }
    assert facts["labels"] == fitted.classes_ and facts["certificate"]["gap"] == fitted.certificate_.gap
    assert top_weights(fitted, 2) == top_weights(fitted.model_, 2)
    name, weight = top_weights(fitted, 1)["N"][0]
    assert weight == max(w for (_, label), w in fitted.state_features_.items() if label == "N")
    page = fitted._repr_html_()
    assert "CRF, fitted" in page and "at most" in page and name in page and "c2" in page
    assert "not fitted" in CRF(c1=0.5)._repr_html_()
    fitted.model_.save(tmp_path / "model.m3n")
    assert summary(CRF(model_filename=tmp_path / "model.m3n"))["labels"] == fitted.classes_
    with pytest.raises(NotFittedError, match="call fit first"):
        summary(CRF())
    with pytest.raises(NotFittedError, match="call fit first"):
        top_weights(CRF())
