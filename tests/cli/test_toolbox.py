"""train, predict, evaluate, inspect and convert, as a user would type them, with the mistakes."""

import gzip
import json
import os
import signal
import subprocess
import sys

import numpy as np
import pycrfsuite
import pytest
from typer.testing import CliRunner

import m3n
from m3n.cli.app import app
from m3n.compiled.ahead import Need
from m3n.compiled.progress import progress
from m3n.estimators.chains import Scored
from m3n.io import read_columns, write_attributes, write_json_lines, write_svm_hmm
from m3n.solvers import SequentialDual
from tests.cli.test_demo import plain

runner = CliRunner()
TEMPLATE = "# words\nU0:%x[0,0]\nU1:%x[-1,0]/%x[0,1]\nU2:%x[0,0:suffix2]\n\nB\nB1:%x[0,1]\n"
WORDS = {"B": ["the", "a", "every"], "I": ["dog", "tree", "Cat"], "O": ["sees", "runs", "."]}


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def sentences(count=40, seed=0, labelled=True):
    """Noun phrases between verbs: word, part of speech, label."""
    random = np.random.default_rng(seed)
    lines = []
    for _ in range(count):
        for letter in "BIOBIO"[: 3 * random.integers(1, 3)]:
            label = "O" if letter == "O" else f"{letter}-NP"
            tag = {"B": "DT", "I": "NN", "O": "VB"}[letter]
            lines.append(" ".join([random.choice(WORDS[letter]), tag, *([label] if labelled else [])]))
        lines.append("")
    return "\n".join(lines)


def write(name, text):
    with open(name, "w") as file:
        file.write(text)
    return name


def m3n_(*arguments, code=0, given=None):
    result = runner.invoke(app, [str(argument) for argument in arguments], input=given)
    assert result.exit_code == code, result.output
    return result


def trained(*options):
    write("train.txt", sentences())
    return m3n_("train", "train.txt", "-m", "model.m3n", "--jobs", 1, *options)


def test_from_a_column_file_to_a_report():
    write("template", TEMPLATE)
    write("test.txt", sentences(seed=1))
    result = trained("-t", "template", "--test", "test.txt", "--report", "report.html")
    assert "40 sequences" in result.output
    assert "no weights can get below" in plain(result.output)
    assert "chunk F1 100.00%" in result.output
    assert "test.txt: 100.0% of the labels are proven to be those of the exact optimum" in plain(result.output)
    with open("report.html") as file:
        assert "model.m3n" in file.read()
    model = m3n.load("model.m3n")
    assert model.reader_.columns == 2
    assert model.edge_coef_ is not None
    assert model.certificate_.gap <= 0.05 * model.certificate_.primal

    scored = m3n_("evaluate", "test.txt", "-m", "model.m3n")
    assert "labels right 100.00%" in scored.output
    numbers = json.loads(m3n_("evaluate", "test.txt", "-m", "model.m3n", "--json").stdout)
    assert numbers["chunks"]["f1"] == numbers["tokens"]["accuracy"] == 1.0

    shown = m3n_("inspect", "model.m3n", "--top", 3)
    for what in ("B-NP", "I-NP", "U0:", "transitions", "SequenceTagger"):
        assert what in shown.output
    read = json.loads(m3n_("inspect", "model.m3n", "--json", "--label", "O").stdout)
    assert list(read["weights"]) == ["O"]
    assert len(read["transitions"]) == 3


def test_machines_read_json():
    write("test.txt", sentences(seed=1))
    read = json.loads(trained("--json", "--test", "test.txt").stdout)
    assert read["status"] == "tolerance reached"
    assert read["gap"] == pytest.approx(read["primal"] - read["dual"])
    assert read["labels"] == ["B-NP", "I-NP", "O"]
    assert read["scores"]["tokens"]["accuracy"] > 0.9
    proof = m3n.load("model.m3n").certify(read_columns("test.txt"))
    assert read["final"] == proof.share
    assert trained("--quiet").output == ""


