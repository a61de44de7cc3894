import pickle

import numpy as np
import pytest
from sklearn.base import clone

import m3n
from m3n.estimators.segments import filled, from_iob, read_segments, to_iob
from m3n.io import model_file
from m3n.structures import SemiMarkov

SETTINGS = {"lam": 0.01, "tol": 1e-2, "n_jobs": 1}
NAMES = ("Ada", "Alan", "Grace", "Kurt")


def sentences(random, count):
    """Names of one or two capital words; numbers with an opening and a closing bracket."""
    X, y = [], []
    for _ in range(count):
        words, segments = [], []
        for _ in range(int(random.integers(1, 4))):
            kind = random.choice(["name", "number", "word"])
            begin = len(words)
            if kind == "name":
                words += [[f"w={random.choice(NAMES)}", "capital"] for _ in range(int(random.integers(1, 3)))]
            elif kind == "number":
                words += [["w=("], *[["digit"] for _ in range(int(random.integers(1, 3)))], ["w=)"]]
            else:
                words.append(["w=and"])
            if kind != "word":
                segments.append((begin, len(words), str(kind)))
            words.append(["w=,"])
        X.append(words)
        y.append(segments)
    return X, y


@pytest.fixture(scope="module")
def data():
    return sentences(np.random.default_rng(0), 60)


@pytest.fixture(scope="module")
def tagger(data):
    return m3n.SegmentTagger(**SETTINGS).fit(*data)


def test_segments_are_found(data, tagger):
    X, y = sentences(np.random.default_rng(1), 40)
    assert tagger.certificate_.gap <= 1e-2
    assert tagger.score(*data) > 0.95
    assert tagger.score(X, y) > 0.9
    assert tagger.classes_.tolist() == ["O", "name", "number"]
    assert tagger.max_lengths_.tolist() == [1, 2, 4]
    assert tagger.coef_.shape == (tagger.n_features_in_, 3)
    assert tagger.segment_coef_.shape == (4, 3)
    marginals = tagger.predict_marginals(X, temperature=0.1)
    np.testing.assert_allclose(np.concatenate(marginals).sum(axis=1), 1.0)
    assert [len(m) for m in marginals] == [len(words) for words in X]
    assert tagger.predict([]) == tagger.predict_iob([]) == tagger.predict_marginals([]) == []


def test_iob_labels_say_the_same(data, tagger):
    X, y = data
    labels = [to_iob(given, len(words)) for given, words in zip(y, X, strict=True)]
    same = m3n.SegmentTagger(**SETTINGS).fit(X, labels)
    assert same.predict(X) == tagger.predict(X)
    assert same.score(X, labels) == tagger.score(X, y)
    assert tagger.predict_iob(X) == [
        to_iob(given, len(words)) for given, words in zip(tagger.predict(X), X, strict=True)
    ]


def test_single_positions_are_a_sequence_tagger():
    """Segments of one position: the optimum of a tagger whose attributes include a constant, the score of length 1."""
    random = np.random.default_rng(0)
    X = [random.normal(size=(length, 2)) for length in (3, 1, 5, 4)]
    labels = [random.choice(["a", "b"], size=len(x)).tolist() for x in X]
    segments = [[(t, t + 1, label) for t, label in enumerate(given)] for given in labels]
    one = m3n.SegmentTagger(lam=0.1, tol=1e-4, outside=None).fit(X, segments)
    other = m3n.SequenceTagger(lam=0.1, tol=1e-4).fit([np.hstack([x, np.ones((len(x), 1))]) for x in X], labels)
    assert one.certificate_.primal == pytest.approx(other.certificate_.primal, abs=2e-4)
    assert one.classes_.tolist() == ["a", "b"]


def test_features_of_whole_segments(data):
    """Whether a segment begins and ends with a bracket: no attribute of a position says that."""

    def ends(words, begin, end):
        return [f"ends={words[begin][0]}|{words[end - 1][0]}"]

    X, y = data
    blind = [[["w"] for _ in words] for words in X]
    tagger = m3n.SegmentTagger(segment_features=lambda words, b, e: ends(X[len(words[0]) - 1], b, e), **SETTINGS)
    marked = [[["w"] * (k + 1) if t == 0 else ["w"] for t in range(len(words))] for k, words in enumerate(X)]
    tagger.fit(marked, y)
    assert tagger.score(marked, y) > m3n.SegmentTagger(**SETTINGS).fit(blind, y).score(blind, y) + 0.2
    assert tagger.segment_coef_.shape[0] > 4


@pytest.mark.parametrize("objective", ["crf", "softmax_margin"])
def test_objectives(objective, data):
    tagger = m3n.SegmentTagger(objective, **SETTINGS).fit(*data)
    assert tagger.certificate_.gap <= 1e-2
    assert tagger.score(*data) > 0.9


def test_weights_and_lengths(data):
    X, y = data
    weights = 1.0 + np.arange(len(X)) % 2
    weighed = m3n.SegmentTagger(**SETTINGS).fit(X, y, weights)
    twice = [k for k in range(len(X)) for _ in range(int(weights[k]))]
    repeated = m3n.SegmentTagger(**SETTINGS).fit([X[k] for k in twice], [y[k] for k in twice])
    assert weighed.certificate_.dual <= repeated.certificate_.primal
    assert repeated.certificate_.dual <= weighed.certificate_.primal
    assert m3n.SegmentTagger(max_length=5, **SETTINGS).fit(X, y).max_lengths_.tolist() == [1, 5, 5]
    with pytest.raises(ValueError, match=r"sequence \d+: the segment from \d+ to \d+ is longer than max_length=2"):
        m3n.SegmentTagger(max_length=2).fit(X, y)


