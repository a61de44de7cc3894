"""``validation`` and ``patience`` of estimators."""

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import m3n
from m3n import Status


def noisy(seed, n, noise=0.35, length=4, width=12):
    """Labels that follow the first of many inputs, a part of them drawn at random: there is much to learn by heart."""
    random = np.random.default_rng(seed)
    X = [random.normal(size=(length, width)) for _ in range(n)]
    y = [np.where(random.random(length) < noise, random.integers(2, size=length), x[:, 0] > 0) for x in X]
    return X, [[str(int(label)) for label in labels] for labels in y]


X, Y = noisy(0, 30)
X_OUT, Y_OUT = noisy(1, 60)
SETTINGS = {"lam": 1e-4, "tol": 1e-4, "solver": "lbfgs", "objective": "crf"}


@pytest.mark.parametrize("kind", [np.asarray, scipy.sparse.csr_array], ids=["dense", "sparse"])
def test_the_best_score_is_kept_and_its_certificate_is_true(kind):
    inputs, outside = [kind(x) for x in X], [kind(x) for x in X_OUT]
    tagger = m3n.SequenceTagger(validation=(outside, Y_OUT), patience=3, **SETTINGS).fit(inputs, Y)
    scores = [record.metrics["held_out"] for record in tagger.trace_]
    assert tagger.status_ is Status.HELD_OUT
    assert tagger.score(outside, Y_OUT) == pytest.approx(max(scores), abs=1e-12)
    assert max(scores[-3:]) <= max(scores[:-3])
    plain = m3n.SequenceTagger(**SETTINGS).fit(inputs, Y)
    assert max(scores) > plain.score(outside, Y_OUT)  # else there was nothing to gain
    problem = m3n.SequenceTagger(**SETTINGS).problem(inputs, Y)
    w = np.concatenate([a.ravel() for a in (tagger.coef_, tagger.transitions_, tagger.start_, tagger.end_)])
    assert tagger.certificate_.primal == pytest.approx(problem.primal(w), abs=1e-10)
    assert tagger.certificate_.dual <= plain.certificate_.primal
    assert tagger.certificate_.gap > plain.certificate_.gap


def test_a_share_of_the_training_examples():
    tagger = m3n.SequenceTagger(validation=0.2, patience=2, random_state=4, **SETTINGS).fit(X, Y)
    again = m3n.SequenceTagger(validation=0.2, patience=2, random_state=4, **SETTINGS).fit(X, Y)
    np.testing.assert_array_equal(tagger.coef_, again.coef_)
    order = np.random.default_rng(4).permutation(30)
    out, kept = np.sort(order[:6]), np.sort(order[6:])
    pair = ([X[i] for i in out], [Y[i] for i in out])
    same = m3n.SequenceTagger(validation=pair, patience=2, **SETTINGS).fit([X[i] for i in kept], [Y[i] for i in kept])
    np.testing.assert_array_equal(tagger.coef_, same.coef_)
    other = m3n.SequenceTagger(validation=0.2, patience=2, random_state=5, **SETTINGS).fit(X, Y)
    assert (other.coef_ != tagger.coef_).any()
    weighted = m3n.SequenceTagger(validation=0.2, random_state=4, **SETTINGS).fit(X, Y, sample_weight=np.arange(1, 31))
    assert "held_out" in weighted.trace_[-1].metrics


def test_with_a_prior_the_prior_is_scored_first():
    first = m3n.SequenceTagger(lam=0.1).fit(X_OUT, Y_OUT)
    tagger = m3n.SequenceTagger(prior=first, validation=(X_OUT, Y_OUT), patience=1, **SETTINGS).fit(X, Y)
    assert tagger.trace_[0].metrics["held_out"] == pytest.approx(first.score(X_OUT, Y_OUT))


def test_no_warning_no_data_in_words_and_files(tmp_path, recwarn):
    tagger = m3n.SequenceTagger(validation=(X_OUT, Y_OUT), patience=1, **SETTINGS).fit(X, Y)
    assert not [w for w in recwarn if issubclass(w.category, ConvergenceWarning)]
    assert "validation=(X, y)" in repr(tagger)
    assert len(tagger._repr_html_()) < 100_000
    tagger.save(tmp_path / "model.m3n")
    loaded = m3n.load(tmp_path / "model.m3n")
    assert loaded.validation is None
    assert loaded.status_ is Status.HELD_OUT
    assert loaded.patience == 1
    assert "held_out" in loaded.trace_[-1].metrics
    assert clone(tagger).validation is not None


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (1.5, "validation must be a pair"),
        (True, "validation must be a pair"),
        ("file", "validation must be a pair"),
        ((X_OUT,), "validation must be a pair"),
        ((X_OUT, Y_OUT[:-1]), "60 sequences"),
        ((X_OUT, [["0"]] * 60), "sequence 0"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_refusals(wrong, words):
    with pytest.raises(ValueError, match=words):
        m3n.SequenceTagger(validation=wrong, **SETTINGS).fit(X, Y)


def test_patience_and_small_data():
    with pytest.raises(ValueError, match="patience must be at least 1"):
        m3n.SequenceTagger(patience=0).fit(X, Y)
    with pytest.raises(ValueError, match="there is only 1"):
        m3n.SequenceTagger(validation=0.5).fit(X[:1], Y[:1])
    small = m3n.SequenceTagger(validation=0.01, **SETTINGS).fit(X[:2], Y[:2])
    assert small.certificate_.gap >= 0.0
