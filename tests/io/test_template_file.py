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
        ("w=%x[0,0]", "line 3: a template begins with U .*, B .* or \\* .*, a comment with #; got 'w=%x"),
        ("U01:%y[0,0]", r"line 3: unknown macro '%y\[0,0\]'; write %x\[row,column\], such as %x\[-1,0\]"),
        ("U01:%x[0,0]/%x[0]", r"line 3: unknown macro '%x\[0\]'"),
        ("U01:%x[0,-1]", r"line 3: unknown macro '%x\[0,-1\]'"),
        ("U01:%x[0,0", r"line 3: unknown macro '%x\[0,0'"),
        ("U01:100%", "line 3: unknown macro '%'"),
        ("B02:%t", "line 3: unknown macro '%t'"),
        (
            "U01:%t[0,0]",
            r"line 3: template 'U01:%t\[0,0\]': %t needs a regular expression in quotes, such as %t\[0,0,\"",
        ),
        ("U01:%x[*1,0]", r"line 3: '%x\[\*1,0\]' reads a distance from a column"),
        ('U01:%x[0,0,"a"]', "line 3: template .*: %x takes row and column"),
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


WAPITI = """*
U:Wrd=%x[ 0,0]   # the word
u:low=%X[-1,0]
b:first=%x[@1,0]
*:Suf=%m[ 0,0,".?.?$"]
*:Caps=%t[-1,0,"^\\u"]#comment
"""


def test_a_template_of_wapiti(tmp_path):
    (tmp_path / "file").write_text(WAPITI)
    templates = Templates(read_template(tmp_path / "file"))
    assert templates.syntax == "wapiti"
    assert templates.patterns[1] == "U:Wrd=%x[ 0,0]"
    assert [(t.pattern[:5], t.pair) for t in templates.parsed] == [
        ("*", False), ("U:Wrd", False), ("u:low", False), ("b:fir", True), ("*:Suf", False), ("*:Suf", True),
        ("*:Cap", False), ("*:Cap", True),
    ]  # fmt: skip
    (tmp_path / "file").write_text("u:a=%x[0,0]\nu:a=%x[0,0] # again\n")
    with pytest.raises(DataFileError, match="line 2: the template of line 1 comes again"):
        read_template(tmp_path / "file")
