"""Labels of chunks and their weights, as users of the command meet them."""

import json

import pytest

import m3n
from tests.cli.test_demo import plain
from tests.cli.test_toolbox import m3n_, sentences, trained, write


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


BROKEN = "\n-DOCSTART- -X- O\n\nthe DT B-NP\ndog NN I-NP\n\n\nit PR I-NP\nis VB O\nso RB I-AP\n\n"


def test_labels_that_break_constraints_are_named_by_line_and_mended():
    write("train.txt", BROKEN + sentences(20))
    text = plain(m3n_("train", "train.txt", "-m", "model.m3n", "--constraints", "iob", code=2).output)
    assert "train.txt, line 8 (sequence 1, position 0, counted from 0): 'I-NP' stands first" in text
    assert "which --constraints iob forbids" in text
    assert "--repair" in text
    options = ["--constraints", "iob", "--repair", "--jobs", 1]
    told = m3n_("train", "train.txt", "-m", "model.m3n", *options).output
    assert "train.txt: 2 labels in 1 sequence mended: read as conlleval does, written as iob2" in told
    assert "B-AP" in m3n.load("model.m3n").classes_
    told = m3n_("train", "train.txt", "-m", "model.m3n", *options[:1], "bilou", *options[2:], "--json").stdout
    assert json.loads(told)["remarks"][0].endswith("written as bilou")
    assert {"B-NP", "L-NP", "U-NP", "U-AP", "O"} == set(m3n.load("model.m3n").classes_)
    for given, message in (
        (("--repair",), "there is nothing to break: say which scheme by --constraints"),
        (("--repair", "--constraints", "observed"), "labels can be mended for a scheme (iob, iob1, "),
    ):
        assert message in plain(m3n_("train", "train.txt", "-m", "x", *given, code=2).output)
    write("train.txt", "a X\nb O\n")
    text = plain(m3n_("train", "train.txt", "-m", "x", "--repair", "--constraints", "iob", code=2).output)
    assert "train.txt, line 1 (sequence 0, position 0, counted from 0): 'X' is no label of chunks" in text
    text = plain(m3n_("train", "train.txt", "-m", "x", "--constraints", "iob", code=2).output)
    assert "line 1 (sequence 0, position 0, counted from 0): label 'X' is not of the scheme IOB2" in text


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("attributes", "@weight:2\nB-X\tw=a\n\n@weight:3\nO\tw=b\n\nO\tw=a\nI-X\tw=b\n", 8),
        ("json_lines", '{"tokens": ["a"], "labels": ["O"]}\n\n{"tokens": ["a", "b"], "labels": ["O", "I-X"]}\n', 3),
        ("svm_hmm", "# made by hand\nO qid:1 1:1\nO qid:2 1:1\nI-X qid:2 2:1\n", 4),
        ("columns", "New York\tB-X\n\n\nb\tO\nc\tI-X\n", 5),
    ],
)
def test_lines_are_named_in_every_format(name, text, line):
    write("data", text)
    told = plain(m3n_("train", "data", "-m", "x", "--format", name, "--constraints", "iob2", code=2).output)
    assert f"data, line {line} (sequence " in told


@pytest.mark.parametrize("labels", ["B I O", "B I", "I E O", "B M E S", "B L U O", "B-X M-X W-X O"])
def test_prefixes_are_chunks_without_an_option(labels):
    write("tagged", "".join(f"w {label} {label}\n" for label in labels.split()))
    assert json.loads(m3n_("evaluate", "tagged", "--json").stdout)["chunks"]["f1"] == 1.0


@pytest.mark.parametrize("labels", ["S O", "B C O", "W-X I-X L-X", "B- O", "M F", "O", "B B-X O"])
def test_other_labels_are_not(labels):
    write("tagged", "".join(f"w {label} {label}\n" for label in labels.split()))
    assert "chunks" not in json.loads(m3n_("evaluate", "tagged", "--json").stdout)


