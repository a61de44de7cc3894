import gzip

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from m3n.io import Sentences
from m3n.io.columns import read_columns, write_columns
from m3n.io.files import DataFileError

TEXT = """
-DOCSTART- -X- O

The DT B-NP
Dog NN I-NP
barks\tVBZ   B-VP


Run VB B-VP
"""


def test_reads_sentences(tmp_path):
    (tmp_path / "plain").write_text(TEXT)
    (tmp_path / "packed").write_bytes(gzip.compress(TEXT.encode()))
    for name in ("plain", "packed"):
        read = read_columns(tmp_path / name)
        assert read.tokens == [[("The", "DT"), ("Dog", "NN"), ("barks", "VBZ")], [("Run", "VB")]]
        assert read.labels == [["B-NP", "I-NP", "B-VP"], ["B-VP"]]


@pytest.mark.parametrize(
    "text, message",
    [
        ("a DT X\nb NN\n", "line 2: expected 3 columns as in the lines before, found 2"),
        ("a X\n\nb X Y\n", "line 3: expected 2 columns as in the lines before, found 3"),
        ("word\n", "line 1: a token needs at least two columns"),
        ("a X\r\n\r\nb\u00a0c X Y\r\n", "line 3: expected 2 columns as in the lines before, found 3"),
        ("-DOCSTART- O\n\na X\nb\n", "line 4: expected 2 columns"),
        ("\n\n", "is empty: there is no token in it"),
        ("-DOCSTART- O\n\n", "is empty: there is no token in it"),
    ],
)
def test_malformed_files_are_named(tmp_path, text, message):
    (tmp_path / "file").write_text(text)
    with pytest.raises(DataFileError, match=message):
        read_columns(tmp_path / "file")


def test_a_damaged_file_is_named(tmp_path):
    (tmp_path / "latin").write_bytes("a X\n\nü X\n".encode("latin-1"))
    with pytest.raises(DataFileError, match=r"latin, line 3: this is not UTF-8 text"):
        read_columns(tmp_path / "latin")
    packed = gzip.compress(TEXT.encode())
    for name, content in {"cut": packed[:-12], "wrong": packed[:30] + b"x" + packed[31:]}.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(DataFileError, match=rf"{name}, line \d+: the gzip file is damaged or incomplete"):
            read_columns(tmp_path / name)
    with pytest.raises(FileNotFoundError, match="there is no data file"):
        read_columns(tmp_path / "nothing")


def test_files_without_labels(tmp_path):
    (tmp_path / "file").write_text("The\nDog\n\nRun\n")
    read = read_columns(tmp_path / "file", labelled=False)
    assert read.tokens == [[("The",), ("Dog",)], [("Run",)]]
    with pytest.raises(ValueError, match="these sentences have no labels"):
        _ = read.labels


def test_only_ascii_blanks_separate(tmp_path):
    """A no-break space belongs to its word; a byte order mark and other line ends do not matter."""
    (tmp_path / "file").write_bytes("\ufeffa\u00a0b\tX \r\n  語\u3000 Y\r\n \r\nc X".encode())
    read = read_columns(tmp_path / "file")
    assert read.tokens == [[("a\u00a0b",), ("語\u3000",)], [("c",)]]
    assert read.labels == [["X", "Y"], ["X"]]


def test_documents_end_a_sentence(tmp_path):
    (tmp_path / "file").write_text("a X\n-DOCSTART- O\nb X\n-DOCSTART-s X\n -DOCSTART-\n")
    assert read_columns(tmp_path / "file").tokens == [[("a",)], [("b",), ("-DOCSTART-s",)]]


@given(st.lists(st.lists(st.sampled_from(["a X", "b\tY", " c  X ", "-DOCSTART- X"]), max_size=4), max_size=5))
def test_the_same_as_reading_line_by_line(tmp_path_factory, sentences):
    lines = [line for sentence in sentences for line in [*sentence, ""]]
    path = tmp_path_factory.mktemp("columns") / "file"
    path.write_text("\n".join(["d Y", *lines]))
    expected = [[]]
    for line in ["d Y", *lines, ""]:
        fields = line.split()
        if fields and fields[0] != "-DOCSTART-":
            expected[-1].append(tuple(fields))
        elif expected[-1]:
            expected.append([])
    read = read_columns(path)
    assert read.tokens == [[(word,) for word, _ in sentence] for sentence in expected[:-1]]
    assert read.labels == [[label for _, label in sentence] for sentence in expected[:-1]]


