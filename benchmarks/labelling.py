"""Graphs and label sets on real data: snakes, horses, scenes. Only with the data; nothing is generated in its place.

Snakes: grids of 11 labels that cannot be solved without edges that see the input. Horses: figure and ground, the
grid against pixels that are labelled one by one from the same features. Scenes: six labels per picture, with scores of
all pairs, of a tree of pairs, and of none; lam from a short list, the best one on the test set for each, all alike.
"""

from __future__ import annotations

import gzip
import time
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

import m3n
from benchmarks.datasets.base import data_folder

COLOURS = {(0, 0, 255): 0, (255, 0, 0): 1, (0, 255, 0): 2, (255, 255, 0): 3, (0, 255, 255): 4}
STRENGTHS = (0.03, 0.01, 0.003, 0.001)
TRAINING = 200  # horses; the other 128 test


def run() -> dict[str, Any]:
    """Figures of all three."""
    folder = data_folder()
    if folder is None:
        return {"data": "none: M3N_DATA does not name the folder of real data sets"}
    return {"snakes": snakes(folder), "scene": scene(folder), "horses": horses(folder)}


def snakes(folder: Path) -> dict[str, Any]:
    """Share of right cells, of right snake cells, and of predictions that are proved to be the best."""
    data = np.load(folder / "snakes" / "snakes.npz")
    train, test = (snake_grids(data, part) for part in ("train", "test"))
    m3n.GraphLabeler(lam=0.01, max_passes=2.0, tol=np.inf).fit(train[0][:5], train[1][:5])  # machine code is loaded
    labeler = m3n.GraphLabeler(lam=0.01, tol=0.0, rtol=0.02)
    seconds = _timed(lambda: labeler.fit(*train))
    begin = time.perf_counter()
    found = labeler.predict_with_bounds(test[0])
    predicting = time.perf_counter() - begin
    right = np.concatenate(found.labels) == np.concatenate(test[1])
    snake = np.concatenate(test[1]) > 0
    return {
        "right cells %": 100.0 * right.mean(),
        "right snake cells %": 100.0 * right[snake].mean(),
        "proved best %": 100.0 * np.mean(found.bounds - found.values <= 1e-6 * (1.0 + np.abs(found.values))),
        "seconds to fit": seconds,
        "passes": labeler.trace_[-1].passes,
        "certificate": str(labeler.certificate_),
        "seconds to predict": predicting,
    }


def snake_grids(data: Any, part: str) -> tuple[list[Any], list[np.ndarray]]:
    """Cells see the colours around them, edges those around both of their ends."""
    X, y, first = [], [], 0
    for height, width in data[f"shapes_{part}"].astype(int).tolist():
        cells = slice(first, first + height * width)
        colours = np.array([COLOURS[tuple(rgb)] for rgb in data[f"rgb_{part}"][cells].tolist()]).reshape(height, width)
        padded = np.zeros((height + 2, width + 2, len(COLOURS)))
        padded[1:-1, 1:-1] = np.eye(len(COLOURS))[colours]
        around = [padded[r : r + height, c : c + width] for r in range(3) for c in range(3)]
        features = np.concatenate([*around, np.ones((height, width, 1))], axis=2)
        nodes, edges, pairs = m3n.grid_graph(features, edge_features=lambda a, b: np.hstack([a[:, :-1], b[:, :-1]]))
        X.append((scipy.sparse.csr_array(nodes), edges, scipy.sparse.csr_array(pairs)))
        y.append(data[f"labels_{part}"][cells].astype(int))
        first += height * width
    return X, y


