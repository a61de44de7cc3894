import pickle

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_approximation import Nystroem, RBFSampler, SkewedChi2Sampler
from sklearn.model_selection import GridSearchCV

import m3n
from m3n.io.model_file import ModelFileError

SETTINGS = {"lam": 0.02, "tol": 1e-3, "rtol": 0.0, "n_jobs": 1}


@pytest.fixture(scope="module")
def data():
    """Whether two numbers have the same sign: no linear model can tell."""
    random = np.random.default_rng(0)
    X = [random.normal(size=(length, 2)) for length in random.integers(2, 7, size=40)]
    y = [["same" if a * b > 0 else "other" for a, b in sequence.tolist()] for sequence in X]
    return X, y


@pytest.fixture(scope="module")
def tagger(data):
    return m3n.SequenceTagger(kernel="poly", degree=2, **SETTINGS).fit(*data)


def test_a_kernel_learns_what_a_linear_model_cannot(data, tagger):
    assert tagger.score(*data) > 0.95
    assert m3n.SequenceTagger(**SETTINGS).fit(*data).score(*data) < 0.75
    assert tagger.certificate_.gap <= 1e-3
    assert not hasattr(tagger, "coef_")
    assert tagger.n_features_in_ == 2


def test_explicit_features_give_the_same_model(data, tagger):
    """(gamma <x, z> + 1)^2 written out."""
    X, y = data
    gamma = tagger.kernel_model_.function.gamma
    assert gamma == pytest.approx(1 / (2 * np.concatenate(X).var()))
    lifted = [np.hstack([np.sqrt(gamma) * s, np.ones((len(s), 1))]) for s in X]
    explicit = [np.einsum("ra,rb->rab", s, s).reshape(len(s), -1) for s in lifted]
    linear = m3n.SequenceTagger(**SETTINGS).fit(explicit, y)
    assert linear.certificate_.dual <= tagger.certificate_.primal
    assert tagger.certificate_.dual <= linear.certificate_.primal
    a, b = tagger.predict_marginals(X), linear.predict_marginals(explicit)
    np.testing.assert_allclose(np.concatenate(a), np.concatenate(b), atol=0.05)


def test_scores_are_sums_over_the_support(data, tagger):
    X, model = data[0], tagger.kernel_model_
    values = (model.function.gamma * X[0] @ model.inputs.T + 1) ** 2
    expected = values @ model.coefficients
    np.testing.assert_allclose(model.scores(X[0], m3n.packed.Threads(2)), expected)
    assert model.size < model.trained_on == sum(map(len, X))
    assert model.cost == model.size * (2 + 2)
    assert f"{model.size} support inputs of {model.trained_on}" in str(model)


def test_certificate_from_scratch(data, tagger):
    """J of what the model keeps, by the kernel's values and Viterbi alone."""
    X, y = data
    model, lengths = tagger.kernel_model_, [len(sequence) for sequence in X]
    inputs, gold = np.concatenate(X), np.searchsorted(tagger.classes_, np.concatenate(y))
    gamma = model.function.gamma
    node = (gamma * inputs @ model.inputs.T + 1) ** 2 @ model.coefficients
    structure = m3n.structures.Chain(lengths, 2)
    tables = tagger.transitions_, tagger.start_, tagger.end_
    best = structure.hard((node + (np.arange(2) != gold[:, None]), *tables))[0]
    risk = (best - structure.score((node, *tables), gold)).mean()
    gram = (gamma * model.inputs @ model.inputs.T + 1) ** 2
    square = np.sum(model.coefficients * (gram @ model.coefficients)) + sum((table**2).sum() for table in tables)
    assert tagger.lam_ / 2 * square + risk == pytest.approx(tagger.certificate_.primal, rel=1e-5)


