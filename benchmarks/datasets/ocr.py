"""The OCR words: 26 letters, 128 pixels; folds 1-9 for training, fold 0 for testing, or the other way round."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from benchmarks.datasets.base import SAMPLE, Dataset, Sentence, Sequences, data_folder
from benchmarks.scores import error_rate

if TYPE_CHECKING:
    from m3n import Problem

LETTERS = 26
PIXELS = 128
Arrays = tuple[list[np.ndarray], list[np.ndarray]]  # images and letters of every word


class Words(Dataset):
    """Archives with ``pixels`` (letters, 129; the last one is constant), ``letters`` and ``offsets``."""

    name = "ocr"
    measure = "letter error"
    larger_is_better = False
    swapped: ClassVar[bool] = False

    @classmethod
    def prepare(cls, folder: Path, limit: int | None) -> Words:
        """The words of folds 1-9 and fold 0, or generated ones; every so many-th word if there is a limit.

        The first words of the file would not do: they are the same word in many hands.
        """
        X, y, X_test, y_test = words(data_folder())
        if cls.swapped:
            X, y, X_test, y_test = X_test, y_test, X, y
        paths = {part: folder / f"{part}.npz" for part in ("train", "test", "sample")}
        for part, most, images, letters in (
            ("train", limit, X, y),
            ("test", limit, X_test, y_test),
            ("sample", SAMPLE, X, y),
        ):
            chosen = slice(None, None, max(1, len(y) // most) if most else 1)
            _write(paths[part], images[chosen][:most], letters[chosen][:most])
        origin = "OCR words" if data_folder() else "generated words"
        return cls(*map(str, paths.values()), f"{origin}, {min(limit or len(y), len(y))} to train on")

    def sentences(self, path: str) -> Iterator[Sentence]:
        """Pixels that are set as strings, with marks for the ends: the same 4082 weights as the chain of arrays has."""
        names = np.array([*(f"p{k}" for k in range(PIXELS)), "bias"])
        for image, letters in zip(*arrays(path), strict=True):
            rows = [names[pixels > 0].tolist() for pixels in image]
            rows[0].append("first")
            rows[-1].append("last")
            yield rows, list(map(str, letters.tolist()))

    def score(self, gold: Sequences, found: Sequences) -> float:
        """Wrong letters in per cent."""
        return error_rate(gold, found)


class FewWords(Words):
    """The tenth of the words that usually tests, to train on: for entries that take minutes even so."""

    name = "ocr0"
    swapped = True


def arrays(path: str) -> Arrays:
    """Images and letters of every word."""
    with np.load(path) as data:
        cuts = data["offsets"][1:-1]
        return np.split(data["pixels"].astype(float), cuts), np.split(data["letters"], cuts)


def _write(path: Path, X: list[np.ndarray], y: list[np.ndarray]) -> None:
    offsets = np.cumsum([0, *map(len, y)])
    np.savez(path, pixels=np.concatenate(X).astype(np.uint8), letters=np.concatenate(y), offsets=offsets)


def words(folder: Path | None = None) -> tuple[list[np.ndarray], list[np.ndarray], list[np.ndarray], list[np.ndarray]]:
    """Training images, training letters, test images and test letters of the OCR words (folds 1-9 against fold 0).

    Without the data: random pixels in the same quantity, so that at least speed can be measured.
    """
    if folder is None or not (folder / "ocr").is_dir():
        return generated_words()
    data = np.load(folder / "ocr" / "letters.npz")
    offsets, folds = data["offsets"], data["folds"]
    pixels, letters = data["pixels"].astype(float), data["labels"].astype(np.int64)
    pixels = np.hstack([pixels, np.ones((len(pixels), 1))])
    X, y = np.split(pixels, offsets[1:-1]), np.split(letters, offsets[1:-1])
    train, test = np.flatnonzero(folds > 0), np.flatnonzero(folds == 0)
    return [X[i] for i in train], [y[i] for i in train], [X[i] for i in test], [y[i] for i in test]


def generated_words() -> tuple[list[np.ndarray], list[np.ndarray], list[np.ndarray], list[np.ndarray]]:
    """6251 training and 626 test words of random letters with random pixels."""
    random = np.random.default_rng(0)
    prototypes = random.random((LETTERS, PIXELS)) < 0.22
    lengths = random.integers(3, 13, size=6877)
    y = [random.integers(LETTERS, size=length) for length in lengths]
    X = [np.hstack([prototypes[t] ^ (random.random((len(t), PIXELS)) < 0.1), np.ones((len(t), 1))]) for t in y]
    return X[:6251], y[:6251], X[6251:], y[6251:]


def ocr_problem(
    folder: Path | None, lam: float | None = 0.01, n_jobs: int | None = None, sparse: bool = False
) -> Problem:
    """The M3N on the training words: normalised Hamming loss, 4082 weights; three quarters of the pixels are zero."""
    from scipy.sparse import csr_array

    from m3n import Problem
    from m3n.features import Dense, Sparse, chain_features
    from m3n.losses import NormalizedHamming
    from m3n.structures import Chain

    X, y, _, _ = words(folder)
    pixels = np.concatenate(X)
    node = Sparse(csr_array(pixels), LETTERS) if sparse else Dense(pixels, LETTERS)
    features = chain_features(node, LETTERS)
    structure = Chain([len(t) for t in y], LETTERS)
    return Problem(structure, features, y, loss=NormalizedHamming(), lam=lam, n_jobs=n_jobs)
