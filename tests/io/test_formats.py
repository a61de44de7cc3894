"""What all readers have in common, and which of them is taken."""

import gzip
import io

import numpy as np
import pytest

from m3n.io import Sentences, detect, read_sequences
from m3n.io.files import DataFileError
from m3n.io.formats import FORMATS

LETTERS = "".join("\t".join(["1", a, "-1", "1", str(t), "0", *"01" * 64]) + "\t\n" for t, a in enumerate("ab", start=1))
FILES = {
    "columns": "The DT B-NP\ndög NN I-NP\n\nRun VB B-VP\n",
    "letters": LETTERS,
    "attributes": "B-NP\tw=The\tlen:3\nI-NP\tw=dög\tlen:3\n\nB-VP\tw=Run\n",
    "svm_hmm": "B-NP qid:1 1:1 3:0.5\nI-NP qid:1\nB-VP qid:2 2:1 # dög\n",
    "json_lines": '{"tokens": ["The", "dög"], "labels": ["B-NP", "I-NP"]}\n{"tokens": ["Run"], "labels": ["B-VP"]}\n',
}
LABELS = [["B-NP", "I-NP"], ["B-VP"]]


def content(data):
    """The inputs as something that can be compared."""
    if isinstance(data.X, Sentences):
        return data.X.tokens
    return [np.asarray(x.toarray() if hasattr(x, "toarray") else x).tolist() for x in data.X]


@pytest.fixture(params=FORMATS)
def kind(request):
    return request.param


def test_all_formats(tmp_path, kind):
    (tmp_path / "file").write_text(FILES[kind])
    data = read_sequences(tmp_path / "file")
    assert data.format == detect(tmp_path / "file") == kind
    assert data.y == ([["a", "b"]] if kind == "letters" else LABELS)
    assert content(data) == {
        "columns": [[("The", "DT"), ("dög", "NN")], [("Run", "VB")]],
        "letters": [[[0, 1] * 64] * 2],
        "attributes": [[{"w=The": 1, "len": 3}, {"w=dög": 1, "len": 3}], [{"w=Run": 1}]],
        "svm_hmm": [[[1, 0, 0.5], [0, 0, 0]], [[0, 1, 0]]],
        "json_lines": [["The", "dög"], ["Run"]],
    }[kind]  # fmt: skip


def test_line_ends_marks_and_packing_do_not_matter(tmp_path, kind):
    path = tmp_path / "file"
    path.write_text(FILES[kind])
    expected = read_sequences(path)
    plain = FILES[kind].encode()
    for other in (
        b"\xef\xbb\xbf" + plain,
        plain.replace(b"\n", b"\r\n"),
        plain.rstrip(b"\n"),
        plain + b"\n\n",
        gzip.compress(plain),
    ):
        path.write_bytes(other)
        data = read_sequences(path)
        assert (content(data), data.y, data.format) == (content(expected), expected.y, kind)


@pytest.mark.parametrize("named", [True, False])
def test_standard_input(tmp_path, kind, named, monkeypatch):
    (tmp_path / "file").write_text(FILES[kind])
    expected = read_sequences(tmp_path / "file")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(FILES[kind].encode())))
    data = read_sequences("-", kind if named else None)
    assert (content(data), data.y, data.format) == (content(expected), expected.y, kind)


def test_unreadable_content_is_named(tmp_path, kind, monkeypatch):
    wrong = FILES[kind].replace("dög", "dog").encode() + b"\n\xff\n"
    number = 1 + wrong.count(b"\n", 0, wrong.index(b"\xff"))
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(wrong)))
    with pytest.raises(
        DataFileError, match=f"^standard input, line {number}: this is not UTF-8 text; convert the file"
    ):
        read_sequences("-", kind)
    (tmp_path / "empty").write_text("\n")
    with pytest.raises(DataFileError, match=r"empty is empty: there is no (token|letter|sequence) in it"):
        read_sequences(tmp_path / "empty", kind)
    with pytest.raises(DataFileError, match="empty is empty"):
        read_sequences(tmp_path / "empty")
    with pytest.raises(FileNotFoundError, match=r"there is no data file '.*nothing'"):
        read_sequences(tmp_path / "nothing", kind)