@pytest.mark.parametrize("tolerance", [0.0, 0.01, 0.2])
def test_what_is_left_out_hardly_counts(tolerance, data, tagger):
    X, y = data
    pruned = m3n.SequenceTagger(kernel="poly", degree=2, support_tol=tolerance, **SETTINGS).fit(X, y).kernel_model_
    whole = m3n.SequenceTagger(kernel="poly", degree=2, support_tol=0.0, **SETTINGS).fit(X, y).kernel_model_
    values = np.concatenate(X)
    bound = pruned.error * np.sqrt(pruned.function.diagonal(values))
    change = np.abs(pruned.scores(values, m3n.packed.SERIAL) - whole.scores(values, m3n.packed.SERIAL))
    assert (change.max(axis=1) <= bound + 1e-9).all()
    assert (pruned.size < whole.size) == (tolerance > 0)
    assert (pruned.error > 0) == (tolerance > 0)


@pytest.mark.parametrize("objective", ["crf", "softmax_margin", "slack"])
def test_objectives(objective, data):
    model = m3n.SequenceTagger(objective=objective, kernel="rbf", **SETTINGS).fit(*data)
    assert model.certificate_.gap <= 1e-3
    assert model.score(*data) > 0.9


def test_strengths_and_weights(data):
    X, y = data
    weights = np.arange(1.0, 41.0) % 3
    model = m3n.SequenceTagger(kernel="rbf", strengths={"attributes": 0.2}, **SETTINGS).fit(X, y, weights)
    repeated = [k for k, weight in enumerate(weights) for _ in range(int(weight))]
    again = m3n.SequenceTagger(
        kernel="rbf", gamma=model.kernel_model_.function.gamma, strengths={"attributes": 0.2}, **SETTINGS
    )
    again.fit([X[k] for k in repeated], [y[k] for k in repeated])
    assert model.certificate_.dual <= again.certificate_.primal
    assert again.certificate_.dual <= model.certificate_.primal


def test_precomputed(data, tagger):
    X, y = data
    function, all_inputs = tagger.kernel_model_.function, np.concatenate(X)
    rows = [function(sequence, all_inputs) for sequence in X]
    model = m3n.SequenceTagger(kernel="precomputed", **SETTINGS).fit(rows, y)
    assert model.certificate_.primal == pytest.approx(tagger.certificate_.primal, abs=1e-3)
    assert model.predict(rows) == tagger.predict(X)
    assert model.n_features_in_ == len(all_inputs)


def test_little_memory(data, tagger, monkeypatch):
    """A Gram matrix that does not fit is computed in every pass, and the optimum is the same."""
    monkeypatch.setattr("m3n.features.gram.free_memory", lambda: 1000.0)
    streamed = m3n.SequenceTagger(kernel="poly", degree=2, **SETTINGS).fit(*data)
    assert "not in memory" in streamed.reason_
    assert streamed.certificate_.gap <= 1e-3
    assert streamed.certificate_.dual <= tagger.certificate_.primal
    assert tagger.certificate_.dual <= streamed.certificate_.primal


def test_functions_and_other_kernels(data, tagger):
    X, y = data
    gamma = tagger.kernel_model_.function.gamma
    model = m3n.SequenceTagger(kernel=lambda A, B: (gamma * A @ B.T + 1) ** 2, **SETTINGS).fit(X, y)
    a, b = model.predict_marginals(X), tagger.predict_marginals(X)
    np.testing.assert_allclose(np.concatenate(a), np.concatenate(b), atol=0.05)
    laplacian = m3n.SequenceTagger(kernel="laplacian", kernel_params={"gamma": 0.5}, **SETTINGS).fit(X, y)
    assert laplacian.score(X, y) > 0.95


def test_attributes_of_text():
    """Equal words are one unit; a word's attributes are compared by the kernel."""
    X = [[{"word": w, "tail": w[-1]} for w in text.split()] for text in ("the cat sat", "a cat ran", "the dog sat")]
    y = [["D", "N", "V"]] * 3
    model = m3n.SequenceTagger(kernel="rbf", **SETTINGS).fit(X, y)
    assert model.kernel_model_.trained_on == 6
    assert model.predict(X) == y
    assert model.predict([[{"word": "the"}, {"word": "unheard"}, {"word": "sat", "tail": "t"}]])[0][::2] == ["D", "V"]


