"""From dicts to labels, one sentence at a time and many at once, beside sklearn-crfsuite.

The same dicts for all, made by a function as in sklearn-crfsuite's tutorial (``drop_in``); one thread, models trained
on a part of CoNLL-2000 or on generated sentences. Rounds alternate between the systems, and the best of each counts;
for single sentences all calls of all rounds do. CPU seconds for batches, wall time for calls. The drop-in is measured
on other kinds of tokens, too: the same attributes with numbers, as lists of strings, in nested dicts, and half of them
unknown to the model.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import islice
from typing import Any

import numpy as np

import m3n
from benchmarks.datasets.base import data_folder
from benchmarks.datasets.generated import corpus
from benchmarks.drop_in import load, token_features
from m3n.compat.sklearn_crfsuite import CRF

TRAIN, BATCH, CALLS, ROUNDS = 3000, 1000, 300, 5
FEW = 1000  # sentences to train on where only the kind of tokens matters

Token = dict[str, Any]

Data = tuple[list[Any], list[list[str]]]


def run() -> dict[str, Any]:
    """Seconds of a batch, milliseconds of a call, and the ratios to the original."""
    (X, y), (new, _) = _data()
    models = {"SequenceTagger": m3n.SequenceTagger(rtol=0.1, tol=0.0, n_jobs=1).fit(X, y)}
    models["drop-in"] = CRF(max_iterations=30).fit(X, y)
    try:
        import sklearn_crfsuite

        models["sklearn-crfsuite"] = sklearn_crfsuite.CRF(max_iterations=30).fit(X, y)
    except ImportError:
        pass
    tokens = [token for sentence in new for token in sentence]
    figures: dict[str, Any] = {"tokens": len(tokens), "attributes of a token": float(np.mean([*map(len, tokens)]))}
    figures |= _times({name: model.predict for name, model in models.items()}, new)
    original = figures.get("sklearn-crfsuite")
    for name in ("SequenceTagger", "drop-in") if original else ():
        figures[name] |= _ratios(original, figures[name])
    return figures | ({kind: _kind(kind, X[:FEW], y[:FEW], new) for kind in KINDS} if original else {})


def _ratios(original: dict[str, Any], ours: dict[str, Any]) -> dict[str, float]:
    return {
        "times as fast, batch": original["batch, s"] / ours["batch, s"],
        "times as fast, one": original["one, median ms"] / ours["one, median ms"],
    }


def _kind(kind: str, X: list[Any], y: list[Any], new: list[Any]) -> dict[str, float]:
    """How many times as fast the drop-in is on tokens of another kind."""
    import sklearn_crfsuite

    known, asked = KINDS[kind]
    X, new = ([[form(token) for token in xseq] for xseq in part] for form, part in ((known, X), (asked, new)))
    models = {"ours": CRF(max_iterations=8).fit(X, y), "theirs": sklearn_crfsuite.CRF(max_iterations=8).fit(X, y)}
    times = _times({name: model.predict for name, model in models.items()}, new)
    return _ratios(times["theirs"], times["ours"])


def _numbers(token: Token) -> Token:
    return token | {"length": float(len(token["word.lower"])), "names": 0.25 * len(token), "half": 0.5}


def _texts(token: Token) -> list[str]:
    return [f"{name}={value}" for name, value in token.items()]


def _nested(token: Token) -> Token:
    """What is known of the neighbours in dicts of their own, and a list."""
    own = {name: value for name, value in token.items() if name[0] not in "+-1"}
    before = {name[3:]: value for name, value in token.items() if name.startswith("-1:")}
    after = {name[2:]: value for name, value in token.items() if name.startswith("1:")}
    return own | {"before": before, "after": after, "ends": [token["suffix3"], token["suffix2"]]}


def _strange(token: Token) -> Token:
    return token | {f"strange {name}": value for name, value in token.items()}


KINDS: dict[str, tuple[Callable[[Token], Any], Callable[[Token], Any]]] = {  # to train on, and to ask
    "with numbers": (_numbers, _numbers),
    "lists of strings": (_texts, _texts),
    "nested dicts": (_nested, _nested),
    "half unknown": (dict, _strange),
}


def _data() -> tuple[Data, Data]:
    if data_folder() is not None:
        (X, y), (new, labels) = load("train"), load("test")
        return (X[:TRAIN], y[:TRAIN]), (new[:BATCH], labels[:BATCH])
    sentences = corpus(TRAIN + BATCH, seed=0)
    return _dicts(islice(sentences, TRAIN)), _dicts(sentences)


def _dicts(sentences: Any) -> Data:
    X, y = [], []
    for rows in sentences:
        X.append([token_features(rows, i) for i in range(len(rows))])
        y.append([row[-1] for row in rows])
    return X, y


def _times(functions: dict[str, Callable[[Any], Any]], sentences: list[Any]) -> dict[str, Any]:
    batch = {name: list[float]() for name in functions}
    calls = {name: list[float]() for name in functions}
    for _ in range(ROUNDS):
        for name, predict in functions.items():
            predict(sentences[:10])
            start = time.process_time()
            predict(sentences)
            batch[name].append(time.process_time() - start)
            for sentence in sentences[:CALLS]:
                start = time.perf_counter()
                predict([sentence])
                calls[name].append(time.perf_counter() - start)
    return {
        name: {
            "batch, s": min(batch[name]),
            "one, median ms": 1000 * float(np.median(calls[name])),
            "one, p99 ms": 1000 * float(np.quantile(calls[name], 0.99)),
        }
        for name in functions
    }
