"""python-crfsuite's trainer and ours: parameters, hooks, model files, and what they refuse."""

import inspect
import os
import pickle

import numpy as np
import pytest

import m3n
from m3n.compat import BaseTrainer, ItemSequence, Tagger, Trainer
from m3n.compat.sklearn_crfsuite import CRF
from m3n.compat.sklearn_crfsuite.trainer import LinePerIterationTrainer
from tests.compat.sentences import sentences

pycrfsuite = pytest.importorskip("pycrfsuite")

ALGORITHMS = ["lbfgs", "l2sgd", "ap", "averaged-perceptron", "pa", "passive-aggressive", "arow", "LBFGS", "Pa", "AROW"]
ONLINE = pytest.mark.filterwarnings("ignore:a max-margin network")


@pytest.fixture(scope="module")
def data():
    return sentences(np.random.default_rng(0), 30)


def filled(kind, data, groups=1, **settings):
    trainer = kind(**{"verbose": False} | settings)
    for k, (xseq, yseq) in enumerate(zip(*data, strict=True)):
        trainer.append(xseq, yseq, k % groups)
    return trainer


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_parameters_and_defaults(algorithm):
    ours, theirs = Trainer(algorithm), pycrfsuite.Trainer(algorithm)
    assert ours.params() == theirs.params()
    assert ours.get_params() == theirs.get_params()
    for name, value in theirs.get_params().items():
        assert type(ours.get(name)) is type(value)
        assert ours.help(name)
        for trainer in (ours, theirs):
            trainer.set(name, value)
    assert ours.get_params() == theirs.get_params()


def test_values_are_read_alike():
    settings = {"c1": "0.5", "max_iterations": "7", "feature.possible_states": True, "linesearch": "Backtracking"}
    settings |= {"c2": 1, "num_memories": 3.0, "feature.possible_transitions": "1", "feature.minfreq": np.float64(2)}
    ours, theirs = Trainer(params=settings), pycrfsuite.Trainer(params=settings)
    assert ours.get_params() == theirs.get_params()
    ours.select("l2sgd")
    theirs.select("l2sgd")
    assert ours.get_params() == theirs.get_params()  # the defaults again


@pytest.mark.parametrize(
    "mistake",
    [
        lambda kind: kind("sgd"),
        lambda kind: kind(""),
        lambda kind: kind().select("lbfgs", "tree"),
        lambda kind: kind("l2sgd", {"c1": 1.0}),
        lambda kind: kind().set("foo", 1),
        lambda kind: kind().get("foo"),
        lambda kind: kind("l2sgd").help("c1"),
        lambda kind: kind().append([["a"]], ["N", "V"]),
        lambda kind: kind().append([["a"]], []),
        lambda kind: kind().append([], ["N"]),
        lambda kind: kind().append([["a"]], [1]),
        lambda kind: kind().append([[1]], ["N"]),
        lambda kind: kind().append(None, ["N"]),
    ],
)
def test_the_same_mistakes_are_refused(mistake):
    kinds = []
    for kind in (Trainer, pycrfsuite.Trainer):
        with pytest.raises((TypeError, ValueError)) as caught:
            mistake(kind)
        kinds.append(caught.type)
    assert kinds[0] is kinds[1]


def test_values_that_theirs_takes_for_zero():
    pycrfsuite.Trainer().set("c1", "much")
    with pytest.raises(ValueError, match="c1 must be of type float, got 'much'"):
        Trainer().set("c1", "much")


@pytest.mark.parametrize("settings", [{"c2": 0.1}, {"c1": 0.3, "c2": 0.1, "feature.possible_transitions": True}])
def test_models_are_the_same(settings, data, tmp_path):
    """Both write files; each is read by the other one's tagger."""
    exact = {"delta": 1e-8}
    names = []
    for kind in (Trainer, pycrfsuite.Trainer):
        more = exact if kind is Trainer else {"delta": 1e-10, "epsilon": 1e-8, "max_iterations": 5000}
        names.append(str(tmp_path / kind.__module__))
        filled(kind, data, params=settings | more).train(names[-1])
    for kind in (Tagger, pycrfsuite.Tagger):
        taggers = [kind(), kind()]
        for tagger, name in zip(taggers, names, strict=True):
            tagger.open(name)
        assert taggers[0].labels() == taggers[1].labels()
        for xseq in sentences(np.random.default_rng(1), 10)[0]:
            assert taggers[0].tag(xseq) == taggers[1].tag(xseq)
            shares = [[tagger.marginal(label, 0) for label in tagger.labels()] for tagger in taggers]
            assert shares[0] == pytest.approx(shares[1], abs=2e-3)


