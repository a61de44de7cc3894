"""The command on sentence pairs: what it reads, writes, scores and refuses; the aligners are made of cardboard."""

import gzip
import json

import pytest

from tests.cli.aligners import Diagonal, install
from tests.cli.test_trees import ok, refused, run

PAIRS = "the house ||| la maison\nit rains ||| il pleut fort\n"
LABELLED = "the house ||| la maison ||| 0-0 1-1\nit rains ||| il pleut fort ||| 0-0 1?1 1-2\n"
GOLD = "0001 1 1 S\n0001 2 2\n0002 1 1 S\n0002 2 2 P\n0002 2 3 S\n"
X = [(["the", "house"], ["la", "maison"]), (["it", "rains"], ["il", "pleut", "fort"])]
LINES = "0-0 1-1\n0-0 1-1\n"  # what the fakes answer
SCORES = "AER 12.50, precision 100.00, recall 75.00, whole pairs 50.00"  # |A| = 4, |S| = 4: 1 - (3 + 4)/8


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    install(monkeypatch)
    for name, text in (("pairs", PAIRS), ("labelled", LABELLED), ("gold.wa", GOLD), ("found", LINES)):
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.fixture
def model():
    ok("train", "labelled", "-m", "model.m3n", "--quiet")
    return "model.m3n"


# training


@pytest.mark.parametrize("data", [("labelled",), ("pairs", "--links", "gold.wa"), ("labelled", "--task", "alignments")])
def test_training_on_links_in_the_file_or_beside_it(data):
    said = ok("train", *data, "-m", "model.m3n", "--test", "pairs", "--test-links", "gold.wa")
    assert "2 pairs with 4 sure links to learn from (parallel)" in said
    assert "7 attributes" in said
    assert "labels" not in said
    assert f"pairs: {SCORES}" in said
    ((parameters, words, links, unlabelled),) = Diagonal.fits
    assert words == X
    assert [sorted(alignment.sure) for alignment in links] == [[(0, 0), (1, 1)], [(0, 0), (1, 2)]]
    assert [sorted(alignment.possible) for alignment in links] == [[], [(1, 1)]]
    assert unlabelled is None
    assert not set(parameters) & {"lam", "tol", "rtol", "loss", "translations"}  # the aligner's own


def test_settings_reach_the_aligner():
    options = ("--lam", "3/n", "--tol", 0.01, "--structure", "chain", "--fertility", 2, "--jobs", 1)
    found = json.loads(ok("train", "labelled", "-m", "model.m3n", *options, "--test", "labelled", "--json"))
    assert found["scores"]["links"]["aer"] == 1 / 8
    parameters = Diagonal.fits[0][0]
    wanted = {"lam": 1.5, "tol": 0.01, "structure": "chain", "fertility": 2, "n_jobs": 1}
    assert {name: parameters[name] for name in wanted} == wanted


def test_what_is_known_about_translations():
    said = ok("train", "labelled", "-m", "model.m3n", "--unlabelled", "pairs")
    assert "2 pairs more to learn translations from" in said
    assert Diagonal.fits.pop()[3] == X
    ok("align", "pairs", "-m", "hmm.m3n", "-o", "links", "--kind", "model1")
    ok("train", "labelled", "-m", "model.m3n", "--translations", "hmm.m3n")
    assert Diagonal.fits.pop()[0]["translations"].parameters["model"] == "model1"
    assert "holds a WordAligner, not an HMMAligner" in refused(
        "train", "labelled", "-m", "other.m3n", "--translations", "model.m3n"
    )


def test_plain_text_has_no_links_to_learn_from():
    said = refused("train", "pairs", "-m", "model.m3n")
    assert "pairs has no links" in said and "(--links)" in said and "m3n align learns from plain text" in said
    said = refused("train", "labelled", "-m", "model.m3n", "--test-links", "gold.wa")
    assert "--test-links has the links of --test, which is missing" in said
    said = refused("train", "labelled", "--links", "gold.wa", "-m", "model.m3n")
    assert "labelled has links itself" in said


@pytest.mark.parametrize(
    ("option", "value"),
    [("--crossing", None), ("--order", 2), ("--loss", "hamming"), ("--constraints", "iob"), ("--observed-only", None)],
)
def test_options_of_other_tasks(option, value):
    given = [option] if value is None else [option, value]
    assert f"{option} is not for --task alignments" in refused("train", "labelled", "-m", "model.m3n", *given)


