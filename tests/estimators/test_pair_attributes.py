"""Attributes of pairs of labels, which templates such as B01:%x[0,0] make."""

import pickle
from itertools import product

import numpy as np
import pytest
import scipy.sparse

import m3n
from m3n.estimators import sequence_tagger
from m3n.features import Templates
from m3n.losses import EdgeHamming, Hamming
from m3n.structures import Transitions

TEMPLATES = Templates(["U0:%x[0,0]", "B", "B0:%x[0,0]", "B1:%x[-1,0]/%x[0,0]"])


def switches(count=25, seed=0):
    """The word says whether the label is that of the token before or another one: single tokens tell nothing."""
    random = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(count):
        turns = random.integers(2, size=int(random.integers(1, 6)))
        labels = (random.integers(2) + np.cumsum(turns)) % 2
        words = [("keep", "turn")[turn] for turn in turns]
        words[0] = ("one", "two")[labels[0]]
        X.append([(word,) for word in words])
        y.append([("A", "B")[label] for label in labels])
    return X, y


def tagger(**settings):
    return m3n.SequenceTagger(**{"tol": 1e-6, "lam": 0.02, "n_jobs": 1, "templates": TEMPLATES, **settings})


def scores(model, x):
    """The score of every labelling, from the names of attributes."""
    templates = model.reader_.vectorizer
    names, pair_names = templates.names, templates.pair_names
    labels = len(model.classes_)
    edge = model.edge_coef_
    if scipy.sparse.issparse(edge):
        edge = edge.toarray().reshape(-1, labels, labels)
    node = model.coef_.toarray() if scipy.sparse.issparse(model.coef_) else model.coef_
    found = {}
    for y in product(range(labels), repeat=len(x)):
        total = model.start_[y[0]] + model.end_[y[-1]]
        for t, (word,) in enumerate(x):
            total += node[names.index(f"U0:{word}"), y[t]] if f"U0:{word}" in names else 0.0
            for name in (f"B0:{word}", f"B1:{x[t - 1][0]}/{word}") if t else ():
                total += edge[pair_names.index(name), y[t - 1], y[t]] if name in pair_names else 0.0
            total += model.transitions_[y[t - 1], y[t]] if t else 0.0
        found[y] = total
    return found


@pytest.mark.parametrize("observed_only", [False, True])
@pytest.mark.parametrize("objective", ["margin", "crf"])
def test_objective_and_answers_from_scratch(objective, observed_only, tmp_path):
    X, y = switches()
    model = tagger(objective=objective, observed_only=observed_only).fit(X, y)
    assert model.score(*switches(seed=1)) == 1.0
    without = tagger(objective=objective, templates=Templates(["U0:%x[0,0]"])).fit(X, y)
    assert without.score(*switches(seed=1)) < 0.95
    risk = 0.0
    for x, labels in zip(X, y, strict=True):
        gold = tuple(model.classes_.tolist().index(label) for label in labels)
        found = scores(model, x)
        if objective == "margin":
            risk += max(s + sum(a != b for a, b in zip(z, gold, strict=True)) for z, s in found.items()) - found[gold]
        else:
            risk += np.logaddexp.reduce(list(found.values())) - found[gold]
    weights = [model.coef_, model.edge_coef_, model.transitions_, model.start_, model.end_]
    square = sum(float((w**2).sum()) for w in weights)
    assert model.certificate_.primal == pytest.approx(model.lam_ / 2 * square + risk / len(X), abs=1e-9)

    new = [[("one",), ("turn",), ("unseen",), ("turn",)], [("two",)]]
    for x, labels, marginals in zip(new, model.predict(new), model.predict_marginals(new), strict=True):
        found = scores(model, x)
        assert tuple(model.classes_.tolist().index(label) for label in labels) == max(found, key=found.get)
        shares = np.exp(np.array(list(found.values())) - np.logaddexp.reduce(list(found.values())))
        wanted = np.array(
            [[shares[np.array([z[t] for z in found]) == k].sum() for k in range(2)] for t in range(len(x))]
        )
        np.testing.assert_allclose(marginals, wanted, atol=1e-12)
    values = [value for _, value in model.predict_k_best(new[:1], k=16)[0]]
    np.testing.assert_allclose(values, sorted(scores(model, new[0]).values(), reverse=True), atol=1e-9)

    model.save(tmp_path / "model")
    for other in (m3n.load(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
        assert other.predict_k_best(new, k=3) == model.predict_k_best(new, k=3)


def test_zero_weights_leave_sequences_and_their_pairs_out():
    X, y = switches()
    weights = np.arange(len(X)) % 3
    kept = np.flatnonzero(weights)
    some = tagger().fit(X, y, sample_weight=weights)
    same = tagger().fit([X[i] for i in kept], [y[i] for i in kept], sample_weight=weights[kept])
    assert some.certificate_.primal == pytest.approx(same.certificate_.primal, abs=2e-6)


def test_losses_of_pairs_and_strengths():
    """A loss of pairs needs the same array; strength 4 on pairs is the same as inputs of half the size."""
    X, y = switches()
    model = tagger(loss=Hamming() + EdgeHamming(), tol=1e-3).fit(X, y)
    assert model.score(X, y) == 1.0
    weak, strong = (tagger(strengths={"pairs": s}).fit(X, y) for s in (1.0, 100.0))
    assert np.abs(strong.edge_coef_).sum() < np.abs(weak.edge_coef_).sum()


def test_long_data_are_scored_in_pieces(monkeypatch):
    X, y = switches()
    model = tagger(constraints="observed").fit(X, y)
    fixed = [[labels[0]] + [None] * (len(labels) - 1) for labels in y]
    whole = model.predict(X, fixed=fixed), model.predict_k_best(X, 2), model.predict(X, decoding="posterior")
    marginals = np.concatenate(model.predict_marginals(X))
    monkeypatch.setattr(sequence_tagger, "MOST_SCORES", 30)
    assert (model.predict(X, fixed=fixed), model.predict_k_best(X, 2), model.predict(X, decoding="posterior")) == whole
    np.testing.assert_array_equal(np.concatenate(model.predict_marginals(X)), marginals)
    model.constraints_ = Transitions(("A", "B"), np.ones((2, 2)), np.zeros(2), np.zeros(2))
    with pytest.raises(ValueError, match=f"sequence {next(i for i, x in enumerate(X) if len(x) > 1)}, position 1"):
        model.predict(X)


def test_segments_have_no_pairs():
    with pytest.raises(ValueError, match="no attributes of label pairs"):
        m3n.SegmentTagger(templates=TEMPLATES).fit([[("a",), ("b",)]], [["B-X", "O"]])
