"""Small generated sequences, hard enough that lam matters."""

import numpy as np

LABELS = "ABC"


def sentences(seed=0, count=24, words=30):
    """Attribute lists whose labels depend on words, on neighbours and on chance."""
    random = np.random.default_rng(seed)
    lean = random.normal(size=(words, len(LABELS)))
    X, y = [], []
    for _ in range(count):
        tokens, labels, last = [], [], 0
        for _ in range(random.integers(2, 6)):
            word = int(random.integers(words))
            scores = 1.2 * lean[word] + 0.8 * np.eye(len(LABELS))[last] + random.gumbel(size=len(LABELS))
            last = int(scores.argmax())
            tokens.append([f"w{word}", "bias", f"p{word % 4}"])
            labels.append(LABELS[last])
        X.append(tokens)
        y.append(labels)
    return X, y