@pytest.mark.parametrize("components", [5, 200])
def test_nystroem(components, data):
    X, y = data
    model = m3n.SequenceTagger(kernel="rbf", approximation="nystroem", components=components, **SETTINGS).fit(X, y)
    assert model.kernel_model_.size == min(components, sum(map(len, X)))
    transformer = Nystroem(
        gamma=model.kernel_model_.function.gamma, n_components=model.kernel_model_.size, random_state=0
    )
    features = transformer.fit_transform(np.concatenate(X))
    linear = m3n.SequenceTagger(**SETTINGS).fit(np.split(features, np.cumsum([len(s) for s in X])[:-1]), y)
    assert model.certificate_.primal == pytest.approx(linear.certificate_.primal, abs=1e-3)
    scores = model.kernel_model_.scores(X[0], m3n.packed.SERIAL)
    np.testing.assert_allclose(scores, transformer.transform(X[0]) @ linear.coef_, atol=0.05)


def test_reports_of_approximations(data):
    """With all inputs as landmarks nothing is lost; with few of them the optimum is worse, provably."""
    X, y = data
    whole = m3n.SequenceTagger(kernel="rbf", approximation="nystroem", components=10_000, **SETTINGS).fit(X, y)
    report = whole.approximation_report(X, y, sequences=25)
    assert report.gram_error < 1e-6
    assert report.excess[0] <= 0.0 <= report.excess[1] <= 2.1e-3
    assert report.agreement == 1.0
    assert report.sequences == 25
    few = m3n.SequenceTagger(kernel="rbf", approximation="nystroem", components=3, **SETTINGS).fit(X, y)
    report = few.approximation_report(X, y, sequences=25)
    assert report.excess[0] > 0.01
    assert report.gram_error > 0.1
    assert report.exact_score > report.approximate_score
    assert "the approximate optimum lies above the exact one by" in str(report)
    exact = m3n.SequenceTagger(kernel="rbf", **SETTINGS).fit(X, y)
    with pytest.raises(ValueError, match="nothing to compare"):
        exact.approximation_report(X, y)


@pytest.mark.parametrize("kernel", ["rbf", "poly"])
def test_random_features(kernel, data):
    X, y = data
    settings = {"kernel": kernel, "degree": 2, "approximation": "random", "components": 300, **SETTINGS}
    model = m3n.SequenceTagger(**settings).fit(X, y)
    assert model.score(X, y) > 0.9
    report = model.approximation_report(X, y, sequences=25)
    assert report.gram_error < 0.5
    assert report.agreement > 0.8


def test_transformers(data):
    X, y = data
    model = m3n.SequenceTagger(approximation=RBFSampler(n_components=300, random_state=0), **SETTINGS).fit(X, y)
    assert model.score(X, y) > 0.9
    assert not hasattr(model.approximation, "random_weights_")  # the parameter stays as it was given
    assert model.kernel_model_.coefficients.shape == (300, 2)


MODELS = {
    "exact": {"kernel": "poly", "degree": 2},
    "other": {"kernel": "laplacian", "kernel_params": {"gamma": 0.5}},
    "nystroem": {"kernel": "rbf", "approximation": "nystroem", "components": 20},
    "random rbf": {"kernel": "rbf", "approximation": "random", "components": 20},
    "random poly": {"kernel": "poly", "approximation": "random", "components": 20},
}


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_files(name, sparse, data, tmp_path):
    X, y = data
    X = [scipy.sparse.csr_array(sequence) for sequence in X] if sparse else X
    model = m3n.SequenceTagger(**MODELS[name], **SETTINGS).fit(X, y)
    model.save(tmp_path / "model.m3n")
    again = m3n.load(tmp_path / "model.m3n")
    assert again.get_params() == model.get_params()
    for a, b in zip(again.predict_marginals(X), model.predict_marginals(X), strict=True):
        np.testing.assert_array_equal(a, b)
    copied = pickle.loads(pickle.dumps(model))
    assert copied.predict(X) == model.predict(X)


