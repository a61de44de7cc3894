"""Problems to measure on: real data from the folder that M3N_DATA names, generated data where it is absent."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array

from m3n import Problem
from m3n.features import Dense, Sparse, chain_features
from m3n.losses import NormalizedHamming
from m3n.structures import Chain

LETTERS = 26


def data_folder() -> Path | None:
    """The folder of real data sets, if there is one."""
    folder = os.environ.get("M3N_DATA", "")
    return Path(folder) if folder and Path(folder).is_dir() else None


def words(folder: Path | None = None) -> tuple[list[np.ndarray], list[np.ndarray], list[np.ndarray], list[np.ndarray]]:
    """Training images, training letters, test images and test letters of the OCR words (folds 1-9 against fold 0).

    Without the data: random pixels in the same quantity, so that at least speed can be measured.
    """
    if folder is None:
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
    prototypes = random.random((LETTERS, 128)) < 0.22
    lengths = random.integers(3, 13, size=6877)
    y = [random.integers(LETTERS, size=length) for length in lengths]
    X = [np.hstack([prototypes[t] ^ (random.random((len(t), 128)) < 0.1), np.ones((len(t), 1))]) for t in y]
    return X[:6251], y[:6251], X[6251:], y[6251:]


def ocr_problem(
    folder: Path | None, lam: float | None = 0.01, n_jobs: int | None = None, sparse: bool = False
) -> Problem:
    """The M3N on the training words: normalised Hamming loss, 4082 weights; three quarters of the pixels are zero."""
    X, y, _, _ = words(folder)
    pixels = np.concatenate(X)
    node = Sparse(csr_array(pixels), LETTERS) if sparse else Dense(pixels, LETTERS)
    features = chain_features(node, LETTERS)
    structure = Chain([len(t) for t in y], LETTERS)
    return Problem(structure, features, y, loss=NormalizedHamming(), lam=lam, n_jobs=n_jobs)