def test_settings_of_columns(tmp_path):
    (tmp_path / "file").write_text("B-NP,New York\n%\nO,a=b\n")
    data = read_sequences(tmp_path / "file", delimiter=",", label=0, document="%")
    assert (data.X.tokens, data.y) == ([[("New York",)], [("a=b",)]], [["B-NP"], ["O"]])
    (tmp_path / "file").write_text("word\nother\n")
    data = read_sequences(tmp_path / "file", labelled=False)
    assert (data.X.tokens, data.y, data.format) == ([[("word",), ("other",)]], None, "columns")


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("\n\nThe DT B-NP\n", "columns"),
        ("The\tDT\tB-NP\n", "columns"),
        ("# # B-NP\n", "columns"),  # the pound sign of the newspaper
        ("# # B-NP\n3 CD O\n", "columns"),
        ("{ ( O\n", "columns"),
        ("a=b\tNN\tO\n", "columns"),
        ("# a comment\n\n# another\n1 qid:3 1:2\n", "svm_hmm"),
        ("O\tw[0]=a\tlen:0.5\tx\\:y:1e-3\n", "attributes"),
        ("B-NP\tw=a\t__BOS__\n", "attributes"),
        ("NN\tw=a\t__BOS__\nVB\tw=b\tw-1=a\tlong\nNN\tw=b\t__EOS__\n", "attributes"),
        ("sunny\tt:21.5\th:0.4\nrainy\tt:12\th:.9\n", "attributes"),
        ("NN\tw=a\tlong\nVB\tw=b\tlong\tlast\n", "attributes"),  # the numbers of fields differ
        ("B-NP\tw=a\tlong\nO\tw=b\tshort\n", "attributes"),  # labels first
        ("a\tlemma=a\tB-NP\nb\tlemma=b\tO\n", "columns"),  # labels last
        ("@weight:2\nNN\tw=a\tlong\n", "attributes"),
        ("at\tat\tIN\n12:30\t12:30\tCD\na=b\ta=b\tSYM\nit\tit\tPRP\nis\tbe\tVBZ\n", "columns"),  # times and formulas
        ('{"tokens": ["a"], \n', "columns"),
        ('{"tokens": ["a" "b"]}\n', "json_lines"),
    ],
)
def test_formats_are_told_by_content(tmp_path, text, kind):
    (tmp_path / "file").write_text(text)
    assert detect(tmp_path / "file") == kind


def test_formats_are_told_by_content_even_behind_the_first_line(tmp_path):
    """What the first line leaves open, the others settle."""
    same = "NN\tw=a\tlong\n"
    (tmp_path / "file").write_text(50 * same + "\n" + "NN\tw=a\n")
    assert detect(tmp_path / "file") == "attributes"
    (tmp_path / "file").write_text(50 * same)
    with pytest.raises(DataFileError, match=r"two ways: columns with the label last \('long' in .* first \('NN'\)"):
        detect(tmp_path / "file")
    with pytest.raises(DataFileError, match="say which by --format columns or --format attributes"):
        read_sequences(tmp_path / "file")
    assert read_sequences(tmp_path / "file", "columns").y[0][0] == "long"
    assert read_sequences(tmp_path / "file", "attributes").y[0][0] == "NN"
    assert read_sequences(tmp_path / "file", expected="attributes").format == "attributes"
    assert read_sequences(tmp_path / "file", label=0).y[0][0] == "NN"
    (tmp_path / "file").write_text("B-NP\tthe\tDT\nO\truns\tVB\n")  # which of the ends is the label?
    with pytest.raises(DataFileError, match="two ways"):
        detect(tmp_path / "file")


def test_what_was_decided_is_said(tmp_path):
    for kind, text in FILES.items():
        (tmp_path / "file").write_text(text)
        assert read_sequences(tmp_path / "file").why
        assert read_sequences(tmp_path / "file", kind).why == ""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("\nword\n", "line 2: neither letter.data"),
        ("\n \n", "is empty"),
    ],
)
def test_unknown_formats_are_refused(tmp_path, text, message):
    (tmp_path / "file").write_text(text)
    with pytest.raises(DataFileError, match=message):
        detect(tmp_path / "file")


@pytest.mark.parametrize(
    ("text", "kind", "remedy"),
    [
        ("# sent_id = 1\n1\tThe\tthe\tDET\tDT\t_\t2\tdet\t_\t_\n", "conllu", "read_conllu"),
        ("1\tThe\tthe\tDET\tDT\t_\t2\tdet\t_\t_\n", "conllu", "read_conllu"),
        ("1-2\tdon't\t_\t_\t_\t_\t_\t_\t_\t_\n", "conllu", "read_conllu"),
        ("(S (NP (PRP it)) (VP (VBZ rains)))\n", "brackets", "read_brackets"),
        ("( (S\n    (NP (PRP it))\n    (VP (VBZ rains))))\n", "brackets", "read_brackets"),
    ],
)
def test_trees_are_recognised_and_sent_to_their_readers(tmp_path, text, kind, remedy):
    (tmp_path / "file").write_text(text)
    assert detect(tmp_path / "file") == kind
    with pytest.raises(DataFileError, match=remedy):
        read_sequences(tmp_path / "file")


@pytest.mark.parametrize("text", ["( PUNCT O\nword NN O\n", "(S NP O\n", "1\ttwo\tO\n", "# NN O\na DT O\n"])
def test_columns_that_look_a_little_like_trees(tmp_path, text):
    (tmp_path / "file").write_text(text)
    assert detect(tmp_path / "file") == "columns"


def test_mistakes_are_named(tmp_path):
    with pytest.raises(ValueError, match="unknown format 'csv'; choose one of columns, letters, attributes, svm_hmm"):
        read_sequences(tmp_path / "file", "csv")
    with pytest.raises(ValueError, match="standard input can be read only once; name its format"):
        detect("-")


def test_the_real_files(data_folder):
    assert detect(data_folder / "conll2000" / "train.txt.gz") == "columns"
    assert detect(data_folder / "conll2003" / "eng.train.gz") == "columns"
    data = read_sequences(data_folder / "ocr" / "letter.data.gz")
    assert (data.format, len(data.X), data.X[0].shape, "".join(data.y[0])) == ("letters", 6877, (9, 128), "ommanding")
