"""Labels and scores straight from attributes are those of the general way, that of ``fixed=`` with no fixed label."""

import threading

import numpy as np
import pytest

import m3n
from m3n.estimators import direct
from m3n.features import template_lookup, word_templates


def sequences(random, count, dicts=True):
    """Tokens with words, flags and numbers, some of them new."""
    found = []
    for _ in range(count):
        words = random.integers(30, size=random.integers(1, 7)).tolist()
        if dicts:
            found.append([{"w": f"w{k}", "odd": bool(k % 2), "size": k / 4, "none": None} for k in words])
        else:
            found.append([[f"w{k}", f"last{k % 10}"] for k in words])
    return found


def labels_of(X, random, names="ABC"):
    return [[names[int(k)] for k in random.integers(len(names), size=len(x))] for x in X]


def check_scores(tagger, X, small):
    """Probabilities and the k best are those of the general way, which adds most things up in another order."""
    assert (direct.direct_scores(tagger, X) is None) == (small == 1)
    free, near = [None] * len(X), 1e-12 if tagger.observed_only or tagger.templates is None else 0.0
    for own, general in zip(tagger.predict_marginals(X), tagger.predict_marginals(X, fixed=free), strict=True):
        np.testing.assert_allclose(own, general, rtol=near, atol=0.0)
    own = tagger.predict_k_best(X, 2, probabilities=True)
    for found, known in zip(own, tagger.predict_k_best(X, 3, probabilities=True, fixed=free), strict=True):
        for (labels, *numbers), (expected, *right) in zip(found, known, strict=False):
            np.testing.assert_allclose(numbers, right, rtol=near, atol=near)
            # equal tokens change places for the same score; rounding says which is first
            ties = [other for other, score, _ in known if np.isclose(score, right[0], rtol=1e-12, atol=0.0)]
            assert labels in (ties or [expected])
        assert len(found) == min(2, len(known))


@pytest.mark.parametrize("dicts", [True, False])
@pytest.mark.parametrize("observed", [True, False])
@pytest.mark.parametrize("constrained", [True, False])
@pytest.mark.parametrize("small", [1, 10_000])
def test_labels_are_those_of_the_general_way(monkeypatch, dicts, observed, constrained, small):
    monkeypatch.setattr(direct, "SMALL", small)
    random = np.random.default_rng(3)
    X = sequences(random, 40, dicts)
    y = labels_of(X, random)
    rules = None
    if constrained:
        y = [sorted(labels) for labels in y]
        rules = "observed"
    tagger = m3n.SequenceTagger(lam=0.01, tol=0.1, observed_only=observed, constraints=rules, n_jobs=2).fit(X, y)
    new = sequences(random, 60, dicts)
    assert direct.direct_labels(tagger, new) is not None
    assert tagger.predict(new) == tagger.predict(new, fixed=[None] * len(new))
    assert tagger.predict(new[:1]) == tagger.predict(new)[:1]
    check_scores(tagger, new, small)


def test_many_labels():
    random = np.random.default_rng(5)
    X = sequences(random, 300, dicts=False)
    y = labels_of(X, random, [f"y{k}" for k in range(110)])
    tagger = m3n.SequenceTagger(lam=0.01, max_passes=2.0, tol=np.inf).fit(X, y)
    new = sequences(random, 30, dicts=False)
    assert direct.direct_labels(tagger, new) is not None
    assert tagger.predict(new) == [answers[0][0] for answers in tagger.predict_k_best(new, 1)]


@pytest.mark.parametrize("observed", [True, False])
@pytest.mark.parametrize("words", [True, False])
@pytest.mark.parametrize("small", [1, 10_000])
def test_labels_of_tokens_in_columns(monkeypatch, observed, words, small):
    random = np.random.default_rng(3)
    X = [[token["w"] if words else (token["w"], str(token["odd"])) for token in x] for x in sequences(random, 60)]
    tagger = m3n.SequenceTagger(
        templates=word_templates(1 if words else 2), lam=0.01, tol=0.1, observed_only=observed, n_jobs=2
    ).fit(X[:40], labels_of(X[:40], random))
    monkeypatch.setattr(direct, "SMALL", small)
    expected = tagger.predict(X, fixed=[None] * len(X))
    assert direct.direct_labels(tagger, X) == tagger.predict(X) == expected
    check_scores(tagger, X, small)
    assert tagger.predict(m3n.io.Sentences.of([[(w,) if words else w for w in x] for x in X])) == expected
    assert tagger.predict([*X[:1], [], X[1]]) == [expected[0], [], expected[1]]
    with pytest.raises(ValueError, match="the tokens have 3 columns, but the model was trained on"):
        tagger.predict([[("a", "b", "c")]])


def test_weights_changed_by_hand_count():
    X, y = [[{"w": "a"}, {"w": "b"}]] * 3, [["A", "B"]] * 3
    tagger = m3n.SequenceTagger(tol=0.1).fit(X, y)
    assert tagger.predict(X) == y
    tagger.coef_[:] = -tagger.coef_
    tagger.transitions_[:] = tagger.start_[:] = tagger.end_[:] = 0.0
    assert tagger.predict(X) == [["B", "A"]] * 3


def test_what_is_not_plain_takes_the_general_way():
    X, y = [[{"w": "a"}, {"w": "b"}]] * 3, [["A", "B"]] * 3
    tagger = m3n.SequenceTagger(tol=0.1).fit(X, y)
    for given in (iter(X), [iter(x) for x in X][:0], [[{"w": "a"}, ["w"]]], np.array(X, dtype=object)):
        assert direct.direct_labels(tagger, given) is None
    assert tagger.predict([[{"w": "a"}, ["w"]]])[0][0] == "A"
    with pytest.raises(TypeError, match="sequence 0, position 1"):
        tagger.predict([[{"w": "a"}, {"w": 1j}]])


def test_constraints_that_leave_nothing_are_named():
    X = [[{"w": "a"}, {"w": "b"}]] * 3
    tagger = m3n.SequenceTagger(tol=0.1, constraints="observed").fit(X, [["A", "B"]] * 3)
    with pytest.raises(ValueError, match=r"sequence 0, position 0: the constraints allow no labels .* of length 1"):
        tagger.predict([[{"w": "a"}]])


@pytest.mark.parametrize("columns", [True, False])
def test_threads_share_a_model(monkeypatch, columns):
    monkeypatch.setattr(template_lookup, "MOST_WORDS", 20)  # forgotten while others look
    random = np.random.default_rng(0)
    X = sequences(random, 30)
    X = [[token["w"] for token in x] for x in X] if columns else X
    templates = word_templates() if columns else None
    tagger = m3n.SequenceTagger(lam=0.01, tol=0.1, templates=templates).fit(X, labels_of(X, random))
    expected, shares, wrong = tagger.predict(X), tagger.predict_marginals(X), []
    tagger.reader_.vectorizer._lookup = None  # several threads make the table at once

    def serve():
        for _ in range(10):
            found = [(tagger.predict([x])[0], tagger.predict_marginals([x])[0]) for x in X]
            wrong.extend(labels != right for (labels, _), right in zip(found, expected, strict=True))
            wrong.extend(not np.array_equal(own, right) for (_, own), right in zip(found, shares, strict=True))

    workers = [threading.Thread(target=serve) for _ in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(wrong) == 8 * 10 * 2 * len(X)
    assert not any(wrong)
