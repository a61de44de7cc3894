"""What the defaults cost, and what they leave: every estimator at its usual tolerance and at a tenth of it.

On every data set at hand: ``SequenceTagger()`` as it is and as a CRF, ``GraphLabeler()``, ``MultilabelClassifier()``,
the same with the settings of the command, and the stand-in for sklearn-crfsuite. CPU seconds of one thread, reading of
X included, compilation not. Without the data generated sentences and digits take their place. The second half is
``choices``: what "auto" takes beside the other solvers.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import m3n
from benchmarks import choices
from benchmarks.datasets.base import data_folder
from benchmarks.datasets.generated import corpus
from benchmarks.datasets.ocr import words
from benchmarks.drop_in import token_features
from benchmarks.labelling import scene_pictures, snake_grids
from benchmarks.scores import chunk_f1
from m3n.cli.train import usual_settings
from m3n.compat.crf_training import plan_of
from m3n.compat.sklearn_crfsuite import CRF
from m3n.estimators.forms import SEQUENCES
from m3n.io import read_columns, read_conllu

FINER = 0.1  # of the usual tolerance
WARM_UP = 12  # examples that load machine code
GENERATED = 300  # sentences, where there are no data


@dataclass(frozen=True)
class Task:
    """A data set and what learns it.

    Attributes
    ----------
    train, test : pair
        X and y.
    score : callable
        Of right and found outputs, in per cent.
    estimator : type
        Its estimator.
    """

    train: tuple[Any, Any]
    test: tuple[Any, Any]
    score: Callable[[Any, Any], float]
    estimator: Any = m3n.SequenceTagger

    @property
    def smooth(self) -> bool:
        """Whether there are CRFs of such outputs: relaxed grids have none."""
        return self.estimator is not m3n.GraphLabeler

    @property
    def texts(self) -> bool:
        """Whether the stand-in for sklearn-crfsuite takes such X."""
        return self.estimator is m3n.SequenceTagger and isinstance(self.train[0][0][0], dict)

    def limited(self, most: int | None) -> Task:
        """The first training examples."""
        X, y = self.train
        return Task((X[:most], y[:most]), self.test, self.score, self.estimator)


def accuracy(gold: Any, found: Any) -> float:
    """Right labels in per cent."""
    flat = [np.concatenate([np.ravel(np.asarray(labels)) for labels in y]) for y in (gold, found)]
    return 100.0 * float((flat[0] == flat[1]).mean())


def tasks(folder: Path | None) -> Iterator[tuple[str, Callable[[], Task]]]:
    """The data sets by name; they are read when they are needed."""
    if folder is None:
        yield "generated chunks", _generated
        yield "generated digits", _digits
        return
    yield "CoNLL-2000", lambda: _columns(folder / "conll2000", "train.txt.gz", "test.txt.gz")
    yield "CoNLL-2003", lambda: _columns(folder / "conll2003", "eng.train.gz", "eng.testb.gz")
    for name, code in (("english_ewt", "en_ewt"), ("gothic_proiel", "got_proiel")):
        yield f"tags, {name}", lambda name=name, code=code: _tags(folder / f"ud_{name}", code)
    yield "OCR words", lambda: _letters(folder)
    yield "OCR words, fold 0", lambda: _letters(folder, swapped=True)
    yield "snakes", lambda: _snakes(folder)
    yield "scene", lambda: _scene(folder)


def _generated() -> Task:
    parts = [[list(zip(*rows, strict=True)) for rows in corpus(GENERATED, seed)] for seed in (5, 4)]
    train, test = (([_dicts(words, tags) for words, tags, _ in part], [list(y) for *_, y in part]) for part in parts)
    return Task(train, test, chunk_f1)


def _digits() -> Task:
    train, test = m3n.datasets.digit_strings(n_train=60, n_test=60)
    return Task((train.inputs, train.labels), (test.inputs, test.labels), accuracy)


def _columns(folder: Path, train: str, test: str) -> Task:
    return Task(*(_sentences(read_columns(folder / name)) for name in (train, test)), chunk_f1)


def _sentences(data: Any) -> tuple[list[Any], list[list[str]]]:
    X = [_dicts(*list(zip(*tokens, strict=True))[:2]) for tokens in data.tokens]
    return X, data.labels


def _dicts(words: Any, tags: Any) -> list[dict[str, Any]]:
    sentence = list(zip(words, tags, strict=True))
    return [token_features(sentence, i) for i in range(len(sentence))]


def _tags(folder: Path, code: str) -> Task:
    return Task(*(_tagged(folder / f"{code}-ud-{part}.conllu.gz") for part in ("train", "test")), accuracy)


def _tagged(path: Path) -> tuple[list[Any], list[list[str]]]:
    """Coarse tags; the first letter of a word takes the place of what else is known of it."""
    sentences = [list(sentence) for sentence in read_conllu(path, trees=False)]
    forms = [[token["form"] for token in sentence] for sentence in sentences]
    tags = [[token["upos"] for token in sentence] for sentence in sentences]
    return [_dicts(words, [word[:1] for word in words]) for words in forms], tags


def _letters(folder: Path, swapped: bool = False) -> Task:
    X, y, X_test, y_test = words(folder)
    train, test = (X, y), (X_test, y_test)
    return Task(test, train, accuracy) if swapped else Task(train, test, accuracy)


def _snakes(folder: Path) -> Task:
    data = np.load(folder / "snakes" / "snakes.npz")
    return Task(snake_grids(data, "train"), snake_grids(data, "test"), accuracy, m3n.GraphLabeler)


def _scene(folder: Path) -> Task:
    parts = (scene_pictures(folder / "scene" / f"scene_{part}.tsv.gz") for part in ("train", "test"))
    return Task(*parts, accuracy, m3n.MultilabelClassifier)


def makers(task: Task) -> Iterator[tuple[str, Callable[[float, int], Any]]]:
    """The estimators by name; what makes one takes the factor of its tolerance and the number of examples."""
    kind, command = task.estimator, usual_settings(SEQUENCES)
    alone: dict[str, Any] = {"n_jobs": 1}
    for objective in ("margin", "crf") if task.smooth else ("margin",):
        name, settings = f"{kind.__name__}({objective})", alone | {"objective": objective}
        yield name, lambda factor, n, s=settings: _finer(kind(**s), factor)
        yield f"m3n train, {objective}", lambda factor, n, s=settings: _finer(_by_command(kind, command, s, n), factor)
    if task.texts:
        for name, penalties in (("CRF()", {}), ("CRF(c1=c2=0.1)", {"c1": 0.1, "c2": 0.1})):
            delta = plan_of(CRF(**penalties).get_params()).rtol
            yield name, lambda factor, n, s=penalties, d=delta: CRF(**s, delta=factor * d)


def _by_command(kind: Any, command: dict[str, Any], settings: dict[str, Any], n: int) -> Any:
    return kind(**(settings | command | {"lam": float(command["lam"].removesuffix("/n")) / n}))


def _finer(estimator: Any, factor: float) -> Any:
    """The estimator with its tolerances times a factor."""
    return estimator.set_params(tol=factor * estimator.tol, rtol=factor * estimator._relative())


def measure(task: Task, make: Callable[[float, int], Any]) -> dict[str, Any]:
    """CPU seconds, passes and held-out scores at the usual tolerance and at a tenth of it."""
    fitted(make(1.0, WARM_UP), task.limited(WARM_UP))
    found: dict[str, Any] = {}
    scores = []
    for name, factor in (("usual", 1.0), ("a tenth", FINER)):
        begin = time.process_time()
        model = fitted(make(factor, len(task.train[1])), task)
        seconds = time.process_time() - begin
        scores.append(task.score(task.test[1], model.predict(task.test[0])))
        found[name] = {"seconds": seconds, "score": scores[-1], **_course(model)}
    return found | {"difference": scores[1] - scores[0]}


def fitted(model: Any, task: Task) -> Any:
    """The model of a task; that it stopped early shows in the figures."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(*task.train)
    return model


