"""The search: folds, scores, settings without hope, the last fit, refusals."""

import json
import logging
from dataclasses import replace

import numpy as np
import pytest

import m3n
from m3n.run.paths import walk
from m3n.tuning import search
from m3n.tuning.candidates import Candidate
from m3n.tuning.settings import cut, pick, values_of_lam
from tests.estimators.test_constituency_parser import sentences as parses
from tests.estimators.test_segment_tagger import sentences as segments
from tests.tuning.data import sentences

X, Y = sentences(0)


def tagger(objective="margin", **settings):
    return m3n.SequenceTagger(objective=objective, n_jobs=1, **settings)


@pytest.mark.parametrize("objective", ["margin", "crf"])
def test_certificates_along_the_path_enclose_what_cold_runs_enclose(objective):
    problem = tagger(objective).problem(X, Y)
    lams = np.geomspace(0.5, 0.01, 8)
    for point in walk(problem, lams, rtol=0.01):
        cold = m3n.minimize(problem.with_lam(point.lam), tol=0.0, rtol=1e-4).certificate
        warm = point.certificate
        assert max(warm.dual, cold.dual) <= min(warm.primal, cold.primal) + 1e-12
        assert warm.gap <= max(0.01 * warm.primal, 1e-3)


def test_folds_are_whole_sequences_and_disjoint():
    data = cut(X, Y, 5, None, 3)
    tests = np.concatenate(data.tests)
    assert sorted(tests) == list(range(len(X)))
    for number in range(5):
        fold = data.fold(number)
        assert len(fold.X) + len(fold.test_X) == len(X)
        assert all(any(x is own for own in X) for x in (*fold.X, *fold.test_X))
        assert not {id(x) for x in fold.X} & {id(x) for x in fold.test_X}
        assert [len(x) for x in fold.test_X] == [len(y) for y in fold.test_y]
    assert all((a == b).all() for a, b in zip(data.tests, cut(X, Y, 5, None, 3).tests, strict=True))
    assert any((a != b).any() for a, b in zip(data.tests, cut(X, Y, 5, None, 4).tests, strict=True))


def test_sentences_in_columns_are_cut_as_they_are():
    sentences = m3n.io.Sentences.of([[(f"w{i}", "x")] * (i + 1) for i in range(5)])
    chosen = pick(sentences, np.array([3, 0]))
    assert isinstance(chosen, m3n.io.Sentences)
    assert list(chosen) == [sentences[3], sentences[0]]


def test_scores_are_those_of_models_that_are_fitted_fold_by_fold():
    lams, data = [0.3, 0.05], cut(X, Y, 3, None, 0)
    found = m3n.tune(tagger(rtol=1e-4, tol=0.0), X, Y, lams=lams, cv=3, rtol=1e-4)
    for row in found.rows:
        for number, score in enumerate(row.scores):
            fold = data.fold(number)
            model = tagger(lam=row.lam, rtol=1e-4, tol=0.0).fit(fold.X, fold.y)
            assert score == pytest.approx(model.score(fold.test_X, fold.test_y), abs=0.05)  # an example or two of 31
    assert found.best.mean == max(row.mean for row in found.rows)


def test_the_last_fit_is_a_plain_fit():
    own = tagger(rtol=0.01)
    found = m3n.tune(own, X, Y, lams=[0.2, 0.02], cv=2, grid={"objective": ["margin", "crf"], "min_freq": [1, 2]})
    assert len(found.rows) == 8
    assert set(found.best_params) == {"objective", "min_freq", "lam"}
    plain = tagger(**{"rtol": 0.01, **found.best_params}).fit(X, Y)
    np.testing.assert_array_equal(found.estimator.coef_, plain.coef_)
    assert found.estimator.get_params(deep=False) == plain.get_params(deep=False)
    assert own == own and not own._fitted and own.lam is None
    json.dumps(found.as_dict(), allow_nan=False)
    assert found.as_dict()["best"]["params"] == found.best_params
    assert len(str(found).splitlines()) >= 10 and "best" in str(found)
    assert m3n.tune(own, X, Y, lams=[0.2], cv=2, refit=False).estimator is None


def test_values_of_lam():
    values = values_of_lam(None, 0.01)
    assert len(values) == 20 and values[0] == pytest.approx(0.3) and values[-1] == pytest.approx(0.003)
    assert np.ptp(np.diff(np.log(values))) < 1e-12
    assert values_of_lam(1, 0.01) == [0.01]
    assert values_of_lam([0.1, 0.3, 0.1], 1.0) == [0.3, 0.1]


