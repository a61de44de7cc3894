"""What ``predict`` writes is what ``evaluate`` reads, in every form; what are no labels is refused."""

import json

import pytest

import m3n
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
        write("new.txt", sentences(12, seed=5).replace("DT", "NN"))
        write("held.txt", sentences(12, seed=6).replace("Cat NN I-NP", "Cat NN O"))
    return place


@pytest.fixture(autouse=True)
def in_the_folder(folder, monkeypatch):
    monkeypatch.chdir(folder)


FORMS = [
    (), ("--confidence",), ("--marginals",), ("--confidence", "--marginals"), ("--n-best", 3), ("--json",),
    ("--json", "--confidence", "--marginals"), ("--json", "--n-best", 2), ("--confidence", "--temperature", 0.3),
]  # fmt: skip


@pytest.mark.parametrize("options", FORMS, ids=lambda options: " ".join(map(str, options)) or "plain")
def test_every_form_is_evaluated_like_the_model(options):
    expected = json.loads(m3n_("evaluate", "new.txt", "-m", "model.m3n", "--json").stdout)
    assert 0.2 < expected["tokens"]["accuracy"] < 1.0
    written = m3n_("predict", "new.txt", "-m", "model.m3n", *options).stdout
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
