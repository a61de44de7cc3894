import gzip

import numpy as np
import pytest

from m3n.io.files import DataFileError
from m3n.io.letters import read_letters


def line(letter="a", word=1, position=1, fold=0, pixels=None, end="\t\n"):
    """As the original writes it, with a tab before the line's end."""
    return "\t".join(["7", letter, "-1", str(word), str(position), str(fold), *(pixels or ["0"] * 128)]) + end


WORDS = [("cat", 0), ("dog", 1), ("a", 4), ("zebra", 1)]


@pytest.fixture
def written(tmp_path):
    random, drawn, text = np.random.default_rng(0), [], ""
    for number, (word, fold) in enumerate(WORDS, start=1):
        for position, letter in enumerate(word, start=1):
            drawn.append(random.integers(2, size=128))
            text += line(letter, number, position, fold, list(map(str, drawn[-1])))
    (tmp_path / "letter.data").write_text(text)
    (tmp_path / "letter.data.gz").write_bytes(gzip.compress(text.encode()))
    return tmp_path, np.array(drawn)


@pytest.mark.parametrize("name", ["letter.data", "letter.data.gz"])
def test_reads_words(written, name):
    folder, pixels = written
    read = read_letters(folder / name)
    np.testing.assert_array_equal(read.pixels, pixels)
    assert ["".join(chr(97 + k) for k in word) for word in read.words] == [word for word, _ in WORDS]
    assert read.folds.tolist() == [0, 1, 4, 1]
    assert read.lengths.tolist() == [3, 3, 1, 5]


def test_reads_chosen_folds(written):
    folder, pixels = written
    read = read_letters(folder / "letter.data", folds=[1, 4])
    assert read.folds.tolist() == [1, 4, 1]
    assert read.offsets.tolist() == [0, 3, 4, 9]
    np.testing.assert_array_equal(read.pixels, pixels[3:])
    with pytest.raises(DataFileError, match=r"letter.data has no words in fold \[2\]; its folds are \[0, 1, 4\]"):
        read_letters(folder / "letter.data", folds=[1, 2])


@pytest.mark.parametrize(
    "second, message",
    [
        ("word label\n", "expected 134 columns between tabs, found 1"),
        (line(pixels=["0"] * 127), "expected 134 columns between tabs, found 133"),
        (line(pixels=["0"] * 129), "expected 134 columns between tabs, found 135"),
        (line(pixels=["2"] + ["0"] * 127), "pixels and must be 0 or 1"),
        (line(pixels=["00"] + ["0"] * 126 + [""], end="0\n"), "pixels and must be 0 or 1"),
        (line(letter="é"), "must be a letter from a to z, got 'é'"),
        (line(letter="ab"), "must be a letter from a to z, got 'ab'"),
        (line(letter=""), "must be a letter from a to z, got ''"),
        (line(position="x"), "position and fold must be numbers, got 'x' and '0'"),
        (line(position=3), "position 3 of word 1 follows position 1; a letter is missing"),
        (line(position=2, fold=5), "word 1 is in fold 0 and in fold 5"),
        (line(word=2) + line(word=1, position=2), "word 1 goes on here after other words"),
    ],
)
def test_malformed_lines_are_named(tmp_path, second, message):
    path = tmp_path / "letter.data"
    path.write_text(line() + second)
    number = 1 + second.count("\n")
    with pytest.raises(DataFileError, match=f"letter.data, line {number}: .*{message}".replace("[", r"\[")):
        read_letters(path)


def test_an_empty_file(tmp_path):
    (tmp_path / "empty").write_text("\n")
    with pytest.raises(DataFileError, match="empty is empty: there is no letter in it"):
        read_letters(tmp_path / "empty")


def test_the_real_file(data_folder):
    read = read_letters(data_folder / "ocr" / "letter.data.gz")
    same = np.load(data_folder / "ocr" / "letters.npz")
    np.testing.assert_array_equal(read.pixels, same["pixels"])
    np.testing.assert_array_equal(read.labels, same["labels"])
    np.testing.assert_array_equal(read.offsets, same["offsets"])
    np.testing.assert_array_equal(read.folds, same["folds"])