def test_data_are_read_once_per_fold(monkeypatch):
    calls = []
    usual = m3n.SequenceTagger._read
    monkeypatch.setattr(m3n.SequenceTagger, "_read", lambda *args: calls.append(1) or usual(*args))
    m3n.tune(tagger(), X, Y, lams=6, cv=3, refit=False)
    assert len(calls) == 3


def test_scorings():
    chunks = [[{"A": "O", "B": "B-X", "C": "I-X"}[label] for label in labels] for labels in Y]
    validation = X[:8], chunks[:8]
    settings = {"lams": [0.05], "validation": validation}
    found = m3n.tune(tagger(), X, chunks, scoring="f1", **settings)
    assert found.guarantee is None and "scored otherwise" in str(found)
    predicted = found.estimator.predict(X[:8])
    assert found.best_score == pytest.approx(m3n.scores.chunk_scores(chunks[:8], predicted).f1, abs=0.1)
    found = m3n.tune(tagger(), X, Y, scoring=lambda right, given: -sum(map(len, right)) + 0.0 * len(given), **settings)
    assert found.best_score == -sum(map(len, validation[1]))
    with pytest.raises(ValueError, match="these labels write none"):
        m3n.tune(tagger(), X, Y, scoring="f1", lams=[0.05], validation=(X[:8], Y[:8]))


def candidates(scores):
    return [Candidate({}, 1.0 + k, list(row)) for k, row in enumerate(scores)]


def give_up(scores):
    """Which settings are left, by these scores of the first folds."""
    run = search.Search.__new__(search.Search)
    run.candidates = [candidates(scores)]
    run._give_up()
    return [not candidate.abandoned for candidate in run.candidates[0]]


def test_hopeless_settings_are_given_up_and_the_best_is_not(caplog):
    """Folds differ by far more than settings; one is hopeless on all, the best one was unlucky on the first."""
    with caplog.at_level(logging.INFO, logger="m3n"):
        left = give_up([[0.90, 0.80], [0.86, 0.81], [0.20, 0.15], [0.89, 0.79]])
    assert left == [True, True, False, True]
    assert "gives up" in caplog.text and "below the best" in caplog.text
    assert give_up([[0.90, 0.90], [0.89, 0.89], [0.85, 0.93]]) == [True] * 3  # folds that agree by chance
    random = np.random.default_rng(0)
    dropped = 0
    for _ in range(300):  # 8 settings of which the first is best by a little, 5 folds as noisy as that
        scores = (
            0.9
            - 0.01 * np.arange(8)[:, None]
            + random.normal(scale=0.01, size=5)
            + random.normal(scale=0.005, size=(8, 5))
        )
        dropped += any(not give_up(scores[:, :folds])[0] for folds in (2, 3, 4))
    assert dropped <= 3


def test_a_hopeless_setting_is_not_trained_any_further():
    easy = [[token[2] for token in x] for x in X] * 2  # a label that stands there
    grid = {"min_freq": [90, 1]}  # with 90 there is only the bias
    found = m3n.tune(tagger(), X * 2, easy, lams=[0.01], cv=4, grid=grid, refit=False)
    hopeless, best = found.rows
    assert hopeless.abandoned and len(hopeless.scores) < 4
    assert found.best is best and len(best.scores) == 4
    assert "given up after" in str(found)


def test_other_estimators():
    random = np.random.default_rng(0)
    A = random.normal(size=(30, 4))
    labels = [[name for name, on in zip("abc", row > 0, strict=True) if on] for row in A[:, :3]]
    found = m3n.tune(m3n.MultilabelClassifier(n_jobs=1), A, labels, lams=[1.0, 0.01], cv=3)
    assert found.best_lam == 0.01 and found.estimator.lam_ == 0.01
    assert found.guarantee is None and "MultilabelClassifier" in found.obstacle


def test_a_bar_is_on_standard_error(capsys):
    m3n.tune(tagger(), X, Y, lams=2, cv=2, refit=False, verbose=True)
    out, error = capsys.readouterr()
    assert out == "" and "fold 2/2 lam" in error and "4/4" in error


def test_lams_that_the_guarantee_added_are_not_in_the_table():
    found = m3n.tune(tagger("crf"), X, Y, lams=[0.3, 0.1], validation=(X, Y), guarantee=2.0, budget=1.0, refit=False)
    added = [row for row in found.rows if row.added]
    assert len(added) > 1 and len(found.shown) == 2 + (found.best in added)
    assert all(0.1 <= row.lam <= 0.3 for row in added)
    assert len(str(found).splitlines()) == 1 + len(found.shown) + len(found.words)


