"""Sequences as users of python-crfsuite write them: dicts with texts, numbers, truth values, lists and dicts."""

import numpy as np
from scipy.special import logsumexp

WORDS = ["a", "a:b", "tab\there", "naïve", "日本", " x --> y", "1.5", "}"]
LABELS = ["N", "V", "B-X", "D"]


def sentences(random, n, labels=4):
    """Dicts and labels that need each other.

    One label never repeats, with one the values of "size" are mostly negative, and with one "flag" is never true.
    """
    X, y = [], []
    for _ in range(n):
        numbers = random.integers(labels, size=random.integers(1, 6))
        numbers[1:][(numbers[1:] == 3) & (numbers[:-1] == 3)] = 0
        noise = random.integers(len(WORDS), size=len(numbers))
        sizes = random.normal(size=len(numbers)) + np.where(numbers == 1, -1.0, 0.5)
        X.append([token(label, k, size) for label, k, size in zip(numbers, noise, sizes, strict=True)])
        y.append([LABELS[label] for label in numbers])
    return X, y


def token(label, k, size):
    return {
        "w": WORDS[label if k % 3 else k],
        "bias": 1.0,
        "size": float(size),
        "flag": bool(k % 2 and label != 2),
        "deep": {"list": [f"p{k}", "q"], "number": 0.5 * k},
    }


def objective(crf, X, y, c1, c2):
    """sum of losses + c1 |w|_1 + c2 |w|^2, by the forward recursion on what the two dicts of weights say."""
    import pycrfsuite

    states, transitions, labels = crf.state_features_, crf.transition_features_, crf.classes_
    table = np.array([[transitions.get((a, b), 0.0) for b in labels] for a in labels])
    total = 0.0
    for xseq, yseq in zip(X, y, strict=True):
        items = pycrfsuite.ItemSequence(xseq).items()
        node = np.array([[sum(v * states.get((a, b), 0.0) for a, v in item.items()) for b in labels] for item in items])
        gold = [labels.index(label) for label in yseq]
        forward = node[0]
        for row in node[1:]:
            forward = logsumexp(forward[:, None] + table, axis=0) + row
        total += logsumexp(forward) - node[np.arange(len(gold)), gold].sum() - table[gold[:-1], gold[1:]].sum()
    w = np.array([*states.values(), *transitions.values()])
    return total + c1 * np.abs(w).sum() + c2 * w @ w