def test_predictions_in_columns():
    trained()
    gold = read_columns(write("gold.txt", sentences(3, seed=2))).label.strings()
    for labelled in (True, False):
        write("new.txt", sentences(3, seed=2, labelled=labelled))
        m3n_("predict", "new.txt", "-m", "model.m3n", "-o", "out.txt", "--confidence")
        found, given = read_columns("out.txt", labelled=False), read_columns("new.txt", labelled=False)
        assert [c.strings() for c in found.columns[:-2]] == [c.strings() for c in given.columns]
        assert found.columns[-2].strings() == gold
        assert all(0.0 <= float(p) <= 1.0 for p in found.columns[-1].strings())
    assert m3n_("predict", "-", "-m", "model.m3n", given="the DT\ndog NN\n").stdout == "the DT B-NP\ndog NN I-NP\n\n"
    m3n_("predict", "new.txt", "-m", "model.m3n", "-o", "out.txt.gz")
    with gzip.open("out.txt.gz", "rt") as packed:
        assert packed.read() == m3n_("predict", "new.txt", "-m", "model.m3n").stdout
    shares = m3n_("predict", "-", "-m", "model.m3n", "--marginals", given="the DT\n").stdout.split()[3:]
    assert [share.split("/")[0] for share in shares] == ["B-NP", "I-NP", "O"]
    assert sum(float(share.split("/")[1]) for share in shares) == pytest.approx(1.0, abs=1e-5)


def test_several_answers():
    trained()
    given = "the DT\ndog NN\n\nsees VB\n"
    lines = m3n_("predict", "-", "-m", "model.m3n", "--n-best", 2, given=given).stdout.splitlines()
    assert [line.split()[1] for line in lines if line.startswith("#")] == ["0", "1", "0", "1"]
    assert lines[1:3] == ["the DT B-NP", "dog NN I-NP"]
    read = m3n_("predict", "-", "-m", "model.m3n", "--n-best", 2, "--json", given=given).stdout.splitlines()
    best = [json.loads(line)["n_best"] for line in read]
    assert [len(answers) for answers in best] == [2, 2]
    assert best[0][0]["probability"] >= best[0][1]["probability"]


def test_predictions_as_json():
    trained()
    given = "the DT\ndog NN\n"
    line = m3n_("predict", "-", "-m", "model.m3n", "--json", "--confidence", "--marginals", given=given).stdout
    read = json.loads(line)
    assert read["labels"] == ["B-NP", "I-NP"]
    assert read["tokens"] == [["the", "DT"], ["dog", "NN"]]
    assert read["confidence"][0] == read["marginals"][0]["B-NP"]


def test_predicted_columns_are_compared_without_a_model():
    write("tagged.txt", "a B-X B-X\nb I-X O\n\nc O O\n")
    read = json.loads(m3n_("evaluate", "tagged.txt", "--json").stdout)
    assert read["tokens"]["accuracy"] == pytest.approx(2 / 3)
    assert read["chunks"]["f1"] == 0.0
    assert "chunks" not in m3n_("evaluate", "tagged.txt", "--scheme", "none").stdout


@pytest.mark.parametrize("kind", ["attributes", "json_lines", "svm_hmm"])
def test_other_formats(kind):
    write("train.txt", sentences())
    data = read_columns("train.txt")
    X = [[{f"w={word}": 1.0, f"t={tag}": 1.0} for word, tag in sentence] for sentence in data]
    y = data.labels
    if kind == "attributes":
        write_attributes("data", X, y)
    elif kind == "json_lines":
        write_json_lines("data", X, y)
    else:
        names = {name: k for k, name in enumerate(sorted({a for s in X for token in s for a in token}))}
        rows = [np.array([[float(name in token) for name in names] for token in s]) for s in X]
        write_svm_hmm("data", rows, y)
    m3n_("train", "data", "-m", "model.m3n", "--jobs", 1, "--format", kind)
    read = json.loads(m3n_("evaluate", "data", "-m", "model.m3n", "--json", "--format", kind).stdout)
    assert read["tokens"]["accuracy"] == 1.0
    out = m3n_("predict", "data", "-m", "model.m3n", "--format", kind).stdout
    if kind == "json_lines":
        assert [json.loads(line)["labels"] for line in out.splitlines()] == y
    else:
        assert out.split("\n\n")[0].split("\n") == y[0]


