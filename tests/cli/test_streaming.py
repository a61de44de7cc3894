"""``m3n predict`` on pipes and on files of any size."""

import json
import os
import subprocess
import sys

import pytest

from m3n.io import read_columns, write_attributes, write_json_lines, write_svm_hmm
from tests.cli.test_demo import plain
from tests.cli.test_toolbox import m3n_, sentences, trained, write


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def process(*options):
    """The command in a process of its own, with pipes for what goes in and what comes out."""
    command = [sys.executable, "-m", "m3n", "predict", "-", "-m", "model.m3n", *options]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def ask(running, text, lines):
    """The answer to a text, while the writer keeps its pipe open."""
    running.stdin.write(text)
    running.stdin.flush()
    return [running.stdout.readline().rstrip("\n") for _ in range(lines)]


def test_a_sentence_is_answered_before_the_next_one_is_asked():
    trained()
    with process() as running:
        assert ask(running, "the DT\ndog NN\n\n", 3) == ["the DT B-NP", "dog NN I-NP", ""]
        assert ask(running, "sees VB\n\n", 2) == ["sees VB O", ""]
        running.stdin.write("a DT\n")  # without an empty line, and without an end
        running.stdin.close()
        assert running.stdout.read() == "a DT B-NP\n\n"
    assert running.returncode == 0


def test_lines_of_json_and_several_answers():
    trained()
    with process("--json", "--n-best", "2") as running:
        (line,) = ask(running, "the DT\ndog NN\n\n", 1)
        read = json.loads(line)
        assert read["tokens"] == [["the", "DT"], ["dog", "NN"]]
        assert read["n_best"][0]["labels"] == ["B-NP", "I-NP"]
        running.stdin.close()
    write_json_lines("data", [["the", "dog"], ["sees"]] * 5, [["D", "N"], ["V"]] * 5)
    m3n_("train", "data", "-m", "model.m3n", "--jobs", 1)
    with process() as running:
        for _ in range(2):
            (line,) = ask(running, '{"tokens": ["the", "dog"]}\n', 1)
            assert json.loads(line) == {"tokens": [["the"], ["dog"]], "labels": ["D", "N"]}
        running.stdin.close()


@pytest.mark.parametrize("kind", ["columns", "attributes", "json_lines", "svm_hmm"])
def test_parts_give_the_same_as_the_whole(kind, monkeypatch):
    trained()
    data = read_columns("train.txt")
    X = [[{f"w={word}": 1.0, f"t={tag}": 0.5} for word, tag in sentence] for sentence in data]
    if kind == "attributes":
        write_attributes("data", X, data.labels)
    elif kind == "json_lines":
        write_json_lines("data", X, data.labels)
    elif kind == "svm_hmm":
        names = {name: k for k, name in enumerate(sorted({a for s in X for token in s for a in token}))}
        write_svm_hmm("data", [[[float(name in token) for name in names] for token in s] for s in X], data.labels)
    else:
        write("data", sentences())
    m3n_("train", "data", "-m", "model.m3n", "--jobs", 1, "--format", kind)
    whole = m3n_("predict", "data", "-m", "model.m3n", "--format", kind, "--confidence").stdout
    monkeypatch.setattr("m3n.io.streams.batches.__defaults__", (None, 50))
    monkeypatch.setattr("m3n.io.streams.READ", 40)
    assert m3n_("predict", "data", "-m", "model.m3n", "--confidence").stdout == whole
    m3n_("predict", "data", "-m", "model.m3n", "--confidence", "-o", "out.gz")
    m3n_("predict", "data", "-m", "model.m3n", "--confidence", "-o", "out")
    with open("out") as file:
        assert file.read() == whole


def test_mistakes_far_behind_are_named_with_their_line(monkeypatch):
    trained()
    monkeypatch.setattr("m3n.io.streams.batches.__defaults__", (None, 20))
    monkeypatch.setattr("m3n.io.streams.READ", 10)
    for last, message in (
        ("dog\n", "line 61: "),
        ("dog NN O\n", "line 61: expected 2 columns as in the lines before, found 3"),
    ):
        write("new.txt", "the DT\ndog NN\n\n" * 20 + last)
        assert message in plain(m3n_("predict", "new.txt", "-m", "model.m3n", "-o", "out", code=2).output)
        assert not os.path.exists("out")
    for empty in ("", "\n\n"):
        assert "is empty" in plain(m3n_("predict", write("new.txt", empty), "-m", "model.m3n", code=2).output)


MEASURED = """import resource, sys
from m3n.cli import main
try:
    main()
except SystemExit:
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)
"""


def test_memory_does_not_grow_with_the_input():
    """Four times as many tokens, and no more memory than for one or two parts."""
    trained()
    peaks = []
    for count in (25_000, 100_000):
        write("new.txt", sentences(40, seed=1, labelled=False) * (count // 40))
        options = ["predict", "new.txt", "-m", "model.m3n", "-o", "out", "--confidence"]
        result = subprocess.run([sys.executable, "-c", MEASURED, *options], capture_output=True, text=True, check=True)
        peaks.append(int(result.stderr.split()[-1]))
    assert peaks[1] < 1.2 * peaks[0]
