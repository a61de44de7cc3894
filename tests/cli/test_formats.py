"""Formats of data files, as users of the command meet them: what is recognised, what is asked for, what comes back."""

import json

import numpy as np
import pytest

import m3n
from tests.cli.test_demo import plain
from tests.cli.test_toolbox import m3n_, sentences, trained, write

WEATHER = "sunny\tt:21.5\th:0.4\nrainy\tt:12\th:0.9\n\nsunny\tt:25\th:0.3\nsunny\tt:22\th:0.35\n\nrainy\tt:10\th:0.8\n"
CHUNKS = "B-NP\tw=the\t__BOS__\nI-NP\tw=dog\tw-1=the\nO\tw=barks\tw-1=dog\t__EOS__\n\nO\tw=barks\t__BOS__\t__EOS__\n"


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(("text", "labels"), [(WEATHER, ["rainy", "sunny"]), (CHUNKS, ["B-NP", "I-NP", "O"])])
def test_files_of_crfsuite_are_recognised_and_the_reason_is_said(text, labels):
    write("train", text)
    result = m3n_("train", "train", "-m", "model.m3n", "--jobs", 1)
    assert "train: read as attributes, for " in result.stderr
    assert m3n.load("model.m3n").classes_.tolist() == labels
    assert "train: read as attributes, for " in m3n_("evaluate", "train", "-m", "model.m3n").stderr
    assert "read as" not in m3n_("evaluate", "train", "-m", "model.m3n", "--json").output
    assert "read as" not in m3n_("train", "train", "-m", "model.m3n", "--jobs", 1, "--format", "attributes").output
    assert m3n_("train", "train", "-m", "model.m3n", "--jobs", 1, "--quiet").output == ""


def test_two_readings_are_a_question():
    write("train", "NN\tw=a\tlong\nVB\tw=b\tlong\n")
    text = plain(m3n_("train", "train", "-m", "model.m3n", code=2).output)
    for part in ("columns with the label last ('long'", "attributes with the label first ('NN'", "--format attributes"):
        assert part in text
    for kind, labels in (("attributes", ["NN", "VB"]), ("columns", ["long"])):
        m3n_("train", "train", "-m", "model.m3n", "--jobs", 1, "--format", kind)
        assert m3n.load("model.m3n").classes_.tolist() == labels
    m3n_("train", "train", "-m", "model.m3n", "--jobs", 1, "--format", "attributes")
    assert "labels right" in m3n_("evaluate", "train", "-m", "model.m3n").output  # the model knows what it reads


def test_weights_of_crfsuite_are_sample_weights():
    """A weight of 2 is the same as the sequence twice, also for --lam 5/n."""
    one, two = WEATHER.split("\n\n", 1)
    write("weighted", f"@weight:3\n{one}\n\n{two}")
    write("repeated", f"{one}\n\n{one}\n\n{one}\n\n{two}")
    for name in ("weighted", "repeated"):
        m3n_("train", name, "-m", f"{name}.m3n", "--jobs", 1, "--rtol", "1e-6", "--objective", "crf", "--lam", "5/n")
    weighted, repeated = m3n.load("weighted.m3n"), m3n.load("repeated.m3n")
    assert weighted.lam_ == pytest.approx(repeated.lam_)
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=1e-3)


def test_templates_of_wapiti_and_pairs_without_a_name():
    write("train.txt", sentences())
    write("pairs", "U0:%x[0,0]\nB%x[0,1]\n")
    m3n_("train", "train.txt", "-m", "model.m3n", "--jobs", 1, "-t", "pairs")
    assert m3n.load("model.m3n").edge_coef_.shape == (3, 3, 3)  # three tags, of pairs of three labels
    write("wapiti", '*\n*:tag=%x[0,1]  # the tag\nu:Caps=%t[0,0,"^\\u"]\nu:end=%m[0,0,".?.?$"]\nu:first=%x[@1,0]\n')
    m3n_("train", "train.txt", "-m", "model.m3n", "--jobs", 1, "-t", "wapiti")
    model = m3n.load("model.m3n")
    assert model.edge_coef_.shape == (3, 3, 3)
    assert {"*", "*:tag=DT", "u:Caps=true", "u:Caps=false", "u:end=og", "u:first=the"} <= set(
        model.reader_.vectorizer.names
    )
    assert json.loads(m3n_("evaluate", "train.txt", "-m", "model.m3n", "--json").stdout)["tokens"]["accuracy"] == 1.0
    write("worse", "*\nu:a=%x[*0,1]\n")
    text = plain(m3n_("train", "train.txt", "-m", "model.m3n", "-t", "worse", code=2).output)
    assert (
        "worse, line 2: '%x[*0,1]' reads a distance from a column, which m3n does not; write a line for every" in text
    )
    write("worse", '*:a=%t[0,0,"*"]\n')
    text = plain(m3n_("train", "train.txt", "-m", "model.m3n", "-t", "worse", code=2).output)
    assert "the expression '*' has a * after nothing" in text


