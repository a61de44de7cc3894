import sys

import pandas
import pytest

from m3n.io import Sentences, from_frame, read_columns, to_frame

FRAME = pandas.DataFrame(
    {
        "id": ["s1", "s1", "s2", "s1"],
        "word": ["The", "dog", "Run", "NA"],
        "length": [3, 3, 3, 2],
        "tag": ["DT", "NN", "VB", "NN"],
    },
    index=[7, 7, 8, 9],
)


def test_frames_and_back():
    read = from_frame(FRAME, sentence="id", label="tag")
    assert read.tokens == [[("The", "3"), ("dog", "3")], [("Run", "3")], [("NA", "2")]]
    assert read.labels == [["DT", "NN"], ["VB"], ["NN"]]
    frame = to_frame(read, columns=["word", "length"])
    assert list(frame.columns) == ["sentence", "word", "length", "label"]
    assert frame["sentence"].tolist() == [0, 0, 1, 2]
    again = from_frame(frame, sentence="sentence", label="label")
    assert (again.tokens, again.labels) == (read.tokens, read.labels)


def test_chosen_columns():
    read = from_frame(FRAME, ["tag", "word"], sentence="id")
    assert read.tokens == [[("DT", "The"), ("NN", "dog")], [("VB", "Run")], [("NN", "NA")]]
    assert read.label is None
    assert list(to_frame(read).columns) == ["sentence", "column_0", "column_1"]


def test_numbers_of_sentences():
    frame = pandas.DataFrame({"n": [1.0, 1.0, 2.0], "w": pandas.Categorical(["a", "b", "a"])})
    assert from_frame(frame, sentence="n").tokens == [[("a",), ("b",)], [("a",)]]


@pytest.mark.parametrize("column", ["id", "word", "length", "tag"])
def test_missing_values_are_named(column):
    frame = FRAME.reset_index(drop=True)
    frame.loc[2, column] = None
    message = rf"row 2 \(counted from 0\) has no value in column '{column}'; .* keep_default_na=False"
    with pytest.raises(ValueError, match=message):
        from_frame(frame, sentence="id", label="tag")


def test_mistakes_are_named(monkeypatch):
    for chosen in ({"sentence": "no"}, {"sentence": "id", "label": "no"}, {"sentence": "id", "columns": ["no"]}):
        with pytest.raises(ValueError, match=r"the frame has no column 'no'; its columns are \['id', 'word'"):
            from_frame(FRAME, **chosen)
    with pytest.raises(ValueError, match="no column is left for the tokens"):
        from_frame(FRAME[["id", "tag"]], sentence="id", label="tag")
    with pytest.raises(ValueError, match="the frame is empty"):
        from_frame(FRAME[:0], sentence="id")
    sentences = Sentences.of([[("a", "b")]])
    with pytest.raises(ValueError, match="there are 2 columns but 1 names"):
        to_frame(sentences, columns=["word"])
    with pytest.raises(ValueError, match="must differ from one another, from 'sentence' and from 'label'"):
        to_frame(sentences, columns=["word", "sentence"])
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="to_frame needs pandas; install it with: pip install pandas"):
        to_frame(sentences)


def test_the_real_file(data_folder):
    read = read_columns(data_folder / "conll2003" / "eng.testb.gz")
    again = from_frame(to_frame(read), sentence="sentence", label="label")
    assert again.tokens == read.tokens
    assert again.labels == read.labels
