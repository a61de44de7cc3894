"""Contests: what is asked of a child, what is read off its answers, and entries that are not there."""

import json
import os
import time

import pytest

from benchmarks import child, contest, contests, datasets, figures, report
from benchmarks.objectives import CRF, Margin
from benchmarks.plot import plot
from benchmarks.solvers import BY_NAME, Task, Unsuitable, crfpp, ours, svm_hmm, wapiti
from benchmarks.solvers.base import WARM, Clock, Stopwatch
from benchmarks.solvers.python_crfsuite import parameters
from benchmarks.weights import Weights


@pytest.fixture(autouse=True)
def no_real_data(monkeypatch):
    monkeypatch.delenv("M3N_DATA", raising=False)


@pytest.fixture(scope="module")
def words(tmp_path_factory):
    return datasets.Words.prepare(tmp_path_factory.mktemp("words"), limit=25)


def answer_of(entry, dataset, objective, settings, folder):
    asked = {"entry": entry, "dataset": dataset.request(), "objective": objective.request(), "settings": settings}
    (folder / "request.json").write_text(json.dumps(asked | {"stop": 1e-2, "started": time.time()}))
    child.main(folder / "request.json", folder / "answer.json")
    return json.loads((folder / "answer.json").read_text())


def test_our_own_entry_is_judged_as_it_says(words, tmp_path):
    answer = answer_of("m3n", words, CRF(0.5, "all"), {"watch": True}, tmp_path)
    answer["weights"] = str(tmp_path / child.WEIGHTS)
    run = contest.Run("ours", "m3n", CRF(0.5, "all"))
    verdict = contest._Judgement(words)(run, [answer, answer])
    assert verdict["J"] == pytest.approx(answer["objective"], rel=1e-12)
    assert verdict["trace"][-1]["gap"] <= 1e-2 * verdict["J"]
    assert verdict["score"] == verdict["trace"][-1]["score"] < 50
    assert verdict["rounds"] == 2 and verdict["seconds"]["train"] > 0
    held = {"stop": 1e-2, "larger is better": False, "measure": "", "data": "", "runs": {"ours": verdict}}
    assert figures.rows(held, "cpu")[0]["to target"] <= verdict["cpu"]["train"]


@pytest.mark.parametrize("c1", [0.0, 0.1])
def test_single_calls_are_timed(words, tmp_path, c1):
    answer = answer_of("m3n", words, CRF(0.5, "all", c1), {}, tmp_path)
    assert 0.0 < answer["calls"]["p50"] <= answer["calls"]["p99"]


def test_single_calls_give_the_labels_of_the_batch(words, tmp_path):
    answer = answer_of("m3n", words, CRF(0.5, "all"), {}, tmp_path)
    classes = sorted({label for _, labels in words.sentences(words.train) for label in labels})
    tagger = ours._tagger(Weights.load(tmp_path / child.WEIGHTS), classes)
    sentences = [attributes for attributes, _ in words.sentences(words.test)]
    assert [tagger.predict([sentence])[0] for sentence in sentences] == answer["found"]


def test_a_gap_of_its_own_ends_a_run_earlier(words, tmp_path):
    for name in ("loose", "tight"):
        (tmp_path / name).mkdir()
    loose = answer_of("m3n", words, CRF(0.5, "all", 0.1), {"rtol": 0.3}, tmp_path / "loose")
    tight = answer_of("m3n", words, CRF(0.5, "all", 0.1), {}, tmp_path / "tight")
    assert loose["passes"] < tight["passes"] and loose["trace"][-1]["gap"] > tight["trace"][-1]["gap"]