def test_the_real_files(data_folder):
    """Counts that were taken from the files by other means."""
    read = read_columns(data_folder / "conll2000" / "train.txt.gz")
    assert len(read.tokens) == 8936
    assert sum(map(len, read.tokens)) == 211_727
    assert len({label for sentence in read.labels for label in sentence}) == 22
    entities = read_columns(data_folder / "conll2003" / "eng.testb.gz")
    assert (len(entities.tokens), sum(map(len, entities.tokens))) == (3453, 46_435)


def test_delimiters_keep_blanks(tmp_path):
    text = "\ufeffNew York\tDT\tB X\r\n a \tNN\tO\r\n \r\n-DOCSTART-\tx\r\n\r\nb\tVB\tO"
    (tmp_path / "tabs").write_bytes(text.encode())
    read = read_columns(tmp_path / "tabs", delimiter="\t")
    assert read.tokens == [[("New York", "DT"), (" a ", "NN")], [("b", "VB")]]
    assert read.labels == [["B X", "O"], ["O"]]
    (tmp_path / "bars").write_text("a b¦X\n\n\u00a0¦Y\n")
    read = read_columns(tmp_path / "bars", delimiter="¦")
    assert (read.tokens, read.labels) == ([[("a b",)], [("\u00a0",)]], [["X"], ["Y"]])


@pytest.mark.parametrize(
    "text, chosen, message",
    [
        ("a\tX\nb\t\n", {"delimiter": "\t"}, "line 2: column 2 is empty; write a sign such as _"),
        ("a,b,X\n\n ,,X\n", {"delimiter": ","}, "line 3: column 1 is empty"),
        ("a,X\n,\n", {"delimiter": ","}, "line 2: column 1 is empty"),
        ("a\tX\n\t\n", {"delimiter": "\t"}, "line 2: column 1 is empty"),
        ("a,X\nb,c,X\n", {"delimiter": ","}, "line 2: expected 2 columns as in the lines before, found 3"),
        ("a X\n", {"delimiter": "\t"}, r"line 1: a token needs at least two columns with '\\t' between them"),
        ("\n \n", {"delimiter": "\t"}, "file is empty: there is no token in it"),
        ("\na b X\n", {"label": 3}, "line 2: there is no column 3 for the label; the file has the columns 0 to 2"),
        ("a b X\n", {"label": -4}, "line 1: there is no column -4 for the label; .* or -3 to -1 from the end"),
    ],
)
def test_mistakes_with_settings_are_named(tmp_path, text, chosen, message):
    (tmp_path / "file").write_text(text)
    with pytest.raises(DataFileError, match=message):
        read_columns(tmp_path / "file", **chosen)


@pytest.mark.parametrize("delimiter", ["", "ab", "\n", "\r"])
def test_a_delimiter_is_one_character(tmp_path, delimiter):
    (tmp_path / "file").write_text("a X\n")
    with pytest.raises(ValueError, match="the delimiter must be one character"):
        read_columns(tmp_path / "file", delimiter=delimiter)
    with pytest.raises(ValueError, match="the delimiter must be one character"):
        write_columns(tmp_path / "other", Sentences.of([[("a",)]]), delimiter=delimiter)


@pytest.mark.parametrize(
    ("label", "tokens", "labels"),
    [
        (0, [("b", "X"), ("d", "Y")], ["a", "c"]),
        (1, [("a", "X"), ("c", "Y")], ["b", "d"]),
        (-2, [("a", "X"), ("c", "Y")], ["b", "d"]),
        (2, [("a", "b"), ("c", "d")], ["X", "Y"]),
    ],
)
def test_the_label_may_stand_anywhere(tmp_path, label, tokens, labels):
    (tmp_path / "file").write_text("a b X\nc d Y\n")
    read = read_columns(tmp_path / "file", label=label)
    assert (read.tokens, read.labels) == ([tokens], [labels])


def test_other_marks_of_documents(tmp_path):
    (tmp_path / "file").write_text("a X\n%[doc] 5 6\n-DOCSTART- O\n%[doc]s X\n\nb X\n%[doc]")
    read = read_columns(tmp_path / "file", document="%[doc]")
    assert read.tokens == [[("a",)], [("-DOCSTART-",), ("%[doc]s",)], [("b",)]]
    (tmp_path / "file").write_text("a X\n-DOCSTART- O\n")
    assert read_columns(tmp_path / "file", document=None).tokens == [[("a",), ("-DOCSTART-",)]]
    (tmp_path / "file").write_text("a,X\nmark\nmark,1,2\nb,X\nmark s,X\n")
    read = read_columns(tmp_path / "file", document="mark", delimiter=",")
    assert read.tokens == [[("a",)], [("b",), ("mark s",)]]