def test_the_file_is_the_model(data, tmp_path):
    trainer = filled(Trainer, data, params={"c2": 0.1})
    name = os.fsencode(tmp_path / "model")
    assert trainer.train(name) is None
    tagger = pycrfsuite.Tagger()
    tagger.open(os.fsdecode(name))
    X = sentences(np.random.default_rng(1), 20)[0]
    assert [tagger.tag(xseq) for xseq in X] == trainer.model_.predict(X)
    for xseq, shares in zip(X, trainer.model_.predict_marginals(X), strict=True):
        tagger.set(xseq)
        found = [[tagger.marginal(label, t) for label in trainer.model_.classes_] for t in range(len(xseq))]
        np.testing.assert_allclose(found, shares, atol=1e-9)
    assert trainer.model_.certificate_.gap <= 1e-5 * trainer.model_.certificate_.primal


@ONLINE
def test_no_file_without_a_name(data):
    for algorithm in ("ap", "pa", "arow"):
        trainer = filled(Trainer, data, algorithm=algorithm)
        trainer.train("")
        assert trainer.model_.objective == "margin"
        assert trainer.model_.score(*data) > 0.5


def test_nothing_to_train_on(tmp_path):
    for kind in (Trainer, pycrfsuite.Trainer):
        name = str(tmp_path / kind.__module__)
        trainer = kind(verbose=False)
        trainer.train(name)
        for reader in (Tagger, pycrfsuite.Tagger):
            tagger = reader()
            tagger.open(name)
            assert tagger.labels() == []
        assert not hasattr(trainer, "model_")


def test_what_is_cleared_is_not_trained_on(data):
    trainer = filled(Trainer, data)
    trainer.clear()
    trainer.append([["a"], ["b"]], ["N", "V"])
    trainer.append([], [])  # is left out
    trainer.train(None)
    assert trainer.model_.classes_.tolist() == ["N", "V"]
    trainer.clear()
    trainer.train(None)
    assert not hasattr(trainer, "model_")
    assert [event for event, *_ in trainer.logparser.events][-3:] == ["prepare_error", "optimization_end", "end"]


def test_folders_that_are_not_there(data, tmp_path):
    """python-crfsuite trains, and says nothing when it cannot write."""
    with pytest.raises(FileNotFoundError, match="cannot write"):
        filled(Trainer, data).train(str(tmp_path / "missing" / "model"))


def test_item_sequences_and_bytes(data, tmp_path):
    X, y = data
    plain = filled(Trainer, data, params={"c2": 0.5})
    others = Trainer(verbose=False, params={b"c2": b"0.5"})
    for k, (xseq, yseq) in enumerate(zip(X, y, strict=True)):
        kind = ItemSequence if k % 2 else pycrfsuite.ItemSequence
        others.append(kind(xseq), [label.encode() for label in yseq] if k % 2 else tuple(yseq))
    for trainer in (plain, others):
        trainer.train(None)
    assert others.model_.classes_.tolist() == plain.model_.classes_.tolist()
    np.testing.assert_allclose(others.model_.transitions_, plain.model_.transitions_)


def hearing(kind):
    """A trainer that writes down which hooks are called, and the text that they get."""

    def hook(name):
        return lambda self, log, *more: self.heard.append((name, log, *more))

    hooks = {name: hook(name) for name in dir(kind) if name.startswith("on_")}
    return type("Hearing", (kind,), hooks | {"heard": None, "__init__": lambda self: setattr(self, "heard", [])})


@pytest.mark.parametrize("holdout", [-1, 1])
@pytest.mark.parametrize("kind", [Trainer, pycrfsuite.Trainer])
def test_hooks(kind, holdout, data, tmp_path):
    """Both call the same hooks in the same order; subclasses may leave out super().__init__()."""
    trainer = hearing(kind)()
    trainer.verbose = True
    trainer.set_params({"c2": 0.1, "max_iterations": 100})
    for k, (xseq, yseq) in enumerate(zip(*data, strict=True)):
        trainer.append(xseq, yseq, k % 2)
    trainer.train(str(tmp_path / "model"), holdout)
    names = [name for name, *_ in trainer.heard]
    iterations = [info for name, *_, info in trainer.heard if name == "on_iteration"]
    percents = [info for name, *_, info in trainer.heard if name == "on_featgen_progress"]
    order = list(dict.fromkeys(names))
    parts = ("start", "featgen_progress", "featgen_end", "prepared", "iteration", "optimization_end", "end")
    assert order == [f"on_{part}" for part in parts]
    assert percents == list(range(0, 101, 2))
    assert iterations[-1] == trainer.logparser.last_iteration and len(iterations) == len(trainer.logparser.iterations)
    assert {"num", "scores", "loss", "feature_norm", "time", "active_features"} <= iterations[-1].keys()
    assert ("item_accuracy" in iterations[-1]) == bool(iterations[-1]["scores"]) == (holdout == 1)
    assert "".join(log for _, log, *_ in trainer.heard) == "".join(trainer.logparser.log)
    assert "type: CRF1d\n" in trainer.logparser.log
    assert trainer.logparser.featgen_num_features > 0 and trainer.logparser.training_seconds >= 0.0


