"""Coverage over fresh draws, sets against all outputs, thresholds against their definitions, and refusals."""

import math
from dataclasses import asdict
from itertools import pairwise, product

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

import m3n
from m3n.estimators import Coverage, summary
from m3n.estimators.conformal import least_examples, share_threshold, surprise_threshold

LABELS = ["a", "b", "c"]
REPEATS, HELD, FRESH = 150, 60, 60


def drawn(count, seed, noise=1.0):
    """Sequences whose labels follow noisy numbers, so that no model is always right."""
    random = np.random.default_rng(seed)
    y = [random.choice(LABELS, size=random.integers(2, 5)).tolist() for _ in range(count)]
    return [np.eye(3)[[LABELS.index(k) for k in row]] + noise * random.normal(size=(len(row), 3)) for row in y], y


@pytest.fixture(scope="module")
def trained():
    X, y = drawn(60, 0)
    return m3n.SequenceTagger(lam=0.02, rtol=0.01, n_jobs=1).fit(X, y)


@pytest.fixture
def tagger(trained):
    """The same model, as training has left it."""
    trained.temperature_, trained.coverage_ = 1.0, None
    return trained


def shares_of(tagger, x, temperature):
    """The probabilities of all outputs, by adding them up."""
    outputs = list(product(range(3), repeat=len(x)))
    node, table = x @ tagger.coef_, tagger.transitions_
    scores = np.array([
        sum(node[t, k] for t, k in enumerate(o)) + sum(table[a, b] for a, b in pairwise(o))
        + tagger.start_[o[0]] + tagger.end_[o[-1]]
        for o in outputs
    ])  # fmt: skip
    if tagger.constraints_ is not None:
        scores[[not tagger.constraints_.allows([LABELS[k] for k in o]) for o in outputs]] = -np.inf
    shares = np.exp((scores - scores.max()) / temperature)
    return [[LABELS[k] for k in o] for o in outputs], shares / shares.sum()


def test_sets_hold_the_truth_as_often_as_promised_over_fresh_draws(tagger):
    """Means over draws of both halves lie within four standard errors of what the theory says."""
    alpha, label_alpha = 0.2, 0.12
    outputs, labels = [], []
    for k in range(REPEATS):
        held, fresh = drawn(HELD, 2 * k + 1000), drawn(FRESH, 2 * k + 1001)
        tagger.calibrate(*held, alpha, label_alpha=label_alpha)
        found = tagger.coverage_report(*fresh)
        outputs.append(found.outputs_found)
        labels.append(found.labels_found)
    m = tagger.coverage_.sequences
    assert m == HELD * 0.8
    error = np.std(outputs) / math.sqrt(REPEATS)
    assert error < 0.01
    rank = math.ceil((m + 1) * (1 - alpha))
    assert np.mean(outputs) == pytest.approx(rank / (m + 1), abs=4 * error)  # >= 0.8, and < 0.8 + 1/(m+1)
    error = np.std(labels) / math.sqrt(REPEATS)
    assert error < 0.005
    assert 1 - label_alpha - 4 * error <= np.mean(labels) <= 1 - label_alpha + 2 / (m + 1) + 4 * error
    sure = np.mean([tagger.score(*drawn(FRESH, 2 * k + 1001)) for k in range(20)])
    assert sure < 1 - label_alpha - 0.02  # one label per position would not have been enough


@pytest.mark.parametrize("constraints", [None, m3n.structures.Transitions.forbid(LABELS, [("a", "b")], start=["c"])])
def test_sets_are_those_of_all_outputs(constraints):
    random = np.random.default_rng(1)
    X, y = drawn(40, 1)
    allowed = [constraints is None or constraints.allows(row) for row in y]
    tagger = m3n.SequenceTagger(lam=0.05, n_jobs=1, constraints=constraints)
    tagger.fit(*([row for row, fine in zip(rows, allowed, strict=True) if fine] for rows in (X, y)))
    for surprise in (0.0, 0.7, 2.5, 6.0):
        share, temperature = random.uniform(0, 0.4), random.uniform(0.2, 2.0)
        tagger.coverage_ = Coverage(0.1, 0.1, 50, temperature, surprise, share)
        both = zip(X, tagger.predict_set(X), tagger.predict_label_sets(X), strict=True)
        for x, found, sets in both:
            outputs, shares = shares_of(tagger, x, temperature)
            order = np.argsort(-shares, kind="stable")
            inside = [k for k in order if -np.log(shares[k] or 1e-300) <= surprise] or [order[0]]
            assert found.complete
            assert [labels for labels, _ in found] == [outputs[k] for k in inside]
            np.testing.assert_allclose([p for _, p in found], shares[inside], rtol=1e-9)
            for t, labels in enumerate(sets):
                sums = {label: sum(shares[[o[t] == label for o in outputs]]) for label in LABELS}
                ranked = sorted(LABELS, key=lambda label: -sums[label])
                assert labels == ([label for label in ranked if sums[label] >= share] or ranked[:1])


