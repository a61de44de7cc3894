import json
import os

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import m3n
from m3n.features import CHUNKING
from m3n.io import model_file
from m3n.io.model_file import ModelFileError
from m3n.losses import Loss, NormalizedHamming
from m3n.solvers import ExcessiveGap
from tests.estimators.test_sequence_tagger import TAGS, WORDS, arrays, tagger


@pytest.fixture
def saved(tmp_path):
    model = m3n.SequenceTagger(tol=1e-2).fit(WORDS, TAGS)
    path = tmp_path / "model.m3n"
    model.save(path)
    return model, path


def test_round_trip(saved):
    model, path = saved
    again = m3n.load(path)
    assert type(again) is m3n.SequenceTagger
    assert again.get_params() == model.get_params()
    assert again.predict(WORDS) == model.predict(WORDS)
    assert again.certificate_ == model.certificate_
    assert again.trace_ == model.trace_
    assert again.status_ is model.status_
    assert again.classes_.tolist() == model.classes_.tolist()
    for name in ("coef_", "transitions_", "start_", "end_"):
        np.testing.assert_array_equal(getattr(again, name), getattr(model, name))
    np.testing.assert_array_equal(again.predict_marginals(WORDS)[0], model.predict_marginals(WORDS)[0])


@pytest.mark.parametrize("kind", ["arrays", "dicts"])
def test_round_trip_of_other_inputs(tmp_path, kind):
    X, y = arrays()
    if kind == "dicts":
        X = [[{"größe": float(row[0]), "sign": "+" if row[1] > 0 else "-", "ok": True} for row in x] for x in X]
    model = tagger(solver=ExcessiveGap(strength=2.0), loss=NormalizedHamming()).fit(X, y)
    model.save(tmp_path / "m")
    again = m3n.load(tmp_path / "m")
    assert again.predict(X) == model.predict(X)
    assert again.solver == ExcessiveGap(strength=2.0)
    assert type(again.loss) is NormalizedHamming
    again.fit(X, y)


def test_round_trip_of_templates(tmp_path):
    X = [[("größe", "A"), ("the", "B")], [("\ud800", "B")]]
    model = tagger(templates=CHUNKING).fit(X, [["x", "y"], ["y"]])
    model.save(tmp_path / "m")
    again = m3n.load(tmp_path / "m")
    assert again.templates == CHUNKING
    assert again.reader_.vectorizer.names == model.reader_.vectorizer.names
    new = [[("the", "B"), ("größe", "A"), ("new", "new")]]
    np.testing.assert_array_equal(again.predict_marginals(new)[0], model.predict_marginals(new)[0])
    again.fit(X, [["x", "y"], ["y"]])


def test_foreign_objects_are_not_saved_silently(tmp_path):
    class Mine(NormalizedHamming, Loss):
        pass

    X, y = arrays()
    model = tagger(loss=Mine()).fit(X, y)
    with pytest.warns(UserWarning, match="is not part of m3n: the saved model holds its default"):
        model.save(tmp_path / "m")
    assert m3n.load(tmp_path / "m").loss == "hamming"


def test_truncated_file(saved):
    _, path = saved
    content = path.read_bytes()
    for size in (0, 4, 100, len(content) - 1):
        path.write_bytes(content[:size])
        with pytest.raises(ModelFileError, match="damaged, incomplete or not an m3n model"):
            m3n.load(path)


def test_foreign_files(tmp_path):
    path = tmp_path / "x"
    path.write_bytes(b"PK\x03\x04 not a model at all" * 10)
    with pytest.raises(ModelFileError, match="not an m3n model"):
        m3n.load(path)
    save_file({"a": np.ones(2)}, path)
    with pytest.raises(ModelFileError, match="a safetensors file, but not an m3n model"):
        m3n.load(path)
    with pytest.raises(FileNotFoundError, match="there is no model file"):
        m3n.load(tmp_path / "missing")


def rewrite(path, **changes):
    _, meta, _ = model_file.read(path)
    header = {"format": "m3n", "version": "1", "kind": "SequenceTagger", "meta": json.dumps(meta), **changes}
    save_file(load_file(path), path, metadata={k: v for k, v in header.items() if v is not None})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"version": "2"}, "format version 2, this m3n reads up to 1: install a newer m3n"),
        ({"version": "x"}, "no valid format version"),
        ({"kind": "Parser"}, "holds a Parser, which this version cannot load"),
        ({"meta": "{"}, "its header is incomplete"),
        ({"meta": None}, "its header is incomplete"),
        ({"meta": "{}"}, "damaged: KeyError"),
    ],
)
def test_newer_and_damaged_headers(saved, changes, message):
    _, path = saved
    rewrite(path, **changes)
    with pytest.raises(ModelFileError, match=message):
        m3n.load(path)


def test_weights_of_the_wrong_shape(saved):
    _, path = saved
    kind, meta, tensors = model_file.read(path)
    tensors["coef_"] = tensors["coef_"][:, :-1]
    model_file.write(path, kind, meta, tensors)
    with pytest.raises(ModelFileError, match="coef_ has shape"):
        m3n.load(path)


def test_nothing_in_the_file_is_executed(saved, tmp_path):
    """The file is numbers and JSON: no pickle anywhere in it."""
    _, path = saved
    _, meta, tensors = model_file.read(path)
    assert json.loads(json.dumps(meta)) == meta
    assert all(array.dtype.kind in "fu" for array in tensors.values())


def test_writing_is_atomic(saved, monkeypatch):
    model, path = saved
    old = path.read_bytes()

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        model.save(path)
    assert path.read_bytes() == old
    assert list(path.parent.iterdir()) == [path]


def test_missing_folder_and_odd_labels(saved, tmp_path):
    model, _ = saved
    with pytest.raises(FileNotFoundError, match=r"the folder .* does not exist"):
        model.save(tmp_path / "no" / "such" / "model")
    model.classes_ = np.array([complex(1), 2, 3, 4])
    with pytest.raises(ModelFileError, match="cannot be saved"):
        model.save(tmp_path / "m")
