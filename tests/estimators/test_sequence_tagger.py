import pickle
import warnings
from itertools import chain, pairwise, product

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer

import m3n
from m3n.features import CHUNKING, Templates
from m3n.io import Sentences
from m3n.losses import Cost, Hamming, Loss
from m3n.solvers import BY_NAME, ExcessiveGap

WORDS = [
    [["w=the", "suffix=e"], ["w=dog"], ["w=barks"]],
    [["w=dogs"], ["w=bark"]],
    [["w=a"], ["w=cat"], ["w=sleeps"]],
    [["w=cats"], ["w=sleep"], ["w=."]],
]
TAGS = [["D", "N", "V"], ["N", "V"], ["D", "N", "V"], ["N", "V", "."]]


def arrays(seed=0, n=20, attributes=4, labels=3):
    """Sequences whose label is the largest of the first inputs, more or less."""
    random = np.random.default_rng(seed)
    X = [random.normal(size=(int(length), attributes)) for length in random.integers(1, 7, size=n)]
    y = [(x[:, :labels] + 0.3 * random.normal(size=(len(x), labels))).argmax(axis=1) for x in X]
    return X, y


def tagger(**settings):
    return m3n.SequenceTagger(**{"tol": 1e-2, "lam": 0.05, "n_jobs": 1, **settings})


def test_strings_in_strings_out():
    model = m3n.SequenceTagger(rtol=0.0).fit(WORDS, TAGS)
    assert model.predict(WORDS) == TAGS
    assert model.classes_.tolist() == [".", "D", "N", "V"]
    assert model.score(WORDS, TAGS) == 1.0
    assert 0 <= model.certificate_.gap <= 1e-3
    assert model.trace_[-1].gap == model.certificate_.gap
    assert model.lam_ == 0.25
    assert model.status_ is m3n.Status.TOLERANCE


def test_shapes_of_the_weights():
    X, y = arrays()
    model = tagger().fit(X, y)
    assert model.coef_.shape == (4, 3)
    assert model.transitions_.shape == (3, 3)
    assert model.start_.shape == model.end_.shape == (3,)
    assert model.n_features_in_ == 4


def test_dicts_strings_arrays_and_sparse_matrices_agree():
    X, y = arrays()
    dicts = [[{f"x{k}": v for k, v in enumerate(row)} for row in x] for x in X]
    sparse = [scipy.sparse.csr_matrix(x) for x in X]
    lists = [x.tolist() for x in X]
    models = [tagger(tol=1e-4).fit(inputs, y) for inputs in (X, dicts, sparse, lists)]
    for model, inputs in zip(models, (X, dicts, sparse, lists), strict=True):
        assert model.certificate_.primal == pytest.approx(models[0].certificate_.primal, abs=1e-4)
        assert model.predict(inputs) == models[0].predict(X)
        assert all(isinstance(label, int) for label in model.predict(inputs)[0])


COLUMNS = [[("the", "X"), ("dog", "Y")], [("a", "X"), ("cat", "Y"), ("sleeps", "Z")], [("dogs", "Y"), ("bark", "Z")]]
COLUMN_TAGS = [["D", "N"], ["D", "N", "V"], ["N", "V"]]


def test_columns_with_templates_are_the_attributes_that_they_spell():
    spelled = [
        [[f"w={w}", f"t={t}", *([f"b={s[i - 1][1]}"] if i else [])] for i, (w, t) in enumerate(s)] for s in COLUMNS
    ]
    templates = Templates(["w=%x[0,0]", "t=%x[0,1]", "b=%x[-1,1]"], padding="none")
    model = m3n.SequenceTagger(templates=templates).fit(Sentences.of(COLUMNS), COLUMN_TAGS)
    other = m3n.SequenceTagger().fit(spelled, COLUMN_TAGS)
    assert model.certificate_.primal == pytest.approx(other.certificate_.primal, abs=1e-3)
    order = [other.reader_.vectorizer.vocabulary[name] for name in model.reader_.vectorizer.names]
    assert sorted(order) == list(range(model.n_features_in_))
    new = [[("cow", "X"), ("dogs", "Y")], [("the", "new")]]
    found = model.predict(Sentences.of(new))
    assert found == model.predict(new)
    assert found[0] == ["D", "N"]
    assert model.score(COLUMNS, COLUMN_TAGS) == 1.0
    assert model.predict([]) == []
    assert templates.width == 0  # fit must not touch its parameters


