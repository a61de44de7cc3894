"""The command on files of trees: CoNLL-U and brackets."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import m3n
from m3n.cli.app import app
from m3n.cli.compare import load_data
from m3n.io import read_brackets, read_conllu
from tests.estimators.trees import sentences
from tests.grammars.trees import TREEBANK

UNANNOTATED = "# text = the cat sees\n1\tthe\tthe\tDET\t_\t_\t_\t_\t_\t_\n1.1\tx\t_\t_\t_\t_\t_\t_\t_\t_\n2-3\tcatsees\t_\t_\t_\t_\t_\t_\t_\t_\n2\tcat\tcat\tNOUN\t_\t_\t_\t_\t_\tA=1\n3\tsees\tsee\tVERB\t_\t_\t_\t_\t_\t_\n\n"  # noqa: E501


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def ok(*arguments):
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    return result.output


def refused(*arguments):
    result = run(*arguments)
    assert result.exit_code == 2
    return " ".join(result.output.replace("│", " ").split())


def conllu(X, y):
    rows = []
    for words, tree in zip(X, y, strict=True):
        rows += [f"{t}\t{w}\t{w}\t{tag}\t_\t_\t{head}\t{label}\t_\t_" for t, ((w, tag), (head, label)) in
                 enumerate(zip(words, tree, strict=True), 1)]  # fmt: skip
        rows.append("")
    return "\n".join([*rows, ""])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A dependency parser and a constituency parser, from files whose kind the command finds out."""
    folder = tmp_path_factory.mktemp("trees")
    (folder / "train.txt").write_text(conllu(*sentences(0, 12)))
    (folder / "trees.txt").write_text("\n".join(map(str, TREEBANK)))
    jobs = ("--jobs", 1)
    said = ok("train", folder / "train.txt", "-m", folder / "d.m3n", "--test", folder / "train.txt", *jobs)
    assert "12 sentences with" in said and "(conllu)" in said and "UAS 100.00, LAS 100.00" in said
    said = ok("train", folder / "trees.txt", "-m", folder / "p.m3n", "--test", folder / "trees.txt", *jobs)
    assert "(brackets)" in said and "F1 100.00" in said
    return folder


def test_heads_are_filled_in(folder):
    (folder / "new.conllu").write_text(UNANNOTATED)
    said = ok("predict", folder / "new.conllu", "-m", folder / "d.m3n", "-o", folder / "parsed.conllu")
    assert not said.replace("compiling", "").strip() or "only once" in said
    text = (folder / "parsed.conllu").read_text()
    assert "# text = the cat sees" in text and "2-3\tcatsees" in text and "1.1\tx" in text and "A=1" in text
    assert read_conllu(folder / "parsed.conllu").trees == [[(2, "det"), (3, "nsubj"), (0, "root")]]


def test_phrases_of_plain_text(folder):
    (folder / "plain.txt").write_text("the dog sees a cat .\n\nshe sleeps .\n")
    ok("predict", folder / "plain.txt", "-m", folder / "p.m3n", "-o", folder / "parsed.txt")
    trees = read_brackets(folder / "parsed.txt")
    assert [" ".join(tree.words()) for tree in trees] == ["the dog sees a cat .", "she sleeps ."]


def test_json_and_n_best(folder):
    first = ok("predict", folder / "train.txt", "-m", folder / "d.m3n", "--json", "--marginals").splitlines()
    entry = json.loads(next(line for line in first if line.startswith("{")))
    assert len(entry["words"]) == len(entry["tree"]) == len(entry["marginals"])
    ranked = ok("predict", folder / "trees.txt", "-m", folder / "p.m3n", "--json", "--n-best", 2).splitlines()
    best = json.loads(next(line for line in ranked if line.startswith("{")))["n_best"]
    assert best[0]["score"] >= best[1]["score"]
    text = ok("predict", folder / "train.txt", "-m", folder / "d.m3n", "--n-best", 2)
    assert "# 0 " in text and "# 1 " in text


def test_scores(folder):
    said = ok("evaluate", folder / "train.txt", "-m", folder / "d.m3n")
    assert "words: UAS 100.00" in said and "without punctuation: UAS 100.00" in said and "nsubj" in said
    found = json.loads(ok("evaluate", folder / "train.txt", "-m", folder / "d.m3n", "--json"))
    assert found["words"]["las"] == 1.0
    found = json.loads(ok("evaluate", folder / "trees.txt", "-m", folder / "p.m3n", "--json"))
    assert found["brackets"]["f1"] == 1.0


def test_models_are_shown(folder):
    assert "DependencyParser" in ok("inspect", folder / "d.m3n")
    assert "ConstituencyParser" in ok("inspect", folder / "p.m3n")
    with pytest.raises(ValueError, match="have no names"):
        m3n.estimators.top_weights(m3n.load(folder / "d.m3n"))