def test_rare_attributes_are_left_out():
    """As crf_learn -f counts them, for columns and for CRFsuite's attributes."""
    write("train.txt", "a X\nb Y\na X\nc Y\nb X\n")
    write("template", "U0:%x[0,0]\nU1:%x[-1,0]/%x[0,0]\nB0:%x[0,0]\n")
    m3n_("train", "train.txt", "-m", "model.m3n", "--jobs", 1, "-t", "template", "-f", 2)
    words = m3n.load("model.m3n").reader_.vectorizer
    assert (words.names, words.pair_names) == (["U0:a", "U0:b"], ["B0:b"])
    write("attributes", "X\tw=a\tlong\nY\tw=b\nX\tw=a\n")
    m3n_("train", "attributes", "-m", "model.m3n", "--jobs", 1, "--min-freq", 2)
    assert m3n.load("model.m3n").reader_.vectorizer.names == ["w=a"]
    assert m3n_("predict", "attributes", "-m", "model.m3n").stdout.split()[0] == "X"
    text = plain(m3n_("train", "train.txt", "-m", "model.m3n", "-t", "template", "-f", 9, code=2).output)
    assert "no attribute occurs 9 times or more" in text
    write("numbers", "A qid:1 1:1\n")
    assert "min_freq is for attributes with names" in plain(
        m3n_("train", "numbers", "-m", "model.m3n", "-f", 2, code=2).output
    )


def test_boundaries_can_be_left_out():
    for option, own in (("--boundaries", True), ("--no-boundaries", False)):
        trained(option)
        model = m3n.load("model.m3n")
        assert model.boundaries is own
        assert bool(np.any(model.start_)) is own
    write("scenes", "a 1:1\n")
    text = plain(m3n_("train", "scenes", "-m", "x", "--task", "labels", "--no-boundaries", code=2).output)
    assert "--no-boundaries is not for --task labels" in text


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16"])
def test_files_may_have_another_encoding(encoding):
    text = "café NN\nçà RB\n\ncafé NN\n"
    for name in ("train", "test"):
        with open(name, "wb") as file:
            file.write(text.encode(encoding))
    result = m3n_("train", "train", "-m", "model.m3n", "--jobs", 1, "--encoding", encoding, "--test", "test")
    assert "labels right 100.00%" in result.output
    assert "café" in m3n.load("model.m3n").reader_.vectorizer.values[0]
    read = json.loads(m3n_("evaluate", "test", "-m", "model.m3n", "--json", "--encoding", encoding).stdout)
    assert read["tokens"]["accuracy"] == 1.0
    m3n_("predict", "test", "-m", "model.m3n", "--encoding", encoding, "-o", "out")
    with open("out", "rb") as file:
        assert file.read().decode(encoding) == "café NN NN\nçà RB RB\n\ncafé NN NN\n\n"
    for wrong, message in (
        ("klingon", "unknown encoding 'klingon'"),
        ("ascii", "train, line 1: this is not ascii text"),
    ):
        assert message in plain(m3n_("train", "train", "-m", "x", "--encoding", wrong, code=2).output)


def test_several_answers_keep_the_gold_column():
    trained()
    write("new.txt", "the DT O\ndog NN I-NP\n")
    lines = m3n_("predict", "new.txt", "-m", "model.m3n", "--n-best", 2).stdout.splitlines()
    assert lines[1:3] == ["the DT O B-NP", "dog NN I-NP I-NP"]
    assert [line.rsplit(" ", 1)[0] for line in lines if line.startswith(("the", "dog"))] == [
        "the DT O",
        "dog NN I-NP",
    ] * 2


def test_a_missing_model_is_called_a_model():
    write("train.txt", sentences(3))
    for command in (("predict", "train.txt", "-m"), ("evaluate", "train.txt", "-m"), ("inspect",)):
        assert "there is no model file 'nowhere.m3n'" in plain(m3n_(*command, "nowhere.m3n", code=2).output)
