"""Models of CRFsuite, read from its files and from its text dumps, against CRFsuite's own answers."""

import numpy as np
import pytest

import m3n
from m3n.compat import ImportedModelError, convert
from m3n.compat.crfsuite import Weights, dump_of, load_dump, parse_binary, parse_dump
from m3n.compat.crfsuite_writer import model_bytes
from tests.compat.sentences import sentences

pycrfsuite = pytest.importorskip("pycrfsuite")

ODD = [
    "a:b",
    "tab\there",
    "日本",
    "x --> N",
    "x --> N --> N: 1.0",
    "}",
    " spaces ",
    "line\nend",
    "other\u2028end",
    "7: x",
]
DUMP = """FILEHEADER = {
  magic: lCRF
}

LABELS = {
      0: N
      1: V
      2: rare
}

ATTRIBUTES = {
      0: w:a
}

TRANSITIONS = {
  (1) N --> V: 0.500000
}

STATE_FEATURES = {
  (0) w:a --> V: -1.250000
}

"""


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A trained model, as a file and as a dump, with its tagger and new sequences."""
    random = np.random.default_rng(0)
    X, y = sentences(random, 30)
    trainer = pycrfsuite.Trainer(verbose=False, params={"c2": 0.1})
    for xseq, yseq in zip(X, y, strict=True):
        trainer.append(xseq, yseq)
    trainer.append([[name] for name in ODD], ["N", "V"] * (len(ODD) // 2))
    folder = tmp_path_factory.mktemp("crfsuite")
    path = folder / "model.crfsuite"
    trainer.train(str(path))
    tagger = pycrfsuite.Tagger()
    tagger.open(str(path))
    tagger.dump(str(folder / "dump.txt"))
    return path, folder / "dump.txt", tagger, [*sentences(random, 30)[0], [[name] for name in ODD], [["unknown"]]]


@pytest.mark.parametrize(("which", "accuracy"), [(0, 1e-12), (1, 1e-6)])
@pytest.mark.parametrize("saved", [False, True])
def test_predicts_what_crfsuite_predicts(model, which, accuracy, saved, tmp_path):
    *paths, theirs, new = model
    ours = load_dump(paths[which])
    if saved:
        ours.save(tmp_path / "model.m3n")
        ours = m3n.load(tmp_path / "model.m3n")
    assert ours.classes_.tolist() == theirs.labels()
    assert ours.predict(new) == [theirs.tag(xseq) for xseq in new]
    for xseq, found in zip(new, ours.predict_marginals(new), strict=True):
        theirs.set(xseq)
        expected = [[theirs.marginal(label, t) for label in theirs.labels()] for t in range(len(xseq))]
        np.testing.assert_allclose(found, expected, atol=accuracy)
    assert ours.certificate_ is None and ours.status_ is None and ours.lam_ is None and ours.trace_ == []


def test_the_file_and_its_dump_agree(model):
    path, dump, *_ = model
    exact, rounded = load_dump(path), load_dump(dump)
    assert list(exact.reader_.vectorizer.vocabulary) == list(rounded.reader_.vectorizer.vocabulary)
    assert set(ODD) <= set(exact.reader_.vectorizer.vocabulary)
    np.testing.assert_allclose(exact.coef_.toarray(), rounded.coef_.toarray(), atol=1e-6)
    np.testing.assert_allclose(exact.transitions_, rounded.transitions_, atol=1e-6)
    np.testing.assert_array_equal(load_dump(dump.read_bytes().decode()).transitions_, rounded.transitions_)


def test_what_has_no_weight_scores_0():
    tagger = load_dump(DUMP)
    assert tagger.classes_.tolist() == ["N", "V", "rare"]
    np.testing.assert_array_equal(tagger.transitions_, [[0, 0.5, 0], [0, 0, 0], [0, 0, 0]])
    np.testing.assert_array_equal(tagger.coef_.toarray(), [[0, -1.25, 0]])
    assert tagger.predict([[{"w": "b"}, ["w:b"]]]) == [["N", "V"]]
    assert tagger.predict_marginals([[{"w": "a"}]])[0][0] == pytest.approx(np.exp([0, -1.25, 0]) / (2 + np.exp(-1.25)))


def test_line_ends_of_windows():
    np.testing.assert_array_equal(load_dump(DUMP.replace("\n", "\r\n")).transitions_, load_dump(DUMP).transitions_)


def test_a_dump_without_any_weights():
    empty = Weights(["N"], [], [], [])
    assert parse_dump(dump_of(empty), "text") == empty
    assert load_dump(dump_of(empty)).predict([[["a"]]]) == [["N"]]


def test_dumps_are_written_as_crfsuite_writes_them(model):
    text = model[1].read_bytes().decode()
    ours = dump_of(parse_dump(text, "text"))
    assert ours[ours.index("LABELS") :] == text[text.index("LABELS") :]


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("  (1) N --> V: 0.500000", "  (1) N --> X: 0.500000", r"dump.txt, line 16: expected .*N --> X"),
        ("  (0) w:a --> V: -1.250000", "  (0) w:a --> V: heavy", r"dump.txt, line 20: expected .*heavy"),
        ("  (0) w:a --> V: -1.250000", "  (0) w:c --> V: 1.0\n  (0) w:a --> V: 1.0", r"dump.txt, line 20: expected"),
        ("      0: w:a", "      nothing", r"dump.txt, line 12: expected '0: name'"),
        ("\nATTRIBUTES", "\nnonsense\nATTRIBUTES", r"dump.txt, line 11: 'nonsense' is no part"),
        (DUMP[DUMP.index("  (0)") :], "", r"dump.txt, line 20: the dump ends inside of STATE_FEATURES"),
        (DUMP[DUMP.index("STATE") :], "", r"dump.txt, line 19: the dump has no STATE_FEATURES"),
    ],
)
def test_errors_name_file_and_line(before, after, message, tmp_path):
    path = tmp_path / "dump.txt"
    path.write_text(DUMP.replace(before, after))
    with pytest.raises(ImportedModelError, match=message):
        convert(path)


def test_damaged_files(model, tmp_path):
    content = model[0].read_bytes()
    for size in (10, 100, len(content) // 2, len(content) - 1):
        (tmp_path / "cut.crfsuite").write_bytes(content[:size])
        with pytest.raises(ImportedModelError, match=r"cut.crfsuite is damaged or incomplete"):
            load_dump(tmp_path / "cut.crfsuite")
    (tmp_path / "dump.txt").write_bytes(DUMP.replace("rare", "r\xe4re").encode("latin-1"))
    with pytest.raises(ImportedModelError, match=r"dump.txt, line 8: this is not UTF-8"):
        load_dump(tmp_path / "dump.txt")
    with pytest.raises(FileNotFoundError, match="there is no model file"):
        load_dump(tmp_path / "missing")


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A model of some hundred bytes, apart from the empty hash tables, and its dump."""
    folder = tmp_path_factory.mktemp("small")
    trainer = pycrfsuite.Trainer(verbose=False)
    trainer.append([["a", "b"], ["b"]], ["N", "V"])
    trainer.train(str(folder / "model"))
    tagger = pycrfsuite.Tagger()
    tagger.open(str(folder / "model"))
    tagger.dump(str(folder / "dump"))
    return (folder / "model").read_bytes(), (folder / "dump").read_bytes()