@pytest.mark.parametrize("delimiter", [" ", "\t", ","])
@settings(max_examples=25)
@given(data=st.data())
def test_round_trip(tmp_path_factory, delimiter, data):
    letters = "aü語\"'#-\u00a0\u2028" + ("" if delimiter == " " else " ")
    words = st.text(letters, min_size=1, max_size=4).filter(lambda word: word.strip(" "))
    tokens = data.draw(st.lists(st.lists(st.tuples(words, words), min_size=1, max_size=4), min_size=1, max_size=4))
    labels = [data.draw(st.lists(words, min_size=len(s), max_size=len(s))) for s in tokens]
    path = tmp_path_factory.mktemp("columns") / "file.gz"
    write_columns(path, Sentences.of(tokens), labels, delimiter=delimiter)
    read = read_columns(path, delimiter=None if delimiter == " " else delimiter)
    assert (read.tokens, read.labels) == (tokens, labels)
    write_columns(path, read, labels, labels, delimiter=delimiter)  # its own labels come before the others
    wide = read_columns(path, delimiter=None if delimiter == " " else delimiter, labelled=False)
    expected = [
        [(*token, label, label, label) for token, label in zip(s, own, strict=True)]
        for s, own in zip(tokens, labels, strict=True)
    ]
    assert wide.tokens == expected


@pytest.mark.parametrize(
    ("tokens", "extra", "chosen", "message"),
    [
        ([[("a b",)]], [], {}, r"column 0 has the value 'a b', which cannot be read again; .* delimiter=\"\\t\""),
        ([[("a", "")]], [], {}, "column 1 has the value '', which cannot be read again; empty values are not allowed"),
        ([[("a\tb",)]], [], {"delimiter": "\t"}, r"column 0 has the value 'a\\tb'"),
        ([[(" ",)]], [], {"delimiter": "\t"}, "column 0 has the value ' '"),
        ([[("a",)], []], [], {}, "sentence 1 is empty, which a column file cannot say; leave it out"),
        ([[("a",)]], [[]], {}, "there are 1 sentences but 0 lists of further values"),
        ([[("a",)], [("b",)]], [[["X"], []]], {}, "sentence 1 has 1 tokens but 0 further values"),
        ([[("a",)]], [[["X Y"]]], {}, "column 1 has the value 'X Y'"),
    ],
)
def test_what_cannot_be_written_is_named(tmp_path, tokens, extra, chosen, message):
    with pytest.raises(ValueError, match=message):
        write_columns(tmp_path / "file", Sentences.of(tokens), *extra, **chosen)
    assert not (tmp_path / "file").exists()


def test_tabs_in_every_line_separate_columns_alone(tmp_path):
    """A column may then hold blanks; padding around tabs does not matter."""
    (tmp_path / "file").write_text("New York\tB-LOC\n \t \nis\tO\n-DOCSTART-\n\nbig \t O\n")
    read = read_columns(tmp_path / "file")
    assert (read.tokens, read.labels) == ([[("New York",)], [("is",)], [("big",)]], [["B-LOC"], ["O"], ["O"]])
    assert read.delimiter == read[:2].delimiter == read.with_column(str.lower).delimiter == "\t"
    write_columns(tmp_path / "again", read)
    assert (tmp_path / "again").read_text() == "New York\tB-LOC\n\nis\tO\n\nbig\tO\n\n"
    for text, tokens, delimiter in (
        ("a\tb\tX\n", [[("a", "b")]], "\t"),
        ("a b\tX\nc d X\n", [[("a", "b"), ("c", "d")]], " "),  # not in every line
        ("a b\t\tX\n", [[("a", "b")]], "\t"),  # an empty column says that tabs are padding
    ):
        (tmp_path / "file").write_text(text)
        read = read_columns(tmp_path / "file")
        assert (read.tokens, read.delimiter) == (tokens, delimiter)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("New York\tB-LOC\nis\tO\n\nbig O\n", "line 4: expected 2 columns between tabs as in other lines, found 1"),
        ("a b c\tO\nis\tVB\tO\n", "line 2: expected 2 columns between tabs as in other lines, found 3; put a tab"),
        ("New York O\nis\tO\nbig city\tO\n", "line 1: expected 2 columns between tabs as in other lines, found 1"),
    ],
)
def test_tabs_that_are_missing_are_named(tmp_path, text, message):
    (tmp_path / "file").write_text(text)
    with pytest.raises(DataFileError, match=message):
        read_columns(tmp_path / "file")
