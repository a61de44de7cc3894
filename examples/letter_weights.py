"""What a reader of handwriting looks for: the weights of every letter as an image, and which letters follow which.

If the environment variable M3N_DATA names a folder with the OCR words (``ocr/letter.data.gz``), the letters are theirs,
16 x 8 pixels; otherwise they are the handwritten digits that scikit-learn bundles, 8 x 8 pixels, in strings that count.

Run:  python examples/letter_weights.py [folder for the pictures]
"""

import os
import sys
import tempfile
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import m3n
from m3n.io.letters import read_letters
from m3n.reports import plot_transitions, plot_weights, weights_size


def letters(path, folds=None):
    """The OCR words, of all folds or of some: pixels and a constant for every letter, and the letters."""
    data = read_letters(path, folds=folds)
    pixels = np.hstack([data.pixels, np.ones((len(data.pixels), 1))]).astype(float)
    names = [[chr(ord("a") + label) for label in word] for word in data.words]
    return np.split(pixels, data.offsets[1:-1]), names, (16, 8)


def digits():
    """Strings of noisy digits."""
    train, _ = m3n.datasets.digit_strings(n_train=150, n_test=1, noise=0.2)
    return train.inputs, train.labels, (8, 8)


def load():
    """Inputs, labels and the shape of an image."""
    path = Path(os.environ.get("M3N_DATA", "")) / "ocr" / "letter.data.gz"
    return letters(path) if path.is_file() else digits()


def draw(model, shape, folder):
    """Write both pictures and return where they are."""
    weights = Figure(figsize=weights_size(model, shape), layout="constrained")
    plot_weights(model, shape, weights)
    pairs = Figure(figsize=(7.5, 6.5), layout="constrained")
    plot_transitions(model, pairs.subplots())
    paths = [Path(folder) / "weights.png", Path(folder) / "transitions.png"]
    for figure, path in zip((weights, pairs), paths, strict=True):
        figure.savefig(path, dpi=150)
    return paths


def main(folder):
    X, y, shape = load()
    model = m3n.SequenceTagger(loss="normalized_hamming", lam=0.1, tol=1e-2).fit(X, y)
    print(f"{len(X)} sequences, {model.certificate_}, {model.status_}")
    print(*draw(model, shape, folder), sep="\n")
    print(model.explain(X[0], top=3))


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp())