def test_columns_in_cross_validation():
    scores = cross_val_score(tagger(templates=CHUNKING), Sentences.of(COLUMNS), COLUMN_TAGS, cv=3)
    assert len(scores) == 3
    assert clone(tagger(templates=CHUNKING)).templates == CHUNKING


def test_columns_and_templates_come_together():
    with pytest.raises(TypeError, match="X holds tokens in columns; say which attributes to make of them"):
        tagger().fit(Sentences.of(COLUMNS), COLUMN_TAGS)
    with pytest.raises(TypeError, match=r"templates must be None or m3n\.features\.Templates"):
        tagger(templates="U00:%x[0,0]").fit(COLUMNS, COLUMN_TAGS)
    with pytest.raises(TypeError, match="sequence 0, position 0: a token must be a tuple of strings"):
        tagger(templates=CHUNKING).fit([[1, 2]], [["D", "N"]])
    with pytest.raises(ValueError, match="reads column 1, but the columns of the tokens are 0 to 0"):
        tagger(templates=CHUNKING).fit([["the", "dog"]], [["D", "N"]])


def test_predict_is_the_best_labelling_of_the_scores():
    X, y = arrays(n=6)
    model = tagger().fit(X, y)
    for x, found in zip(X, model.predict(X), strict=True):
        structure = m3n.structures.Chain([len(x)], 3)
        theta = (x @ model.coef_, model.transitions_, model.start_, model.end_)
        best = max(structure.enumerate(0), key=lambda t, s=structure, th=theta: m3n.checks.total_score(th, s.encode(t)))
        assert found == best.tolist()


def test_predict_always_gives_a_list_of_lists():
    X, y = arrays(n=8)
    model = tagger().fit(X, y)
    same_length = [x[:1] for x in X]
    assert [len(labels) for labels in model.predict(same_length)] == [1] * 8
    assert model.predict([]) == []
    assert model.predict_marginals([]) == []
    assert isinstance(model.predict(X)[0], list)


def test_marginals():
    X, y = arrays()
    model = tagger().fit(X, y)
    marginals = model.predict_marginals(X)
    assert [m.shape for m in marginals] == [(len(x), 3) for x in X]
    np.testing.assert_allclose(np.concatenate(marginals).sum(axis=1), 1.0)
    sharp = model.predict_marginals(X, temperature=1e-6)
    assert [m.argmax(axis=1).tolist() for m in sharp] == model.predict(X)
    with pytest.raises(ValueError, match="temperature must be positive"):
        model.predict_marginals(X, temperature=0.0)


def test_unseen_attributes_are_ignored():
    model = m3n.SequenceTagger().fit(WORDS, TAGS)
    known, more = [[["w=dogs"], ["w=bark"]]], [[["w=dogs", "new"], ["w=bark", "other=1"]]]
    assert model.predict(known) == model.predict(more)


def test_context_matters():
    """Labels alternate whatever the input says: only transitions can learn that."""
    random = np.random.default_rng(0)
    X = [0.1 * random.normal(size=(6, 1)) for _ in range(30)]
    y = [[(start + t) % 2 for t in range(6)] for start in random.integers(2, size=30)]
    for x, t in zip(X, y, strict=True):
        x[0, 0] = 3.0 * (2 * t[0] - 1)
    assert tagger().fit(X, y).score(X, y) > 0.99


