import pytest

from m3n.features import Templates
from m3n.io import DataFileError, read_template

TEXT = """# Unigram
U00:%x[-2,0]
U05:%x[-1,0]/%x[0,0]
U:bias

# Bigram
B
"""


def test_reads_a_template(tmp_path):
    (tmp_path / "file").write_bytes(b"\xef\xbb\xbf" + TEXT.replace("\n", "\r\n").encode())
    assert read_template(tmp_path / "file") == TEXT
    assert Templates(read_template(tmp_path / "file")).patterns == ("U00:%x[-2,0]", "U05:%x[-1,0]/%x[0,0]", "U:bias")
    (tmp_path / "file").write_text("  B01:%x[0,1]\nU01:%x[ +1 , 0 ]")
    assert read_template(tmp_path / "file") == "B01:%x[0,1]\nU01:%x[ +1 , 0 ]\n"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("w=%x[0,0]", "line 3: a template begins with U .* or B .*, a comment with #; got 'w=%x"),
        ("U01:%y[0,0]", r"line 3: unknown macro '%y\[0,0\]'; write %x\[row,column\], such as %x\[-1,0\]"),
        ("U01:%x[0,0]/%x[0]", r"line 3: unknown macro '%x\[0\]'"),
        ("U01:%x[0,-1]", r"line 3: unknown macro '%x\[0,-1\]'"),
        ("U01:%x[0,0", r"line 3: unknown macro '%x\[0,0'"),
        ("U01:100%", "line 3: unknown macro '%'"),
        ("B02:%t", "line 3: unknown macro '%t'"),
        ("U00:%x[0,0]", "line 3: the template of line 1 comes again; remove one of them"),
    ],
)
def test_malformed_lines_are_named(tmp_path, line, message):
    (tmp_path / "file").write_text(f"U00:%x[0,0]\n\n{line}\nB\n")
    with pytest.raises(DataFileError, match=f"file, {message}"):
        read_template(tmp_path / "file")


def test_a_file_without_templates(tmp_path):
    (tmp_path / "file").write_text("# nothing\n\n")
    with pytest.raises(DataFileError, match="file is empty: there is no template in it"):
        read_template(tmp_path / "file")
