"""Unknown labels: the objective against enumeration, rounds that never rise, and refusals."""

from itertools import pairwise, product

import numpy as np
import pytest
import scipy.sparse

import m3n
from m3n.losses import EdgeHamming, NormalizedHamming
from m3n.structures import Transitions

LAM = 0.05


def data(seed=0, n=10, labels="abc", width=5, open_share=0.5):
    """Sequences of which many labels are None or one of two; and all labels."""
    random = np.random.default_rng(seed)
    W = random.normal(size=(width, len(labels)))
    X = [random.normal(size=(random.integers(1, 5), width)) for _ in range(n)]
    full = [[labels[k] for k in (x @ W + 0.5 * random.normal(size=(len(x), len(labels)))).argmax(axis=1)] for x in X]
    y = [[opened(label, labels, random) if random.random() < open_share else label for label in own] for own in full]
    return X, y, full


def opened(label, labels, random):
    other = str(random.choice([a for a in labels if a != label]))
    return [None, {label, other}, (label, other), [label]][random.integers(4)]


def choices(label, labels):
    return list(labels) if label is None else list(label) if not isinstance(label, str) else [label]


def objective(model, X, y, crf, loss=None, weights=None, prior=None):
    """F by enumeration, all by hand."""
    labels = model.classes_.tolist()
    W, T, start, end = model.coef_, model.transitions_, model.start_, model.end_
    old = [0.0] * 4 if prior is None else [prior.coef_, prior.transitions_, prior.start_, prior.end_]
    pull = sum(float(((a - b) ** 2).sum()) for a, b in zip((W, T, start, end), old, strict=True))
    values = []
    for x, given in zip(X, y, strict=True):
        inside, outside = [], []
        allowed = [choices(label, labels) for label in given]
        for output in product(range(len(labels)), repeat=len(x)):
            score = start[output[0]] + end[output[-1]] + sum(T[pair] for pair in pairwise(output))
            score += sum(x[t] @ W[:, k] for t, k in enumerate(output))
            wrong = sum(labels[k] not in allowed[t] for t, k in enumerate(output))
            cost = 0.0 if loss is None else wrong / (len(x) if loss == "normalized_hamming" else 1)
            outside.append(score + cost)
            inside += [score] if not wrong else []
        value = np.logaddexp.reduce if crf else np.max
        values.append(value(outside) - value(inside))
    return LAM / 2 * pull + float(np.average(values, weights=weights))


@pytest.mark.parametrize(
    ("settings", "crf", "loss"),
    [
        ({"objective": "crf"}, True, None),
        ({"objective": "margin"}, False, "hamming"),
        ({"objective": "margin", "loss": "normalized_hamming", "solver": "bmrm"}, False, "normalized_hamming"),
        ({"objective": "softmax_margin", "solver": "lbfgs"}, True, "hamming"),
    ],
    ids=str,
)
@pytest.mark.parametrize("seed", range(3))
def test_objective_against_enumeration_and_rounds_never_rise(settings, crf, loss, seed):
    X, y, _ = data(seed)
    weights = np.arange(1.0, 11.0) if seed == 2 else None
    tagger = m3n.SequenceTagger(lam=LAM, tol=1e-5, **settings).fit(X, y, sample_weight=weights)
    values = [found.objective for found in tagger.rounds_]
    assert len(values) > 1
    assert all(after < before for before, after in pairwise(values))
    known = objective(tagger, X, y, crf, loss, weights)
    assert values[-1] == pytest.approx(known, abs=1e-9)
    last = tagger.certificate_
    assert last == tagger.rounds_[-1].certificate
    assert last.gap <= 1e-5
    assert "of the last convex round" in str(last)
    assert last.primal >= known - 1e-9  # the convex problem is nowhere below F
    assert last.primal <= values[-2] + last.gap + 1e-9  # and touches it where the round began
    one = m3n.SequenceTagger(lam=LAM, tol=1e-5, rounds=1, **settings).fit(X, y, sample_weight=weights)
    assert len(one.rounds_) == 1
    assert objective(one, X, y, crf, loss, weights) == pytest.approx(values[0], abs=1e-9)


def test_a_stationary_point_of_the_marginal_likelihood():
    """Slopes of F along random directions vanish where rounds end; no derivative of ours is used."""
    X, y, _ = data(4)
    tagger = m3n.SequenceTagger(objective="crf", lam=LAM, tol=1e-10, rounds=300, solver="lbfgs").fit(X, y)
    random = np.random.default_rng(0)
    arrays = (tagger.coef_, tagger.transitions_, tagger.start_, tagger.end_)
    for _ in range(5):
        steps = [random.normal(size=array.shape) for array in arrays]
        values = []
        for sign in (1e-4, -2e-4):
            for array, step in zip(arrays, steps, strict=True):
                array += sign * step
            values.append(objective(tagger, X, y, True))
        for array, step in zip(arrays, steps, strict=True):
            array += 1e-4 * step
        assert abs(values[0] - values[1]) / 2e-4 < 1e-3