def test_certificate_recomputed_from_the_model():
    X, y = arrays()
    model = tagger(loss="normalized_hamming").fit(X, y)
    features = m3n.features.chain_features(m3n.features.Dense(np.concatenate(X), 3), 3)
    problem = m3n.Problem(
        m3n.structures.Chain([len(x) for x in X], 3), features, y, loss=m3n.losses.NormalizedHamming(), lam=0.05
    )
    w = np.concatenate([model.coef_.ravel(), model.transitions_.ravel(), model.start_, model.end_])
    assert problem.primal(w) == pytest.approx(model.certificate_.primal, abs=1e-12)


def test_scikit_learn_conventions():
    X, y = arrays(n=12)
    model = tagger(solver=ExcessiveGap(strength=2.0), loss=Hamming())
    copy = clone(model)
    assert copy.get_params().keys() == model.get_params().keys()
    assert copy.solver == model.solver
    before = model.get_params()
    assert model.fit(X, y) is model
    assert model.get_params() == before  # fit must not touch its parameters
    assert model.set_params(tol=0.1).tol == 0.1
    again = pickle.loads(pickle.dumps(model))
    assert again.predict(X) == model.predict(X)
    with pytest.raises(NotFittedError):
        tagger().predict(X)
    with pytest.raises(NotFittedError):
        tagger().save("nowhere.m3n")


def test_grid_search_cross_validation_and_pipeline():
    X, y = arrays(n=12)
    search = GridSearchCV(tagger(), {"lam": [0.01, 1.0]}, cv=3).fit(X, y)
    assert search.best_params_["lam"] in (0.01, 1.0)
    assert len(cross_val_score(tagger(), X, y, cv=3)) == 3
    doubled = FunctionTransformer(lambda sequences: [2.0 * x for x in sequences])
    pipeline = Pipeline([("double", doubled), ("tag", tagger())]).fit(X, y)
    assert pipeline.score(X, y) > 0.6


def test_threads_and_seeds_reproduce():
    X, y = arrays()
    one, two = (tagger(n_jobs=2).fit(X, y) for _ in range(2))
    np.testing.assert_array_equal(one.coef_, two.coef_)


def test_stopping_early_warns_and_keeps_a_model():
    X, y = arrays()
    with pytest.warns(ConvergenceWarning, match="pass limit at a gap of"):
        model = tagger(tol=1e-9, max_passes=20).fit(X, y)
    assert model.status_ is m3n.Status.PASS_LIMIT
    assert model.predict(X)
    with pytest.warns(ConvergenceWarning, match="time limit"):
        tagger(tol=0.0, max_seconds=0.01).fit(X, y)


def test_verbose_shows_progress(capfd):
    X, y = arrays()
    tagger(verbose=True).fit(X, y)
    assert "gap" in capfd.readouterr().err


def test_one_label_only():
    model = tagger().fit([[["a"], ["b"]]], [["X", "X"]])
    assert model.predict([[["c"]]]) == [["X"]]


def test_own_loss():
    class Asymmetric(Loss):
        def cost(self, structure, gold):
            return Cost(gold, np.ones(len(gold)), np.array([[0.0, 10.0, 1.0], [1.0, 0.0, 1.0], [1.0, 1.0, 0.0]]))

    X, y = arrays()
    assert tagger(loss=Asymmetric(), tol=0.1).fit(X, y).certificate_.gap <= 0.1


