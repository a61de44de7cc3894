"""The real aligners from the command line: plain text, links made by hand, saved models, and a report."""

import json

import numpy as np
import pytest

import m3n
from m3n.io import Alignment, read_alignments, write_alignments, write_parallel
from m3n.io.parallel import sizes_of
from tests.cli.test_trees import ok

WORDS = 12


def sentences(many, seed):
    """Words e0, e1, ... of a sentence and their translations f0, f1, ..., two neighbours swapped, and the links."""
    random = np.random.default_rng(seed)
    pairs, links = [], []
    for _ in range(many):
        words = random.choice(WORDS, size=random.integers(2, 7), replace=False).tolist()
        order = list(range(len(words)))
        k = int(random.integers(len(words) - 1))
        order[k : k + 2] = order[k + 1], order[k]
        pairs.append(([f"e{word}" for word in words], [f"f{words[i]}" for i in order]))
        links.append(Alignment(frozenset((i, j) for j, i in enumerate(order))))
    return pairs, links


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("align")
    write_parallel(folder / "plain.txt", sentences(80, 0)[0])
    write_parallel(folder / "labelled.txt", *sentences(20, 1))
    pairs, links = sentences(10, 2)
    write_parallel(folder / "new.txt", pairs)
    write_alignments(folder / "new.wa", links, "naacl")
    ok("align", folder / "plain.txt", "-m", folder / "hmm.m3n", "-o", folder / "plain.links", "--jobs", 1)
    return folder


def test_a_model_without_links_is_the_same_in_python(folder):
    pairs, _ = sentences(80, 0)
    model = m3n.load(folder / "hmm.m3n")
    assert read_alignments(folder / "plain.links", sizes_of(pairs)) == [Alignment.of(y) for y in model.predict(pairs)]
    for command in (("predict", "-m"), ("align", "--load")):
        ok(command[0], folder / "new.txt", command[1], folder / "hmm.m3n", "-o", folder / "found")
        found = json.loads(ok("evaluate", folder / "found", "--links", folder / "new.wa", "--json"))["links"]
        assert found["pairs"] == 10
        assert found["aer"] < 0.1
    assert "kind: HMMAligner\nsource words: 12\ntarget words: 12\n" in ok("inspect", folder / "hmm.m3n")


def test_links_made_by_hand(folder):
    settings = ("--translations", folder / "hmm.m3n", "--jobs", 1, "--report", folder / "report.html")
    test = ("--test", folder / "new.txt", "--test-links", folder / "new.wa")
    said = ok("train", folder / "labelled.txt", "-m", folder / "word.m3n", *settings, *test)
    assert "20 pairs with" in said and "Certificate: objective" in said and "new.txt: AER 0.00" in said
    assert 'id="alignments"' in (folder / "report.html").read_text()
    said = ok("evaluate", folder / "new.txt", "-m", folder / "word.m3n", "--links", folder / "new.wa")
    assert "links: AER 0.00" in said
    lines = ok("predict", folder / "new.txt", "-m", folder / "word.m3n", "--json", "--marginals").splitlines()
    first = json.loads(next(line for line in lines if line.startswith("{")))
    assert np.shape(first["marginals"]) == (len(first["source"]), len(first["target"]))
    assert "WordAligner" in ok("inspect", folder / "word.m3n")
