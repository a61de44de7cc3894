"""Bins and calibration errors against a loop over positions, pictures against the bins, coverage against the model."""

import numpy as np
import pytest

import m3n
from m3n.estimators import Coverage
from m3n.reports.quality import Outcome, predict
from m3n.reports.reliability import BINS, BOTTOM, TOP, has_probabilities, probabilities, reliability
from tests.reports.pages import Page, fixed

LABELS = ["a", "b", "c"]


def drawn(count, seed):
    random = np.random.default_rng(seed)
    y = [random.choice(LABELS, size=random.integers(2, 6)).tolist() for _ in range(count)]
    return [np.eye(3)[[LABELS.index(k) for k in row]] + random.normal(size=(len(row), 3)) for row in y], y


@pytest.fixture(scope="module")
def tagger():
    return m3n.SequenceTagger(lam=0.5, n_jobs=1).fit(*drawn(60, 0)).calibrate(*drawn(300, 1), 0.2)


def test_bins_are_those_of_a_loop(tagger):
    X, y = drawn(80, 2)
    y[0][0] = "z"  # which no model could predict
    for temperature in (1.0, 0.3):
        found = reliability(predict(tagger, X, y), tagger, X, temperature)
        held = [[] for _ in range(BINS)]
        for shares, labels in zip(tagger.predict_marginals(X, temperature), y, strict=True):
            for row, label in zip(shares, labels, strict=True):
                k = next(k for k in range(BINS) if row.max() < (k + 1) / BINS or k == BINS - 1)
                held[k].append((row.max(), LABELS[int(row.argmax())] == label))
        full = [k for k in range(BINS) if held[k]]
        assert found.bins.tolist() == full
        assert found.counts.tolist() == [len(held[k]) for k in full]
        means = np.array([np.mean(held[k], axis=0) for k in full])
        np.testing.assert_allclose(np.stack([found.said, found.right], axis=1), means)
        weights = np.array([len(held[k]) for k in full]) / sum(map(len, held))
        assert found.error == pytest.approx(weights @ np.abs(means[:, 0] - means[:, 1]))


def test_the_page_shows_both_temperatures_and_what_sets_hold(tagger):
    X, y = drawn(300, 3)
    page = Page(m3n.report(None, tagger, X, y).html)
    outcome = predict(tagger, X, y)
    pictures = [svg for svg in page.all("svg") if "right labels against" in svg["attributes"].get("aria-label", "")]
    assert len(pictures) == 2
    both = [reliability(outcome, tagger, X, warmth) for warmth in (1.0, tagger.temperature_)]
    bars = page.all("rect", "share")
    assert len(bars) == sum(len(found.bins) for found in both)
    heights = [float(bar["attributes"]["height"]) / (BOTTOM - TOP) for bar in bars]
    np.testing.assert_allclose(heights, np.concatenate([found.right for found in both]), atol=1e-3)
    assert both[1].error < both[0].error / 2
    for found in both:
        assert f"expected calibration error {100 * found.error:.1f}\u202f%" in "".join(page.texts("figcaption"))
    report = tagger.coverage_report(X, y)
    row = next(row["text"] for row in page.all("tr") if row["text"].startswith("whole outputs"))
    assert f"80.0\u202f%{100 * report.outputs_found:.1f}\u202f%" in row
    assert f"thresholds come from {tagger.coverage_.sequences} held-out" in " ".join(page.texts("p")).lower()


def test_what_is_not_known_is_left_out(tagger):
    X, y = drawn(10, 4)
    plain = m3n.SequenceTagger(lam=0.02, n_jobs=1).fit(X, y)
    page = Page(probabilities(predict(plain, X, y), plain, X))
    assert len(page.all("figure")) == 1 and "Sets of answers" not in page.texts("h3")
    assert "the only one: calibrate_temperature, or calibrate" in page.texts("p")[0]
    assert not has_probabilities(fixed([["a"]]))
    assert probabilities(Outcome([], [], lambda i: []), plain, []) == ""


def test_sets_that_are_not_listed_as_a_whole_are_at_least_so_large(tagger):
    X = [np.zeros((8, 3))] * 3
    model = m3n.SequenceTagger(lam=0.02, n_jobs=1).fit(*drawn(30, 5))
    model.coverage_ = Coverage(0.1, 0.1, 50, 5.0, 60.0, 0.0)
    page = Page(probabilities(predict(model, X, [["a"] * 8] * 3), model, X))
    row = next(row["text"] for row in page.all("tr") if row["text"].startswith("whole outputs"))
    assert row.endswith("at least 1000")
