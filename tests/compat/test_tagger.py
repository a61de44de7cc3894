"""python-crfsuite's tagger and ours on the same models."""

import os

import numpy as np
import pytest

import m3n
from m3n.compat import ImportedModelError, Tagger, export
from m3n.compat.tagger import UnknownLabel
from tests.compat.sentences import sentences

pycrfsuite = pytest.importorskip("pycrfsuite")


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    X, y = sentences(np.random.default_rng(0), 30)
    trainer = pycrfsuite.Trainer(verbose=False, params={"c2": 0.1})
    for xseq, yseq in zip(X, y, strict=True):
        trainer.append(xseq, yseq)
    name = tmp_path_factory.mktemp("tagger") / "model.crfsuite"
    trainer.train(str(name))
    return name


@pytest.fixture(scope="module")
def theirs(path):
    tagger = pycrfsuite.Tagger()
    tagger.open(str(path))
    return tagger


@pytest.fixture(scope="module")
def ours(path):
    return Tagger().open(path)


@pytest.fixture(scope="module")
def new():
    return sentences(np.random.default_rng(1), 20)[0]


def test_answers(ours, theirs, new):
    assert ours.labels() == theirs.labels()
    random = np.random.default_rng(0)
    for xseq in new:
        assert ours.tag(xseq) == theirs.tag(xseq) == ours.tag()
        for tagger in (ours, theirs):
            tagger.set(xseq)
        for t in range(len(xseq)):
            for label in ours.labels():
                assert ours.marginal(label, t) == pytest.approx(theirs.marginal(label, t), abs=1e-9)
        drawn = random.choice(ours.labels(), size=len(xseq)).tolist()
        for labels in (theirs.tag(), drawn, [label.encode() for label in drawn], "".join(drawn) and tuple(drawn)):
            assert ours.probability(labels) == pytest.approx(theirs.probability(labels), abs=1e-9)
        assert ours.marginal(drawn[0].encode(), 0) == ours.marginal(drawn[0], 0)


def test_info_and_dump(ours, theirs, tmp_path, capfd):
    found, expected = ours.info(), theirs.info()
    assert found.state_features == pytest.approx(expected.state_features, abs=1e-6)
    assert found.transitions == pytest.approx(expected.transitions, abs=1e-6)
    assert (found.labels, found.attributes) == (expected.labels, expected.attributes)
    counted = {"num_features": str(len(found.state_features) + len(found.transitions))}  # theirs says 0
    places = {name for name in expected.header if name.startswith("off_")}
    assert found.header == {name: expected.header[name] for name in expected.header.keys() - places} | counted
    for tagger, name in ((ours, "ours"), (theirs, "theirs")):
        tagger.dump(str(tmp_path / name))
    texts = [(tmp_path / name).read_text().partition("\n\n")[2] for name in ("ours", "theirs")]
    assert texts[0] == texts[1].removeprefix("\n")
    capfd.readouterr()
    ours.dump()
    assert capfd.readouterr().out == (tmp_path / "ours").read_text()


def test_the_end_of_a_with_statement_closes(path, new, tmp_path):
    for kind in (pycrfsuite.Tagger, Tagger):
        with kind().open(str(path)) as tagger:
            assert tagger.labels()
        with pytest.raises(ValueError):
            tagger.labels()
        with pytest.raises(RuntimeError):
            tagger.info()
        with pytest.raises(RuntimeError):
            tagger.dump(str(tmp_path / "dump"))
        tagger.close()  # once more is no mistake
    for question in (lambda t: t.set(new[0]), lambda t: t.tag(new[0]), lambda t: t.marginal("N", 0), lambda t: t.model):
        with pytest.raises(ValueError, match="has no model, or is closed"):
            question(tagger)
    with pytest.raises(ValueError, match="has no model, or is closed"):
        tagger.probability(["N"])
    assert tagger.open(path).tag(new[0])
    with pytest.raises(ZeroDivisionError), tagger:
        _ = 1 / 0
    with pytest.raises(ValueError):
        tagger.labels()