def test_lists_that_end_early_say_so(tagger):
    X, _ = drawn(6, 3)
    tagger.coverage_ = Coverage(0.1, 0.1, 50, 5.0, 60.0, 0.0)
    for x, found in zip(X, tagger.predict_set(X), strict=True):
        assert (len(found), found.complete) == (3 ** len(x), True)
        assert list("abc"[: len(x)] + "a" * (len(x) - 3)) in found and ["z"] * len(x) not in found
        assert sum(p for _, p in found) == pytest.approx(1.0)
    for most in (1, 5, 20):
        for x, found in zip(X, tagger.predict_set(X, most), strict=True):
            assert (len(found), found.complete) == (min(most, 3 ** len(x)), 3 ** len(x) < most)
    report = tagger.coverage_report(X, [["b"] * len(x) for x in X], most=5)
    assert (report.outputs_found, report.complete, report.outputs_size) == (1.0, 0.0, 5.0)
    assert "mean size at least 5" in str(report)
    with pytest.raises(ValueError, match="most must be at least 1, got 0"):
        tagger.predict_set(X, 0)


def test_the_report_counts_what_the_sets_hold(tagger):
    X, y = drawn(50, 4)
    tagger.calibrate(*drawn(60, 5), 0.3, label_alpha=0.1)
    y[0] = ["z", *y[0][1:]]
    found, report = tagger.predict_set(X), tagger.coverage_report(X, y)
    assert report.outputs_found == np.mean([row in outputs for row, outputs in zip(y, found, strict=True)])
    assert report.outputs_size == np.mean([len(outputs) for outputs in found])
    sets = tagger.predict_label_sets(X)
    inside = [np.mean([k in s for k, s in zip(*pair, strict=True)]) for pair in zip(y, sets, strict=True)]
    assert report.labels_found == pytest.approx(np.mean(inside))
    assert report.labels_size == np.mean([len(s) for row in sets for s in row])
    assert (report.sequences, report.outputs_wanted, report.labels_wanted) == (50, 0.7, 0.9)
    assert report.complete == 1.0


def test_thresholds_against_their_definitions():
    random = np.random.default_rng(6)
    for _ in range(60):
        m, alpha = int(random.integers(9, 40)), random.uniform(0.1, 0.6)
        surprises = random.exponential(size=m)
        rank = math.ceil((m + 1) * (1 - alpha) - 1e-9)
        assert surprise_threshold(surprises, alpha) == sorted(surprises)[rank - 1]
        lengths = random.integers(1, 5, size=m)
        shares = np.where(random.random(lengths.sum()) < 0.3, random.random(lengths.sum()), np.inf)

        def risk(threshold, shares=shares, lengths=lengths, m=m):
            losses = [np.mean(part < threshold) for part in np.split(shares, np.cumsum(lengths)[:-1])]
            return m / (m + 1) * np.mean(losses) + 1 / (m + 1)

        best = max(t for t in [0.0, 1.0, *shares[np.isfinite(shares)]] if risk(t) <= alpha)
        assert share_threshold(shares, lengths, alpha) == best


def test_as_few_sequences_as_there_may_be():
    assert [least_examples(alpha) for alpha in (0.1, 0.05, 0.01, 0.5, 0.3)] == [9, 19, 99, 1, 3]
    for alpha in (0.1, 0.05, 0.01, 0.3):
        m = least_examples(alpha)
        assert surprise_threshold(np.arange(m, dtype=float), alpha) == m - 1
        assert share_threshold(np.linspace(0.1, 0.5, m), np.ones(m, int), alpha) >= 0.1


def test_everything_is_kept_and_a_new_fit_forgets_it(tagger, tmp_path):
    X, y = drawn(30, 7)
    before = tagger.predict(X)
    assert tagger.calibrate(*drawn(80, 8)) is tagger
    assert tagger.predict(X) == before
    assert tagger.temperature_ == tagger.coverage_.temperature != 1.0
    tagger.save(tmp_path / "model.m3n")
    again = m3n.load(tmp_path / "model.m3n")
    assert again.coverage_ == tagger.coverage_
    assert summary(again)["coverage"] == asdict(tagger.coverage_)
    assert again.predict_set(X) == tagger.predict_set(X)
    assert again.predict_label_sets(X) == tagger.predict_label_sets(X)
    sets = again.predict_set(X)
    again.calibrate_temperature(*drawn(40, 9))  # thresholds have a temperature of their own
    assert again.predict_set(X) == sets
    again.set_params(max_passes=1)
    with pytest.warns(UserWarning, match="training stopped early"):
        assert again.fit(X, y).coverage_ is None