def test_options_of_trees(folder):
    out = folder / "o.m3n"
    ok("train", folder / "train.txt", "-m", out, "--order", 1, "--crossing", "--lam", "20/n", "--rtol", 0.3, "--quiet")
    assert not m3n.load(out).projective
    assert "--crossing is not for --task phrases" in refused("train", folder / "trees.txt", "-m", out, "--crossing")
    assert "--template" in refused("train", folder / "train.txt", "-m", out, "--template", folder / "train.txt")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("circle.conllu", "1\ta\t_\tX\t_\t_\t2\ta\t_\t_\n2\tb\t_\tX\t_\t_\t1\ta\t_\t_\n\n", "line 1"),
        ("roots.conllu", "1\ta\t_\tX\t_\t_\t0\ta\t_\t_\n2\tb\t_\tX\t_\t_\t0\ta\t_\t_\n\n", "--no-single-root"),
        ("range.conllu", "1\ta\t_\tX\t_\t_\t7\ta\t_\t_\n\n", "line 1"),
        ("none.conllu", UNANNOTATED, "line 2"),
        ("open.mrg", "(S (NP (PRP it))\n(VP (VBZ rains))\n", "line 1"),
        ("close.mrg", "(S (NP (PRP it)))\n(VP (VBZ rains)))\n", "line 2"),
    ],
)
def test_bad_files_are_named_by_line(tmp_path, name, content, message):
    (tmp_path / name).write_text(content)
    assert message in refused("train", tmp_path / name, "-m", tmp_path / "m.m3n")


def test_the_wrong_kind_of_file(folder):
    assert "conllu" in refused("predict", folder / "train.txt", "-m", folder / "d.m3n", "--format", "columns")
    assert "no trees in brackets" in refused("evaluate", folder / "train.txt", "-m", folder / "p.m3n")
    assert "line 1" in refused("predict", folder / "trees.txt", "-m", folder / "d.m3n")
    assert "--json" in refused("predict", folder / "train.txt", "-m", folder / "d.m3n", "--marginals")
    assert "--confidence" in refused("predict", folder / "train.txt", "-m", folder / "d.m3n", "--confidence")


@pytest.mark.parametrize(
    ("name", "headline"),
    [("train.txt", "12 dependency trees, 131,072 weights"), ("trees.txt", "phrase structure trees, ")],
)
def test_solvers_race_on_trees(folder, tmp_path, name, headline):
    race = tmp_path / "race.json"
    given = ("--solver", "sequential_dual", "--solver", "bmrm", "--lam", 1.0, "--tol", 0.05, "--jobs", 1, "--quiet")
    assert headline in ok("compare", folder / name, *given, "--json", race)
    one, other = json.loads(race.read_text())["solvers"]
    assert max(one["gap"], other["gap"]) <= 0.05
    assert max(one["dual"], other["dual"]) <= min(one["primal"], other["primal"])


@pytest.mark.parametrize("name", ["train.txt", "trees.txt"])
def test_the_problem_of_a_race_is_that_of_the_parser(folder, name):
    task = load_data(folder / name)
    dependencies = name == "train.txt"
    model = m3n.DependencyParser(bits=16) if dependencies else m3n.ConstituencyParser()
    model.set_params(lam=0.5, loss="normalized_hamming", tol=1e-3, rtol=0.0, n_jobs=1).fit(task.data.X, task.data.y)
    found = m3n.minimize(task.problem(0.5, None, "margin", 1), tol=1e-3)
    assert found.certificate.primal == pytest.approx(model.certificate_.primal, abs=1e-9)
    few = task.first(5)
    assert task.first(None) is task.first(1000) is task
    assert few.name == f"{name}, first 5"
    assert few.count == 5
    assert (few.problem(0.2, None, "crf", 1).lam, few.problem(0.2, None, "crf", 1).temperature) == (0.2, 1.0)
    gold = few.problem(None, None, "crf", 1)
    plain, costly = (few.problem(1.0, loss, "crf", 1).soft(np.zeros(gold.dim), 1.0).value for loss in (None, "hamming"))
    assert costly > plain  # softmax-margin has a loss in its exponent


def test_a_broken_tree_is_named_before_the_race(folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "broken.conllu").write_text(UNANNOTATED.replace("DET\t_\t_\t_\t_", "DET\t_\t_\t7\tdet"))
    assert "broken.conllu, line" in refused("compare", "broken.conllu")
    assert "unknown loss 'zero_one'" in refused("compare", folder / "train.txt", "--loss", "zero_one")