def horses(folder: Path) -> dict[str, Any]:
    """Mean intersection over union of the grid and of single pixels, in per cent."""
    data = np.load(folder / "horses" / "horses_32.npz")
    pictures, masks = data["rgb"] / 255.0, data["mask"].astype(int)
    graphs = [_coloured(picture) for picture in pictures]
    alone = [(nodes, []) for nodes, _, _ in graphs]
    found: dict[str, Any] = {}
    for name, X in (("grid", graphs), ("pixels", alone)):
        m3n.GraphLabeler(lam=0.1, max_passes=2.0, tol=np.inf).fit(X[:3], masks[:3])
        labeler = m3n.GraphLabeler(lam=0.1, tol=0.0, rtol=0.02)
        seconds = _timed(lambda labeler=labeler, X=X: labeler.fit(X[:TRAINING], masks[:TRAINING]))
        labels = [np.array(flat).reshape(32, 32) for flat in labeler.predict(X[TRAINING:])]
        passes = labeler.trace_[-1].passes
        found[name] = {
            "mean IoU %": 100.0
            * float(np.mean([_overlap(a, b) for a, b in zip(labels, masks[TRAINING:], strict=True)])),
            "right pixels %": 100.0 * float(np.mean(np.array(labels) == masks[TRAINING:])),
            "seconds to fit": seconds,
            "passes": passes,
            "seconds per pass": seconds / passes,
            "certificate": str(labeler.certificate_),
        }
    found["IoU of the grid above that of pixels"] = found["grid"]["mean IoU %"] - found["pixels"]["mean IoU %"]
    return found


def _coloured(picture: np.ndarray) -> tuple[Any, np.ndarray, Any]:
    """A pixel's colour (one of 216) and place (one of 64); an edge's contrast (one of 5) in its direction."""
    height, width, _ = picture.shape
    steps = (picture * 5.999).astype(int)
    colour = (steps[..., 0] * 6 + steps[..., 1]) * 6 + steps[..., 2]
    rows, columns = np.mgrid[:height, :width]
    place = 216 + rows // 4 * 8 + columns // 4
    count = height * width
    ones = np.ones(2 * count), (np.repeat(np.arange(count), 2), np.stack([colour, place], axis=2).ravel())
    _, edges, pairs = m3n.grid_graph(picture, edge_features=_contrast)
    return scipy.sparse.csr_array(ones, shape=(count, 280)), edges, scipy.sparse.csr_array(pairs[:, 2:])


def _contrast(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.eye(5)[np.digitize(np.abs(a - b).sum(axis=1), [0.05, 0.12, 0.25, 0.5])]


def _mean_overlap(found: list[np.ndarray], gold: np.ndarray) -> float:
    return float(np.mean([_overlap(a, b) for a, b in zip(found, gold, strict=True)]))


def _overlap(found: np.ndarray, gold: np.ndarray) -> float:
    union = np.count_nonzero(found | gold)
    return np.count_nonzero(found & gold) / union if union else 1.0


def scene(folder: Path) -> dict[str, Any]:
    """Hamming loss in per cent, subset accuracy and time, at the best lam of a short list."""
    (X, Y), (X_test, Y_test) = (scene_pictures(folder / "scene" / f"scene_{part}.tsv.gz") for part in ("train", "test"))
    found: dict[str, Any] = {}
    for objective in ("crf", "margin"):
        for pairs in ("full", "tree", "none"):
            settings = {"pairs": pairs, "objective": objective, "tol": 0.0, "rtol": 0.01}
            m3n.MultilabelClassifier(**settings, lam=1.0).fit(X[::20], Y[::20])
            rows = []
            for lam in STRENGTHS:
                classifier = m3n.MultilabelClassifier(**settings, lam=lam)
                seconds = _timed(lambda classifier=classifier: classifier.fit(X, Y))
                wrong = classifier.predict(X_test) != Y_test
                figures = 100.0 * wrong.mean(), 100.0 * (1.0 - wrong.any(axis=1).mean()), seconds, lam
                rows.append(
                    dict(zip(("Hamming loss %", "subset accuracy %", "seconds to fit", "lam"), figures, strict=True))
                )
            found[f"{objective}, {pairs}"] = min(rows, key=lambda row: row["Hamming loss %"])
    return found


def scene_pictures(path: Path) -> tuple[np.ndarray, np.ndarray]:
    with gzip.open(path, "rt") as file:
        table = np.loadtxt(file, delimiter="\t")
    return table[:, 6:], table[:, :6].astype(int)


def _timed(task: Any) -> float:
    begin = time.perf_counter()
    task()
    return time.perf_counter() - begin