def test_options_of_alignments_are_not_for_others(folder):
    (folder / "columns").write_text("a A\nb B\n\n")
    train = ("train", "columns", "-m", "model.m3n")
    assert "links is for sentence pairs, not for sequences" in refused(*train, "--links", "gold.wa")
    assert "is for alignments, not for sequences" in refused(*train, "--unlabelled", "pairs")
    assert "--structure is not for --task sequences" in refused(*train, "--structure", "chain")
    assert "come in the format parallel, not columns" in refused(
        "train", "columns", "-m", "model.m3n", "--task", "alignments", "--format", "columns"
    )
    assert "--delimiter and --label are for columns" in refused("train", "labelled", "-m", "m.m3n", "--label", 0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a ||| b ||| 0-0\nc ||| d\n", "data, line 2: some lines have links"),
        ("a ||| b ||| 0-0\nc | d\n", "data, line 2: there is no ||| between blanks in this line, but |"),
        ("a ||| b ||| 0-1\n", "data, line 1: the link of word 0 with word 1 does not fit"),
        ("a ||| b\n\n", "data, line 2: this line is empty"),
        ("a ||| b\n", "gold.wa, line 2: the link of word 2 with word 2 does not fit"),
    ],
)
def test_bad_files_are_named_by_line(folder, text, message):
    (folder / "data").write_text(text)
    links = () if "0-" in text else ("--links", "gold.wa")
    assert message in refused("train", "data", "-m", "model.m3n", *links)


# predictions


def test_links_of_new_pairs(model, folder):
    assert ok("predict", "pairs", "-m", model) == LINES
    assert ok("predict", "labelled", "-m", model) == LINES  # what stands there is not looked at
    assert ok("predict", "pairs", "-m", model, "--output-format", "naacl").splitlines()[2] == "0002 1 1 S"
    assert ok("predict", "pairs", "-m", model, "--confidence").splitlines()[0] == "0-0:0.750000 1-1:0.750000"
    naacl = ok("predict", "pairs", "-m", model, "--confidence", "--output-format", "naacl")
    assert naacl.splitlines()[0] == "0001 1 1 S 0.750000"
    (folder / "packed.gz").write_bytes(gzip.compress(PAIRS.encode()))
    ok("predict", "packed.gz", "-m", model, "-o", "links.gz")
    assert gzip.decompress((folder / "links.gz").read_bytes()).decode() == LINES


def test_json_lines(model):
    lines = ok("predict", "pairs", "-m", model, "--json", "--confidence", "--marginals").splitlines()
    first, second = map(json.loads, lines)
    assert first == {
        "source": ["the", "house"], "target": ["la", "maison"], "links": [[0, 0], [1, 1]],
        "confidence": [0.75, 0.75], "marginals": [[0.75, 0.125], [0.125, 0.75]],
    }  # fmt: skip
    assert len(second["marginals"][0]) == 3
    assert list(json.loads(ok("predict", "pairs", "-m", model, "--json").splitlines()[0])) == [
        "source", "target", "links",
    ]  # fmt: skip


def test_what_predictions_do_not_have(model):
    assert "add --json" in refused("predict", "pairs", "-m", model, "--marginals")
    assert "leave --n-best away" in refused("predict", "pairs", "-m", model, "--n-best", 2)
    assert "choose one of pharaoh, naacl" in refused("predict", "pairs", "-m", model, "--output-format", "giza")
    said = refused("predict", "pairs", "-m", model, "--output-format", "naacl", "--json")
    assert "--json is a format, too" in said
    assert "pairs come" not in refused("predict", "found", "-m", model)
    assert "found, line 1: there is no ||| between blanks" in refused("predict", "found", "-m", model)


# scores


def test_scores_of_a_model(model):
    assert f"links: {SCORES}" in ok("evaluate", "labelled", "-m", model)
    found = json.loads(ok("evaluate", "pairs", "-m", model, "--links", "gold.wa", "--json"))["links"]
    assert (found["aer"], found["precision"], found["recall"], found["pairs"]) == (1 / 8, 1.0, 3 / 4, 2)
    assert "pairs has no links" in refused("evaluate", "pairs", "-m", model)


