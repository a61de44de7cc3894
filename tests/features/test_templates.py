import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from m3n.features import CHUNKING, Templates, word_templates
from m3n.io import Sentences, read_columns

PATTERNS = (
    "bias",
    "U00:%x[0,0]",
    "U01:%x[-2,1]",
    "w[1]=%x[1,0]",
    "U02:%x[-1,0]/%x[0,0]",
    "U03:%x[0,0]+%x[ 2 , 1 ]+%x[-3,0]!",
)
LETTERS = st.sampled_from(["a", "b", "ß", "語", "%x[0,0]"])
SENTENCES = st.lists(st.lists(st.tuples(LETTERS, LETTERS), max_size=5), min_size=1, max_size=6).filter(any)


def spelled(sentences, patterns, padding):
    """The attributes of every token, written out by a plain loop."""
    rows = []
    for sentence in sentences:
        for t in range(len(sentence)):
            row = [attribute(sentence, t, pattern, padding) for pattern in patterns]
            if padding == "marks":
                row += ["__BOS__"] if t == 0 else []
                row += ["__EOS__"] if t == len(sentence) - 1 else []
            rows.append({text for text in row if text is not None})
    return rows


def attribute(sentence, t, pattern, padding):
    """One template of one token; None if it points beyond the sentence and nothing stands there."""
    beyond = []

    def value(match):
        place = t + int(match[1])
        if 0 <= place < len(sentence):
            return sentence[place][int(match[2])]
        beyond.append(place)
        return f"_B{place}" if place < 0 else f"_B+{place - len(sentence) + 1}"

    text = re.sub(r"%x\[ ?([+-]?\d+) ?, ?(\d+) ?\]", value, pattern)
    return None if beyond and padding != "symbols" else text


def rows_of(matrix, names):
    """The same, from a matrix of ones."""
    assert np.all(matrix.data == 1)
    return [{names[k] for k in row} for row in np.split(matrix.indices, matrix.indptr[1:-1])]


@pytest.mark.parametrize("padding", ["symbols", "marks", "none"])
@given(SENTENCES, SENTENCES)
def test_the_same_as_a_plain_loop(padding, train, new):
    templates = Templates(PATTERNS, padding)
    matrix = templates.fit_transform(Sentences.of(train))
    names, expected = templates.names, spelled(train, PATTERNS, padding)
    assert rows_of(matrix, names) == expected
    assert matrix.shape == (len(expected), len(names)) == (len(expected), templates.width)
    assert set(names) == set().union(*expected)
    assert len(names) == len(set(names))
    known = [row & set(names) for row in spelled(new, PATTERNS, padding)]
    assert rows_of(templates.transform(Sentences.of(new)), names) == known


def test_matrices_are_canonical():
    """Rows are sorted and without duplicates; SciPy is told so and must not be lied to."""
    matrix = Templates(PATTERNS).fit_transform(Sentences.of([[("a", "b"), ("c", "d"), ("a", "b")]]))
    assert matrix.has_canonical_format
    assert all(np.all(np.diff(row) > 0) for row in np.split(matrix.indices, matrix.indptr[1:-1]))
    assert matrix.indices.dtype == matrix.indptr.dtype == np.int32


def test_what_crfpp_writes_beyond_the_sentence():
    templates = Templates("U00:%x[-2,0]/%x[2,0]\n")
    matrix = templates.fit_transform(Sentences.of([[("a",), ("b",), ("c",)], [("d",)]]))
    rows = rows_of(matrix, templates.names)
    assert rows == [{"U00:_B-2/c"}, {"U00:_B-1/_B+1"}, {"U00:a/_B+2"}, {"U00:_B-2/_B+2"}]


def test_a_template_file():
    text = """
    # Unigram
    U00:%x[-1,0]
    U01:%x[0,0]/%x[0,1]

    # Bigram
    B
    """
    assert Templates(text).patterns == ("U00:%x[-1,0]", "U01:%x[0,0]/%x[0,1]")
    assert Templates(text) == Templates(["U00:%x[-1,0]", "U01:%x[0,0]/%x[0,1]"])
    assert Templates(text) != Templates(text, "none")


def test_transform_learns_nothing():
    templates = Templates(["%x[0,0]"], "none")
    templates.fit_transform(Sentences.of([[("a",)]]))
    assert templates.transform(Sentences.of([[("b",), ("a",)]])).toarray().tolist() == [[0], [1]]
    assert templates.names == ["a"]
    again = templates.fit_transform(Sentences.of([[("b",)]]))
    assert (templates.names, again.toarray().tolist()) == (["b"], [[1]])


def test_unfitted_copies_have_no_names():
    assert CHUNKING.names == []
    templates = CHUNKING.unfitted()
    templates.fit_transform(Sentences.of([[("a", "X")]]))
    assert templates.names == ["w[0]=a", "pos[0]=X", "__BOS__", "__EOS__"]
    assert templates.unfitted().names == []
    assert CHUNKING.width == 0
    with pytest.raises(ValueError, match="call fit_transform first"):
        CHUNKING.transform(Sentences.of([[("a", "X")]]))