def test_svm_hmm_files_may_have_fewer_or_more_features():
    write("train", "A qid:1 1:1 3:1\nB qid:1 2:1\nA qid:2 1:1\n")
    write("few", "A qid:1 1:1\nB qid:1 2:1\n")
    write("many", "A qid:1 1:1 9:1\n")
    m3n_("train", "train", "-m", "model.m3n", "--jobs", 1, "--test", "few")
    for name in ("few", "many"):
        assert json.loads(m3n_("evaluate", name, "-m", "model.m3n", "--json").stdout)["tokens"]["accuracy"] == 1.0
    assert m3n_("predict", "few", "-m", "model.m3n").stdout.split() == ["A", "B"]


def test_plain_tokens_in_json_lines_are_words():
    write_json_lines("data", [["the", "dog"], ["sees"]] * 5, [["D", "N"], ["V"]] * 5)
    m3n_("train", "data", "-m", "model.m3n", "--jobs", 1)
    assert m3n.load("model.m3n").reader_.kind == "columns"
    assert '"labels": ["D", "N"]' in m3n_("predict", "data", "-m", "model.m3n").stdout


def test_settings_reach_the_tagger():
    options = ["--objective", "crf", "--lam", "0.1", "--solver", "lbfgs", "--observed-only", "--constraints", "iob"]
    trained(*options, "--rtol", "0.001", "--tol", "1e-9", "--max-passes", "99", "--seed", "3")
    model = m3n.load("model.m3n")
    assert (model.objective, model.lam_, model.observed_only) == ("crf", 0.1, True)
    assert (model.rtol, model.tol, model.max_passes, model.random_state) == (0.001, 1e-9, 99.0, 3)
    assert type(model.solver).__name__ == "LBFGS"
    assert model.constraints_ is not None
    trained("--lam", "4/n")
    assert m3n.load("model.m3n").lam_ == pytest.approx(0.1)


def test_a_run_that_compiles_says_so(monkeypatch):
    trained()
    assert "compiling" not in trained().output
    honest = SequentialDual.init

    def init(self, problem):
        with progress.compiling(Need("m3n.nothing:at_all", "[]", 30.0)):
            return honest(self, problem)

    monkeypatch.setattr(SequentialDual, "init", init)
    monkeypatch.setattr(progress, "expected", set())  # what tests before this one have announced
    assert "compiling 1 function" in trained().output
    assert "compiling" not in trained("--quiet").output


def test_limits_end_training_and_say_so():
    result = trained("--rtol", "0", "--max-passes", "3")
    assert "Stopped early: pass limit." in result.output


def test_ctrl_c_saves_the_best_model_and_a_checkpoint(monkeypatch):
    honest, calls = SequentialDual.step, []

    def step(self, problem, state):
        calls.append(1)
        if len(calls) == 3:
            signal.raise_signal(signal.SIGINT)
        return honest(self, problem, state)

    monkeypatch.setattr(SequentialDual, "step", step)
    write("train.txt", sentences())
    options = ["train", "train.txt", "-m", "model.m3n", "--solver", "sequential_dual", "--rtol", "1e-9", "--jobs", 1]
    result = m3n_(*options, "--checkpoint", "run", code=130)
    assert "Interrupted: the best weights so far are kept." in result.output
    assert m3n.load("model.m3n").status_ is m3n.Status.INTERRUPTED
    assert os.path.exists("run")
    m3n_(*options, "--checkpoint", "run")
    assert m3n.load("model.m3n").status_ is m3n.Status.TOLERANCE
    assert not os.path.exists("run")


