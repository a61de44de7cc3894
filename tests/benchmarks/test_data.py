"""What contests are held on: files, attributes, scores, weights by name."""

import numpy as np
import pytest

from benchmarks import datasets, scores
from benchmarks.datasets import chunking, generated
from benchmarks.weights import Weights


@pytest.fixture(autouse=True)
def no_real_data(monkeypatch):
    monkeypatch.delenv("M3N_DATA", raising=False)


def test_attributes_lie_inside_the_sentence():
    rows = [["The", "DT", "B-NP"], ["dog", "NN", "I-NP"]]
    first, last = chunking.attributes(rows)
    assert first == [
        "w[0]=The", "w[1]=dog", "w[0]|w[1]=The|dog", "pos[0]=DT", "pos[1]=NN", "pos[0]|pos[1]=DT|NN", "__BOS__",
    ]  # fmt: skip
    assert "w[-1]|w[0]=The|dog" in last and last[-1] == "__EOS__"


def test_interior_tokens_have_all_attributes_of_the_template():
    rows = [[f"w{t}", f"p{t}", "O"] for t in range(5)]
    middle = chunking.attributes(rows)[2]
    assert len(middle) == len(chunking.TEMPLATES) == 19
    assert "pos[-1]|pos[0]|pos[1]=p1|p2|p3" in middle


def test_generated_corpus_is_reproducible_and_varied():
    first, again, other = (list(generated.corpus(20, seed)) for seed in (1, 1, 2))
    assert first == again != other
    labels = {row[-1] for rows in first for row in rows}
    assert {"B-NP", "I-NP", "B-VP", "O"} <= labels
    tags = {row[1] for rows in first for row in rows if row[-1] == "B-NP"}
    assert len(tags) > 3  # the noise that makes words matter


def test_a_prepared_corpus_is_cut_and_survives_the_request(tmp_path):
    data = datasets.Chunking.prepare(tmp_path, limit=30)
    assert len(data.gold()) == 30
    assert len(list(data.sentences(data.sample))) == 20
    assert datasets.dataset(data.request()) == data


def test_images_as_attributes(tmp_path):
    data = datasets.Words.prepare(tmp_path, limit=12)
    images, letters = datasets.ocr.arrays(data.train)
    (rows, labels), *others = data.sentences(data.train)
    assert len(others) == 11 and labels == list(map(str, letters[0]))
    assert "first" in rows[0] and "last" in rows[-1] and "first" not in rows[-1]
    marks = (t in (0, len(rows) - 1) for t in range(len(rows)))
    assert [len(row) for row in rows] == [int(image.sum()) + mark for image, mark in zip(images[0], marks, strict=True)]


def test_few_words_swaps_the_roles(tmp_path):
    data = datasets.FewWords.prepare(tmp_path, limit=None)
    assert len(datasets.ocr.arrays(data.train)[0]) < len(datasets.ocr.arrays(data.test)[0])


@pytest.mark.parametrize(
    ("labels", "chunks"),
    [
        (["B-NP", "I-NP", "O", "B-VP"], [(0, 2, "NP"), (3, 4, "VP")]),
        (["B-NP", "B-NP", "I-VP"], [(0, 1, "NP"), (1, 2, "NP"), (2, 3, "VP")]),
        (["O", "I-PP", "I-PP"], [(1, 3, "PP")]),
        (["O"], []),
    ],
)
def test_chunks(labels, chunks):
    assert list(scores.chunks(labels)) == chunks


def test_chunk_f1_counts_whole_chunks():
    gold, found = [["B-NP", "I-NP", "B-VP"]], [["B-NP", "O", "B-VP"]]
    assert scores.chunk_f1(gold, gold) == 100
    assert scores.chunk_f1(gold, found) == pytest.approx(50)  # one of two right, either way


def test_error_rate():
    assert scores.error_rate([["a", "b"], ["c"]], [["a", "x"], ["c"]]) == pytest.approx(100 / 3)


@pytest.mark.parametrize("transitions", [{}, {("A", "B"): -2.0}])
def test_weights_survive_their_file(tmp_path, transitions):
    weights = Weights({("w=é|x", "A"): 0.1, ("w=y", "B"): np.pi}, transitions)
    weights.save(tmp_path / "weights.npz")
    assert Weights.load(tmp_path / "weights.npz") == weights
