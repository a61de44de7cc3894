import gzip

import pytest

from m3n.io import DataFileError, ParseTree, read_brackets, write_brackets

RAIN = ParseTree("S", (ParseTree("NP", (ParseTree("PRP", ("It",)),)), ParseTree("VP", (ParseTree("VBZ", ("rains",)),))))


def write(folder, text):
    path = folder / "trees.mrg"
    path.write_text(text)
    return path


def test_trees_over_several_lines_and_several_in_one(tmp_path):
    path = write(
        tmp_path, "( (S\n  (NP-SBJ (PRP It))\n  (VP (VBZ rains))) )\n\n(S (NP (PRP It)) (VP (VBZ rains))) (X (UH oh))"
    )
    assert read_brackets(path) == [RAIN, RAIN, ParseTree("X", (ParseTree("UH", ("oh",)),))]


def test_functions_and_empty_elements_can_be_kept(tmp_path):
    text = "(S (NP-SBJ-1 (-NONE- *)) (VP=2 (VBZ rains) (-LRB- -LRB-) (NP (-NONE- T-1))))\n(X (-NONE- 0))\n"
    path = write(tmp_path, text)
    assert [str(tree) for tree in read_brackets(path)] == ["(S (VP (VBZ rains) (-LRB- -LRB-)))"]
    assert "".join(f"{tree}\n" for tree in read_brackets(path, plain=False)) == text


@pytest.mark.parametrize("name", ["trees.txt", "trees.txt.gz"])
def test_what_is_written_is_read(name, tmp_path):
    write_brackets(tmp_path / name, [RAIN, str(RAIN), ("S", [("NP", [("PRP", "It")]), ("VP", [("VBZ", ["rains"])])])])
    assert read_brackets(tmp_path / name) == [RAIN] * 3
    if name.endswith("gz"):
        assert gzip.decompress((tmp_path / name).read_bytes()).decode() == f"{RAIN}\n" * 3


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(S (NN a))\n\n(S (NP\n(NN b)\n", "line 3: this bracket is never closed.*4 lines"),
        ("(S (NN a))\n(S (NN b)))\n", "line 2: a bracket is closed that was never opened"),
        ("(S (NN a))\nb\n", "line 2: 'b' is in no bracket"),
        ("(S\n (NN)\n)", r"line 2: the bracket \(NN\) holds nothing"),
        ("(S\n (NP a (NN b))\n)", r"line 2: the bracket \(NP a \(NN b\)\) must hold either one word or other brackets"),
        ("(S (NN a b))", "line 1: .* either one word"),
        ("(S ((NN a)))", "line 1: .* has no label"),
        ("( (S (NN a)) (S (NN b)))", "line 1: .* has no label"),
        ("()", "line 1: .* has no label"),
        ("\n", "is empty: there is no tree in it"),
    ],
)
def test_bad_files_are_named_by_line(text, message, tmp_path):
    path = write(tmp_path, text)
    with pytest.raises(DataFileError, match=message) as caught:
        read_brackets(path)
    assert str(path) in str(caught.value)


def test_bad_texts():
    for text, message in (("(S (NN a)", "never closed"), ("(A (B c)) (A (B c))", "there are 2 trees"), ("", "0 trees")):
        with pytest.raises(ValueError, match=message):
            ParseTree.parse(text)


@pytest.mark.parametrize("tree", [("N N", ["a"]), ("NN", ["(a"]), ("NN", [""])])
def test_what_cannot_be_read_again_is_not_written(tree, tmp_path):
    with pytest.raises(ValueError, match="cannot be written in brackets"):
        write_brackets(tmp_path / "trees", [tree])


def test_deep_trees_have_words_all_the_same():
    text = "(A " * 400 + "(B c)" + ")" * 400
    assert ParseTree.parse(text).words() == ["c"]
