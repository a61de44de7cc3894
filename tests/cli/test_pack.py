"""m3n pack, and what takes folders of packed data, as a user would type them."""

import gzip
import json
import os

import numpy as np
import pytest

import m3n
from m3n.io import read_columns, write_attributes, write_json_lines, write_svm_hmm
from tests.cli.test_demo import plain
from tests.cli.test_toolbox import TEMPLATE, m3n_, sentences, trained, write


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def small_pieces(monkeypatch):
    monkeypatch.setattr("m3n.cli.pack.LEAST", 60)
    monkeypatch.setattr("m3n.cli.pack.SHARE", 10**9)
    monkeypatch.setattr("m3n.io.streams.READ", 40)


def test_a_column_file(small_pieces):
    write("train.txt", sentences())
    shown = plain(m3n_("pack", "train.txt", "-o", "packed").output)
    assert "train.txt: read as columns" in shown
    assert "40 sequences, " in shown
    assert "packed: 1 shards" in shown
    shards = m3n.Shards("packed")
    data = read_columns("train.txt")
    assert shards.manifest.settings["columns"] == 2
    assert shards.sequences.sum() == len(data)
    assert shards.classes.tolist() == ["B-NP", "I-NP", "O"]
    expected = m3n.pack(data, data.labels, "other", templates=m3n.features.word_templates(2))
    assert shards.digest == expected.digest


