import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from m3n.io import DataFileError, read_attributes, write_attributes

TEXT = r"""

B-NP	w[0]=The	cap	len:3
I-NP	url=http\://a.b\\c:0.5	a\b

O
B\:X	a	a:2	a:-0.5		b:
"""


def test_reads_sequences(tmp_path):
    (tmp_path / "file").write_text(TEXT)
    read = read_attributes(tmp_path / "file")
    first = [{"w[0]=The": 1.0, "cap": 1.0, "len": 3.0}, {"url=http://a.b\\c": 0.5, "a\\b": 1.0}]
    assert read == ([first, [{}, {"a": 2.5, "b": 1.0}]], [["B-NP", "I-NP"], ["O", "B:X"]])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("O\ta\n\n\ta\n", "line 3: the line begins with a tab; write the label first, or _ if there is none"),
        ("O\ta\nO\tw=10:30:00\n", r"line 2: the weight '30:00' of attribute 'w=10' is not a number; write \\: for a"),
        ("O\tw:nan\n", "line 1: the weight 'nan' of attribute 'w' is not a number"),
        ("O\t:3\n", "line 1: the attribute ':3' has no name before its weight"),
        ("O\ta\n@cost:2\nO\ta\n", "line 2: '@cost:2' is a declaration, which m3n does not know; remove it"),
        ("@weight:x\nO\ta\n", "line 1: '@weight:x': the weight of a sequence is a number that is not negative"),
        ("@weight:-1\nO\ta\n", "line 1: '@weight:-1': the weight of a sequence is a number"),
        ("O\ta\nB:X\ta\n", r"line 2: the label 'B:X' has a colon; write \\: for it"),
    ],
)
def test_malformed_lines_are_named(tmp_path, text, message):
    (tmp_path / "file").write_text(text)
    with pytest.raises(DataFileError, match="file, " + message):
        read_attributes(tmp_path / "file")


NAMES = st.text("ab:\\= ü@#", min_size=1, max_size=5).filter(str.strip)
NUMBERS = st.one_of(st.just(1.0), st.floats(allow_nan=False, allow_infinity=False))
LABELS = NAMES.filter(lambda label: label[0] != "@")
TOKENS = st.lists(st.tuples(st.dictionaries(NAMES, NUMBERS, max_size=3), LABELS), min_size=1, max_size=3)


@settings(max_examples=40)
@given(st.lists(TOKENS, min_size=1, max_size=3))
def test_round_trip(tmp_path_factory, drawn):
    path = tmp_path_factory.mktemp("attributes") / "file.gz"
    X = [[token for token, _ in sequence] for sequence in drawn]
    y = [[label for _, label in sequence] for sequence in drawn]
    write_attributes(path, X, y)
    assert read_attributes(path) == (X, y)
    write_attributes(path, X)
    assert read_attributes(path) == (X, None)


def test_other_tokens(tmp_path):
    """Lists of attributes, and the values that a tagger takes."""
    token = {"word": "a:b", "on": True, "off": False, "none": None, "two": 2}
    write_attributes(tmp_path / "file", [[token, ["x", "y:"]]], [["O", 3]])
    assert (tmp_path / "file").read_text() == "O\tword=a\\:b\ton\ttwo:2.0\n3\tx\ty\\:\n\n"


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ([[{"a": 1}], [{"a\tb": 1}]], None, r"sequence 1, position 0: the format cannot hold 'a\\tb'"),
        ([[{"": 1}]], None, "sequence 0, position 0: the format cannot hold ''"),
        ([[{"a": float("inf")}]], None, "sequence 0, position 0: the weight of attribute 'a' is inf"),
        ([[{}, {}]], [["O", "@x"]], "sequence 0, position 1: CRFsuite takes the label '@x' for a declaration"),
        ([[{}]], [["a\nb"]], r"sequence 0, position 0: the format cannot hold 'a\\nb'"),
        ([[{}], []], None, "sequence 1 is empty, which this format cannot say; leave it out"),
        ([[{}]], [], "X has 1 sequences but y has 0"),
        ([[{}]], [["O", "O"]], "sequence 0 has 1 positions in X but 2 labels in y"),
    ],
)
def test_what_cannot_be_written_is_named(tmp_path, X, y, message):
    with pytest.raises(ValueError, match=message):
        write_attributes(tmp_path / "file", X, y)
    assert not (tmp_path / "file").exists()


def test_weights_of_sequences(tmp_path):
    """A declaration counts for its sequence, wherever it stands; the last one counts."""
    (tmp_path / "file").write_text("@weight:2\nO\ta\nO\tb\n\nO\ta\n\nO\ta\n@weight:0.5\n@weight:3\tB\tc\n")
    X, y, weights = read_attributes(tmp_path / "file", weights=True)
    assert weights == [2.0, 1.0, 3.0]
    assert y == [["O", "O"], ["O"], ["O", "B"]]
    assert read_attributes(tmp_path / "file") == (X, y)
    write_attributes(tmp_path / "again", X, y, weights)
    assert read_attributes(tmp_path / "again", weights=True) == (X, y, weights)
    write_attributes(tmp_path / "again", X, y)
    assert read_attributes(tmp_path / "again", weights=True) == (X, y, None)
    with pytest.raises(ValueError, match="X has 3 sequences but sample_weight has 1 numbers"):
        write_attributes(tmp_path / "again", X, y, [1.0])