def _course(model: Any) -> dict[str, Any]:
    """Passes and the gap in parts of the objective, where the model tells."""
    if isinstance(model, CRF):
        last = model.training_log_.iterations[-1]
        return {"passes": last["num"], "gap / objective": last["gap"] / last["loss"]}
    certificate = model.certificate_
    share = certificate.gap / abs(certificate.primal)
    return {"passes": model.trace_[-1].passes, "gap / objective": share, "solver": type(model.solver_).__name__}


def line(name: str, found: dict[str, Any]) -> str:
    """An estimator in a line."""
    usual, finer = found["usual"], found["a tenth"]
    costs = f"{usual['seconds']:.2f} s, {usual['passes']:.0f} passes, {usual['score']:.2f} %"
    return f"{name}: {costs}; a tenth {finer['seconds']:.2f} s, {found['difference']:+.2f}"


def run(quick: bool = False) -> dict[str, Any]:
    """Figures of both halves."""
    found: dict[str, Any] = {}
    for name, read in tasks(None if quick else data_folder()):
        task = read()
        found[name] = {}
        for kind, make in makers(task):
            found[name][kind] = measure(task, make)
            print(line(f"{name}, {kind}", found[name][kind]), flush=True)
    return {"estimators": found, "auto": choices.run(quick)}