def test_a_model_cut_anywhere_is_refused(small):
    for size in range(len(small[0])):
        with pytest.raises(ImportedModelError, match="damaged or incomplete"):
            parse_binary(small[0][:size], "model")
    for size in range(len(small[1].rstrip(b"\n"))):
        with pytest.raises(ImportedModelError, match="dump, line"):
            parse_dump(small[1][:size].decode(), "dump")


def test_a_damaged_model_is_refused_or_can_be_used(small):
    """A wrong digit of a weight cannot be seen; whatever can must not surface as an error from somewhere else."""
    random, refused = np.random.default_rng(0), 0
    parse = (lambda text: parse_binary(text, "model"), lambda text: parse_dump(text.decode(errors="replace"), "dump"))
    for which, content in enumerate(small):
        for _ in range(1500):
            damaged = bytearray(content)
            for place in random.integers(len(content), size=random.integers(1, 8)):
                damaged[place] = random.integers(256)
            if which == 0 and random.random() < 0.5:
                damaged[random.integers(48)] = random.integers(256)  # the header, which says where all the rest is
            try:
                tagger = parse[which](bytes(damaged)).tagger()
            except ImportedModelError:
                refused += 1
            else:
                (labels,) = tagger.predict([[["a"], ["b"]]])
                assert set(labels) <= set(tagger.classes_.tolist())
    assert refused > 1000


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda w: w.states.append((0, 5, 1.0)), "a weight belongs to no label or attribute"),
        (lambda w: w.states.append((9, 0, 1.0)), "a weight belongs to no label or attribute"),
        (lambda w: w.transitions.append((0, 9, 1.0)), "a weight belongs to no label or attribute"),
        (lambda w: w.states.append((0, 0, float("nan"))), "a weight is no finite number"),
        (lambda w: w.labels.append("N"), "a name comes twice"),
        (lambda w: w.attributes.append("a"), "a name comes twice"),
    ],
)
def test_what_no_trainer_writes_is_refused(change, message):
    weights = Weights(["N", "V"], ["a"], [(0, 0, 1.0)], [(0, 1, 0.5)])
    assert parse_binary(model_bytes(weights), "model") == weights
    change(weights)
    with pytest.raises(ImportedModelError, match=f"model is damaged or incomplete .{message}"):
        parse_binary(model_bytes(weights), "model")


def test_names_that_come_twice_in_a_dump():
    for before, after, line in (("1: V", "1: N", 9), ("0: w:a", "0: w:a\n      1: w:a", 14)):
        with pytest.raises(ImportedModelError, match=f"dump, line {line}: the name '.*' comes twice"):
            parse_dump(DUMP.replace(before, after), "dump")
