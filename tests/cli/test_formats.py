"""Formats of data files, as users of the command meet them: what is recognised, what is asked for, what comes back."""

import numpy as np
import pytest

import m3n
from tests.cli.test_demo import plain
from tests.cli.test_toolbox import m3n_, write

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
