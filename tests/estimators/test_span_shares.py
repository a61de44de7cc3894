"""Probabilities of chunks against the sum over all labellings, read by ``m3n.io.schemes.chunks`` one by one."""

from itertools import pairwise, product

import numpy as np
import pytest

import m3n
from m3n.io.schemes import chunks
from m3n.structures import Transitions

WORDS = {"B-P": "Ann", "I-P": "Lee", "B-L": "Rome", "I-L": "City", "O": "runs", "E-P": "Jr", "I-X": "q"}


def drawn(labels, count, seed):
    """Words that tell a label most of the time, in any order of labels."""
    random = np.random.default_rng(seed)
    y = [random.choice(labels, size=random.integers(1, 5)).tolist() for _ in range(count)]
    X = [[[WORDS[label if random.random() < 0.7 else str(random.choice(labels))]] for label in row] for row in y]
    return X, y


def all_labellings(tagger, x, temperature):
    """Every labelling with its probability."""
    classes, vector = tagger.classes_.tolist(), tagger.reader_.read([x]).matrix
    node, table = np.asarray(vector @ tagger.coef_), tagger.transitions_
    outputs = list(product(range(len(classes)), repeat=len(x)))
    scores = np.array([
        sum(node[t, k] for t, k in enumerate(o)) + sum(table[a, b] for a, b in pairwise(o))
        + tagger.start_[o[0]] + tagger.end_[o[-1]]
        for o in outputs
    ])  # fmt: skip
    labellings = [[classes[k] for k in o] for o in outputs]
    if tagger.constraints_ is not None:
        scores[[not tagger.constraints_.allows(labels) for labels in labellings]] = -np.inf
    shares = np.exp((scores - scores.max()) / temperature)
    return labellings, shares / shares.sum()


@pytest.mark.parametrize(
    ("labels", "constraints"),
    [
        (["B-P", "I-P", "B-L", "I-L", "O"], None),  # in any order, so that chunks begin with I, too
        (["B-P", "I-P", "B-L", "I-L", "O"], Transitions.forbid(["B-P", "I-P", "B-L", "I-L", "O"], [("O", "I-P")])),
        (["B-P", "I-P", "E-P", "I-X", "O"], None),
    ],
)
def test_probabilities_are_sums_over_all_labellings(labels, constraints):
    X, y = drawn(labels, 60, 0)
    allowed = [constraints is None or constraints.allows(row) for row in y]
    kept = [[row for row, fine in zip(rows, allowed, strict=True) if fine] for rows in (X, y)]
    tagger = m3n.SequenceTagger(lam=0.05, n_jobs=1, constraints=constraints).fit(*kept)
    seen = set()
    for temperature in (0.3, 1.5):
        found = tagger.predict_spans(X, temperature)
        assert [[span[:3] for span in row] for row in found] == [
            [(begin, end, kind) for kind, begin, end in chunks(row)] for row in tagger.predict(X)
        ]
        longest = sorted(
            zip(X, found, strict=True), key=lambda pair: -max((s.end - s.begin for s in pair[1]), default=0)
        )
        for x, spans in [*longest[:5], *longest[10:40:8]]:
            labellings, shares = all_labellings(tagger, x, temperature)
            held = [set(chunks(row)) for row in labellings]
            for begin, end, kind, probability in spans:
                expected = sum(shares[[(kind, begin, end) in row for row in held]])
                assert probability == pytest.approx(expected, rel=1e-9)
                seen.add((end - begin, begin == 0, end == len(x)))
    assert {length for length, _, _ in seen} >= {1, 2} and len(seen) > 3


def test_a_calibrated_temperature_makes_them_true():
    labels = ["B-P", "I-P", "O"]
    tagger = m3n.SequenceTagger(lam=0.1, n_jobs=1).fit(*drawn(labels, 100, 1))
    tagger.calibrate_temperature(*drawn(labels, 400, 2))
    X, y = drawn(labels, 600, 3)
    spans = tagger.predict_spans(X)
    said = np.mean([span.probability for row in spans for span in row])
    pairs = zip(spans, map(chunks, y), strict=True)
    right = np.mean([(span.label, span.begin, span.end) in gold for row, gold in pairs for span in row])
    assert said == pytest.approx(right, abs=0.04)
    flat = np.mean([span.probability for row in tagger.predict_spans(X, 1.0) for span in row])
    assert abs(flat - right) > 2 * abs(said - right)


def test_attributes_of_pairs_count():
    templates = m3n.features.Templates(["w=%x[0,0]", "B1:%x[0,0]"])
    X, y = drawn(["B-P", "I-P", "O"], 60, 4)
    columns = [[(word,) for (word,) in x] for x in X]
    tagger = m3n.SequenceTagger(templates=templates, lam=0.05, n_jobs=1).fit(columns, y)
    assert tagger.edge_coef_ is not None
    for x, spans in zip(columns, tagger.predict_spans(columns, 0.5), strict=True):
        every = tagger.predict_k_best([x], 300, probabilities=True, temperature=0.5)[0]
        for begin, end, kind, probability in spans:
            held = (p for labels, _, p in every if (kind, begin, end) in chunks(labels))
            assert probability == pytest.approx(sum(held), rel=1e-9)


def test_refusals_and_what_has_no_chunks():
    X, y = drawn(["B-P", "I-P", "O"], 30, 5)
    tagger = m3n.SequenceTagger(lam=0.05, n_jobs=1).fit(X, y)
    assert tagger.predict_spans([[], [["runs"]]]) == [[], []]
    with pytest.raises(ValueError, match="temperature must be positive, got 0"):
        tagger.predict_spans(X, 0)
    other = m3n.SequenceTagger(lam=0.05, n_jobs=1).fit(X, [["N" if k == "O" else "D" for k in row] for row in y])
    with pytest.raises(ValueError, match="the labels of this model write no chunks: 'D' is no label"):
        other.predict_spans(X)
    numbers = m3n.SequenceTagger(lam=0.05, n_jobs=1).fit(X, [[len(k) for k in row] for row in y])
    with pytest.raises(ValueError, match="the labels of this model write no chunks: 1 is no label"):
        numbers.predict_spans(X)