NAN = [np.ones((2, 3)), np.array([[1.0, 2, 3], [1, np.nan, 3]])]


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ([], [], "X is empty"),
        (
            [np.ones((2, 3)), np.ones((2, 4))],
            [[0, 1], [0, 1]],
            "sequence 1 has 4 attributes per position, but sequence 0",
        ),
        (NAN, [[0, 1], [0, 1]], "sequence 1, position 1: NaN or infinite"),
        ([np.ones((2, 3)), np.full((1, 3), np.inf)], [[0, 1], [0]], "sequence 1, position 0: NaN or infinite"),
        ([scipy.sparse.csr_matrix(x) for x in NAN], [[0, 1], [0, 1]], "sequence 1, position 1: NaN or infinite"),
        ([np.ones(3)], [[0, 1, 2]], r"sequence 0: expected a 2-D array \(positions, attributes\), got shape \(3,\)"),
        ([[[1.0, 2.0], [1.0]]], [[0, 1]], "sequence 0: its positions are not vectors of numbers of one length"),
        ([np.ones((2, 3))], [[0, 1], [0]], "X has 1 sequences but y has 2"),
        ([np.ones((2, 3))], [[0]], "sequence 0 has 2 positions in X but 1 labels in y"),
        ([np.ones((2, 3))], None, "y is missing"),
        ([np.ones((2, 3))], [["A", b"B"]], "sequence 0, position 1: a label must be a string or a number, got b'B'"),
        ([np.ones((2, 3))], [["A", float("nan")]], "sequence 0, position 1: a label must be"),
        ([np.ones((2, 3))], [["A", 1]], "all strings or all numbers"),
        ([np.ones((2, 3))], ["AB"], "sequence 0: y must be a list of labels, got 'AB'"),
        ([[{"a": np.nan}]], [["A"]], "sequence 0, position 0: attribute 'a' has the value nan"),
    ],
)
def test_bad_input_is_named(X, y, message):
    with pytest.raises(ValueError, match=message):
        tagger().fit(X, y)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ("text", "expected a list of sequences, got str"),
        ({"a": 1}, "expected a list of sequences, got dict"),
        (scipy.sparse.csr_matrix(np.ones((2, 2))), "expected a list of sequences"),
        (3, "expected a list of sequences, got int"),
        (["the dog"], "sequence 0: expected a list of positions, got 'the dog'"),
        ([{"a": 1}], "sequence 0: expected a list of positions"),
        ([[1, 2]], "sequence 0, position 0: a token must be a dict"),
        ([["the", "dog"]], "sequence 0, position 0: a token must be a dict"),
    ],
)
def test_wrong_types_are_named(X, message):
    with pytest.raises(TypeError, match=message):
        tagger().fit(X, [["A"]])


def test_prediction_checks_its_input_too():
    X, y = arrays()
    model = tagger().fit(X, y)
    with pytest.raises(ValueError, match="sequence 0 has 5 attributes per position, but the model was trained with 4"):
        model.predict([np.ones((2, 5))])
    with pytest.raises(ValueError, match="sequence 1, position 0: NaN"):
        model.predict([np.ones((2, 4)), np.full((1, 4), np.nan)])
    assert model.predict([np.ones((0, 4)), []]) == [[], []]
    with pytest.raises(ValueError, match="sequence 1 has 5 attributes"):
        model.predict([[], np.ones((2, 5))])
    with pytest.raises(ValueError, match="X has 1 sequences but y has 2"):
        model.score(X[:1], y[:2])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"objective": "hinge"}, "objective='hinge' is not available; choose one of"),
        ({"loss": "zero_one"}, "unknown loss 'zero_one'"),
        ({"solver": "sgd"}, "unknown solver 'sgd'"),
        ({"lam": -1.0}, "lam must be a positive finite number"),
        ({"tol": -1.0}, "tol must not be negative"),
    ],
)
def test_bad_settings_are_refused_at_fit(settings, message):
    X, y = arrays(n=3)
    model = tagger(**settings)
    with pytest.raises(ValueError, match=message):
        model.fit(X, y)


def test_no_warning_when_converged():
    X, y = arrays()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tagger().fit(X, y)


@pytest.mark.parametrize("name", sorted(set(BY_NAME) - {"subgradient", "owl_qn", "sparse_dual_ascent"}))
def test_every_solver_by_its_name(name):
    """Same certificate whatever the solver; the seed of those that draw random numbers is random_state."""
    train, _ = m3n.datasets.digit_strings(n_train=20, n_test=1)
    objective = "crf" if BY_NAME[name]().oracles(0.0) is None else "margin"
    tagger = m3n.SequenceTagger(objective, name, lam=1.0, tol=0.05, max_passes=2000, random_state=3)
    assert tagger.fit(train.inputs, train.labels).certificate_.gap <= 0.05
    again = clone(tagger).fit(train.inputs, train.labels)
    np.testing.assert_array_equal(again.coef_, tagger.coef_)
    if name == "block_frank_wolfe":
        other = clone(tagger).set_params(random_state=4).fit(train.inputs, train.labels)
        assert not np.array_equal(other.coef_, tagger.coef_)


