"""The aligner without labels: what it learns from sentence pairs, its files, and scikit-learn's conventions."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import m3n
from m3n.io import model_file

HOUSES = [
    (["the", "house"], ["das", "Haus"]),
    (["the", "book"], ["das", "Buch"]),
    (["a", "book"], ["ein", "Buch"]),
]


@pytest.fixture(scope="module")
def sentences():
    return m3n.datasets.parallel_sentences(400, 60, seed=1, words=60)


@pytest.fixture(scope="module")
def aligner(sentences):
    return m3n.HMMAligner(n_jobs=1).fit(sentences[0].pairs)


def error_rate(found, alignments):
    """AER: 1 - (|A & S| + |A & (S | P)|) / (|A| + |S|)."""
    right = sum(
        len(set(A) & y.sure) + len(set(A) & (y.sure | y.possible)) for A, y in zip(found, alignments, strict=True)
    )
    return 1.0 - right / sum(len(A) + len(y.sure) for A, y in zip(found, alignments, strict=True))


@pytest.mark.parametrize("joint", [True, False])
@pytest.mark.parametrize(("model", "most"), [("model1", 0.12), ("hmm", 0.10)])
def test_links_of_new_sentences(model, most, joint, sentences):
    train, test = sentences
    aligner = m3n.HMMAligner(model=model, joint=joint, prior=1.0, n_jobs=1).fit(train.pairs)
    assert error_rate(aligner.predict(test.pairs), test.alignments) < most


def test_a_table_of_four_words():
    aligner = m3n.HMMAligner(n_jobs=1, prior=0.1).fit(HOUSES)
    (forward, backward), *_ = aligner.translation([(["the", "book", "a"], ["das", "Buch", "ein"])])
    assert forward.argmax(axis=1).tolist() == [0, 1, 2]
    assert backward.argmax(axis=0).tolist() == [0, 1, 2]
    assert forward[0, 2] == 0.0  # never met
    assert aligner.predict([(["a", "house"], ["ein", "Haus"])]) == [[(0, 0), (1, 1)]]


def test_probabilities_of_both_directions(aligner, sentences):
    pairs = sentences[1].pairs
    for (source, target), (forward, backward), mean in zip(
        pairs, aligner.directions(pairs), aligner.predict_marginals(pairs), strict=True
    ):
        assert forward.shape == backward.shape == (len(source), len(target))
        assert (forward.sum(axis=0) < 1.0).all()
        assert (backward.sum(axis=1) < 1.0).all()
        np.testing.assert_allclose(mean, np.sqrt(forward * backward))


def test_prediction_is_what_reaches_the_threshold(aligner, sentences):
    pairs = sentences[1].pairs
    few, many = (clone(aligner).set_params(threshold=threshold) for threshold in (0.9, 0.1))
    for other in (few, many):
        vars(other).update(model_=aligner.model_)
    for a, b, probabilities in zip(
        few.predict(pairs), many.predict(pairs), aligner.predict_marginals(pairs), strict=True
    ):
        assert a == sorted(a)
        assert set(a) == {(i, j) for i, j in np.ndindex(probabilities.shape) if probabilities[i, j] >= 0.9}
        assert set(a) <= set(b)


def test_dice_ranks_and_frequencies():
    aligner = m3n.HMMAligner(n_jobs=1).fit(HOUSES)
    pair = (["The", "new", "book"], ["das", "Buch"])
    (dice,), (ranks,), (counts,) = aligner.dice([pair]), aligner.ranks([pair]), aligner.frequencies([pair])
    np.testing.assert_allclose(dice, [[1.0, 0.5], [0.0, 0.0], [0.5, 1.0]])
    assert [each.tolist() for each in ranks] == [[0, 4, 1], [0, 1]]
    assert [each.tolist() for each in counts] == [[2, 0, 2], [2, 2]]


def test_unknown_words_that_are_spelled_alike_belong_together(aligner, sentences):
    source, target = sentences[0].pairs[0]
    alike, other = aligner.predict([(["Qwerty", *source], [name, *target]) for name in ("Qwerty", "Asdf")])
    assert (0, 0) in alike
    assert set(other) <= set(alike)
    (_, backward), *_ = aligner.directions([(["Qwerty"], ["Asdf", "qwerty"])])
    assert backward[0, 1] > 0.9


def test_small_letters_are_a_choice():
    pairs = [(["The", "House"], ["DAS", "Haus"])]
    assert m3n.HMMAligner(n_jobs=1).fit(HOUSES).frequencies(pairs)[0][0].tolist() == [2, 1]
    assert m3n.HMMAligner(lowercase=False, n_jobs=1).fit(HOUSES).frequencies(pairs)[0][0].tolist() == [0, 0]


def test_likelihoods_are_told():
    aligner = m3n.HMMAligner(joint=False, prior=0.0, leave_one_out=False, iterations=3, n_jobs=1).fit(HOUSES)
    found = np.array(aligner.likelihoods_)
    assert found.shape == (6, 2)
    assert (np.diff(found[:3], axis=0) > 0.0).all()
    assert len(m3n.HMMAligner(model="model1", iterations=2, n_jobs=1).fit(HOUSES).likelihoods_) == 2


def test_progress_is_shown_if_asked_for(capsys):
    m3n.HMMAligner(n_jobs=1, verbose=True).fit(HOUSES)
    assert "log-likelihoods" in capsys.readouterr().err


def test_nothing_to_align(aligner):
    assert aligner.predict([]) == []
    assert aligner.dice([]) == []
    assert aligner.ranks([]) == []


def test_conventions_of_scikit_learn():
    aligner = m3n.HMMAligner(joint=False, threshold=0.4)
    assert repr(aligner) == "HMMAligner(joint=False, threshold=0.4)"
    assert clone(aligner).get_params() == aligner.get_params()
    with pytest.raises(NotFittedError, match="this HMMAligner is not fitted yet"):
        aligner.predict(HOUSES)
    with pytest.raises(NotFittedError):
        aligner.save("nowhere")
    assert aligner.fit(HOUSES) is aligner
    assert pickle.loads(pickle.dumps(aligner)).predict(HOUSES) == aligner.predict(HOUSES)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"model": "model2"}, r"model='model2' is not available; choose one of \('model1', 'hmm'\)"),
        ({"iterations": 0}, "iterations and reach must be at least 1, got 0 and 10"),
        ({"null": 0.0}, "null must be between 0 and 1, got 0.0"),
        ({"smoothing": 1.0}, "smoothing must be between 0 and 1, got 1.0"),
        ({"threshold": 0.0}, "threshold must be above 0 and at most 1, got 0.0"),
        ({"prior": -1.0}, "prior must not be negative, got -1.0"),
        ({"prior": float("nan")}, "prior must not be negative, got nan"),
    ],
)
def test_wrong_parameters_are_refused(params, message):
    with pytest.raises(ValueError, match=message):
        m3n.HMMAligner(**params).fit(HOUSES)


def test_a_fit_that_fails_leaves_no_trace():
    aligner = m3n.HMMAligner(n_jobs=1)
    for X, message in (([], "X is empty"), ([*HOUSES, (["a"], [])], "sentence pair 3: the target has no words")):
        with pytest.raises(ValueError, match=message):
            aligner.fit(X)
    assert not [name for name in vars(aligner) if name.endswith("_")]


# files


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("aligner") / "model.m3n"
    aligner = m3n.HMMAligner(threshold=0.4, n_jobs=1).fit(HOUSES)
    aligner.save(path)
    return aligner, path


def test_files_hold_the_model(saved):
    aligner, path = saved
    again = m3n.load(path)
    assert again.get_params() == aligner.get_params()
    assert again.likelihoods_ == aligner.likelihoods_
    pairs = [*HOUSES, (["a", "new", "house"], ["ein", "Haus", "New"])]
    for method in ("directions", "translation", "ranks"):
        for one, other in zip(getattr(again, method)(pairs), getattr(aligner, method)(pairs), strict=True):
            for a, b in zip(one, other, strict=True):
                assert np.array_equal(a, b)
    for a, b in zip(again.dice(pairs), aligner.dice(pairs), strict=True):
        assert np.array_equal(a, b)


def tensor_names():
    names = ["rows", "columns", "dice", "source_frequencies", "target_frequencies"]
    arrays = ("table", "rest", "usual", "null", "jumps")
    return [*names, *(f"{direction}_{array}" for direction in ("forward", "backward") for array in arrays)]


@pytest.mark.parametrize("name", tensor_names())
def test_arrays_of_another_shape_or_kind_are_refused(name, saved, tmp_path):
    kind, meta, tensors = model_file.read(saved[1])
    other = np.float32 if tensors[name].dtype.kind == "f" else np.float64
    for wrong in (tensors[name][:-1], tensors[name][:, None], tensors[name].astype(other)):
        model_file.write(tmp_path / "broken", kind, meta, tensors | {name: wrong})
        with pytest.raises(model_file.ModelFileError, match="is damaged"):
            m3n.load(tmp_path / "broken")
    model_file.write(tmp_path / "broken", kind, meta, {key: tensors[key] for key in tensors if key != name})
    with pytest.raises(model_file.ModelFileError, match=name):
        m3n.load(tmp_path / "broken")


@pytest.mark.parametrize(
    ("name", "place", "entry", "message"),
    [
        ("columns", 0, -1, r"columns has entries outside of 0\.\.3"),
        ("columns", 0, 4, r"columns has entries outside of 0\.\.3"),
        ("columns", 1, 0, "columns are not in order"),
        ("rows", 0, 1, "rows do not divide"),
        ("rows", 1, 99, "rows do not divide"),
        ("rows", 1, -99, "rows do not divide"),
        ("dice", 0, np.nan, r"dice has entries outside of 0\.\.1"),
        ("forward_table", 0, np.inf, "forward_table has entries"),
        ("backward_rest", 0, -0.1, "backward_rest has entries"),
        ("forward_jumps", 0, 0.0, "forward_jumps must be an odd number of positive numbers"),
        ("source_frequencies", 0, 0, "source_frequencies has a word that never occurs"),
    ],
)
def test_numbers_that_make_no_sense_are_refused(name, place, entry, message, saved, tmp_path):
    kind, meta, tensors = model_file.read(saved[1])
    wrong = tensors[name].copy()
    wrong[place] = entry
    model_file.write(tmp_path / "broken", kind, meta, tensors | {name: wrong})
    with pytest.raises(model_file.ModelFileError, match=message):
        m3n.load(tmp_path / "broken")


@pytest.mark.parametrize("text", [b'["a", "a", "b", "c"]', b'["a", 1, "b", "c"]', b"{}", b"[]", b"\xff", b'["a"]'])
def test_words_that_make_no_sense_are_refused(text, saved, tmp_path):
    kind, meta, tensors = model_file.read(saved[1])
    model_file.write(tmp_path / "broken", kind, meta, tensors | {"source_words": np.frombuffer(text, dtype=np.uint8)})
    with pytest.raises(model_file.ModelFileError, match="is damaged"):
        m3n.load(tmp_path / "broken")


def test_settings_that_make_no_sense_are_refused(saved, tmp_path):
    kind, meta, tensors = model_file.read(saved[1])
    for skip in (0.0, 1.0, -1.0, "many"):
        model = meta["model"] | {"forward": {"skip": skip, "even": 0.1}}
        model_file.write(tmp_path / "broken", kind, meta | {"model": model}, tensors)
        with pytest.raises(model_file.ModelFileError, match="is damaged"):
            m3n.load(tmp_path / "broken")


def test_words_that_begin_alike_are_one():
    pairs = [(["house"], ["maison"]), (["houses"], ["maisons"]), (["the", "house"], ["la", "maison"])]
    aligner = m3n.HMMAligner(letters=4, n_jobs=1).fit(pairs)
    assert aligner.frequencies([(["houses", "the"], ["maisonnette", "la"])])[0][0].tolist() == [3, 1]
    same, other = aligner.translation([(["house"], ["maison"]), (["houseboat"], ["maisonnette"])])
    assert all(np.array_equal(a, b) for a, b in zip(same, other, strict=True))
    with pytest.raises(ValueError, match="letters must be at least 1"):
        m3n.HMMAligner(letters=0).fit(pairs)
