import gzip

import pytest

from m3n.io import DataFileError, read_conllu, write_conllu
from m3n.io.conllu import find_circle

TEXT = """\
# sent_id = one
# text = Don't go home
1-2	Don't	_	_	_	_	_	_	_	_
1	Do	do	AUX	VB	Mood=Imp|Number=Sing	3	aux	3:aux	_
2	n't	not	PART	RB	_	3	advmod	3:advmod	_
3	go	go	VERB	VB	VerbForm=Fin	0	root	0:root	_
3.1	there	there	ADV	RB	_	_	_	3:dep	_
4	home	home	ADV	RB	_	3	advmod	3:advmod	SpaceAfter=No

# sent_id = two
1	Yes	yes	INTJ	UH	_	0	root	0:root	_

"""


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "a.conllu"
    file.write_text(TEXT)
    return file


def test_words_and_trees(path):
    bank = read_conllu(path)
    assert len(bank) == 2
    assert [word["form"] for word in bank[0]] == ["Do", "n't", "go", "home"]
    assert bank[0][0] == {"form": "Do", "lemma": "do", "upos": "AUX", "xpos": "VB", "feats": "Mood=Imp|Number=Sing"}
    assert bank.trees == [[(3, "aux"), (3, "advmod"), (0, "root"), (3, "advmod")], [(0, "root")]]
    assert [len(sentence) for sentence in bank] == [4, 1]
    assert bank[1:].trees == bank.trees[1:]


def test_everything_else_stays_in_its_place(path, tmp_path):
    bank = read_conllu(path)
    write_conllu(tmp_path / "b.conllu", bank)
    assert (tmp_path / "b.conllu").read_text() == TEXT
    other = bank.with_trees([[(4, "x"), (4, "x"), (4, "x"), (0, "root")], [0]])
    write_conllu(tmp_path / "c.conllu.gz", other)
    written = gzip.decompress((tmp_path / "c.conllu.gz").read_bytes()).decode()
    assert "\t4\tx\t3:aux\t_\n" in written
    assert "3.1\tthere\tthere\tADV\tRB\t_\t_\t_\t3:dep\t_\n" in written
    assert written.endswith("1\tYes\tyes\tINTJ\tUH\t_\t0\t_\t0:root\t_\n\n")
    assert bank.trees[0][0] == (3, "aux")  # the first one is unchanged


def test_without_trees_heads_are_not_looked_at(tmp_path):
    file = tmp_path / "plain.conllu"
    file.write_text("1\tYes\t_\tINTJ\t_\t_\t_\t_\t_\t_\n\n")
    assert not read_conllu(file, trees=False).has_trees
    assert read_conllu(file, trees=False)[0][0]["form"] == "Yes"
    with pytest.raises(DataFileError, match=r"plain\.conllu, line 1: this word has no head"):
        read_conllu(file)


LINE = "{}\tw\tw\tX\tX\t_\t{}\tdep\t_\t_\n"


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["# comment\n", LINE.format(1, 0), LINE.format(2, 3)], r"line 3: this word has the head '3'.*1\.\.2"),
        ([LINE.format(1, 0), LINE.format(2, "x")], "line 2: this word has the head 'x'"),
        ([LINE.format(1, -1)], "line 1: this word has the head '-1'"),
        (
            [LINE.format(1, 0), "\n", LINE.format(1, 2), LINE.format(2, 1)],
            "line 3: word 1 is its own head, through 1 -> 2 -> 1",
        ),
        ([LINE.format(1, 1)], "line 1: word 1 is its own head, through 1 -> 1"),
        ([LINE.format(1, 0), LINE.format(2, 0)], "line 2: word 2 is a second root beside word 1; single_root=False"),
        ([LINE.format(1, 0), LINE.format(3, 1)], "line 2: word 3 stands where word 2 should be"),
        (["1\tw\t0\n"], "line 1: 3 columns between tabs"),
        ([LINE.format("x", 0)], "line 1: this sentence is not CoNLL-U"),
        (["# only a comment\n"], "line 1"),
        ([], "is empty: there is no sentence in it"),
    ],
)
def test_bad_files_are_named_by_line(tmp_path, lines, message):
    file = tmp_path / "bad.conllu"
    file.write_text("".join(lines))
    with pytest.raises(DataFileError, match=message):
        read_conllu(file)


def test_several_roots_on_demand(tmp_path):
    file = tmp_path / "two.conllu"
    file.write_text(LINE.format(1, 0) + LINE.format(2, 0))
    assert read_conllu(file, single_root=False).trees == [[(0, "dep"), (0, "dep")]]


def test_trees_that_do_not_fit(path):
    bank = read_conllu(path)
    with pytest.raises(ValueError, match="2 sentences but 1 trees"):
        bank.with_trees([[0]])
    with pytest.raises(ValueError, match="sentence 0 has 4 words, but its tree has 1"):
        bank.with_trees([[0], [0]])


@pytest.mark.parametrize(
    ("heads", "circle"), [([2, 3, 0], []), ([2, 1, 0], [1, 2]), ([0, 3, 4, 2], [2, 3, 4]), ([1], [1])]
)
def test_circles(heads, circle):
    assert find_circle(heads) == circle