def test_crf_is_the_mean_negative_log_likelihood():
    tagger = m3n.SequenceTagger(objective="crf", lam=0.1, tol=1e-9, n_jobs=1).fit(WORDS, TAGS)
    likelihood = 0.0
    for x, y in zip(WORDS, TAGS, strict=True):
        scores = {labels: _score(tagger, x, labels) for labels in product(tagger.classes_, repeat=len(x))}
        likelihood += scores[tuple(y)] - np.logaddexp.reduce(list(scores.values()))
    weights = [tagger.coef_, tagger.transitions_, tagger.start_, tagger.end_]
    square = sum(float((w**2).sum()) for w in weights)
    assert tagger.certificate_.primal == pytest.approx(0.05 * square - likelihood / len(WORDS), abs=1e-12)


def _score(tagger, x, labels):
    names, columns = tagger.classes_.tolist(), tagger.reader_.vectorizer.vocabulary
    numbers = [names.index(label) for label in labels]
    total = tagger.start_[numbers[0]] + tagger.end_[numbers[-1]]
    total += sum(tagger.coef_[columns[a], k] for token, k in zip(x, numbers, strict=True) for a in token)
    return total + sum(tagger.transitions_[a, b] for a, b in pairwise(numbers))


@pytest.mark.parametrize("objective", ["margin", "crf"])
def test_observed_only(objective, tmp_path):
    settings = {"objective": objective, "observed_only": True, "boundaries": False, "tol": 1e-6, "n_jobs": 1}
    tagger = m3n.SequenceTagger(**settings).fit(WORDS, TAGS)
    tokens = [token for x in WORDS for token in x]
    seen = {(a, label) for token, label in zip(tokens, chain(*TAGS), strict=True) for a in token}
    names, classes = tagger.reader_.vectorizer.names, tagger.classes_
    assert tagger.coef_.shape == (len(names), len(classes))
    stored = tagger.coef_.tocoo()
    assert {(names[a], classes[k]) for a, k in zip(stored.row, stored.col, strict=True)} == seen
    follows = {(a, b) for y in TAGS for a, b in pairwise(y)}
    assert {(classes[a], classes[b]) for a, b in zip(*np.nonzero(tagger.transitions_), strict=True)} <= follows
    assert not tagger.start_.any()
    assert not tagger.end_.any()
    new = [[["w=the"], ["w=dogs", "w=unseen"], ["w=barks"]]]
    assert tagger.predict(new) == [["D", "N", "V"]]
    tagger.save(tmp_path / "model")
    for other in (m3n.load(tmp_path / "model"), pickle.loads(pickle.dumps(tagger))):
        assert other.get_params() == tagger.get_params()
        np.testing.assert_array_equal(other.coef_.toarray(), tagger.coef_.toarray())
        np.testing.assert_array_equal(other.predict_marginals(new)[0], tagger.predict_marginals(new)[0])
        assert other.predict(new) == tagger.predict(new)


def test_observed_only_has_a_higher_optimum_than_all_weights():
    some, every = (
        m3n.SequenceTagger("crf", observed_only=observed, tol=1e-6, n_jobs=1).fit(WORDS, TAGS).certificate_
        for observed in (True, False)
    )
    assert some.dual > every.primal


def test_observed_only_refuses_dense_inputs():
    with pytest.raises(ValueError, match="observed_only=True is for sparse inputs"):
        m3n.SequenceTagger(observed_only=True).fit([np.ones((2, 3))], [[0, 1]])