def test_an_entry_that_is_not_installed_says_so(words, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("M3N_BIN", raising=False)
    told = contest.launch(contest.Run("w", "wapiti", CRF()), words, contest.Options(), tmp_path / "w")
    assert told["missing"].startswith("not installed: wapiti")


def test_without_an_interpreter_rivals_are_left_out(words, tmp_path, monkeypatch):
    monkeypatch.setenv("M3N_RIVALS", str(tmp_path / "nowhere"))
    told = contest.launch(contest.Run("c", "chaine", CRF()), words, contest.Options(), tmp_path / "c")
    assert "make bench-rivals" in told["missing"]


def test_an_entry_is_not_asked_for_what_it_does_not_minimise(words, tmp_path):
    assert "'crf'" in answer_of("svm-hmm", words, CRF(), {}, tmp_path)["missing"]


def test_every_run_and_figure_of_the_table_exists():
    for held in contests.CONTESTS:
        labels = [run.label for run in held.runs]
        assert len(set(labels)) == len(labels)
        assert {run.entry for run in held.runs} <= set(BY_NAME)
        assert all(run.objective.name in BY_NAME[run.entry].objectives for run in held.runs)
    for figure in contests.FIGURES:
        assert {figure.ours, figure.rival} <= {run.label for run in contests.BY_NAME[figure.contest].runs}


def point(seconds, objective, gap=None, score=None):
    times = {"seconds": seconds, "cpu": 2 * seconds, "passes": 5 * seconds}
    return {**times, "objective": objective, "gap": gap, "score": score}


def run_of(trace, **settings):
    settings = {"J": trace[-1]["objective"], "score": None, "pass": [0.5, 0.25], **settings}
    times = {"train": trace[-1]["seconds"]}
    return {
        "objective": {"name": "crf"},
        "seconds": times,
        "cpu": times,
        "peak": {"train": 10.0, "before data": 4.0},
        "calls": {"p50": 0.1},
        "trace": trace,
        **settings,
    }


@pytest.fixture
def held():
    ours = run_of([point(1, 9.0, 5.0, 80), point(2, 4.0003, 1e-3, 90), point(3, 4.0, 1e-4, 95)])
    rival = run_of([point(5, 8.0), point(30, 4.0)], score=92)
    return {"stop": 1e-4, "larger is better": True, "runs": {"a": ours, "b": rival, "c": {"missing": "not installed"}}}


@pytest.mark.parametrize(
    ("quantity", "clock", "expected"),
    [
        ("to its value", "seconds", (2, 30, 15)),
        ("to its value", "cpu", (4, 30, 7.5)),
        ("to score 90", "seconds", (2, 30, 15)),
        ("to score 93", "seconds", (3, None, None)),
        ("to gap 1e-3", "seconds", (2, None, None)),
        ("pass", "cpu", (0.25, 0.25, 1)),
        ("peak", "seconds", (10, 10, 1)),
        ("data", "seconds", (6, 6, 1)),
        ("one sentence, p50", "cpu", (0.1, 0.1, 1)),
        ("one sentence, p99", "cpu", (None, None, None)),
        ("ingest", "seconds", (None, None, None)),
    ],
)
def test_ratios(held, quantity, clock, expected):
    assert figures.ratio(figures.Figure("", "", "a", "b", quantity), held, clock) == expected


def test_a_missing_rival_gives_no_ratio(held):
    assert figures.ratio(figures.Figure("", "", "a", "c", "train"), held, "seconds") == (None, None, None)
    assert [row.get("missing") for row in figures.rows({**held, "runs": {"c": held["runs"]["c"]}}, "cpu")] == [
        "not installed"
    ]


def test_passes_to_a_gap(held):
    assert figures.gaps(held, "cpu") == []  # these are conditional random fields
    held["runs"]["a"]["objective"] = held["runs"]["b"]["objective"] = {"name": "margin"}
    ((line),) = figures.gaps(held, "cpu")  # the rival certifies nothing
    assert line == {"run": "a", "0.1": (10, 4), "0.01": (10, 4), "0.001": (10, 4)}
    held["runs"]["a"]["trace"].pop()
    held["runs"]["a"]["trace"][-1]["gap"] = 0.05
    assert figures.gaps(held, "seconds")[0] == {"run": "a", "0.1": (10, 2), "0.01": None, "0.001": None}


def test_report_is_drawn_and_shown(held, tmp_path, capsys):
    held = {**held, "data": "made up", "measure": "F1"}
    for label, entry in (("a", "m3n"), ("b", "rival")):
        held["runs"][label] |= {"entry": entry, "passes": 3, "tokens": 100}
    line = {"what": "training", "clock": "seconds", "goal": 5, "ours": 2, "rival": 30, "ratio": 15}
    plot({"race": held}, [line], tmp_path / "picture.png")
    assert (tmp_path / "picture.png").stat().st_size > 10_000
    told = {"machine": "a computer", "contests": {"race": held}, "figures": [line]}
    report.show(told, "seconds")
    shown = capsys.readouterr().out
    assert "c: not installed" in shown and "training" in shown and "15" in shown
    assert "| training | 2 | 30 | 15 | 5 |" in report.markdown(told)
    held["runs"]["a"]["objective"] = {"name": "margin"}
    assert "| a | 10 (2) | 10 (2) | 10 (2) |" in report.markdown(told)


def test_pauses_do_not_count():
    watch = Stopwatch()
    watch.start()
    with watch.paused():
        time.sleep(0.05)
    assert watch.read()[0] < 0.04


def test_the_shortest_of_several_counts():
    clock, pauses = Clock(), iter([0.03, 0.0])
    clock.best("phase", lambda: time.sleep(next(pauses)), times=2)
    assert clock.seconds["phase"] < 0.02 and clock.peak["phase"] > 1


def test_memory_before_data_is_no_more_than_the_peak():
    clock = Clock()
    clock.ready()
    with clock("phase"):
        pass
    assert 1 < clock.peak["before data"] <= clock.peak["phase"]


def test_quantiles_are_those_of_all_calls_after_the_first():
    clock, pauses = Clock(), iter([0.02] * WARM + 49 * [0.0] + [0.01] * 51)
    clock.each(lambda _: time.sleep(next(pauses)), list(range(50)), rounds=2)
    assert 10 <= clock.calls["p50"] <= clock.calls["p99"] < 20


def test_crfsuites_parameters():
    assert parameters(CRF(0.1, c1=0.2))["c1"] == 0.2
    assert parameters(CRF(0.5, "all"))["feature.possible_states"] is True
    with pytest.raises(Unsuitable, match="conditional random fields only"):
        parameters(Margin())


def test_wapitis_log_and_dump(tmp_path):
    log = "  [   1] obj=200.00   act=10 err= 9.1%/80.0% time=0.25s/0.25s\n"
    log += "  [   2] obj=150.50   act=9 err= 1.0%/2.0% time=0.20s/0.45s\n"
    assert [(p.seconds, p.objective, p.passes) for p in wapiti.progress(log, 10)] == [(0.25, 20.0, 1), (0.45, 15.05, 2)]
    (tmp_path / "dump").write_text("u:w[0]=the\t#\tB-NP\t0.5\n\nb\tB-NP\tI-NP\t-1.25\n")
    weights = wapiti.read_dump(tmp_path / "dump")
    assert weights.states == {("w[0]=the", "B-NP"): 0.5} and weights.transitions == {("B-NP", "I-NP"): -1.25}


def test_crfpps_template():
    lines = crfpp.template().splitlines()
    assert lines[0] == "U00:%x[-2,0]" and "U05:%x[-1,0]/%x[0,0]" in lines and lines[-1] == "B"


def test_a_program_is_run_on_files_of_its_format(words, tmp_path, monkeypatch):
    """A stand-in for SVM-hmm that answers the label of every line's own number in its test file."""
    for name, text in {
        "svm_hmm_learn": 'test "$1 $3 $4" = "-c -e 0.5" && cp "$5" "$6"',
        "svm_hmm_classify": 'test -s "$2" && cut -d" " -f1 "$1" > "$3"',
    }.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("M3N_BIN", str(tmp_path))
    folder = tmp_path / "files"
    folder.mkdir()
    entry, same = svm_hmm.SVMhmm(), datasets.Words(words.train, words.train, words.sample, "")
    assert entry.missing() == ""
    outcome = entry.run(Task(same, Margin(loss="hamming"), {"tol": 0.5}, 1e-4, folder))
    assert outcome.found == same.gold()
    columns = [int(field.split(":")[0]) for field in (folder / "train").read_text().splitlines()[3].split()[2:]]
    assert columns == sorted(set(columns)) and os.access(folder / "model", os.R_OK)
    with pytest.raises(Unsuitable, match="hamming"):
        entry.run(Task(same, Margin(), {}, 1e-4, folder))
