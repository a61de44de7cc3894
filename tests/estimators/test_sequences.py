"""Sequences as people have them: plain words, empty ones, data frames."""

import numpy as np
import pytest

import m3n
from m3n.features import Templates

pandas = pytest.importorskip("pandas")

WORDS = [["the", "dog", "barks"], ["dogs", "bark"], ["the", "cat"]]
LABELS = [["D", "N", "V"], ["N", "V"], ["D", "N"]]
TEMPLATES = Templates(["U0:%x[0,0]", "U1:%x[-1,0]"])


def tuples(sequences):
    return [[(word,) for word in sequence] for sequence in sequences]


@pytest.fixture(scope="module")
def tagger():
    return m3n.SequenceTagger(templates=TEMPLATES).fit(tuples(WORDS), LABELS)


@pytest.fixture(scope="module")
def frames():
    return [
        pandas.DataFrame({"word": words, "length": [len(w) / 2 for w in words], "short": [len(w) < 4 for w in words]})
        for words in WORDS
    ]


def dicts(frames):
    return [list(map(dict, frame.to_dict("records"))) for frame in frames]


def test_plain_words_are_tokens_with_one_column(tagger):
    plain = m3n.SequenceTagger(templates=TEMPLATES).fit(WORDS, LABELS)
    np.testing.assert_array_equal(plain.coef_, tagger.coef_)
    assert tagger.predict(WORDS) == tagger.predict(tuples(WORDS)) == LABELS
    assert tagger.predict([np.array(WORDS[0])]) == LABELS[:1]
    assert str(tagger.explain(WORDS[0])) == str(tagger.explain(tuples(WORDS)[0]))


def test_a_sentence_without_the_list_around_it_is_refused(tagger):
    with pytest.raises(TypeError, match="sequence 0, position 0: a token must be a tuple of strings"):
        tagger.predict(tuples(WORDS)[0])
    with pytest.raises(TypeError, match="sequence 0: expected a list of positions, got 'the'"):
        tagger.predict(WORDS[0])


def test_too_many_columns_are_refused(tagger):
    with pytest.raises(ValueError, match="have 2 columns, but the model was trained on 1; leave out labels"):
        tagger.predict([[("the", "D")]])


def test_what_is_said_of_empty_sequences(tagger):
    mixed = [[], WORDS[0], [], WORDS[1], []]
    labels, (one, other) = [[], LABELS[0], [], LABELS[1], []], tagger.predict_marginals(WORDS[:2])
    assert tagger.predict(mixed) == tagger.predict(mixed, decoding="posterior") == labels
    fixed = tagger.predict(mixed, fixed=[[], None, None, ["V", None], []])
    assert fixed[::2] == [[], [], []]
    assert fixed[3] == tagger.predict(WORDS[1:2], fixed=[["V", None]])[0] != LABELS[1]
    assert tagger.predict([[], []]) == [[], []]
    marginals = tagger.predict_marginals(mixed)
    assert [rows.shape for rows in marginals] == [(0, 3), (3, 3), (0, 3), (2, 3), (0, 3)]
    np.testing.assert_array_equal(marginals[1], one)
    np.testing.assert_array_equal(marginals[3], other)
    best = tagger.predict_k_best(mixed, 2, probabilities=True)
    assert best[0] == best[2] == [([], 0.0, 1.0)]
    assert best[1::2] == tagger.predict_k_best(WORDS[:2], 2, probabilities=True)
    assert tagger.score(mixed, labels) == 1.0
    with pytest.raises(ValueError, match="the sequence is empty"):
        tagger.explain([])


def test_training_leaves_out_empty_sequences(tagger):
    X, y = [[], *WORDS, []], [[], *LABELS, []]
    same = m3n.SequenceTagger(templates=TEMPLATES).fit(X, y)
    np.testing.assert_array_equal(same.coef_, tagger.coef_)
    assert same.lam_ == tagger.lam_ == 1 / 3
    assert same.certificate_ == tagger.certificate_
    weighted = m3n.SequenceTagger(templates=TEMPLATES).fit(X, y, sample_weight=[5, 1, 1, 0, 1])
    two = m3n.SequenceTagger(templates=TEMPLATES).fit(X, y, sample_weight=[0, 1, 1, 0, 0])
    np.testing.assert_array_equal(weighted.transitions_, two.transitions_)
    constrained = m3n.SequenceTagger(templates=TEMPLATES, constraints="observed").fit(X, y)
    assert constrained.constraints_.labels == ("D", "N", "V")


