"""Model files: those of earlier versions load, every declared array is checked, and all of our objects come back."""

import dataclasses
import gzip
import itertools
import json
import warnings
from pathlib import Path
from types import NoneType, UnionType
from typing import Literal, Union, get_args, get_origin, get_type_hints

import numpy as np
import pytest

import m3n
from m3n import losses, solvers
from m3n.estimators import model_parts
from m3n.estimators.registry import KINDS
from m3n.io import model_file

MODELS = Path(__file__).parent / "models"  # compressed where most weights are zero
EXPECTED = json.loads((MODELS / "expected.json").read_text())
ARRAYS = {"dense", "kernel", "nystroem", "random"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """All model files, none of them compressed."""
    found = tmp_path_factory.mktemp("models")
    for path in MODELS.glob("*.m3n*"):
        content = path.read_bytes()
        (found / path.name.removesuffix(".gz")).write_bytes(
            gzip.decompress(content) if path.suffix == ".gz" else content
        )
    return found


def inputs(name, kind):
    """X of a model: lists as JSON has them, arrays and graphs where these were given."""
    X = EXPECTED[name]["X"]
    if kind == "MultilabelClassifier":
        return np.array(X)
    if kind == "GraphLabeler":
        return [(np.array(nodes), np.array(edges), *map(np.array, more)) for nodes, edges, *more in X]
    return [np.array(x) for x in X] if name in ARRAYS else X


def listed(found):
    return found.tolist() if isinstance(found, np.ndarray) else [listed(x) for x in found]


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_files_of_the_first_version_load_and_come_back(name, folder, tmp_path):
    """Written by m3n 0.1.0 as of November 2026, each with what the model said about its inputs."""
    model = m3n.load(folder / f"{name}.m3n")
    X = inputs(name, type(model).__name__)
    model.save(tmp_path / "again.m3n")
    again = m3n.load(tmp_path / "again.m3n")
    for method, expected in EXPECTED[name].items():
        if method == "X":
            continue
        for known in (model, again):
            found = getattr(known, method)(X)
            if method in ("predict_marginals", "predict_proba"):
                for a, b in zip(found, expected, strict=True):
                    np.testing.assert_allclose(a, b, atol=1e-8)
            else:
                assert json.loads(json.dumps([listed(x) if hasattr(x, "tolist") else x for x in found])) == expected
    assert again.certificate_ == model.certificate_
    assert again.get_params().keys() == model.get_params().keys()


def test_every_kind_is_there(folder):
    assert {model_file.read(folder / f"{name}.m3n")[0] for name in EXPECTED} == set(KINDS)


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_arrays_of_the_wrong_shape_are_refused(name, folder, tmp_path):
    kind, meta, tensors = model_file.read(folder / f"{name}.m3n")
    for entry in KINDS[kind]._arrays():
        if entry.name not in tensors:
            continue
        for wrong in (tensors[entry.name][:-1], tensors[entry.name][..., None], tensors[entry.name].astype("U8")):
            if wrong.dtype.kind == "U":
                wrong = np.zeros(tensors[entry.name].shape, np.float32 if entry.limits else np.int64)
            model_file.write(tmp_path / "broken", kind, meta, tensors | {entry.name: wrong})
            with pytest.raises(model_file.ModelFileError, match="is damaged"):
                m3n.load(tmp_path / "broken")
        without = {key: array for key, array in tensors.items() if key != entry.name}
        model_file.write(tmp_path / "broken", kind, meta, without)
        with pytest.raises(model_file.ModelFileError, match=entry.name):
            m3n.load(tmp_path / "broken")


@pytest.mark.parametrize(
    ("name", "array", "entry", "message"),
    [
        ("segments", "max_lengths_", 0, r"max_lengths_ has entries outside of 1\.\."),
        ("segments", "max_lengths_", 99, "segment_coef_ has scores for"),
        ("multilabel", "pairs_", -1, r"pairs_ has entries outside of 0\.\.2"),
        ("multilabel", "pairs_", 3, r"pairs_ has entries outside of 0\.\.2"),
    ],
)
def test_numbers_that_lead_outside_are_refused(name, array, entry, message, folder, tmp_path):
    kind, meta, tensors = model_file.read(folder / f"{name}.m3n")
    wrong = tensors[array].copy()
    wrong.flat[0] = entry
    model_file.write(tmp_path / "broken", kind, meta, tensors | {array: wrong})
    with pytest.raises(model_file.ModelFileError, match=message):
        m3n.load(tmp_path / "broken")


def choices(hint):
    """Values for a setting of this type; nothing for numbers, which every solver's default shows."""
    if get_origin(hint) in (Union, UnionType):
        return [value for part in get_args(hint) for value in choices(part)]
    if get_origin(hint) is Literal:
        return list(get_args(hint))
    if hint is NoneType:
        return [None]
    if dataclasses.is_dataclass(hint):
        return [hint()]
    if getattr(hint, "_is_protocol", False):
        return [kind() for kind in model_parts.FAMILIES["option"].values() if fits(kind, hint)]
    return []


def fits(kind, protocol):
    members = {name for name in vars(protocol) if not name.startswith("_")}
    return members <= {name for base in kind.__mro__ for name in vars(base)} and kind is not solvers.Choice


def every_solver():
    for name, kind in sorted(solvers.BY_NAME.items()):
        yield pytest.param(kind(), id=name)
        for field, hint in get_type_hints(kind).items() if dataclasses.is_dataclass(kind) else ():
            for value in choices(hint):
                try:
                    made = kind(**{field: value})
                except ValueError:  # does not go with the other defaults
                    continue
                yield pytest.param(made, id=f"{name}-{field}={value}")


SOLVERS = list(every_solver())


def test_options_are_among_the_settings():
    """The test of the test: orders, moves and caches occur."""
    names = {type(value).__name__ for made in SOLVERS for value in vars(made.values[0]).values()}
    assert {"Shuffled", "Uniform", "GapSampling", "Toward", "Pairwise", "PlaneCache"} <= names


@pytest.mark.parametrize("solver", SOLVERS)
def test_solvers_with_their_options_come_back(solver):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        written = json.loads(json.dumps(model_parts._plain("solver", solver)))
    assert model_parts._restored(written) == solver


def test_a_block_frank_wolfe_object_is_saved(tmp_path):
    solver = solvers.BlockFrankWolfe(order=solvers.GapSampling(), move=solvers.Pairwise(), cache=solvers.PlaneCache(7))
    model = m3n.SequenceTagger(solver=solver, n_jobs=1).fit([[["a"], ["b"]]], [["X", "Y"]])
    model.save(tmp_path / "model.m3n")
    assert m3n.load(tmp_path / "model.m3n").solver == solver


@pytest.mark.parametrize("kind", [kind for kind in vars(losses).values() if isinstance(kind, type)])
def test_all_losses_have_a_name_in_files(kind):
    if issubclass(kind, losses.Loss) and kind is not losses.Loss:
        assert kind in model_parts.FAMILIES["loss"].values()


def test_subclasses_are_saved_as_what_they_derive_from(tmp_path):
    class Mine(m3n.SequenceTagger):
        pass

    Mine(n_jobs=1).fit([[["a"], ["b"]]], [["X", "Y"]]).save(tmp_path / "model.m3n")
    assert type(m3n.load(tmp_path / "model.m3n")) is m3n.SequenceTagger


def test_names_of_sizes_agree():
    """Every size is one that is known, or is bound by an array of the same estimator."""
    for kind in KINDS.values():
        named = list(itertools.chain.from_iterable(entry.shape for entry in kind._arrays()))
        others = {size for size in named if isinstance(size, str)} - {"labels", "attributes", "pairs"}
        assert others <= {
            "lengths", "scored", "rules", "rule_classes", "begins", "splits", "ends", "spans", "phrases", "arc weights",
            "label weights", "sibling weights", "grandchild weights", "filter weights", "kinds", "kinds and one",
            "listed", "word attributes", "distances",
        }  # fmt: skip
