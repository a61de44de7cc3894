"""Which arcs a filter keeps, against all trees of short sentences, one by one."""

from functools import partial
from itertools import pairwise, product

import numpy as np
import pytest

from m3n.estimators import arc_filter
from m3n.estimators.arc_filter import ArcFilter, right_arcs
from m3n.estimators.projective import crossing
from m3n.estimators.words import WordReader
from m3n.features.arcs import ArcTemplates, arc_codes
from m3n.features.words import WordTable
from m3n.packed import SERIAL
from m3n.structures import Arcs, NonProjectiveTree, ProjectiveTree
from tests.estimators.trees import heads_of, sentences

TEMPLATES = ArcTemplates(12, 12).filter
SHARES = (0.0, 1e-3, 0.05, 0.3, 0.999)
KINDS = [partial(kind, single_root=root) for kind in (ProjectiveTree, NonProjectiveTree) for root in (True, False)]


def table(*lengths):
    """Made-up sentences of these lengths."""
    random = np.random.default_rng(3)
    tags = [random.choice(["NOUN", "VERB", "DET"], size=length).tolist() for length in lengths]
    return WordTable.of([[{"form": tag.lower(), "lemma": tag[0], "upos": tag} for tag in own] for own in tags])


def all_trees(length, space):
    """Every list of heads that is a tree, and one of this space."""
    for heads in product(range(length + 1), repeat=length):
        roots = heads.count(0) == 1 or not space.keywords["single_root"]
        if roots and reaches_the_root(heads) and (space.func is NonProjectiveTree or not crossing(list(heads))):
            yield heads


def reaches_the_root(heads):
    found = set(range(1, len(heads) + 1))
    for _ in heads:
        found = {heads[word - 1] for word in found if word}
    return found <= {0}


def slowly_kept(words, w, space, share):
    """The arcs of the best tree, and those that are likely enough, for a sentence after another."""
    arcs, kept = Arcs.all(words.lengths), []
    theta = arc_codes(TEMPLATES, words, arcs).scores(w, (np.empty(len(arcs.head)),))[0]
    for i, length in enumerate(words.lengths.tolist()):
        own = slice(arcs.first[i], arcs.first[i + 1])
        score = dict(zip(zip(arcs.head[own], arcs.dependent[own], strict=True), theta[own], strict=True))
        trees = list(all_trees(length, space))
        weights = np.exp([sum(score[h, d] for d, h in enumerate(heads, start=1)) for heads in trees])
        best, chances = trees[int(weights.argmax())], np.zeros((length + 1, length + 1))
        for heads, weight in zip(trees, weights / weights.sum(), strict=True):
            chances[heads, np.arange(1, length + 1)] += weight
        kept += [best[d - 1] == h or chances[h, d] >= share * chances[:, d].max() for h, d in score]
    return np.array(kept)


@pytest.mark.parametrize("share", SHARES[1:])
@pytest.mark.parametrize("space", KINDS)
def test_arcs_are_kept_by_their_probability(random, space, share):
    words = table(1, 4, 1, 1, 3, 2, 4)
    w = random.normal(size=TEMPLATES.dim) / 2.0
    found = ArcFilter(TEMPLATES, space, share).kept(words, w, SERIAL)
    np.testing.assert_array_equal(found, slowly_kept(words, w, space, share))
    assert found.sum() >= words.lengths.sum()


@pytest.mark.parametrize("space", KINDS)
def test_a_stricter_filter_keeps_fewer_arcs_and_always_a_tree(random, space):
    words = table(12, 1, 7, 9, 2)
    w, arcs = random.normal(size=TEMPLATES.dim) / 2.0, Arcs.all(words.lengths)
    found = [ArcFilter(TEMPLATES, space, share).kept(words, w, SERIAL) for share in SHARES]
    assert found[0].all()
    for loose, strict in pairwise(found):
        assert (strict <= loose).all()
        assert strict.sum() < loose.sum()
        structure = space(arcs.only(strict))
        assert np.isfinite(structure.hard((np.zeros(strict.sum()),))[0]).all()


@pytest.mark.parametrize("space", KINDS[:3:2])
def test_neighbours_do_not_matter(random, space):
    """A sentence of one word has a sure arc, which is no measure for the first word of the next sentence."""
    lengths, w = (1, 5, 1, 6, 4), random.normal(size=TEMPLATES.dim)
    words, sieve = table(*lengths), ArcFilter(TEMPLATES, space, 0.2)
    alone = [sieve.kept(words.only(np.array([i])), w, SERIAL) for i in range(len(lengths))]
    np.testing.assert_array_equal(sieve.kept(words, w, SERIAL), np.concatenate(alone))


@pytest.fixture(scope="module")
def bank():
    X, y = sentences(0, 40)
    return WordReader().fit(X), heads_of(y)


def test_training_makes_right_arcs_likely(bank):
    words, heads = bank
    sieve = ArcFilter(TEMPLATES, KINDS[0], 0.3)
    arcs, w = Arcs.all(words.lengths), sieve.train(words, heads, n_jobs=1)
    kept, right = sieve.kept(words, w, SERIAL), right_arcs(arcs, heads)
    assert kept[right].mean() > 0.95
    assert kept[~right].mean() < 0.3
    untrained = sieve.kept(words, np.zeros_like(w), SERIAL)
    assert untrained[~right].mean() > 0.6  # the test of the test


def test_sentences_count_as_often_as_they_should(bank, monkeypatch):
    """A weight of 2 is the same as the sentence twice."""
    monkeypatch.setattr(arc_filter, "EFFORT", (0.0, 1000))
    words, heads = bank[0].only(np.arange(6)), bank[1][:6]
    sieve, twice = ArcFilter(TEMPLATES, KINDS[0], 0.1), np.array([0, 0, 1, 2, 3, 4, 5, 5, 5])
    weighted = sieve.train(words, heads, np.array([2.0, 1.0, 1.0, 1.0, 1.0, 3.0]), n_jobs=1)
    repeated = sieve.train(words.only(twice), [heads[i] for i in twice], n_jobs=1)
    plain = sieve.train(words, heads, n_jobs=1)
    assert np.linalg.norm(weighted - repeated) < 0.2 * np.linalg.norm(plain - repeated)


def test_of_many_sentences_some_are_enough(bank, monkeypatch):
    words, heads = bank
    sieve = ArcFilter(TEMPLATES, KINDS[0], 0.1)
    monkeypatch.setattr(arc_filter, "ENOUGH", 4)
    some = np.array([0, 13, 26, 39])
    expected = sieve.train(words.only(some), [heads[i] for i in some], n_jobs=1)
    np.testing.assert_array_equal(sieve.train(words, heads, n_jobs=1), expected)


def test_right_arcs():
    arcs = Arcs.all([3, 1, 2])
    found = arcs.only(right_arcs(arcs, [[2, 0, 2], [0], [0, 1]]))
    assert list(zip(found.sentence, found.dependent, found.head, strict=True)) == [
        (0, 1, 2), (0, 2, 0), (0, 3, 2), (1, 1, 0), (2, 1, 0), (2, 2, 1),
    ]  # fmt: skip