def test_two_files_of_links(folder):
    assert f"links: {SCORES}" in ok("evaluate", "found", "--links", "gold.wa")
    (folder / "gold").write_text("0-0 1-1\n0-0 1?1 1-2\n")
    assert f"links: {SCORES}" in ok("evaluate", "found", "--links", "gold")
    (folder / "short.wa").write_text("1 1 1\n")  # of the second pair, no links are known
    assert "2 pairs" in ok("evaluate", "found", "--links", "short.wa")
    assert "2 pairs" in ok("evaluate", "short.wa", "--links", "found")
    (folder / "short").write_text("0-0\n")
    assert "short ends after 1 lines, but there are 2 sentence pairs" in refused(
        "evaluate", "short", "--links", "gold.wa"
    )
    assert "'the' is no link" in refused("evaluate", "pairs", "--links", "gold.wa")


# without links


def test_alignment_of_plain_text(folder):
    result = run("align", "pairs", "-m", "hmm.m3n")
    assert result.stdout == LINES
    assert "2 pairs, 4 links" in result.stderr and "model: hmm.m3n" in result.stderr
    assert Diagonal.fits == [({"verbose": False}, X)]
    assert ok("align", "pairs", "--load", "hmm.m3n", "--quiet") == LINES
    assert ok("predict", "pairs", "-m", "hmm.m3n") == LINES
    assert f"links: {SCORES}" in ok("evaluate", "labelled", "-m", "hmm.m3n")
    assert len(Diagonal.fits) == 1


def test_what_it_has_learnt():
    ok("align", "pairs", "-q", "-m", "hmm.m3n", "--iterations", 3)
    said = ok("inspect", "hmm.m3n")
    assert "kind: HMMAligner\nsource words: 3\ntarget words: 4\npairs of words: 7\n" in said
    assert "log likelihoods: forward -2.5, backward -3.5" in said and "iterations 3" in said
    assert json.loads(ok("inspect", "hmm.m3n", "--json"))["log_likelihoods"]["backward"] == -3.5
    assert "has no labels" in refused("inspect", "hmm.m3n", "--label", "B")


def test_two_files_of_sentences(folder):
    (folder / "e").write_text("the house\nit rains\n")
    (folder / "f").write_text("la maison\nil pleut fort\n")
    assert ok("align", "e", "f", "-q") == LINES
    (folder / "f").write_text("la maison\n")
    assert "f ends after 1 lines, but e has more" in refused("align", "e", "f")


def test_settings_of_the_model():
    said = ok(
        "align", "pairs", "-q", "--kind", "model1", "--no-joint", "--iterations", 3, "--threshold", 0.1, "--jobs", 1
    )
    assert said == "0-0 0-1 1-0 1-1\n0-0 0-1 0-2 1-0 1-1 1-2\n"
    wanted = {"model": "model1", "joint": False, "iterations": 3, "threshold": 0.1, "n_jobs": 1}
    assert {name: Diagonal.fits[0][0][name] for name in wanted} == wanted
    ok("align", "pairs", "-q", "-m", "hmm.m3n")
    assert ok("align", "pairs", "-q", "--load", "hmm.m3n", "--threshold", 0.9) == "\n\n"


def test_formats_of_what_is_found():
    assert ok("align", "pairs", "-q", "--confidence").startswith("0-0:0.750000 1-1")
    assert ok("align", "pairs", "-q", "--output-format", "naacl").startswith("0001 1 1 S\n")
    assert json.loads(ok("align", "pairs", "-q", "--json").splitlines()[1])["target"] == ["il", "pleut", "fort"]


def test_what_does_not_go_together():
    ok("align", "pairs", "-q", "-m", "hmm.m3n")
    fits = len(Diagonal.fits)
    said = refused("align", "pairs", "--load", "hmm.m3n", "--kind", "model1")
    assert "--kind is for training, and --load names a model that is trained" in said
    assert "--model is for training" in refused("align", "pairs", "--load", "hmm.m3n", "-m", "other.m3n")
    assert "unknown --symmetrize 'all'" in refused("align", "pairs", "--symmetrize", "all")
    assert "take one" in refused("align", "pairs", "--symmetrize", "union", "--threshold", 0.5)
    assert "choose one of pharaoh, naacl" in refused("align", "pairs", "--output-format", "giza")
    assert "does not exist" in refused("align", "pairs", "-o", "nowhere/links")
    assert len(Diagonal.fits) == fits  # before any work


def test_both_directions_make_one_alignment():
    """Of the fakes, target words choose on the diagonal, and source words the last target word."""
    both = ("--symmetrize", "intersection"), ("--symmetrize", "union")
    assert [ok("align", "pairs", "-q", *method) for method in both] == ["1-1\n\n", "0-0 0-1 1-1\n0-0 0-2 1-1 1-2\n"]