def test_a_temperature_that_is_there_may_stay(tagger):
    tagger.calibrate_temperature(*drawn(40, 10))
    warmth = tagger.temperature_
    tagger.calibrate(*drawn(40, 11), temperature_share=0)
    assert tagger.temperature_ == tagger.coverage_.temperature == warmth
    assert tagger.coverage_.sequences == 40
    one = tagger.calibrate(*drawn(40, 11)).coverage_
    assert tagger.calibrate(*drawn(40, 11)).coverage_ == one  # drawn by a seed
    assert one.sequences == 32


def test_empty_sequences_do_not_count(tagger):
    (X, y), nothing = drawn(40, 12), np.empty((0, 3))
    tagger.calibrate(X, y)
    plain = tagger.coverage_
    tagger.temperature_ = 1.0
    assert tagger.calibrate([nothing, *X, nothing], [[], *y, []]).coverage_ == plain
    first, *others = tagger.predict_set([nothing, *X])
    assert (first.outputs, first.complete) == ([([], 1.0)], True)
    assert others == tagger.predict_set(X)
    assert tagger.predict_label_sets([nothing, X[0]]) == [[], tagger.predict_label_sets(X[:1])[0]]


def test_refusals(tagger):
    X, y = drawn(40, 13)
    for method in (tagger.predict_set, tagger.predict_label_sets, lambda X: tagger.coverage_report(X, y)):
        with pytest.raises(ValueError, match=r"not been calibrated.*call calibrate\(X, y, alpha\)"):
            method(X)
    for alpha in (0, 1, -0.1, 1.5, float("nan"), True):
        with pytest.raises(ValueError, match="alpha must lie between 0 and 1"):
            tagger.calibrate(X, y, alpha)
        with pytest.raises(ValueError, match="label_alpha must lie between 0 and 1"):
            tagger.calibrate(X, y, label_alpha=alpha)
    with pytest.raises(ValueError, match="temperature_share must be at least 0 and below 1, got 1"):
        tagger.calibrate(X, y, temperature_share=1)
    with pytest.raises(ValueError, match="X is empty: there is nothing to calibrate on"):
        tagger.calibrate([], [])
    with pytest.raises(ValueError, match=r"11 sequences.*too few, 3 of which.*alpha=0.1 come from 9 others at least"):
        tagger.calibrate(X[:11], y[:11])
    with pytest.raises(ValueError, match=r"8 sequences with labels are too few: thresholds for alpha=0.1 come from 9"):
        tagger.calibrate(X[:8], y[:8], temperature_share=0)
    assert tagger.calibrate(X[:9], y[:9], temperature_share=0).coverage_.sequences == 9
    with pytest.raises(NotFittedError, match="not fitted yet"):
        m3n.SequenceTagger().calibrate(X, y)


def test_labels_that_no_set_can_hold_count_as_missed(tagger):
    X, y = drawn(99, 14)
    tagger.calibrate(X, y, 0.1, temperature_share=0)
    fewer = tagger.coverage_
    strange = [["z", *row[1:]] if i < 5 else row for i, row in enumerate(y)]
    tagger.calibrate(X, strange, 0.1, temperature_share=0)
    assert tagger.coverage_.surprise > fewer.surprise and tagger.coverage_.share < fewer.share
    for i, row in enumerate(y):
        strange[i] = ["z", *row[1:]] if i < 11 else row
    with pytest.raises(ValueError, match=r"coverage of 0.9 cannot be reached: the right answers of 11 of 99"):
        tagger.calibrate(X, strange, 0.1, temperature_share=0)
    with pytest.raises(ValueError, match=r"coverage of 0.98 cannot be reached: 11 of \d+ held-out positions hold"):
        tagger.calibrate(X, strange, 0.2, label_alpha=0.02, temperature_share=0)
    ruled = m3n.SequenceTagger(constraints=m3n.structures.Transitions.forbid(LABELS, [], start=["c"]), n_jobs=1)
    ruled.fit(*([row for row, labels in zip(rows, y, strict=True) if labels[0] != "c"] for rows in (X, y)))
    forbidden = sum(row[0] == "c" for row in y)
    assert forbidden > 20
    with pytest.raises(ValueError, match=f"the right answers of {forbidden} of 99 held-out sequences"):
        ruled.calibrate(X, y, 0.1, temperature_share=0)


def test_numbers_of_a_file_that_are_no_thresholds_are_refused():
    for wrong in ({"alpha": 2.0}, {"temperature": 0.0}, {"surprise": -1.0}, {"share": 2.0}, {"share": math.nan}):
        settled = {"alpha": 0.1, "label_alpha": 0.1, "sequences": 9, "temperature": 1.0, "surprise": 1.0, "share": 0.1}
        with pytest.raises(ValueError, match=r"these are no thresholds|alpha must lie between 0 and 1"):
            Coverage(**settled | wrong)