def test_files(data, tagger, tmp_path):
    X, y = data
    tagger.save(tmp_path / "model.m3n")
    again = m3n.load(tmp_path / "model.m3n")
    assert again.predict(X) == tagger.predict(X)
    assert again.certificate_ == tagger.certificate_
    assert pickle.loads(pickle.dumps(tagger)).predict(X) == tagger.predict(X)
    kind, meta, tensors = model_file.read(tmp_path / "model.m3n")
    model_file.write(tmp_path / "broken.m3n", kind, meta, {**tensors, "start_": tensors["start_"][1:]})
    with pytest.raises(model_file.ModelFileError, match="start_ has shape"):
        m3n.load(tmp_path / "broken.m3n")
    own = m3n.SegmentTagger(segment_features=lambda words, b, e: [str(e - b)], **SETTINGS).fit(X, y)
    with pytest.raises(TypeError, match="never hold code: use pickle"):
        own.save(tmp_path / "own.m3n")


def test_kernels(tmp_path):
    """A segment is where the product of two numbers is positive."""
    random = np.random.default_rng(0)
    X = [random.normal(size=(5, 2)) for _ in range(30)]
    y = [from_iob(["B-plus" if a * b > 0 else "O" for a, b in x.tolist()]) for x in X]
    tagger = m3n.SegmentTagger(kernel="poly", degree=2, **SETTINGS).fit(X, y)
    assert tagger.score(X, y) > 0.9 > m3n.SegmentTagger(**SETTINGS).fit(X, y).score(X, y) + 0.1
    assert tagger.kernel_model_.size <= 150
    tagger.save(tmp_path / "model.m3n")
    assert m3n.load(tmp_path / "model.m3n").predict(X) == tagger.predict(X)


def test_certificate_from_scratch():
    """J by listing every segmentation, from the model's own numbers."""
    X = [[["a"], ["b"], ["c"], ["a", "b"]], [["c"], ["b"]], [["b"]], [["a"], ["a"], ["c"]]]
    y = [[(0, 2, "X"), (3, 4, "Y")], [(1, 2, "X")], [], [(0, 1, "Y"), (1, 3, "X")]]
    model = m3n.SegmentTagger(**SETTINGS).fit(X, y)
    lengths, names = [len(words) for words in X], model.classes_.tolist()
    structure = SemiMarkov(lengths, len(names), model.max_lengths_)
    gold = structure.pack([
        [(b, e, names.index(label)) for b, e, label in filled(given, length, "O")]
        for given, length in zip(y, lengths, strict=True)
    ])  # fmt: skip
    _, (_, theta, _) = model._scores(X)
    labels, risk = structure.labels_of(gold), 0.0
    for i in range(len(X)):
        alone, rows = structure.select(np.array([i]))
        mine = [array if row is None else array[row] for array, row in zip(theta, rows, strict=True)]
        right = labels[structure.offsets[i] : structure.offsets[i + 1]]
        values = [
            sum((a * b).sum() for a, b in zip(mine, alone.encode(out), strict=True))
            + (alone.labels_of(out) != right).sum()
            for out in structure.enumerate(i)
        ]
        own = alone.encode(gold[structure.entries_of(np.array([i]))])
        risk += max(values) - sum((a * b).sum() for a, b in zip(mine, own, strict=True))
    weights = model.coef_, model.segment_coef_, model.transitions_, model.start_, model.end_
    primal = model.lam_ / 2 * sum((part**2).sum() for part in weights) + risk / len(X)
    assert primal == pytest.approx(model.certificate_.primal)


def test_conventions(tagger):
    assert clone(tagger).get_params() == tagger.get_params()
    assert repr(m3n.SegmentTagger(max_length=3)) == "SegmentTagger(max_length=3)"


def test_iob():
    labels = ["O", "B-X", "I-X", "B-X", "I-Y", "O", "I-X", "B-a-b"]
    segments = [(1, 3, "X"), (3, 4, "X"), (4, 5, "Y"), (6, 7, "X"), (7, 8, "a-b")]
    assert from_iob(labels) == segments
    assert to_iob(segments, 8) == ["O", "B-X", "I-X", "B-X", "B-Y", "O", "B-X", "B-a-b"]
    assert from_iob([]) == []
    assert filled([(1, 3, "X")], 4, "O") == [(0, 1, "O"), (1, 3, "X"), (3, 4, "O")]
    assert read_segments([[(2, 3, "b"), (0, 2, "a")]], np.array([3])) == [[(0, 2, "a"), (2, 3, "b")]]


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([], "X has 1 sequences but y has 0"),
        ([[(0, 4, "X")]], "not within its 3 positions"),
        ([[(1, 1, "X")]], "not within its 3 positions"),
        ([[(0, 2, "X"), (1, 3, "Y")]], "overlap"),
        ([[(0, 2)]], r"a segment is \(begin, end, label\)"),
        ([["B-X", "O"]], "3 positions in X but 2 labels in y"),
        ([[]], "no segments at all"),
    ],
)
def test_wrong_segments(y, message):
    with pytest.raises(ValueError, match=message):
        m3n.SegmentTagger().fit([[["a"], ["b"], ["c"]]], y)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"max_length": 0}, "max_length must be at least 1"),
        ({"outside": None}, "sequence 0 has positions without a segment"),
    ],
)
def test_wrong_settings(settings, message):
    with pytest.raises(ValueError, match=message):
        m3n.SegmentTagger(**settings).fit([[["a"], ["b"]]], [[(0, 1, "X")]])
