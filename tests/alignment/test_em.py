"""Training against dense matrices, and what EM promises."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from m3n.alignment.em import Settings, Trainer
from m3n.alignment.pairs import Corpus, Lexica
from m3n.packed import Threads

words = st.lists(st.sampled_from("abcde"), min_size=1, max_size=5)
corpora = st.lists(st.tuples(words, words), min_size=1, max_size=6)


def trained(pairs, n_jobs=1, hmm=True, joint=False, iterations=4, prior=0.0, leave_out=False):
    lexica = Lexica.read(pairs)
    corpus = Corpus.index(lexica.pack(pairs), lexica)
    settings = Settings(hmm, joint, iterations, prior, leave_out, skip=0.1, even=0.1, reach=3)
    trainer = Trainer(corpus, lexica, settings, Threads(n_jobs))
    trainer.run()
    return trainer


@given(corpora)
def test_likelihoods_never_fall(pairs):
    """Within Model 1, and within the HMM; each direction alone."""
    found = np.array(trained(pairs).likelihoods)
    for model in (found[:4], found[4:]):
        assert (np.diff(model, axis=0) >= -1e-8 * (1.0 + abs(model[1:]))).all()


def test_likelihoods_rise_on_real_sentences(random):
    """The test of the test above: there is something to learn."""
    texts = random.choice(list("abcdefgh"), size=(60, 4))
    pairs = [(list(text), [letter.upper() for letter in text]) for text in texts]
    found = np.array(trained(pairs).likelihoods)
    assert (found[3] > found[0] + 10.0).all()
    assert (found[7] > found[4] + 10.0).all()


def priors(names, usual, pairs):
    """What every word begins with, as shares: frequencies, and a tenth for the word that is spelled alike."""
    met = np.array([[any(e in source and f in target for source, target in pairs) for f in names[1]] for e in names[0]])
    alike = met & (np.array(names[0])[:, None] == np.array(names[1]))
    forward = (1.0 - 0.1 * alike.any(axis=1, keepdims=True)) * usual[1] + 0.1 * alike
    backward = (1.0 - 0.1 * alike.any(axis=0)) * usual[0][:, None] + 0.1 * alike
    return forward, backward


def dense_model_1(pairs, iterations, joint, prior, leave_out, skip=0.1):
    """Both tables of Model 1 with a column per word, null and all, by loops over sentences."""
    names = [sorted({word for pair in pairs for word in pair[side]}) for side in (0, 1)]
    tokens = [[word for pair in pairs for word in pair[side]] for side in (0, 1)]
    usual = [np.array([tokens[side].count(word) for word in names[side]]) / (len(tokens[side]) + 1) for side in (0, 1)]
    codes = [[[names[side].index(word) for word in pair[side]] for side in (0, 1)] for pair in pairs]
    shares = priors(names, usual, pairs)
    counts, null = None, [np.full(len(each), 1.0 / len(each)) for each in names[::-1]]
    own = [[np.zeros((len(source), len(target)))] * 2 for source, target in codes]
    for _ in range(iterations):
        before, counts = counts, [np.zeros((len(names[0]), len(names[1]))) for _ in range(2)]
        nulls = [np.zeros_like(each) for each in null]
        for k, (source, target) in enumerate(codes):
            cells = np.ix_(source, target)
            P, Q = np.full(own[k][0].shape, 1.0 / len(names[1])), np.full(own[k][0].shape, 1.0 / len(names[0]))
            if before is not None:
                left = [each * leave_out for each in own[k]]
                kept = [before[d][cells] - left[d] + prior * shares[d][cells] for d in (0, 1)]
                totals = before[0].sum(axis=1)[source] + prior, before[1].sum(axis=0)[target] + prior
                P = kept[0] / (totals[0] - left[0].sum(axis=1))[:, None]
                Q = kept[1] / (totals[1] - left[1].sum(axis=0))
            P, Q = (1.0 - skip) / len(source) * P, (1.0 - skip) / len(target) * Q
            none = skip * null[0][target], skip * null[1][source]
            totals = P.sum(axis=0) + none[0], Q.sum(axis=1) + none[1]
            P, Q = P / totals[0], Q / totals[1][:, None]
            own[k] = [P * Q, P * Q] if joint else [P, Q]
            for d in (0, 1):
                np.add.at(counts[d], cells, own[k][d])
            np.add.at(nulls[0], target, none[0] / totals[0])
            np.add.at(nulls[1], source, none[1] / totals[1])
        null = [(each + prior * often) / (each.sum() + prior) for each, often in zip(nulls, usual[::-1], strict=True)]
    forward = (counts[0] + prior * shares[0]) / (counts[0].sum(axis=1, keepdims=True) + prior)
    return names, forward, (counts[1] + prior * shares[1]) / (counts[1].sum(axis=0) + prior)


@pytest.mark.parametrize(("prior", "leave_out"), [(0.0, False), (2.0, False), (2.0, True)])
@pytest.mark.parametrize("joint", [False, True])
@given(corpora)
def test_model_1_with_dense_matrices(joint, prior, leave_out, pairs):
    trainer = trained(pairs, hmm=False, joint=joint, iterations=3, prior=prior, leave_out=leave_out)
    names, *expected = dense_model_1(pairs, 3, joint, prior, leave_out)
    lexica, types = Lexica.read(pairs), trainer.corpus.types
    rows = np.array([names[0].index(word) for word in lexica.source.words])[types.owners()]
    columns = np.array([names[1].index(word) for word in lexica.target.words])[types.columns]
    forward, backward = trainer.directions
    found = (
        forward.table + forward.rest[types.owners()] * forward.usual[types.columns],
        backward.table + backward.rest[types.columns] * backward.usual[types.owners()],
    )
    for table, dense in zip(found, expected, strict=True):
        np.testing.assert_allclose(table, dense[rows, columns], rtol=1e-6)


@given(corpora)
def test_translations_of_a_word_sum_to_one(pairs):
    trainer = trained(pairs, prior=1.0, joint=True)
    for direction, side in zip(trainer.directions, trainer.sides, strict=True):
        assert direction.rest[-1] == 1.0  # an unknown word may be translated by all words, as frequent as they are
        assert direction.null.sum() == pytest.approx(1.0)
        np.testing.assert_allclose(np.bincount(side.group, direction.table) + direction.rest[:-1], 1.0)


@given(corpora)
def test_agreement_gives_both_directions_the_same_counts(pairs):
    """So tables times totals are the same numbers, what the prior adds to words that are spelled alike included."""
    trainer = trained(pairs, joint=True, prior=1.0, leave_out=True)
    (forward, backward), types = trainer.directions, trainer.corpus.types
    totals = trainer.left[0].totals[types.owners()], trainer.left[1].totals[types.columns]
    np.testing.assert_allclose(forward.table * totals[0], backward.table * totals[1], rtol=1e-9, atol=1e-12)


def test_words_that_occur_once_do_not_confirm_themselves():
    """Both words of the last pair occur nowhere else: left out, nothing is known about them but their frequency."""
    pairs = [(["a", "b"], ["A", "B"]), (["b", "c"], ["B", "C"]), (["a", "c"], ["A", "C"]), (["x", "y"], ["X", "Y"])]
    plain, left = (trained(pairs, joint=True, prior=0.1, leave_out=leave_out, iterations=20) for leave_out in (0, 1))
    sure, even = (trainer.directions[0].table[-4:] for trainer in (plain, left))
    assert sure[1:3].max() < 1e-5  # the first guess of the HMM, that order is kept, has become a certainty
    assert even[1:3].min() > 1e-3


@pytest.mark.parametrize("joint", [False, True])
def test_swapping_the_languages_swaps_the_directions(joint, random):
    pairs = [(list(a), list(b)) for a, b in random.choice(list("abcdef"), size=(30, 2, 5))]
    trainer, swapped = trained(pairs, joint=joint), trained([pair[::-1] for pair in pairs], joint=joint)
    np.testing.assert_allclose(trainer.likelihoods, np.array(swapped.likelihoods)[:, ::-1])


def test_same_threads_same_bits(random):
    pairs = [(list(a), list(b)) for a, b in random.choice(list("abcdefghij"), size=(50, 2, 6))]
    one, again, three = trained(pairs, 3), trained(pairs, 3), trained(pairs, 1)
    assert one.likelihoods == again.likelihoods
    for a, b in zip(one.directions, again.directions, strict=True):
        assert np.array_equal(a.table, b.table)
        assert np.array_equal(a.jumps, b.jumps)
    np.testing.assert_allclose(one.likelihoods, three.likelihoods)
    assert one.likelihoods[:4] == three.likelihoods[:4]  # Model 1 does not depend on the number of threads
