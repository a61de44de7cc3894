import re
from collections import Counter
from itertools import chain

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from m3n.features import CHUNKING, Templates, word_templates
from m3n.features.wapiti import form_of
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


def test_every_line_of_crfpp_that_begins_with_b_is_for_pairs():
    lines = ["U00:%x[0,0]", "B%x[0,0]", "Bx%x[0,0]", "B-1:%x[0,0]", "B", "B01", "Bigram"]
    for patterns in (lines, "\n".join(lines)):
        templates = Templates(patterns)
        assert templates.syntax == "crf++"
        assert [template.pattern for template in templates.parsed if template.pair] == lines[1:4]
        assert [template.pattern for template in templates.parsed if not template.pair] == lines[:1]
    mine = Templates(["w=%x[0,0]", "Before=%x[-1,0]", "B01:%x[0,0]"])  # names of our own
    assert [template.pair for template in mine.parsed] == [False, False, True]
    assert Templates(lines, syntax="m3n").pair_width == Templates(mine.patterns, syntax="m3n").pair_width == 0
    with pytest.raises(ValueError, match="unknown syntax 'crf'; choose one of"):
        Templates(lines, syntax="crf")


def rex(expression, text):
    """Wapiti's regular expressions by backtracking, after its manual: the ends of the first match, or None."""
    classes = {
        "a": str.isalpha, "d": str.isdigit, "l": str.islower, "u": str.isupper, "w": str.isalnum, "s": str.isspace,
        "p": lambda c: c.isascii() and c.isprintable() and not c.isalnum() and c != " ",
    }  # fmt: skip

    def one(item, letter):
        if item == "." or item[0] != "\\":
            return item in (".", letter)
        if item[1].lower() in classes:
            return (letter.isascii() and classes[item[1].lower()](letter)) == item[1].islower()
        return item[1] == letter

    def here(rest, place):
        if not rest:
            return place
        if rest == "$":
            return place if place == len(text) else None
        item = rest[:2] if rest[0] == "\\" else rest[0]
        after = rest[len(item) :]
        fits = place < len(text) and one(item, text[place])
        if after[:1] == "*":
            shortest = here(after[1:], place)
            return shortest if shortest is not None or not fits else here(rest, place + 1)
        if after[:1] == "?":
            longer = here(after[1:], place + 1) if fits else None
            return longer if longer is not None else here(after[1:], place)
        return here(after, place + 1) if fits else None

    for start in [0] if expression[:1] == "^" else range(len(text) + 1):
        end = here(expression.removeprefix("^"), start)
        if end is not None:
            return start, end
    return None


ITEMS = st.sampled_from(
    ["a", "B", ".", "\\d", "\\a", "\\w", "\\l", "\\u", "\\p", "\\s", "\\D", "\\U", "\\P", "\\.", "\\*", "^", "$"]
)
EXPRESSIONS = st.builds(
    lambda start, items, end: start + "".join(map("".join, items)) + end,
    st.sampled_from(["", "^"]),
    st.lists(st.tuples(ITEMS, st.sampled_from(["", "", "*", "?"])), max_size=4),
    st.sampled_from(["", "$"]),
).filter(lambda text: not re.match(r"\^?(\^[*?])", text))


@given(EXPRESSIONS, st.text("aBb1.-* $^", max_size=6))
def test_expressions_of_wapiti(expression, text):
    found = rex(expression, text)
    assert form_of("t", expression)(text) == ("true" if found else "false")
    assert form_of("m", expression)(text) == (text[slice(*found)] if found else "")
    assert form_of("M", expression)(text) == (text[slice(*found)].lower() if found else "")


@pytest.mark.parametrize(
    ("expression", "text", "match"),
    [
        ("^.?.?.?", "Zürich", "Zür"), (".?.?$", "Zürich", "ch"), ("^\\u*$", "USA", "USA"), ("^\\u*$", "UsA", ""),
        ("a*", "aaa", ""), ("a*$", "aaa", "aaa"), ("\\d\\d*-", "x12-3", "12-"), ("a?ab", "ab", "ab"),
        ("x^$", "x^", "x^"),
    ],
)  # fmt: skip
def test_examples_of_matches(expression, text, match):
    assert form_of("m", expression)(text) == match