def test_what_is_said_is_what_their_parser_reads(data):
    """The log is in CRFsuite's words, so that scripts that read it go on doing so."""
    parser = inspect.getmodule(pycrfsuite.Trainer) and pytest.importorskip("pycrfsuite._logparser").TrainLogParser()
    trainer = filled(Trainer, data, groups=2, params={"c2": 0.1})
    trainer.train(None, 1)
    events = [event for text in trainer.logparser.log if (event := parser.feed(text))]
    assert events == [event for event, *_ in trainer.logparser.events]
    assert parser.featgen_num_features == trainer.logparser.featgen_num_features
    for found, entry in zip(parser.iterations, trainer.logparser.iterations, strict=True):
        assert found["num"] == entry["num"]
        assert found["loss"] == pytest.approx(entry["loss"], abs=1e-6)
        assert found["feature_norm"] == pytest.approx(entry["feature_norm"], abs=1e-6)
        assert found["active_features"] == entry["active_features"]
        assert found["item_accuracy"] == entry["item_accuracy"]
        assert found["instance_accuracy"] == entry["instance_accuracy"]
        assert found["avg_f1"] == pytest.approx(entry["avg_f1"], abs=1e-6)
        assert set(found["scores"]) == set(entry["scores"])


def test_scores_on_what_is_held_out(data):
    X, y = data
    trainer = filled(Trainer, data, groups=3, params={"c2": 0.1})
    trainer.train(None, 2)
    right = [
        a == b
        for x, g in zip(X[2::3], y[2::3], strict=True)
        for a, b in zip(trainer.model_.predict([x])[0], g, strict=True)
    ]
    last = trainer.logparser.last_iteration
    assert last["item_accuracy_float"] == pytest.approx(np.mean(right))
    reference = filled(
        Trainer,
        ([x for k, x in enumerate(X) if k % 3 < 2], [g for k, g in enumerate(y) if k % 3 < 2]),
        params={"c2": 0.1},
    )
    reference.train(None)
    np.testing.assert_allclose(trainer.model_.transitions_, reference.model_.transitions_, atol=1e-9)


def test_messages(data, capsys):
    """A plain ``message`` gets every text; a quiet trainer says nothing, and errors of hooks end training."""

    class Capturing(BaseTrainer):
        def message(self, message):
            self.__dict__.setdefault("messages", []).append(message)

    class Failing(Trainer):
        def message(self, message):
            raise ZeroDivisionError

    trainer = filled(Capturing, data)
    trainer.train(None)
    assert trainer.messages == trainer._told.log and capsys.readouterr().out == ""
    with pytest.raises(ZeroDivisionError):
        filled(Failing, data).train(None)
    filled(Trainer, data).train(None)
    assert capsys.readouterr().out == ""
    filled(BaseTrainer, data, verbose=True).train(None)
    shown = capsys.readouterr().out
    assert shown.startswith("Feature generation\ntype: CRF1d\n") and "Storing the model" in shown
    filled(Trainer, data, verbose=True).train(None)
    assert "***** Iteration #" in capsys.readouterr().out


def test_trainers_for_the_drop_in(data, capsys):
    X, y = data
    crf = CRF(c2=0.2, trainer_cls=LinePerIterationTrainer, verbose=True).fit(X[:20], y[:20], X[20:], y[20:])
    shown = capsys.readouterr().out
    assert "Iter" in shown and "gap=" in shown and "Acc(item/seq)=" in shown
    plain = CRF(c2=0.2).fit(X[:20], y[:20], X[20:], y[20:])
    assert crf.predict(X) == plain.predict(X)
    np.testing.assert_allclose(crf.model_.transitions_, plain.model_.transitions_)
    for name in ("item_accuracy", "instance_accuracy", "avg_f1"):
        assert crf.training_log_.last_iteration[name] == plain.training_log_.last_iteration[name]
    assert pickle.loads(pickle.dumps(crf)).predict(X) == crf.predict(X)
    assert crf.model_.status_ is m3n.Status.TOLERANCE
