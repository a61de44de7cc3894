"""m3n tune, as a user would type it."""

import json
from pathlib import Path

import pytest

import m3n
from tests.cli.test_demo import plain
from tests.cli.test_toolbox import m3n_, sentences, write


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write("train.txt", sentences())


def test_a_search_writes_table_model_and_report():
    write("one.txt", "U0:%x[0,0]\nB\n")
    write("two.txt", "U0:%x[0,1]\nB\n")
    options = ["--lams", "10/n,1/n", "--folds", 3, "--objective", "margin", "--objective", "crf", "--jobs", 1]
    files = ["-t", "one.txt", "-t", "two.txt", "-m", "model.m3n", "--report", "report.html"]
    told = m3n_("tune", "train.txt", *options, *files, "--scoring", "f1").output
    assert len([line for line in told.splitlines() if " margin " in f" {line} " or " crf " in f" {line} "]) == 8
    assert "best: objective=" in told and "Model: model.m3n" in told and "Report: report.html" in told
    model = m3n.load("model.m3n")
    assert model.lam_ in (10 / 40, 1 / 40)
    page = Path("report.html").read_text()
    assert 'id="lam"' in page and "All settings" in page


def test_json_and_validation_data():
    write("held.txt", sentences(10, seed=1))
    told = m3n_("tune", "train.txt", "--lams", 3, "--validation", "held.txt", "--jobs", 1, "--json").stdout
    found = json.loads(told)
    assert len(found["rows"]) == 3 and found["folds"] == 1 and found["model"] is None
    assert found["guarantee"]["low"] == pytest.approx(0.3 / 40) and found["guarantee"]["high"] == pytest.approx(30 / 40)
    assert found["best"]["params"]["lam"] in [row["lam"] for row in found["rows"]]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--folds", 50), "there are 40 examples for 50 folds"),
        (("--scoring", "recall"), "unknown scoring 'recall'"),
        (("--lams", "1/m"), "Invalid value for --lams: the regularisation is a positive number"),
        (("--lams", "0"), "lams must be at least one value"),
        (("--objective", "sgd"), "objective='sgd' is not available"),
        (("-t", "missing.txt"), "missing.txt"),
        (("--validation", "missing.txt"), "Invalid value for --validation"),
        (("--task", "labels"), "Invalid value for DATA"),
        (("--task", "nonsense"), "unknown task 'nonsense'"),
    ],
)
def test_mistakes_are_told(options, message):
    assert message in plain(m3n_("tune", "train.txt", *options, "--jobs", 1, code=2).output)


def test_options_of_other_tasks_are_refused():
    write("scenes.svm", "1 1:0.5 2:1\n2 1:1\n1,2 2:0.3\n" * 4)
    told = plain(m3n_("tune", "scenes.svm", "--task", "labels", "--observed-only", code=2).output)
    assert "--observed-only is not for --task labels" in told
    told = m3n_("tune", "scenes.svm", "--task", "labels", "--lams", 2, "--folds", 2, "--jobs", 1).output
    assert "MultilabelClassifier" in told and "best: lam=" in told


def test_an_interrupted_search_says_so(monkeypatch):
    monkeypatch.setattr(m3n, "tune", lambda *args, **settings: (_ for _ in ()).throw(KeyboardInterrupt))
    assert "nothing has been chosen" in m3n_("tune", "train.txt", "-m", "model.m3n", code=130).output
    assert not Path("model.m3n").exists()