@pytest.mark.parametrize("line", ['u:%t[0,0,"*a"]', 'u:%t[0,0,"a**"]', 'u:%m[0,0,"?"]'])
def test_expressions_that_are_none(line):
    with pytest.raises(ValueError, match=r"template .* has a [*?] after nothing; write"):
        Templates(line)


WAPITI = [
    "*", "U:Wrd=%x[ 0,0]", "u:low=%X[-1,0]/%x[1,1]", "b:first=%x[@1,0]%x[@-1,1]", '*:Suf=%m[ 0,0,".?$"]',
    '*:Caps=%t[-1,0,"\\u"]', 'u:far=%x[-6,0]%x[+5,0]%M[-1,0,"^."]%T[1,0,"\\d"]', "b",
    "u:none=%x[@0,0]%x[@3,0]%x[@-2,0]",
]  # fmt: skip


def wapiti(sentence, t, pattern):
    """A pattern of a token, written out: what Wapiti calls an observation."""

    def value(match):
        kind, at, row, column, expression = match.groups()
        place = int(row) if at else t + int(row)
        if at:
            place += len(sentence) if place < 0 else -1
        if place < 0:
            text = f"_x-{-place}" if place > -5 else "_x-#"
        elif place >= len(sentence):
            beyond = place - len(sentence) + 1
            text = f"_x+{beyond}" if beyond < 5 else "_x+#"
        else:
            text = sentence[place][int(column)]
        found = None if expression is None else rex(expression, text)
        if kind in "tT":
            text = "true" if found else "false"
        elif kind in "mM":
            text = text[slice(*found)] if found else ""
        return text.lower() if kind.isupper() else text

    return re.sub(r'%(\w)\[ ?(@?)([+-]?\d+),(\d+)(?:,"([^"]*)")?\]', value, pattern)


VALUES = st.sampled_from(["a", "Bc", "1", "Ü"])
TEXTS = st.lists(st.lists(st.tuples(VALUES, VALUES), min_size=1, max_size=4), min_size=1, max_size=4)


@given(TEXTS, TEXTS)
def test_patterns_of_wapiti_are_a_plain_loop(train, new):
    """Attributes of the same texts may come from different values; their texts say what Wapiti would see."""
    templates = Templates("\n".join(WAPITI))
    matrix = templates.fit_transform(Sentences.of(train))
    tokens, pairs = ([line for line in WAPITI if line[0] in kinds] for kinds in ("uU*", "b*"))
    pairs = [line for line in pairs if "%" in line]
    for sentences, rows in ((train, matrix), (new, templates.transform(Sentences.of(new)))):
        places = [(s, t) for s in sentences for t in range(len(s))]
        expected = [{wapiti(s, t, line) for line in tokens} for s, t in places]
        assert rows_of(rows, templates.names) == [row & set(templates.names) for row in expected]
        matrix = templates.transform_pairs(Sentences.of(sentences))
        edges = rows_of(matrix, templates.pair_names) if matrix.shape[0] else []
        expected = [{wapiti(s, t, line) for line in pairs} for s, t in places if t > 0]
        assert edges == [row & set(templates.pair_names) for row in expected]


@given(SENTENCES, st.integers(1, 3))
def test_rare_attributes_are_left_out(sentences, least):
    """Counted as crf_learn -f does: how often an attribute occurs, whatever the label."""
    patterns = [*PATTERNS, "B0:%x[0,0]"]
    templates = Templates(patterns, syntax="m3n")
    matrix = templates.fit_transform(Sentences.of(sentences), min_freq=least)
    expected = spelled(sentences, PATTERNS, "symbols")
    counts = Counter(chain.from_iterable(expected))
    frequent = {name for name, count in counts.items() if count >= least}
    assert set(templates.names) == frequent
    assert rows_of(matrix, templates.names) == [row & frequent for row in expected]
    assert rows_of(templates.transform(Sentences.of(sentences)), templates.names) == [
        row & frequent for row in expected
    ]
    pairs = Counter(f"B0:{token[0]}" for sentence in sentences for token in sentence[1:])
    assert set(templates.pair_names) == {name for name, count in pairs.items() if count >= least}