def test_another_model_brings_its_own_answers(path, new, ours, tmp_path):
    """Nothing is left of the model, the weights, or the sequence before."""
    export(m3n.compat.convert(path), tmp_path / "model.crfsuite")
    trainer = pycrfsuite.Trainer(verbose=False)
    trainer.append([["a"]], ["only"])
    trainer.train(str(tmp_path / "other"))
    tagger = Tagger().open(path)
    tagger.set(new[0])
    assert len(tagger.info().labels) == 4 and tagger.marginal("N", 0) < 1.0
    tagger.open(tmp_path / "other")
    assert tagger.labels() == list(tagger.info().labels) == ["only"]
    with pytest.raises(ValueError, match="call set"):
        tagger.marginal("only", 0)
    assert tagger.tag([["a"], ["b"]]) == ["only", "only"] and tagger.marginal("only", 1) == pytest.approx(1.0)


def test_models_in_memory(path, new, ours, tmp_path):
    model = ours.model
    model.save(tmp_path / "model.m3n")
    ours.dump(tmp_path / "dump.txt")
    for name in (path, tmp_path / "model.m3n", tmp_path / "dump.txt"):
        with Tagger().open_inmemory(name.read_bytes()) as tagger:
            assert [tagger.tag(xseq) for xseq in new] == [ours.tag(xseq) for xseq in new]
    with pycrfsuite.Tagger().open_inmemory(path.read_bytes()) as tagger:
        assert tagger.tag(new[0]) == ours.tag(new[0])


def test_files_by_every_kind_of_name(path, ours):
    for name in (path, str(path), os.fsencode(path)):
        assert Tagger().open(name).labels() == ours.labels()


@pytest.mark.parametrize("value", [b"", b"foo", b"lCRFabc", b"lCRF" + bytes(44), b"lCRFfoo" * 100])
def test_models_that_are_none(value, tmp_path):
    (tmp_path / "model").write_bytes(value)
    with pytest.raises(ImportedModelError, match="the model is "):
        Tagger().open_inmemory(value)
    with pytest.raises(ImportedModelError, match=r"model is (damaged|not a model)"):
        Tagger().open(tmp_path / "model")
    if len(value) < 48:  # larger ones make CRFsuite read where nothing is
        for act in (
            lambda: pycrfsuite.Tagger().open_inmemory(value),
            lambda: pycrfsuite.Tagger().open(str(tmp_path / "model")),
        ):
            with pytest.raises(ValueError):
                act()


def test_other_mistakes(ours, theirs, path, tmp_path):
    for tagger, missing in ((ours, tmp_path / "missing"), (theirs, str(tmp_path / "missing"))):
        with pytest.raises(FileNotFoundError):
            type(tagger)().open(missing)
        with pytest.raises(TypeError):
            type(tagger)().open_inmemory(str(path))
        tagger.set([["a"], ["b"]])
        for mistake in (lambda t: t.probability(["N"]), lambda t: t.marginal("N", 2), lambda t: t.marginal("N", -1)):
            with pytest.raises(ValueError):
                mistake(tagger)
        for mistake in (lambda t: t.probability(["N", "Z"]), lambda t: t.marginal("Z", 0)):
            with pytest.raises(RuntimeError):
                mistake(tagger)
        with pytest.raises(TypeError):
            tagger.marginal("N", "first")
    with pytest.raises(UnknownLabel, match="does not know the label 'Z'; it knows"):
        ours.marginal("Z", 0)
    with pytest.raises(ValueError, match="the sequence has 2 tokens, but there are 1 labels"):
        ours.probability(["N"])


def test_empty_sequences(ours, theirs):
    assert ours.tag([]) == theirs.tag([]) == []
    assert ours.probability([]) == 1.0
    with pytest.raises(ValueError, match="there is no position 0"):
        ours.marginal("N", 0)
