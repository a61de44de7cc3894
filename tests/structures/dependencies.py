"""Dependency trees by their definition, random candidate arcs, and tiny problems of parsing."""

import itertools

import numpy as np
import pytest
from hypothesis import strategies as st

from m3n.features import FeatureMap
from m3n.losses import PartLoss
from m3n.problem import Problem
from m3n.structures import Arcs
from tests.tiny import Enumerated


def ancestors(heads, word):
    """The heads above a word, up to the root; None if they go round in a circle."""
    found = []
    while word != 0:
        word = heads[word - 1]
        if word in found:
            return None
        found.append(word)
    return found


def all_trees(length, single_root=True):
    """Every list of heads that is a tree."""
    for heads in itertools.product(range(length + 1), repeat=length):
        if all(ancestors(heads, word) for word in range(1, length + 1)) and (heads.count(0) == 1 or not single_root):
            yield list(heads)


def is_projective(heads):
    """Whether a head is above all words between it and its dependent."""
    return all(
        head in ancestors(heads, between)
        for word, head in enumerate(heads, 1)
        for between in range(min(word, head) + 1, max(word, head))
    )


def random_tree(random, length):
    """Heads of a projective tree: a root somewhere, and trees on both sides of it."""

    def grow(low, high, head):
        if low > high:
            return
        word = int(random.integers(low, high + 1))
        heads[word - 1] = head
        grow(low, word - 1, word)
        grow(word + 1, high, word)

    heads = [0] * length
    grow(1, length, 0)
    return heads


def random_arcs(random, lengths, labels=1, density=0.5, all_labels=True):
    """The arcs of a random projective tree, and others."""
    pairs, allowed = [], []
    for length in lengths:
        tree = {(head, word) for word, head in enumerate(random_tree(random, length), 1)}
        every = ((head, word) for head in range(length + 1) for word in range(1, length + 1) if head != word)
        own = [pair for pair in every if pair in tree or random.random() < density]
        pairs.append(random.permutation(np.array(own)))
        allowed.append([random.permutation(labels)[: random.integers(1, labels + 1)] for _ in own])
    return Arcs.of(lengths, pairs, labels, None if all_labels else allowed)


@st.composite
def trees(draw, kind, most=4, **settings):
    """Structures of one to three tiny sentences; few arcs or all, one label or two, one root or more."""
    labels = draw(st.integers(1, 2))
    lengths = draw(st.lists(st.integers(1, most if labels == 1 else most - 1), min_size=1, max_size=3))
    random = np.random.default_rng(draw(st.integers(0, 10_000)))
    settings["single_root"] = draw(st.booleans())
    density = draw(st.sampled_from([0.0, 0.4, 1.0]))
    return kind(random_arcs(random, lengths, labels, density, draw(st.booleans())), **settings)


class ArcFeatures(FeatureMap):
    """A row of features for every part; all weights are shared."""

    def __init__(self, matrices):
        self.matrices, self.dim = matrices, matrices[0].shape[1]
        self.shapes = tuple((len(X),) for X in matrices)

    def scores(self, w, out, threads=None):
        for array, X in zip(out, self.matrices, strict=True):
            array[:] = X @ w
        return out

    def adjoint(self, parts, threads=None):
        return sum(X.T @ array for array, X in zip(parts, self.matrices, strict=True))

    def norms(self):
        return tuple(np.sqrt(2.0) * np.linalg.norm(X, axis=1) for X in self.matrices)

    def select(self, rows):
        return ArcFeatures([X[r] for X, r in zip(self.matrices, rows, strict=True)])


def parsing_problem(structure, seed=0, loss=None, temperature=0.0, dim=4, lam=0.1, **settings):
    """Random features of all parts; the best trees of random scores are right."""
    random = np.random.default_rng(seed)
    features = ArcFeatures([random.normal(size=(*shape, dim)) for shape in structure.shapes])
    gold = structure.unpack(structure.hard(tuple(random.normal(size=shape) for shape in structure.shapes))[1])
    loss = loss or (None if temperature else PartLoss(missed=0.5, spurious=0.5, arrays=[0]))
    return Problem(structure, features, gold, loss=loss, lam=lam, temperature=temperature, n_jobs=1, **settings)


def long_sentences(structure, random, mu=1.0):
    """Marginals are those of a distribution, and the derivative of the value."""
    theta = tuple(random.normal(size=shape) for shape in structure.shapes)
    value, marginals = structure.soft(tuple(array.copy() for array in theta), mu)
    heads = np.add.reduceat(marginals[0], structure.arcs.word_first[:-1])
    np.testing.assert_allclose(heads, 1.0, atol=1e-9)
    assert min(array.min() for array in marginals) >= 0.0
    step = tuple(random.normal(size=shape) for shape in structure.shapes)
    both = [structure.soft(tuple(a + s * b for a, b in zip(theta, step, strict=True)), mu)[0] for s in (1e-5, -1e-5)]
    slope = np.zeros(structure.n)
    for array, direction, span in zip(marginals, step, structure.spans(), strict=True):
        slope += np.bincount(np.repeat(np.arange(structure.n), np.diff(span)), array * direction, structure.n)
    np.testing.assert_allclose((both[0] - both[1]) / 2e-5, slope, rtol=1e-6, atol=1e-6)
    best = structure.hard(theta)[0]
    assert (best <= value).all()
    assert (value <= best + mu * structure.log_size() + 1e-9).all()


def slack_products_agree(structure):
    """The largest loss times margin by the search of branches, against all outputs."""
    random = np.random.default_rng(0)
    for loss in (PartLoss(0.5, 0.5, arrays=[0]), PartLoss(1.0, 0.7)):
        for scale in (0.3, 1.0, 3.0):
            problem = parsing_problem(structure, loss=loss, rescale="slack")
            plain = parsing_problem(structure, loss=loss)
            known, w = Enumerated.of(plain), scale * random.normal(size=plain.dim)
            products = known.ell * (1.0 - known.psi @ w)
            best = np.mean([max(products[known.owner == i].max(), 0.0) for i in range(structure.n)])
            assert problem.hard(w).value == pytest.approx(best)