def test_several_files_one_of_them_gzipped_one_from_standard_input():
    write("one.txt", sentences(10, seed=1))
    with gzip.open("two.gz", "wt") as file:
        file.write(sentences(10, seed=2))
    write("template", TEMPLATE)
    options = ["-o", "packed", "-t", "template", "--min-freq", 2, "--memory", "100MB", "--shard-size", "1kB", "--json"]
    told = json.loads(m3n_("pack", "one.txt", "two.gz", "-", *options, given=sentences(5, seed=3)).stdout)
    assert told["sequences"] == 25
    assert told["pair_attributes"] == 3
    assert told["min_freq"] == 2
    assert told["shards"] > 1
    assert told["labels"] == dict(zip(["B-NP", "I-NP", "O"], [told["positions"] // 3] * 3, strict=True))
    assert told["memory"] > 10**7
    assert json.loads(m3n_("inspect", "packed", "--json").stdout)["digest"] == told["digest"]
    shown = m3n_("inspect", "packed").output
    assert "sequences: 25" in shown
    assert "min freq: 2" in shown


@pytest.mark.parametrize("kind", ["attributes", "json_lines", "svm_hmm", "words"])
def test_other_formats(kind, small_pieces):
    write("train.txt", sentences())
    data = read_columns("train.txt")
    X = [[{f"w={word}": 1.0, f"t={tag}": 0.5} for word, tag in sentence] for sentence in data]
    if kind == "attributes":
        write_attributes("data", X, data.labels, sample_weight=[2.0] + [1.0] * 39)
    elif kind == "svm_hmm":
        names = {name: k for k, name in enumerate(sorted({a for s in X for token in s for a in token}))}
        write_svm_hmm("data", [[[float(name in token) for name in names] for token in s] for s in X], data.labels)
    else:
        tokens = X if kind == "json_lines" else [[word for word, _ in sentence] for sentence in data]
        write_json_lines("data", tokens, data.labels)
    m3n_("pack", "data", "-o", "packed", "-q")
    m3n_("train", "data", "-m", "model.m3n", "--jobs", 1, "-q")
    shards, model = m3n.Shards("packed"), m3n.load("model.m3n")
    assert shards.kind == model.reader_.kind
    assert shards.width == model.reader_.width
    assert shards.total_weight == (41 if kind == "attributes" else 40)
    assert m3n_("evaluate", "packed", "-m", "model.m3n").stdout == m3n_("evaluate", "data", "-m", "model.m3n").stdout


def test_predict_and_evaluate_read_packed_data():
    trained()
    write("test.txt", sentences(seed=1))
    m3n_("pack", "test.txt", "-o", "packed", "-q", "--shard-size", "2kB")
    assert len(m3n.Shards("packed")) > 1
    scored = [m3n_("evaluate", data, "-m", "model.m3n").stdout for data in ("test.txt", "packed")]
    assert scored[0] == scored[1]
    lines = m3n_("predict", "test.txt", "-m", "model.m3n").stdout.split("\n")
    found = m3n_("predict", "packed", "-m", "model.m3n").stdout.split("\n")
    assert [line.split()[-1] if line else "" for line in lines] == found
    named = [json.loads(line) for line in m3n_("predict", "packed", "-m", "model.m3n", "--json").stdout.splitlines()]
    assert [entry["labels"] for entry in named] == [entry["gold"] for entry in named]
    rows = m3n_("predict", "packed", "-m", "model.m3n", "--confidence").stdout.split("\n")
    assert all(0.3 < float(row.split()[1]) <= 1.0 for row in rows if row)
    assert m3n_("predict", "packed", "-m", "model.m3n", "--n-best", 2).stdout.startswith("# 0 ")
    assert "say which model" in plain(m3n_("evaluate", "packed", code=2).output)


def test_hashed_attributes():
    write("train.txt", sentences())
    m3n_("pack", "train.txt", "-o", "packed", "-q", "--hash", 12)
    assert m3n.Shards("packed").width == 4096
    assert "hash bits: 12" in m3n_("inspect", "packed").output
    trained()
    assert "are hashed to 12 bits" in plain(m3n_("predict", "packed", "-m", "model.m3n", code=2).output)


def test_empty_sequences_are_told():
    write("data", '{"tokens": [], "labels": []}\n{"tokens": [{"a": 1}], "labels": ["x"]}\n')
    shown = m3n_("pack", "data", "-o", "packed").output
    assert "Left out: 1 empty" in shown
    assert "1 sequences, 1 positions, 1 labels, 1 attributes" in shown


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("a X\nb Y\n\nc\n", [], "line 4: "),
        ("a X\nb Y\n\n" * 20 + "c Z W\n", [], "line 61: expected 2 columns as in the lines before, found 3"),
        (
            '{"tokens": ["a"], "labels": ["x"]}\n' * 9 + '{"tokens": ["a"], "labels": [1]}\n',
            [],
            "line 10: labels must be",
        ),
        (
            '{"tokens": ["a"], "labels": ["x"]}\n{"tokens": ["a"], "labels": ["x", "y"]}\n',
            [],
            "line 2: there are 1 tokens",
        ),
        ('{"tokens": ["a"]}\n', [], "has no labels"),
        ("", [], "is empty"),
        ("a X\n", ["--format", "bread"], "unknown format 'bread'"),
        ("a X\n", ["--format", "svmlight"], "unknown format 'svmlight'"),
        ("(S (N dogs) (V bark))\n", [], "holds no labels of sequences: it is trees in brackets"),
        ("a X\n", ["--memory", "1MB"], "memory must be at least 16.0 MB"),
        ("a X\n", ["--memory", "lots"], "memory must be a number of bytes"),
        ("a X\n", ["--shard-size", "0"], "--shard-size must be"),
        ("a X\n", ["--hash", "4", "--min-freq", "2"], "attributes are not counted"),
        ("a X\n", ["--min-freq", "7"], "no attribute occurs 7 times or more"),
        ("a X\n", ["-t", "nowhere"], "there is no data file 'nowhere'"),
        ("a X\n", ["--label", "7"], "there is no column 7"),
        ("X\tw=a\nX\tw=b\n\n", ["--format", "attributes", "-t", "template"], "templates are for column files"),
    ],
)
def test_mistakes(text, options, message, small_pieces):
    write("data", text)
    write("template", TEMPLATE)
    shown = plain(m3n_("pack", "data", "-o", "packed", *options, code=2).output)
    assert message in shown
    assert not os.path.exists("packed")


def test_mistakes_about_files_and_folders():
    write("data", "a X\n")
    assert "there is no data file 'nowhere'" in plain(m3n_("pack", "nowhere", "-o", "packed", code=2).output)
    assert "name it once" in plain(m3n_("pack", "-", "-", "-o", "packed", code=2).output)
    os.mkdir("full")
    write("full/thesis", "mine")
    for options in ([], ["--force"]):
        assert "is not empty" in plain(m3n_("pack", "data", "-o", "full", *options, code=2).output)
    m3n_("pack", "data", "-o", "packed")
    assert "--force" in plain(m3n_("pack", "data", "-o", "packed", code=2).output)
    m3n_("pack", "data", "-o", "packed", "--force")
    write("packed/shard-00000.safetensors", "damaged")
    for command in (["inspect", "packed"], ["evaluate", "packed", "-m", "model.m3n"]):
        if command[0] == "evaluate":
            trained()
        assert "shard-00000.safetensors has 7 bytes" in plain(m3n_(*command, code=2).output)
    os.mkdir("empty")
    assert "holds no manifest.json" in plain(m3n_("inspect", "empty", code=2).output)


def test_packed_sequences_are_for_taggers():
    write("data", "a X\n")
    m3n_("pack", "data", "-o", "packed", "-q")
    m3n.MultilabelClassifier(n_jobs=1).fit(np.eye(3), [["x"], ["y"], []]).save("model.m3n")
    assert "are for a SequenceTagger, not a MultilabelClassifier" in plain(
        m3n_("predict", "packed", "-m", "model.m3n", code=2).output
    )


def test_training_on_packed_data():
    """As on the file itself; scored on a file, and on packed data."""
    write("train.txt", sentences())
    write("test.txt", sentences(10, seed=1))
    write("template", TEMPLATE)
    m3n_("pack", "train.txt", "-o", "packed", "-t", "template", "--shard-size", "1kB")
    m3n_("pack", "test.txt", "-o", "held-out", "-t", "template")
    common = ["--lam", "0.05", "--rtol", "1e-4", "--class-weight", "O=0.5", "--constraints", "iob"]
    there = plain(m3n_("train", "packed", "-m", "there.m3n", "--test", "test.txt", *common, "--lanes", 3).output)
    here = plain(m3n_("train", "train.txt", "-m", "here.m3n", "--test", "test.txt", "-t", "template", *common).output)
    assert "40 sequences with" in there and "shards)" in there
    assert scores_in(there) == scores_in(here)
    told = json.loads(m3n_("train", "packed", "-m", "again.m3n", "--test", "held-out", "--json", *common).stdout)
    assert told["primal"] == pytest.approx(m3n.load("here.m3n").certificate_.primal, rel=1e-3)
    assert told["scores"]["tokens"]["accuracy"] > 0.5
    report = m3n_("train", "packed", "-m", "more.m3n", "--test", "test.txt", "--report", "page.html", *common)
    assert report.exit_code == 0 and os.path.getsize("page.html") > 1000


def scores_in(shown):
    return shown[shown.index("labels right") :]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--report", "page.html"], "which shards do not hold"),
        (["-t", "template"], "these data have their attributes already"),
        (["--min-freq", "2"], "settled when the shards were packed"),
        (["--repair", "--constraints", "iob"], "labels are mended before they are packed"),
        (["--task", "graphs"], "holds packed sequences, not"),
        (["--constraints", "bioes"], "packed: sequence"),
        (["--class-weight", "X=2"], "the data have no label 'X'"),
        (["--workers", "2", "--backend", "threads"], "--workers is for --backend ray"),
        (["--backend", "spark"], "unknown backend 'spark'"),
        (["--backend", "ray", "--address", "127.0.0.1:1"], "there is no cluster at '127.0.0.1:1'"),
    ],
)
def test_what_training_on_packed_data_refuses(options, message):
    write("train.txt", sentences(10))
    write("template", TEMPLATE)
    m3n_("pack", "train.txt", "-o", "packed", "-t", "template")
    result = m3n_("train", "packed", "-m", "model.m3n", *options, code=2)
    assert message in " ".join(plain(result.output).replace("│", " ").split())