def test_lam_is_that_of_the_estimator_where_the_structure_takes_examples_apart():
    """Parsers minimise a problem of other units; the search must speak of the same lam as ``fit``."""
    trees = parses(np.random.default_rng(0), 16)
    own = m3n.ConstituencyParser(n_jobs=1, rtol=0.01)
    found = m3n.tune(own, *trees, lams=[2.0, 0.2], validation=trees, rtol=0.01, refit=False)
    for row in found.rows:
        plain = m3n.ConstituencyParser(n_jobs=1, rtol=0.01, lam=row.lam).fit(*trees)
        assert abs(plain.certificate_.primal - plain.certificate_.dual) < 0.02 * plain.certificate_.primal
        assert row.gap <= max(0.0101 * plain.certificate_.primal, 1e-3)
        assert row.mean == pytest.approx(plain.score(*trees), abs=0.05)


def test_segments_and_graphs():
    random = np.random.default_rng(0)
    found = m3n.tune(m3n.SegmentTagger(n_jobs=1), *segments(random, 30), lams=2, cv=2, scoring="f1")
    assert found.best_score > 0.5 and found.scoring == "f1"
    graphs = [(random.normal(size=(4, 2)), np.array([[0, 1], [1, 2], [2, 3]])) for _ in range(20)]
    labels = [[int(x > 0) for x in graph[0][:, 0]] for graph in graphs]
    found = m3n.tune(m3n.GraphLabeler(n_jobs=1), graphs, labels, lams=2, cv=2)
    assert found.best_score > 0.8 and "GraphLabeler" in found.obstacle


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"cv": 30}, ValueError, "24 examples for 30 folds: lower cv"),
        ({"cv": 1}, ValueError, "cv must be a number of folds from 2"),
        ({"scoring": "recall"}, ValueError, "unknown scoring 'recall'; choose one of"),
        ({"grid": {"objective": []}}, ValueError, r"grid\['objective'\] is empty"),
        ({"grid": {"objective": "crf"}}, TypeError, r"grid\['objective'\] must be a list"),
        ({"grid": {"depth": [1]}}, ValueError, "names 'depth', which SequenceTagger does not have"),
        ({"grid": {"lam": [1]}}, ValueError, "give the values of lam by lams="),
        ({"lams": []}, ValueError, "lams is empty"),
        ({"lams": [0.1, -1.0]}, ValueError, "positive finite numbers, got -1"),
        ({"lams": 0}, ValueError, "at least one value, got 0"),
        ({"validation": (X, Y[:3])}, ValueError, "24 inputs and 3 outputs"),
        ({"validation": X}, ValueError, "must be a pair"),
        ({"rtol": -1.0}, ValueError, "rtol must not be negative"),
    ],
)
def test_refusals(settings, error, message):
    with pytest.raises(error, match=message):
        m3n.tune(tagger(), X, Y, **settings)


def test_refusals_of_estimators_and_data():
    with pytest.raises(ValueError, match="1 examples for 5 folds"):
        m3n.tune(tagger(), X[:1], Y[:1])
    with pytest.raises(ValueError, match="24 examples but y has 2"):
        m3n.tune(tagger(), X, Y[:2])
    with pytest.raises(TypeError, match="not for HMMAligner"):
        m3n.tune(m3n.HMMAligner(), X, Y)
    with pytest.raises(TypeError, match="not for WordAligner"):
        m3n.tune(m3n.WordAligner(), X, Y)
    with pytest.raises(ValueError, match="leave C away"):
        m3n.tune(tagger(C=1.0), X, Y)
    with pytest.raises(TypeError, match="y must be a list with one entry per example, got NoneType"):
        m3n.tune(tagger(), X, None)


def test_a_best_lam_at_the_end_of_the_range():
    found = m3n.tune(
        m3n.SequenceTagger("crf", n_jobs=1), *sentences(0, count=12), lams=[1.0, 0.3, 0.1], cv=2, refit=False
    )
    said = {row.lam: " ".join(replace(found, best=row).words) for row in found.rows}
    assert "the end of the range: larger values of lam may be better" in said[1.0]
    assert "the end of the range: smaller values of lam may be better" in said[0.1]
    assert "the end of the range" not in said[0.3]