def test_converted_models_predict_what_they_did():
    write("train.txt", sentences())
    data = read_columns("train.txt")
    X = [[{"w": word, "t": tag} for word, tag in sentence] for sentence in data]
    trainer = pycrfsuite.Trainer(verbose=False)
    for x, y in zip(X, data.labels, strict=True):
        trainer.append(x, y)
    trainer.train("old.crfsuite")
    tagger = pycrfsuite.Tagger()
    tagger.open("old.crfsuite")
    assert "3 labels" in m3n_("convert", "old.crfsuite", "new.m3n").output
    new = m3n.load("new.m3n")
    assert new.predict(X) == [tagger.tag(x) for x in X]
    assert "SequenceTagger" in m3n_("inspect", "new.m3n").stdout  # no certificate, and no accident


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        ("", (), "train.txt is empty"),
        ("a DT B-NP\nb NN\n", (), "train.txt, line 2: expected 3 columns"),
        (b"caf\xe9 DT O\n", (), "train.txt, line 1: this is not UTF-8"),
        ("word\nword\n", (), "line 1"),
        ("a DT O\n", ("-t", "missing"), "missing"),
        ("a DT O\n", ("-t", "bad.template"), "Invalid value for --template: template 'U1:%x[0,5]' reads column 5"),
        ("a DT O\n", ("-t", "worse.template"), "worse.template, line 2"),
        ("a DT O\n", ("--solver", "magic"), "magic"),
        ("a DT O\n", ("--lam", "1/m"), "regularisation"),
        ("a DT O\n", ("--lam", "-1"), "must be positive"),
        ("a DT O\n", ("--objective", "mse"), "choose one of"),
        ("a DT O\n", ("--constraints", "xyz"), "unknown constraints"),
        ("a DT O\n", ("--format", "xml"), "unknown format 'xml'"),
        ("a DT O\n", ("--report", "no/where.html"), "does not exist"),
        ("a DT O\n", ("--test", "missing.txt"), "missing.txt"),
        ("a DT O\n", ("--label", "7"), "7"),
    ],
)
def test_mistakes_are_named(content, options, message):
    write("bad.template", "U0:%x[0,0]\nU1:%x[0,5]\n")
    write("worse.template", "U0:%x[0,0]\nU1:%y[0,0]\n")
    with open("train.txt", "wb") as file:
        file.write(content if isinstance(content, bytes) else content.encode())
    result = m3n_("train", "train.txt", "-m", "model.m3n", *options, code=2)
    assert message in plain(result.output)
    assert "Traceback" not in result.output
    assert not os.path.exists("model.m3n")


def test_mistakes_with_models_are_named():
    trained()
    write("narrow.txt", "the\n")
    write("wide.txt", "the DT x y\n")
    write("unlabelled.txt", "the DT\n")
    write("broken.m3n", "nonsense")
    for arguments, message in (
        (("predict", "narrow.txt", "-m", "model.m3n"), "1 column, but the model was trained on 2 columns"),
        (("predict", "wide.txt", "-m", "model.m3n"), "4 columns, but the model was trained on 2 columns"),
        (("predict", "train.txt", "-m", "broken.m3n"), "is damaged, incomplete or not an m3n model"),
        (("predict", "train.txt", "-m", "missing.m3n"), "there is no model file 'missing.m3n'"),
        (("predict", "train.txt", "-m", "model.m3n", "-o", "no/where"), "does not exist"),
        (("evaluate", "unlabelled.txt", "-m", "model.m3n"), "has no labels to compare with"),
        (("evaluate", "train.txt", "-m", "model.m3n", "--scheme", "x"), "unknown scheme 'x'"),
        (("evaluate", "unlabelled.txt"), "give a model"),
        (("inspect", "model.m3n", "--label", "Z"), "does not know the label 'Z'"),
        (("convert", "train.txt", "out.m3n"), "train.txt"),
    ):
        result = m3n_(*arguments, code=2)
        assert message in plain(result.output), arguments


def test_labels_unseen_in_training_count_as_wrong():
    trained()
    write("new.txt", "the DT B-XX\ndog NN I-XX\n")
    read = json.loads(m3n_("evaluate", "new.txt", "-m", "model.m3n", "--json").stdout)
    assert read["tokens"]["accuracy"] == 0.0


def test_help_reads_like_a_short_manual():
    text = plain(m3n_("--help").output)
    for word in ("train", "predict", "evaluate", "inspect", "convert", "compare", "demo", "Exit codes", "--install"):
        assert word in text


