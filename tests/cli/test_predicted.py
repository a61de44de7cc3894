"""What ``predict`` writes is what ``evaluate`` reads, in every form; what are no labels is refused."""

import json
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest

import m3n
from m3n.io import read_columns
from tests.cli.test_demo import plain
from tests.cli.test_toolbox import m3n_, sentences, trained, write


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model that makes mistakes, and labelled data."""
    place = tmp_path_factory.mktemp("predicted")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        trained()
        m3n.load("model.m3n").save("good.m3n")
        trained("--max-passes", 1)
        held = read_columns(write("sets.txt", sentences(150, seed=7).replace("Cat NN I-NP", "Cat NN O")))
        for name in ("good.m3n", "model.m3n"):
            m3n.load(name).calibrate(held, held.labels, 0.2, label_alpha=0.08).save(f"sets_{name}")
        write("new.txt", sentences(12, seed=5).replace("DT", "NN"))
        write("held.txt", sentences(12, seed=6).replace("Cat NN I-NP", "Cat NN O"))
    return place


@pytest.fixture(autouse=True)
def in_the_folder(folder, monkeypatch):
    monkeypatch.chdir(folder)


FORMS = [
    (), ("--confidence",), ("--marginals",), ("--confidence", "--marginals"), ("--n-best", 3), ("--json",),
    ("--json", "--confidence", "--marginals"), ("--json", "--n-best", 2), ("--confidence", "--temperature", 0.3),
    ("--sets",), ("--sets", "--confidence", "--marginals"), ("--sets", "--json"),
]  # fmt: skip


@pytest.mark.parametrize("options", FORMS, ids=lambda options: " ".join(map(str, options)) or "plain")
def test_every_form_is_evaluated_like_the_model(options):
    expected = json.loads(m3n_("evaluate", "new.txt", "-m", "model.m3n", "--json").stdout)
    assert 0.2 < expected["tokens"]["accuracy"] < 1.0
    name = "sets_model.m3n" if "--sets" in options else "model.m3n"
    written = m3n_("predict", "new.txt", "-m", name, *options).stdout
    assert json.loads(m3n_("evaluate", "-", "--json", given=written).stdout) == expected


def test_what_has_no_right_labels_says_so():
    write("bare.txt", sentences(3, labelled=False))
    lines = m3n_("predict", "bare.txt", "-m", "model.m3n", "--json").stdout
    text = plain(m3n_("evaluate", "-", given=lines, code=2).output)
    assert 'm3n predict --json writes "gold" if the data have labels' in text
    columns = m3n_("predict", "bare.txt", "-m", "model.m3n", "--confidence").stdout
    assert "no label of column 2 is in column 3" in m3n_("evaluate", "-", given=columns).stderr
    assert "1 column; give a model" in plain(m3n_("evaluate", "-", given="X 0.912345\n", code=2).output)
    sets = '{"gold": ["a"], "labels": ["a", "b"]}\n'
    assert "line 1: 1 right labels but 2 predicted ones" in plain(m3n_("evaluate", "-", given=sets, code=2).output)


def test_probabilities_are_no_labels():
    written = m3n_("predict", "new.txt", "-m", "model.m3n", "--confidence").stdout
    text = plain(m3n_("train", "-", "-m", "x.m3n", given=written, code=2).output)
    assert "standard input holds probabilities where labels should be" in text
    words = "".join(f"a w{k}\n" for k in range(300))
    assert "300 different labels" in plain(m3n_("train", "-", "-m", "x.m3n", given=words, code=2).output)
    many = "".join(f"a w{k} w{k}\n" for k in range(300))
    assert "300 different labels" in plain(m3n_("evaluate", "-", given=many, code=2).output)


def test_temperatures():
    options = ["predict", "new.txt", "-m", "good.m3n", "--json", "--confidence"]
    flat, sharp = m3n_(*options).stdout, m3n_(*options, "--temperature", 0.1).stdout
    sure = [sum(json.loads(text.splitlines()[0])["confidence"]) for text in (flat, sharp)]
    assert sure[0] < sure[1]
    for options, message in (
        ((), "--temperature is for probabilities: add --confidence"),
        (("--confidence", "--temperature", 0), "temperature must be positive"),
    ):
        text = plain(m3n_("predict", "new.txt", "-m", "model.m3n", "--temperature", 2, *options, code=2).output)
        assert message in text


def test_calibration_is_kept_and_remarks_end():
    remark = "These probabilities are too flat"
    assert remark in m3n_("predict", "new.txt", "-m", "model.m3n", "--confidence").stderr
    assert remark not in m3n_("predict", "new.txt", "-m", "model.m3n").stderr
    options = ["train", "train.txt", "-m", "true.m3n", "--jobs", 1]
    told = m3n_(*options, "--calibrate", "held.txt").output
    model = m3n.load("true.m3n")
    assert f"Probabilities: temperature {model.temperature_:.3g}, log loss" in told
    assert model.temperature_ < 1.0
    assert remark not in m3n_("predict", "new.txt", "-m", "true.m3n", "--confidence").stderr
    write("scenes", "a 1:1\n")
    text = plain(m3n_("train", "scenes", "-m", "x", "--task", "labels", "--calibrate", "scenes", code=2).output)
    assert "temperatures are fitted for labels of sequences, not for sets" in text


def test_sets_are_those_of_the_model():
    model, new = m3n.load("sets_good.m3n"), read_columns("new.txt")
    shares = np.sort(np.concatenate(model.predict_marginals(new)), axis=1)
    model.coverage_ = replace(model.coverage_, share=float(np.median(shares[:, 1])))  # so that sets have all sizes
    model.save("sizes.m3n")
    sets, outputs = model.predict_label_sets(new), model.predict_set(new)
    assert 1 < np.mean([len(labels) for row in sets for labels in row]) < 3
    lines = m3n_("predict", "new.txt", "-m", "sizes.m3n", "--sets").stdout.split("\n")
    column = [line.split()[-1].strip("{}").split("|") for line in lines if line]
    assert column == [labels for row in sets for labels in row]
    objects = m3n_("predict", "new.txt", "-m", "sizes.m3n", "--sets", "--json").stdout.splitlines()
    for line, row, known in zip(objects, sets, outputs, strict=True):
        told = json.loads(line)
        assert (told["sets"], told["complete"]) == (row, known.complete)
        assert [(output["labels"], output["probability"]) for output in told["outputs"]] == known.outputs


def test_training_settles_sets_and_says_what_they_hold():
    write("held.txt", sentences(30, seed=8).replace("Cat NN I-NP", "Cat NN O"))
    options = ["train", "train.txt", "-m", "sets.m3n", "--jobs", 1, "--calibrate", "held.txt", "--coverage", 0.8]
    told = json.loads(m3n_(*options, "--label-coverage", 0.95, "--test", "new.txt", "--json").stdout)
    model, new = m3n.load("sets.m3n"), read_columns("new.txt")
    assert (model.coverage_.alpha, model.coverage_.label_alpha) == (0.2, 0.05)
    found = model.coverage_report(new, new.labels)
    assert told["coverage"] == asdict(found)
    assert f"new.txt: {found}" in m3n_(*options, "--label-coverage", 0.95, "--test", "new.txt").output
    m3n_(*options[:-2], "--coverage", 0.9)
    assert (m3n.load("sets.m3n").coverage_.alpha, m3n.load("sets.m3n").coverage_.label_alpha) == (0.1, 0.1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("predict", "new.txt", "-m", "good.m3n", "--sets"), "m3n train --calibrate HELD_OUT --coverage 0.9"),
        (
            ("predict", "new.txt", "-m", "sets_good.m3n", "--sets", "--n-best", 2),
            "--sets as many as are needed",
        ),
        (("train", "train.txt", "-m", "x", "--coverage", 0.9), "give --calibrate HELD_OUT and --coverage"),
        (("train", "train.txt", "-m", "x", "--calibrate", "new.txt", "--coverage", 90), "between 0 and 1, such as 0.9"),
        (
            ("train", "train.txt", "-m", "x", "--calibrate", "new.txt", "--coverage", 0.99),
            "12 sequences with labels are too few",
        ),
    ],
)
def test_sets_that_cannot_be_had(arguments, message):
    assert message in plain(m3n_(*arguments, code=2).output)
    assert not Path("x").exists()  # nothing was trained for nothing


def test_labels_that_no_set_holds_do_not_cost_the_model():
    write("odd.txt", sentences(30, seed=9).replace("I-NP", "I-XP"))
    options = ["train", "train.txt", "-m", "plain.m3n", "--jobs", 1, "--calibrate", "odd.txt", "--coverage", 0.9]
    text = plain(m3n_(*options, code=2).output)
    assert "coverage of 0.9 cannot be reached: the right answers of 24 of 24 held-out sequences" in text
    assert m3n.load("plain.m3n").coverage_ is None