def test_what_cannot_be_trained_on(tagger):
    with pytest.raises(ValueError, match="X is empty"):
        m3n.SequenceTagger().fit([[], []], [[], []])
    with pytest.raises(ValueError, match="nothing to train on: no sequence that is not empty has a weight"):
        m3n.SequenceTagger(templates=TEMPLATES).fit([[], WORDS[0]], [[], LABELS[0]], sample_weight=[1, 0])
    with pytest.raises(ValueError, match="sequence 0 has 0 positions in X but 1 labels in y"):
        m3n.SequenceTagger(templates=TEMPLATES).fit([[], WORDS[0]], [["D"], LABELS[0]])


def test_messages_count_empty_sequences(tagger):
    constrained = m3n.SequenceTagger(templates=TEMPLATES, constraints="observed").fit(WORDS, LABELS)
    with pytest.raises(ValueError, match="sequence 2, position 0: the constraints do not allow the fixed label 'V'"):
        constrained.predict([[], WORDS[1], WORDS[1]], fixed=[None, None, ["V", "D"]])


def test_segments_of_empty_sequences():
    X, y = [[], *tuples(WORDS)], [[], [(0, 2, "NP")], [(0, 1, "NP")], [(0, 2, "NP")]]
    tagger = m3n.SegmentTagger(outside="O", templates=TEMPLATES, tol=1e-2).fit(X, y)
    alone = m3n.SegmentTagger(outside="O", templates=TEMPLATES, tol=1e-2).fit(X[1:], y[1:])
    np.testing.assert_array_equal(tagger.segment_coef_, alone.segment_coef_)
    assert tagger.predict(X) == [[], *alone.predict(X[1:])]
    assert tagger.predict_iob([[], []]) == [[], []]
    assert [len(rows) for rows in tagger.predict_marginals(X)] == [0, 3, 2, 2]


def test_data_frames_are_dicts_row_by_row(frames):
    tagger = m3n.SequenceTagger().fit(frames, [pandas.Series(labels) for labels in LABELS])
    same = m3n.SequenceTagger().fit(dicts(frames), LABELS)
    assert tagger.reader_.vectorizer.vocabulary == same.reader_.vectorizer.vocabulary
    assert "length" in tagger.reader_.vectorizer.vocabulary  # numbers are weights, not texts
    np.testing.assert_array_equal(tagger.coef_, same.coef_)
    assert tagger.predict([*frames, frames[0].iloc[:0]]) == [*same.predict(dicts(frames)), []]
    mirrored = [frame[frame.columns[::-1]] for frame in frames]  # columns have names
    assert tagger.predict(mirrored) == tagger.predict(frames)


def test_one_data_frame_holds_all_sentences(frames):
    whole = pandas.concat([frame.assign(sentence=k % 2) for k, frame in enumerate(frames)], ignore_index=True)
    y = pandas.Series([label for labels in LABELS for label in labels])
    tagger, same = m3n.SequenceTagger().fit(whole, y), m3n.SequenceTagger().fit(frames, LABELS)
    np.testing.assert_array_equal(tagger.coef_, same.coef_)
    assert tagger.predict(whole) == same.predict(frames)
    assert tagger.score(whole, y) == same.score(frames, LABELS)
    with pytest.raises(ValueError, match="needs a column 'sentence'"):
        tagger.predict(frames[0])
    with pytest.raises(ValueError, match="labels belong into y"):
        tagger.predict(whole.assign(label="N"))


def test_data_frames_with_templates_are_columns(frames):
    tagger = m3n.SequenceTagger(templates=TEMPLATES).fit([frame[["word"]] for frame in frames], LABELS)
    assert tagger.predict(WORDS) == LABELS
    with pytest.raises(ValueError, match="have 3 columns, but the model was trained on 1"):
        tagger.predict(frames)


def test_missing_values_are_named(frames):
    broken = frames[1].copy()
    broken.loc[1, "word"] = None
    with pytest.raises(ValueError, match="sequence 1, position 1: column 'word' has no value; fill it"):
        m3n.SequenceTagger().fit([frames[0], broken], LABELS[:2])
