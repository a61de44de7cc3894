"""Temperatures against a search of our own on enumerated outputs, and against what probabilities should be."""

from itertools import pairwise, product

import numpy as np
import pytest

import m3n

LABELS = ["a", "b", "c"]


def drawn(count, seed):
    """Sequences whose labels follow noisy numbers, so that no model is always right."""
    random = np.random.default_rng(seed)
    y = [random.choice(LABELS, size=random.integers(2, 5)).tolist() for _ in range(count)]
    return [np.eye(3)[[LABELS.index(k) for k in row]] + random.normal(size=(len(row), 3)) for row in y], y


@pytest.fixture(scope="module")
def tagger():
    X, y = drawn(60, 0)
    return m3n.SequenceTagger(lam=0.02, rtol=0.01, n_jobs=1).fit(X, y)


def enumerated(tagger, X, y, temperature):
    """The log loss of marginals by adding up all outputs."""
    losses = []
    for x, gold in zip(X, y, strict=True):
        outputs = list(product(range(3), repeat=len(gold)))
        node, table = x @ tagger.coef_, tagger.transitions_
        scores = [
            sum(node[t, k] for t, k in enumerate(o)) + sum(table[a, b] for a, b in pairwise(o))
            + tagger.start_[o[0]] + tagger.end_[o[-1]]
            for o in outputs
        ]  # fmt: skip
        shares = np.exp((np.array(scores) - max(scores)) / temperature)
        shares /= shares.sum()
        for t, label in enumerate(gold):
            losses.append(-np.log(sum(p for p, o in zip(shares, outputs, strict=True) if LABELS[o[t]] == label)))
    return np.mean(losses)


def test_the_log_loss_is_that_of_all_outputs(tagger):
    X, y = drawn(5, 1)
    for temperature in (0.2, 1.0, 3.0):
        assert tagger.log_loss(X, y, temperature) == pytest.approx(enumerated(tagger, X, y, temperature))


def test_the_temperature_has_the_least_log_loss(tagger, tmp_path):
    X, y = drawn(40, 2)
    assert tagger.temperature_ == 1.0
    before = [labels[:] for labels in tagger.predict(X)]
    flat = tagger.predict_marginals(X)
    assert tagger.calibrate_temperature(X, y) is tagger
    best = tagger.temperature_
    grid = np.exp(np.linspace(np.log(0.05), np.log(5.0), 60))
    assert tagger.log_loss(X, y) <= min(tagger.log_loss(X, y, t) for t in grid) + 1e-9
    assert 0.05 < best < 1.0  # max-margin models are too flat at 1
    assert tagger.predict(X) == before
    np.testing.assert_allclose(tagger.predict_marginals(X)[0], tagger.predict_marginals(X, best)[0])
    np.testing.assert_allclose(tagger.predict_marginals(X, 1.0)[0], flat[0])
    assert tagger.predict_k_best(X, 2, probabilities=True) == tagger.predict_k_best(
        X, 2, probabilities=True, temperature=best
    )
    tagger.save(tmp_path / "model.m3n")
    again = m3n.load(tmp_path / "model.m3n")
    assert again.temperature_ == best
    np.testing.assert_array_equal(again.predict_marginals(X)[0], tagger.predict_marginals(X)[0])
    again.set_params(max_passes=1)
    with pytest.warns(UserWarning, match="training stopped early"):
        assert again.fit(X, y).temperature_ == 1.0


def test_calibrated_probabilities_are_right_as_often_as_they_say(tagger):
    X, y = drawn(300, 3)
    tagger.calibrate_temperature(*drawn(300, 4))
    right = np.concatenate([np.array(LABELS) == np.array(row)[:, None] for row in y])

    def mistake(temperature):
        shares = np.concatenate(tagger.predict_marginals(X, temperature))
        return abs(shares.max(axis=1).mean() - right[np.arange(len(right)), shares.argmax(axis=1)].mean())

    assert mistake(None) < 0.03 < mistake(1.0)


def test_unknown_labels_do_not_count(tagger):
    X, y = drawn(20, 5)
    strange = [[*row[:-1], "z"] for row in y]
    assert tagger.log_loss(X, strange) != tagger.log_loss(X, y)
    with pytest.raises(ValueError, match="the model knows none of the labels of y; it knows"):
        tagger.calibrate_temperature(X, [["z"] * len(row) for row in y])
    with pytest.raises(ValueError, match="X is empty: there is nothing to calibrate on"):
        tagger.calibrate_temperature([], [])
    with pytest.raises(ValueError, match="temperature must be positive, got 0"):
        tagger.predict_marginals(X, 0)


def test_labels_that_are_words_are_refused_unless_they_are_named():
    words = [f"w{k}" for k in range(300)]
    X, y = [np.ones((300, 1))], [words]
    with pytest.raises(ValueError, match="300 different labels at 300 positions: these look like words or numbers"):
        m3n.SequenceTagger().fit(X, y)
    named = m3n.structures.Transitions.forbid(words, [])
    with pytest.warns(UserWarning, match="training stopped early"):
        model = m3n.SequenceTagger(constraints=named, max_passes=1, solver="sequential_dual").fit(X, y)
    assert len(model.classes_) == 300
