"""A tagger that is trained on shards: what it would have been with the data in memory, and the same bits anywhere."""

import multiprocessing
import os
import pickle
import signal
import time
import warnings

import numpy as np
import pytest

import m3n
from m3n import SequenceTagger, Shards
from m3n.checkpoint import CheckpointError
from m3n.io.schemes import LabelError
from m3n.losses import CostMatrix, EdgeHamming, Hamming
from m3n.run.loop import Status
from m3n.structures import Transitions

LABELS = ["B", "I", "O"]


def sentences(n=60, seed=0):
    """Tokens of strings, some attributes of which tell the label."""
    random = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        length = int(random.integers(1, 9))
        labels, before = [], "O"
        for _ in range(length):
            before = str(random.choice(["B", "O"] if before == "O" else LABELS))
            labels.append(before)
        y.append(labels)
        X.append([[f"w={random.integers(30)}", f"l={label if random.random() < 0.8 else '?'}"] for label in labels])
    return X, y


def packed(tmp_path, X, y, **settings):
    return m3n.pack(X, y, tmp_path / "shards", shard_size=settings.pop("shard_size", 1200), **settings)


def in_order(model):
    """Weights by the names of attributes, which are numbered in another order in shards."""
    coef = model.coef_.toarray() if hasattr(model.coef_, "toarray") else model.coef_
    names = model.reader_.vectorizer.names
    return coef[np.argsort(names)], model.transitions_, model.start_, model.end_


SETTINGS = {
    "margin": {},
    "crf": {"objective": "crf"},
    "observed": {"objective": "crf", "observed_only": True},
    "slack": {"objective": "slack", "tol": 0.02},
    "l1": {"objective": "crf", "l1": 1e-3},
    "loss": {"loss": CostMatrix({("B", "O"): 3.0}) + 0.5 * EdgeHamming()},
    "balanced": {"class_weight": "balanced", "constraints": "iob"},
    "strengths": {"strengths": {"attributes": 2.0}, "boundaries": False, "constraints": "observed"},
}


@pytest.mark.parametrize("kind", SETTINGS)
def test_the_model_is_that_of_data_in_memory(kind, tmp_path):
    X, y = sentences()
    weights = np.random.default_rng(1).uniform(0.5, 2.0, len(X))
    shards = packed(tmp_path, X, y, sample_weight=weights)
    assert len(shards) > 3
    settings = {"lam": 0.05, "tol": 1e-5, **SETTINGS[kind]}
    there = SequenceTagger(**settings).fit(shards)
    here = SequenceTagger(**settings).fit(X, y, sample_weight=weights)
    tol = settings["tol"]
    assert there.certificate_.primal == pytest.approx(here.certificate_.primal, abs=2 * tol)
    for one, other in zip(in_order(there), in_order(here), strict=True):
        np.testing.assert_allclose(one, other, atol=2.0 * np.sqrt(2.0 * tol / 0.05))  # both are so near to the optimum
    assert np.mean([a == b for a, b in zip(there.predict(X), here.predict(X), strict=True)]) > 0.9  # or nearly ties
    assert there.lam_ == here.lam_ and there.classes_.tolist() == LABELS
    there.save(tmp_path / "model")
    assert m3n.load(tmp_path / "model").predict(X) == there.predict(X)


def test_strengths_without_numbers(tmp_path):
    """lam=None is 1/n, C is 1/(lam n), where n is the sum of the weights."""
    X, y = sentences(20)
    shards = packed(tmp_path, X, y, sample_weight=np.full(20, 3.0))
    assert SequenceTagger(max_passes=300, rtol=0.1).fit(shards).lam_ == pytest.approx(1 / 60)
    assert SequenceTagger(max_passes=300, rtol=0.1, C=0.5).fit(shards).lam_ == pytest.approx(1 / 30)


@pytest.mark.parametrize("kind", ["dense", "sparse", "columns", "pairs", "hashed"])
def test_other_inputs(kind, tmp_path):
    import scipy.sparse

    X, y = sentences(30)
    more, settings = {}, {"objective": "crf", "lam": 0.05, "tol": 1e-4}
    if kind in ("dense", "sparse"):
        random = np.random.default_rng(0)
        X = [random.normal(size=(len(labels), 3)) * (random.random((len(labels), 3)) < 0.7) for labels in y]
        X = X if kind == "dense" else [scipy.sparse.csr_array(part) for part in X]
    elif kind in ("columns", "pairs"):
        lines = ["U0:%x[0,0]", "U1:%x[-1,1]", *(["B0:%x[0,1]"] if kind == "pairs" else [])]
        more = {"templates": m3n.features.Templates(lines)}
        X = [[tuple(token) for token in sentence] for sentence in X]
    elif kind == "hashed":
        more = {"hash_bits": 12}
    there = SequenceTagger(**settings).fit(packed(tmp_path, X, y, **more))
    here = SequenceTagger(**settings, templates=more.get("templates")).fit(X, y)
    assert there.certificate_.primal == pytest.approx(here.certificate_.primal, abs=3e-4)
    assert np.mean([a == b for a, b in zip(there.predict(X), here.predict(X), strict=True)]) > 0.9
    there.save(tmp_path / "model")
    assert m3n.load(tmp_path / "model").predict(X) == there.predict(X)


def test_bits_depend_on_lanes_alone(tmp_path):
    X, y = sentences()
    shards = packed(tmp_path, X, y)
    settings = {"objective": "crf", "solver": "lbfgs", "lam": 0.05}
    models = [
        SequenceTagger(n_jobs=jobs, backend=m3n.Local(lanes=3, memory=memory), **settings).fit(shards)
        for jobs, memory in [(1, None), (3, None), (2, 0.0)]
    ]
    for model in models[1:]:
        np.testing.assert_array_equal(model.coef_, models[0].coef_)
        assert model.certificate_ == models[0].certificate_
    again = packed(tmp_path, X, y, shard_size=600, force=True)  # other files, the same lanes up to rounding
    np.testing.assert_allclose(SequenceTagger(**settings).fit(again).coef_, models[0].coef_, atol=1e-4)