def test_labels_that_are_all_known_change_nothing():
    X, _, full = data(1)
    for settings in ({"objective": "crf"}, {}):
        plain = m3n.SequenceTagger(**settings).fit(X, full)
        lists = m3n.SequenceTagger(rounds=3, **settings).fit(X, full)
        np.testing.assert_array_equal(plain.coef_, lists.coef_)
        assert plain.rounds_ is None
        assert plain.certificate_ == lists.certificate_
        assert plain.certificate_.of == ""
    single = [[{label} for label in own] for own in full]
    for settings in ({"objective": "crf", "tol": 1e-6}, {"tol": 1e-6}):
        plain, wrapped = (m3n.SequenceTagger(lam=LAM, **settings).fit(X, labels) for labels in (full, single))
        np.testing.assert_allclose(plain.coef_, wrapped.coef_, atol=1e-2)
        assert wrapped.rounds_[-1].objective == pytest.approx(plain.certificate_.primal, abs=2e-6)


def test_learning_from_what_is_half_known():
    X, y, full = data(5, n=80, open_share=0.6)
    X_out, _, full_out = data(5, n=160)
    known = [[label if isinstance(label, str) else "?" for label in own] for own in y]
    assert sum(label == "?" for own in known for label in own) > 0.4 * sum(map(len, y))
    for settings in ({"objective": "crf"}, {}):
        tagger = m3n.SequenceTagger(lam=0.01, **settings).fit(X, y)
        whole = m3n.SequenceTagger(lam=0.01, **settings).fit(X, full)
        assert tagger.classes_.tolist() == ["a", "b", "c"]
        assert tagger.score(X_out, full_out) > whole.score(X_out, full_out) - 0.08
        assert tagger.score(X_out, full_out) > 0.6


def test_with_a_prior_constraints_and_named_attributes(tmp_path):
    X, y, full = data(6)
    first = m3n.SequenceTagger(lam=LAM).fit(X[:5], full[:5])
    tagger = m3n.SequenceTagger(lam=LAM, tol=1e-5, prior=first, objective="crf").fit(X[5:], y[5:])
    known = objective(tagger, X[5:], y[5:], True, prior=first)
    assert tagger.rounds_[-1].objective == pytest.approx(known, abs=1e-9)
    rules = Transitions.forbid("abc", [("a", "b")])
    ruled = m3n.SequenceTagger(constraints=rules).fit([np.eye(3)], [[None, "b", "c"]])
    assert ruled.predict([np.eye(3)])[0][0] != "a"
    with pytest.raises(ValueError, match="sequence 0: the constraints forbid every completion"):
        m3n.SequenceTagger(constraints=rules).fit([np.eye(3)], [["a", "b", None]])
    words = [[["w=the"], ["w=dog"]], [["w=a"], ["w=dog"]]]
    named = m3n.SequenceTagger().fit(words, [["D", None], ["D", "N"]])
    assert named.predict(words) == [["D", "N"], ["D", "N"]]
    named.save(tmp_path / "model.m3n")
    loaded = m3n.load(tmp_path / "model.m3n")
    assert loaded.rounds_ is None
    assert loaded.certificate_ == named.certificate_
    sparse = m3n.SequenceTagger(lam=LAM).fit([scipy.sparse.csr_array(x) for x in X], y)
    np.testing.assert_allclose(sparse.coef_, m3n.SequenceTagger(lam=LAM).fit(X, y).coef_, atol=1e-6)
    named.partial_fit(words[:1], [[None, {"N", "X"}]])
    assert named.classes_.tolist() == ["D", "N", "X"]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"objective": "slack"}, "do not go with objective='slack'"),
        ({"l1": 0.1, "objective": "crf"}, "do not go with l1"),
        ({"kernel": "linear"}, "do not go with a kernel"),
        ({"class_weight": "balanced"}, "do not go with class_weight"),
        ({"validation": 0.5}, "do not go with validation"),
        ({"checkpoint": "run"}, "do not go with checkpoint"),
        ({"backend": "ray"}, "do not go with workers elsewhere"),
        ({"constraints": "observed"}, "do not go with constraints='observed'"),
        ({"loss": EdgeHamming()}, "must be one of single labels"),
        ({"loss": NormalizedHamming(class_weight="balanced")}, "must be one of single labels that all count alike"),
        ({"rounds": 0}, "rounds must be at least 1"),
    ],
    ids=str,
)
def test_what_does_not_go_with_unknown_labels(settings, words):
    X, y, _ = data(0)
    with pytest.raises(ValueError, match=words):
        m3n.SequenceTagger(**settings).fit(X, y)
    with pytest.raises(ValueError, match="observed_only"):
        m3n.SequenceTagger(observed_only=True).fit([scipy.sparse.csr_array(x) for x in X], y)


def test_mistakes_in_partial_labels():
    X = [np.eye(2), np.eye(2)]
    with pytest.raises(ValueError, match="there is no single one"):
        m3n.SequenceTagger().problem(X, [["a", None], ["b", "a"]])
    for y, words in (
        ([["a", None], ["b", set()]], "sequence 1, position 1: no label is allowed"),
        ([["a", None], ["b"]], "sequence 1 has 2 positions in X but 1 labels in y"),
        ([["a", None], ["b", {1}]], "all strings or all numbers"),
        ([["a", None], ["b", {None}]], "sequence 1.*must be a string or a number"),
        ([[None, None], [None, None]], "no label is known at all"),
    ):
        with pytest.raises(ValueError, match=words):
            m3n.SequenceTagger().fit(X, y)


def test_a_loss_of_single_labels_in_an_object():
    X, y, _ = data(3)
    by_name, by_object = (
        m3n.SequenceTagger(lam=LAM, loss=loss).fit(X, y) for loss in ("normalized_hamming", NormalizedHamming())
    )
    np.testing.assert_array_equal(by_name.coef_, by_object.coef_)
