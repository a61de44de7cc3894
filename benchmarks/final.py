"""How many test labels are proven to be those of the exact optimum, at which tolerance, and what that takes."""

from __future__ import annotations

import time
import warnings
from typing import Any

import m3n
from benchmarks import scale
from benchmarks.datasets import data_folder, words
from m3n.features import CHUNKING
from m3n.io import read_columns

TOLERANCES = 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 3e-7, 1e-7, 1e-8
ENOUGH = 0.99
MOST = 600  # seconds of a fit
KINDS: dict[str, dict[str, Any]] = {"CRF": {"objective": "crf"}, "M3N": {}}


def run(quick: bool = False) -> dict[str, Any]:
    """Passes, seconds and the share of final labels, for smaller and smaller tolerances of the gap."""
    figures: dict[str, Any] = {"data": "real" if data_folder() else "generated"}
    for name, (data, settings) in {"CoNLL-2000": _chunks(), "OCR": _letters()}.items():
        for kind, objective in KINDS.items():
            tolerances = TOLERANCES[:3] if quick else TOLERANCES
            figures[f"{name}, {kind}"] = _proven(data, {**settings, **objective}, tolerances)
    return figures


def _chunks() -> tuple[Any, dict[str, Any]]:
    folder = data_folder()
    train = scale._sentences()
    test = train if folder is None else read_columns(folder / "conll2000" / "test.txt.gz")
    return (train, train.labels, test), {"templates": CHUNKING, "observed_only": True}


def _letters() -> tuple[Any, dict[str, Any]]:
    X, y, test, _ = words(data_folder())
    return (X, [list(map(int, own)) for own in y], test), {"loss": "normalized_hamming"}


def _proven(data: Any, settings: dict[str, Any], tolerances: tuple[float, ...]) -> dict[str, Any]:
    X, y, test = data
    if settings.get("objective") == "crf":
        settings = {name: value for name, value in settings.items() if name != "loss"}
    found: dict[str, Any] = {}
    first = None
    for rtol in tolerances:
        tagger = m3n.SequenceTagger(tol=0.0, rtol=rtol, max_seconds=MOST, **settings)
        begin = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tagger.fit(X, y)
        seconds = time.perf_counter() - begin
        first = first or seconds
        proof = tagger.certify(test)
        found[f"{rtol:g}"] = (
            f"{proof.share:.2%} of labels, {proof.examples.mean():.1%} of sequences; radius {proof.radius:.3g}, "
            f"{tagger.trace_[-1].passes:.0f} passes, {seconds:.1f} s ({seconds / first:.1f} times the first), "
            f"{tagger.status_}"
        )
        if proof.share >= ENOUGH or str(tagger.status_) != "tolerance reached":
            break
    return found
