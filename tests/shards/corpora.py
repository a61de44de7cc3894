"""Small corpora of every kind, and what reading them at once makes of them."""

from itertools import pairwise

import numpy as np
import scipy.sparse

from m3n.estimators.inputs import SequenceReader, read_labels

WORDS = ["the", "dog", "Dog", "barks", "naïve", "犬", "a\udcff", "x:y", "", "0", "_B-1", "_B+1", "a b"]
LABELS = ["O", "B-x", "I-x", "Ünder"]


def lengths(random, count=40):
    """Some of them are 0."""
    return random.integers(0, 6, size=count)


def labels_for(random, sizes, names=LABELS):
    return [[names[k] for k in random.integers(len(names), size=n)] for n in sizes]


def lists(random, sizes):
    """Lists of strings; some tokens have an attribute twice, some none."""
    return [[[f"{random.choice(WORDS)}" for _ in range(random.integers(4))] for _ in range(n)] for n in sizes]


def dicts(random, sizes):
    def token():
        found = {
            "word": str(random.choice(WORDS)),
            "length": float(random.normal()),
            "capital": bool(random.integers(2)),
        }
        return found | ({"x": None, "4": "wordy", "4:w": 2} if random.integers(2) else {})

    return [[token() for _ in range(n)] for n in sizes]


def columns(random, sizes):
    def token():
        return str(random.choice(WORDS[:8])), str(random.choice(["N", "V"]))

    return [[token() for _ in range(n)] for n in sizes]


def dense(random, sizes):
    return [random.normal(size=(n, 3)) for n in sizes]


def sparse(random, sizes):
    return [scipy.sparse.random_array((n, 7), density=0.4, rng=random, format="csr") for n in sizes]


def whole(shards):
    """All sequences of shards: matrix, lengths, labels, weights, pairs."""
    opened = [shards.open(i) for i in range(len(shards))]
    matrices = [np.asarray(s.matrix) if isinstance(s.matrix, np.ndarray) else s.matrix.toarray() for s in opened]
    pairs = None if shards.pair_width is None else np.concatenate([s.pairs.toarray() for s in opened])
    weights = np.concatenate([s.weights for s in opened]) if shards.weighted else None
    sizes, labels = (np.concatenate([getattr(s, name) for s in opened]) for name in ("lengths", "labels"))
    return np.concatenate(matrices), sizes, labels, weights, pairs


def read_at_once(X, y, templates=None, min_freq=1):
    """Matrix, lengths and pairs of the sequences that are not empty, their labels, and who read them."""
    reader = SequenceReader()
    inputs = reader.fit(X, templates, min_freq)
    classes, outputs = read_labels(y, inputs.lengths)
    return inputs.occupied(), classes, np.array([k for output in outputs for k in output]), reader


def neighbours(labels, sizes):
    """Pairs of neighbouring labels, first and last ones."""
    ends = [0, *np.cumsum(sizes).tolist()]
    parts = [labels[low:high].tolist() for low, high in pairwise(ends)]
    return {p for part in parts for p in pairwise(part)}, {p[0] for p in parts}, {p[-1] for p in parts}