def test_precomputed_in_a_file(data, tmp_path):
    X, y = data
    rows = [sequence @ np.concatenate(X).T for sequence in X]
    with pytest.warns(ConvergenceWarning):
        model = m3n.SequenceTagger(kernel="precomputed", max_passes=3, **SETTINGS).fit(rows, y)
    model.save(tmp_path / "model.m3n")
    assert m3n.load(tmp_path / "model.m3n").predict(rows) == model.predict(rows)


def test_code_is_not_saved(data, tmp_path):
    X, y = data
    model = m3n.SequenceTagger(kernel=lambda A, B: A @ B.T + 1, **SETTINGS).fit(X, y)
    with pytest.raises(TypeError, match="never hold code: use pickle"):
        model.save(tmp_path / "model.m3n")
    transformer = SkewedChi2Sampler(skewedness=10.0, n_components=10, random_state=0)
    model = m3n.SequenceTagger(approximation=transformer, **SETTINGS).fit(X, y)
    with pytest.raises(TypeError, match="cannot be written to a model file"):
        model.save(tmp_path / "model.m3n")
    assert not (tmp_path / "model.m3n").exists()


def test_damaged_files(data, tmp_path, tagger):
    from m3n.io import model_file

    tagger.save(tmp_path / "model.m3n")
    kind, meta, tensors = model_file.read(tmp_path / "model.m3n")
    tensors["kernel_inputs"] = tensors["kernel_inputs"][:-1]
    model_file.write(tmp_path / "model.m3n", kind, meta, tensors)
    with pytest.raises(ModelFileError, match="support inputs with"):
        m3n.load(tmp_path / "model.m3n")


def test_scikit_learn_conventions(data, tagger):
    X, y = data
    assert clone(tagger).get_params() == tagger.get_params()
    assert "kernel='poly', degree=2" in repr(tagger)
    search = GridSearchCV(m3n.SequenceTagger(kernel="poly", **SETTINGS), {"degree": [1, 2]}, cv=2).fit(X, y)
    assert search.best_params_ == {"degree": 2}


def test_warm_start(data):
    X, y = data
    model = m3n.SequenceTagger(kernel="rbf", warm_start=True, **SETTINGS).fit(X, y)
    model.set_params(lam=0.015).fit(X, y)
    assert model.certificate_.gap <= 1e-3
    model.set_params(kernel=None).fit(X, y)
    assert hasattr(model, "coef_")
    assert not hasattr(model, "kernel_model_")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"kernel": "cubic"}, "unknown kernel 'cubic'"),
        ({"kernel": "rbf", "approximation": "fourier"}, "unknown approximation 'fourier'"),
        ({"kernel": "rbf", "approximation": "nystroem", "components": 0}, "components must be"),
        ({"kernel": "linear", "approximation": "random"}, "random features exist for"),
        ({"kernel": "precomputed", "approximation": "nystroem"}, "no inputs to approximate"),
        ({"approximation": "nystroem"}, "of which kernel"),
        ({"kernel": "rbf", "observed_only": True}, "without a kernel"),
        ({"kernel": "rbf", "support_tol": 1.0}, "support_tol must be"),
        ({"kernel": "precomputed"}, "kernel values with all"),
        ({"kernel": lambda A, B: -A @ B.T}, "not positive semi-definite"),
        ({"kernel": lambda A, B: A @ B.T, "approximation": "nystroem"}, "needs a kernel's name"),
    ],
)
def test_wrong_settings(settings, message, data):
    with pytest.raises(ValueError, match=message):
        m3n.SequenceTagger(**settings).fit(*data)


def test_wrong_transformer(data):
    with pytest.raises(TypeError, match="must be a name or have fit and transform"):
        m3n.SequenceTagger(approximation=3).fit(*data)