def test_paths_read_shards(tmp_path):
    X, y = sentences()
    shards = packed(tmp_path, X, y)
    settings = {"objective": "crf", "solver": "lbfgs", "tol": 1e-6}
    with SequenceTagger(**settings).problem(shards) as problem:
        there = m3n.path(problem, [0.1, 0.01], "lbfgs", tol=1e-6)
    here = m3n.path(SequenceTagger(**settings).problem(X, y), [0.1, 0.01], "lbfgs", tol=1e-6)
    for one, other in zip(there, here, strict=True):
        assert one.certificate.primal == pytest.approx(other.certificate.primal, abs=2e-6)


def test_what_shards_cannot_do(tmp_path):
    X, y = sentences(20)
    shards = packed(tmp_path, X, y)
    for settings, match in [
        ({"kernel": "rbf"}, "train on shards without one"),
        ({"min_freq": 2}, "settled when the shards were packed"),
        ({"loss": Hamming(position_weight=[[1.0]])}, "in memory together"),
        ({"constraints": "bioes"}, r"sequence \d+, position \d+ of y: 'I'|bioes"),
    ]:
        with pytest.raises(ValueError, match=match):
            SequenceTagger(**settings).fit(shards)
    with pytest.raises(ValueError, match="labels and weights of their own"):
        SequenceTagger().fit(shards, y)
    with pytest.raises(TypeError, match="GraphLabeler cannot be trained on shards"):
        m3n.GraphLabeler().fit(shards, None)


@pytest.mark.parametrize(
    ("constraints", "y", "what"),
    [
        ("iob", [["O"], ["B", "I", "O"], ["O", "I"]], "'I' follows 'O'"),
        ("iob", [["O", "B"], ["O"], ["I"]], "'I' stands first"),
        (Transitions(("B", "O"), np.zeros((2, 2)), np.zeros(2), [True, False]), [["O"], ["O", "B"]], "'B' stands last"),
    ],
)
def test_labels_that_constraints_forbid_are_named(constraints, y, what, tmp_path):
    X = [[["a"] for _ in labels] for labels in y]
    here, there = [], []
    for found, data in ((here, (X, y)), (there, (packed(tmp_path, X, y), None))):
        with pytest.raises(LabelError, match=what) as caught:
            SequenceTagger(constraints=constraints).fit(*data)
        found.append((caught.value.sequence, caught.value.position, str(caught.value)))
    assert here == there


def run(folder, seconds):
    """Train in a process of its own, which is killed after so many seconds."""
    if seconds is not None:
        signal.signal(signal.SIGALRM, lambda *_: os.kill(os.getpid(), signal.SIGKILL))
        signal.setitimer(signal.ITIMER_REAL, seconds)
    model = trained(folder, checkpoint=folder / "run")
    (folder / "result").write_bytes(pickle.dumps((model.coef_, model.certificate_)))


def trained(folder, **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return SequenceTagger(
            objective="margin", solver="excessive_gap", lam=0.002, tol=1e-3, max_passes=1500, n_jobs=1,
            backend=m3n.Local(lanes=2), **settings,
        ).fit(Shards(folder / "shards"))  # fmt: skip


def test_killed_at_twenty_moments(tmp_path, monkeypatch):
    """Whenever the process is killed, what is on disk goes on; in the end it has the bits of a run in peace."""
    packed(tmp_path, *sentences(200))
    monkeypatch.setattr("m3n.run.checkpoint.EVERY", 0.0)
    monkeypatch.setattr("m3n.run.checkpoint.Checkpoint.__init__.__defaults__", (0.0,))
    trained(tmp_path)  # compilation is not what takes the time
    begin = time.perf_counter()
    calm = trained(tmp_path)
    whole = time.perf_counter() - begin
    random, fork = np.random.default_rng(0), multiprocessing.get_context("fork")
    for moment in [*random.uniform(0.0, 0.06, 20) * whole, None]:
        process = fork.Process(target=run, args=(tmp_path, moment))
        process.start()
        process.join()
        assert process.exitcode == (0 if moment is None else -signal.SIGKILL)
    coef, certificate = pickle.loads((tmp_path / "result").read_bytes())
    np.testing.assert_array_equal(coef, calm.coef_)
    assert certificate == calm.certificate_


def test_checkpoints_of_other_shards(tmp_path):
    X, y = sentences()
    shards = packed(tmp_path, X, y)
    settings = {"solver": "excessive_gap", "tol": 0.0, "max_passes": 8, "checkpoint": tmp_path / "run", "lam": 0.05}
    with pytest.warns(match="pass limit"):
        assert SequenceTagger(backend=m3n.Local(lanes=2), **settings).fit(shards).status_ is Status.PASS_LIMIT
    others = m3n.pack(X[1:], y[1:], tmp_path / "others")
    for given, changed, match in [
        (others, {}, "for 60 examples, not 59"),
        (shards, {"backend": m3n.Local(lanes=3)}, "with sums of 2 lanes, not 3"),
        (shards, {"lam": 0.1}, "for lam=0.05, not 0.1"),
        (m3n.pack(X, [labels[::-1] for labels in y], tmp_path / "labels"), {}, "for other shards"),
    ]:
        with pytest.raises((CheckpointError, ValueError), match=match):
            SequenceTagger(**({"backend": m3n.Local(lanes=2)} | settings | changed)).fit(given)