def test_the_module_is_the_command():
    """In a process of its own, through pipes."""
    command = [sys.executable, "-m", "m3n"]
    result = subprocess.run([*command, "--version"], capture_output=True, text=True, check=True)
    assert result.stdout == f"m3n {m3n.__version__}\n"
    wrong = subprocess.run([*command, "train", "missing.txt", "-m", "x"], capture_output=True, text=True)
    assert wrong.returncode == 2
    assert "there is no" in wrong.stderr


def segment_model():
    write("train.txt", sentences())
    data = read_columns("train.txt")
    m3n.SegmentTagger(templates=m3n.features.Templates(["w=%x[0,0]", "t=%x[0,1]"]), n_jobs=1, lam=0.01).fit(
        data, data.labels
    ).save("segments.m3n")
    return data


def test_segments_are_columns_of_iob_labels():
    data = segment_model()
    read = json.loads(m3n_("evaluate", "train.txt", "-m", "segments.m3n", "--json").stdout)
    assert read["chunks"]["f1"] == read["tokens"]["accuracy"] == 1.0
    out = m3n_("predict", "train.txt", "-m", "segments.m3n", "--confidence", "--marginals").stdout
    rows = [line.split() for line in out.splitlines() if line]
    assert [row[3] for row in rows] == data.label.strings()
    classes = m3n.load("segments.m3n").classes_.tolist()
    for row in rows:
        shares = dict(share.split("/") for share in row[5:])
        assert list(shares) == classes
        assert row[4] == shares[row[3].partition("-")[2] or "O"]
    line = m3n_("predict", "-", "-m", "segments.m3n", "--json", given="the DT\ndog NN\n").stdout
    assert json.loads(line)["labels"] == ["B-NP", "I-NP"]
    shown = m3n_("inspect", "segments.m3n").stdout
    assert "SegmentTagger" in shown
    assert "transitions" in shown
    result = m3n_("predict", "train.txt", "-m", "segments.m3n", "--n-best", 2, code=2)
    assert "a SegmentTagger has one answer per sequence" in plain(result.output)


def other_models():
    X, Y = np.eye(3), np.eye(3, dtype=int)
    graphs = [(np.eye(2), [[0, 1]]), (np.eye(2)[::-1], [[0, 1]])]
    yield m3n.MultilabelClassifier(n_jobs=1).fit(X, Y), "a feature must be NUMBER:VALUE"
    yield m3n.MultilabelClassifier(kernel="rbf", n_jobs=1).fit(X, Y), "a feature must be NUMBER:VALUE"
    yield m3n.GraphLabeler(n_jobs=1).fit(graphs, [["a", "b"], ["b", "a"]]), "this is not JSON"


def test_every_model_can_be_inspected_and_says_what_is_wrong_with_a_file_of_another_kind():
    write("train.txt", sentences())
    for model, message in other_models():
        model.save("model.m3n")
        kind = type(model).__name__
        assert kind in m3n_("inspect", "model.m3n").stdout
        assert kind in m3n_("inspect", "model.m3n", "--top", 0).stdout
        read = json.loads(m3n_("inspect", "model.m3n", "--json").stdout)
        assert read["kind"] == kind
        assert ("pairs" if kind == "GraphLabeler" else "intercept") in read
        text = plain(m3n_("predict", "train.txt", "-m", "model.m3n", code=2).output)
        assert f"train.txt, line 1: {message}" in text


def test_scores_are_computed_once(monkeypatch):
    trained()
    calls, ready = [], Scored.__post_init__

    def counted(self):
        calls.append(1)
        ready(self)

    monkeypatch.setattr(Scored, "__post_init__", counted)
    m3n_("predict", "train.txt", "-m", "model.m3n", "--confidence", "--marginals", "-o", "out.txt")
    assert len(calls) == 1


def test_templates_are_read_once(monkeypatch):
    from m3n.cli import inputs as sequences

    calls, read = [], sequences.read_template
    monkeypatch.setattr(sequences, "read_template", lambda path: calls.append(path) or read(path))
    write("template", TEMPLATE)
    trained("-t", "template")
    assert len(calls) == 1