def test_a_part_of_many_sentences():
    """New sentences may share the values of a much larger collection."""
    sentences = Sentences.of([[(f"w{i}", "A"), (f"w{i + 1}", "B")] for i in range(50)])
    templates = CHUNKING.unfitted()
    whole = templates.fit_transform(sentences)
    np.testing.assert_array_equal(templates.transform(sentences[7:9]).toarray(), whole[14:18].toarray())


@pytest.mark.parametrize(
    ("patterns", "padding", "message"),
    [
        (["B01:%x[0,0]", "B"], "none", "at least one template of single tokens"),
        (["U00:%x[0]"], "none", r"template 'U00:%x\[0\]' has a macro that is not of the form %x\[row,column\]"),
        (["U00:%m[0,0,'a']"], "none", "has a macro that is not of the form"),
        (["a", "a"], "none", "no template may come twice"),
        (["a", "__BOS__"], "marks", "no template may come twice"),
        ("# nothing\n", "none", "at least one template"),
        (["a"], "zeros", "unknown padding 'zeros'; choose one of"),
    ],
)
def test_bad_templates_are_refused(patterns, padding, message):
    with pytest.raises(ValueError, match=message):
        Templates(patterns, padding)


@pytest.mark.parametrize("padding", ["symbols", "marks", "none"])
def test_pairs(padding):
    """A pair of labels has the attributes of its second token; first tokens have none."""
    patterns = ["U0:%x[0,0]", "B", "B0:%x[0,0]", "B1:%x[-1,0]/%x[1,1]"]
    templates, plain = Templates(patterns, padding), Templates(["P" + p for p in patterns[2:]], padding)
    train, new = (
        Sentences.of(x) for x in ([[("a", "x"), ("b", "y"), ("a", "y")], [("b", "x")]], [[("a", "x"), ("a", "y")]])
    )
    assert templates.fit_transform(train).shape == (4, templates.width)
    plain.fit_transform(train)
    assert not plain.has_pairs
    assert templates.pair_width == len(templates.pair_names)
    for sentences, inner in ((train, [1, 2]), (new, [1])):
        rows, wanted = templates.transform_pairs(sentences).toarray(), plain.transform(sentences).toarray()[inner]
        found = [{"P" + templates.pair_names[k] for k in np.flatnonzero(row)} for row in rows]
        names = [{plain.names[k] for k in np.flatnonzero(row)} for row in wanted]
        assert found == [{n for n in row if n[1] == "B" and n[1:] in templates.pair_names} for row in names]
    assert templates.transform_pairs(train).nnz > 2


def test_forms_of_words():
    patterns = ["l=%x[0,0:lower]", "s=%x[-1,0:suffix2]|%x[0,1]", "b=%x[0,0:brief]", "d=%x[ 0 , 0 : digits ]"]
    templates = Templates(patterns, "none")
    train = Sentences.of([[("The", "D"), ("Dogs", "N"), ("B-52", "N")]])
    templates.fit_transform(train)
    assert templates.names == [
        "l=the", "l=dogs", "l=b-52", "s=he|N", "s=gs|N", "b=Xx", "b=X-d", "d=The", "d=Dogs", "d=B-00"
    ]  # fmt: skip
    new = templates.transform(Sentences.of([[("DOGS", "N"), ("F-16", "N")]])).toarray()
    found = [{templates.names[k] for k in np.flatnonzero(row)} for row in new]
    assert found == [{"l=dogs"}, {"b=X-d"}]
    with pytest.raises(ValueError, match=r"asks for the form 'stem'; choose one of lower, shape, brief"):
        Templates(["%x[0,0:stem]"])


@pytest.mark.parametrize("columns", [1, 3])
def test_word_templates(columns):
    templates = word_templates(columns)
    rows = templates.fit_transform(Sentences.of([[("Rome", "a", "b")[:columns], ("fell", "c", "d")[:columns]]]))
    assert rows.shape == (2, templates.width)
    assert {"w[0]=Rome", "suffix3=ell", "brief[0]=Xx", "__EOS__"} <= set(templates.names)
    assert ("c2[-1]=b" in templates.names) == (columns == 3)


def test_missing_columns_are_named():
    templates = Templates(["U00:%x[0,0]", "U01:%x[0,2]"])
    with pytest.raises(ValueError, match=r"template 'U01:%x\[0,2\]' reads column 2, .* are 0 to 1"):
        templates.fit_transform(Sentences.of([[("a", "b")]]))
    templates.fit_transform(Sentences.of([[("a", "b", "c")]]))
    with pytest.raises(ValueError, match="reads column 2"):
        templates.transform(Sentences.of([[("a", "b")]]))


def test_chunking_is_the_template_of_crfsuites_example(data_folder):
    """The first sentences against a loop; and the number of attributes that CRFsuite's own example finds."""
    sentences = read_columns(data_folder / "conll2000" / "train.txt.gz")
    templates = CHUNKING.unfitted()
    matrix = templates.fit_transform(sentences)
    assert len(templates.patterns) == 19
    assert templates.width == 335_674
    names = templates.names
    some = sentences.tokens[:40]
    assert rows_of(matrix[: sum(map(len, some))], names) == spelled(some, CHUNKING.patterns, "marks")
    assert "w[-1]|w[0]=the|pound" in names
    assert "pos[-2]|pos[-1]|pos[0]=NN|IN|DT" in names