def test_strict_schemes_and_what_the_help_says():
    write("tagged", "a I-X I-X\nb L-X L-X\nc U-X U-X\n")
    f1 = [
        json.loads(m3n_("evaluate", "tagged", "--scheme", scheme, "--json").stdout)["chunks"]["rows"]
        for scheme in ("conll", "bilou")
    ]
    assert [rows[0]["support"] for rows in f1] == [2, 1]
    text = plain(m3n_("evaluate", "--help").output)
    assert "conll takes all labels, valid or not, as conlleval does" in text


def test_class_weights_reach_the_loss():
    trained("--class-weight", "O=0.5,B-NP=2")
    assert m3n.load("model.m3n").class_weight == {"O": 0.5, "B-NP": 2.0}
    trained("--class-weight", "balanced")
    assert m3n.load("model.m3n").class_weight == "balanced"
    for given, message in (
        ("Z=1", "the data have no label 'Z'; they have B-NP, I-NP, O"),
        ("O", "write balanced, or LABEL=NUMBER,LABEL=NUMBER such as O=0.5,B-PER=2; got 'O'"),
        ("O=-1", "got 'O=-1'"),
    ):
        assert message in plain(m3n_("train", "train.txt", "-m", "x", "--class-weight", given, code=2).output)


def test_a_regulariser_that_is_too_strong_is_remarked():
    assert "The model gives every token the label" not in trained().output
    strong = "lam = 50 is 2,000/n: so strong a regulariser leaves small weights. --lam 5/n divides by the number of"
    assert strong in m3n_("train", "train.txt", "-m", "model.m3n", "--lam", 50, "--jobs", 1).output
    write("train.txt", "".join("the O\n" * 5 + f"dog{k} B-X\n" + "the O\n" * 5 + "\n" for k in range(40)))
    write("template", "U0:%x[0,0]\n")
    given = ["train", "train.txt", "-m", "model.m3n", "-t", "template", "--lam", 5, "--jobs", 1]
    remark = "The model gives every token the label O. lam = 5 is 200/n, too strong a regulariser; try --lam 5/n."
    assert remark in m3n_(*given).output
    assert json.loads(m3n_(*given, "--json").stdout)["remarks"] == [remark]


def test_tabs_stay_tabs():
    write("train.txt", "New York\tB-X\nis\tO\nbig\tO\n\nNew York\tB-X\nruns\tO\n")
    for options in ((), ("--delimiter", r"\t"), ("--delimiter", "\t")):
        m3n_("train", "train.txt", "-m", "model.m3n", "--jobs", 1, *options)
        out = m3n_("predict", "train.txt", "-m", "model.m3n", *options).stdout
        assert out.startswith("New York\tB-X\tB-X\nis\tO\tO\n")
        best = m3n_("predict", "train.txt", "-m", "model.m3n", "--n-best", 2, *options).stdout
        assert best.splitlines()[1] == "New York\tB-X\tB-X"
        assert json.loads(m3n_("evaluate", "-", "--json", given=out).stdout)["tokens"]["accuracy"] == 1.0
    write("commas", "a b,X\n\nc,Y\n")
    m3n_("train", "commas", "-m", "model.m3n", "--jobs", 1, "--delimiter", ",")
    assert m3n_("predict", "commas", "-m", "model.m3n", "--delimiter", ",").stdout == "a b,X,X\n\nc,Y,Y\n\n"


def test_a_model_of_tokens_with_blanks_reads_lines_as_tokens():
    write("train.txt", "New York\tB-LOC\nis\tO\n\nYork\tB-PER\nNew Deal\tO\n\n")
    m3n_("train", "train.txt", "-m", "model.m3n", "--jobs", 1)
    for text in ("New York\nis\n\nNew Deal\nNew York\n", "New York\tO\nis\tO\n\nNew Deal\tO\nNew York\tO\n"):
        write("new.txt", text)
        lines = m3n_("predict", "new.txt", "-m", "model.m3n").stdout.splitlines()
        assert [line.split("\t")[0] for line in lines if line] == ["New York", "is", "New Deal", "New York"]
        assert [line.split("\t")[-1] for line in lines if line] == ["B-LOC", "O", "O", "B-LOC"]
    write("new.jsonl", '{"tokens": ["New York", "is"]}\n')
    assert json.loads(m3n_("predict", "new.jsonl", "-m", "model.m3n").stdout)["labels"] == ["B-LOC", "O"]
