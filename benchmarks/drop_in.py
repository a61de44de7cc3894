"""The stand-in beside sklearn-crfsuite itself: one script, two imports.

CoNLL-2000 chunking with a function that makes a dict of every token, as in sklearn-crfsuite's tutorial. Both get the
same lists. Run from the project's folder:

    M3N_DATA=... python -m benchmarks.drop_in [--settings default|sparse|tutorial] [--ours-only]
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path
from typing import Any

from m3n.compat.sklearn_crfsuite import CRF
from m3n.io import read_columns

SETTINGS: dict[str, dict[str, Any]] = {
    "default": {},
    "sparse": {"c1": 0.1, "c2": 0.1, "all_possible_transitions": True},
    "tutorial": {"c1": 0.1, "c2": 0.1, "max_iterations": 100, "all_possible_transitions": True},
}


def token_features(sentence: list[tuple[str, ...]], i: int) -> dict[str, Any]:
    """A token and its neighbours."""
    word, tag = sentence[i][0], sentence[i][1]
    features: dict[str, Any] = {
        "bias": 1.0,
        "word.lower": word.lower(),
        "suffix3": word[-3:],
        "suffix2": word[-2:],
        "upper": word.isupper(),
        "title": word.istitle(),
        "digit": word.isdigit(),
        "tag": tag,
        "tag2": tag[:2],
    }
    for offset in (-1, 1):
        if not 0 <= i + offset < len(sentence):
            features["BOS" if offset < 0 else "EOS"] = True
            continue
        word, tag = sentence[i + offset][:2]
        lower = word.lower()
        features |= {f"{offset}:lower": lower, f"{offset}:title": word.istitle(), f"{offset}:upper": word.isupper()}
        features |= {f"{offset}:tag": tag, f"{offset}:tag2": tag[:2]}
    return features


def load(name: str) -> tuple[list[Any], list[list[str]]]:
    """Lists of dicts, and labels."""
    sentences = read_columns(Path(os.environ["M3N_DATA"]) / "conll2000" / f"{name}.txt.gz")
    return [[token_features(tokens, i) for i in range(len(tokens))] for tokens in sentences.tokens], sentences.labels


def run(name: str, crf: Any, train: Any, test: Any) -> list[list[str]]:
    """Fit and predict, with times and scores."""
    start = time.perf_counter(), time.process_time()
    crf.fit(*train)
    wall, processor = time.perf_counter() - start[0], time.process_time() - start[1]
    start = time.perf_counter(), 0.0
    found = [list(labels) for labels in crf.predict(test[0])]
    tagging = time.perf_counter() - start[0]
    loss = crf.training_log_.iterations[-1]["loss"]
    right = [a == b for gold, labels in zip(test[1], found, strict=True) for a, b in zip(gold, labels, strict=True)]
    print(
        f"{name:18} fit {wall:6.1f} s ({processor:6.1f} CPU s)  predict {tagging:5.2f} s  objective {loss:9.2f}",
        end="  ",
    )
    print(f"accuracy {sum(right) / len(right):.4f}  iterations {crf.training_log_.iterations[-1]['num']}", flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--settings", choices=SETTINGS, default="default")
    parser.add_argument("--ours-only", action="store_true")
    asked = parser.parse_args()
    train, test, settings = load("train"), load("test"), SETTINGS[asked.settings]
    CRF(**settings).fit(train[0][:20], train[1][:20])  # compiles
    ours = run("m3n.compat", CRF(**settings), train, test)
    if asked.ours_only:
        return
    import sklearn_crfsuite

    theirs = run("sklearn_crfsuite", sklearn_crfsuite.CRF(**settings), train, test)
    pairs = [pair for one, other in zip(ours, theirs, strict=True) for pair in zip(one, other, strict=True)]
    print(f"{sum(a != b for a, b in pairs)} of {len(pairs)} labels differ")


if __name__ == "__main__":
    main()
