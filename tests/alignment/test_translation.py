"""The E-step against a sum over all alignments, one by one."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from m3n.alignment.direction import Direction
from m3n.compiled.sweeps.cooccurrence import PackedPairs
from m3n.packed import SERIAL, Threads

NULL = -1


def packed(sizes):
    """Sentence pairs of these sizes, every word another one."""
    rows, columns = np.array(sizes).T
    starts = [np.concatenate([[0], np.cumsum(each)]) for each in (rows, columns, rows * columns)]
    words = [np.arange(count, dtype=np.int32) for count in (rows.sum(), columns.sum())]
    return PackedPairs(*words, *starts)


def direction(random, sizes, swapped=False, reach=2, skip=0.2, even=0.3):
    """Any translations; ``reach=0`` is Model 1."""
    generating, generated = np.array(sizes).sum(axis=0)[:: -1 if swapped else 1]
    types = sum(rows * columns for rows, columns in sizes)
    jumps = random.uniform(0.1, 1.0, size=2 * reach + 1) if reach else np.empty(0)
    table, rest = random.uniform(size=types), random.uniform(size=generating + 1)
    usual, null = (random.uniform(size=generated + 1) for _ in range(2))
    return Direction(table, rest, usual, null, jumps, skip, even)


def jump_probability(model, place, i, size):
    """Of the even kind, and of the learnt kind; ``place`` is the last word that was not null, -1 at first."""
    if not len(model.jumps):
        return 1.0 / size, 0.0
    reach = len(model.jumps) // 2
    weights = [model.jumps[np.clip(k - place, -reach, reach) + reach] for k in range(size)]
    return model.even / size, (1.0 - model.even) * weights[i] / sum(weights)


def enumerated(model, t, null):
    """Value, posteriors of links and nulls, jumps by bucket and departures, from all alignments; t: (words, places)."""
    length, size = t.shape
    reach = len(model.jumps) // 2
    total, links, nulls = 0.0, np.zeros(t.shape), np.zeros(length)
    jumps, departures = np.zeros(len(model.jumps)), np.zeros(size + 1)
    for alignment in itertools.product([NULL, *range(size)], repeat=length):
        weight, place, moves = 1.0, -1, []
        for j, i in enumerate(alignment):
            if i == NULL:
                weight *= model.skip * null[j]
            else:
                even, own = jump_probability(model, place, i, size)
                weight *= (1.0 - model.skip) * t[j, i] * (even + own)
                moves.append((place, i, own / (even + own)))
                place = i
        total += weight
        for j, i in enumerate(alignment):
            if i == NULL:
                nulls[j] += weight
            else:
                links[j, i] += weight
        for before, after, share in moves if reach else ():
            jumps[np.clip(after - before, -reach, reach) + reach] += weight * share
            departures[before + 1] += weight * share
    return np.log(total), links / total, nulls / total, jumps / total, departures / total


def translations(model, pairs, k, swapped):
    """t of a sentence pair, (generated words, generating words)."""
    rows, columns = (np.arange(starts[k], starts[k + 1]) for starts in (pairs.source_starts, pairs.target_starts))
    table = model.table[pairs.cells[k] : pairs.cells[k + 1]].reshape(len(rows), len(columns))
    if swapped:
        return table + np.outer(model.usual[rows], model.rest[columns])
    return (table + np.outer(model.rest[rows], model.usual[columns])).T


@given(
    st.lists(st.tuples(st.integers(1, 3), st.integers(1, 4)), min_size=1, max_size=3),
    st.booleans(),
    st.integers(0, 3),
    st.integers(0, 1000),
)
def test_posteriors_and_jumps_are_sums_over_alignments(sizes, swapped, reach, seed):
    pairs, model = packed(sizes), direction(np.random.default_rng(seed), sizes, swapped, reach)
    found = model.posteriors(pairs, np.arange(pairs.cells[-1]), swapped, SERIAL)
    starts = pairs.source_starts if swapped else pairs.target_starts
    jumps, departures = np.zeros(len(model.jumps)), np.zeros_like(found.departures)
    for k in range(len(sizes)):
        own = slice(starts[k], starts[k + 1])
        t = translations(model, pairs, k, swapped)
        value, links, nulls, moves, left = enumerated(model, t, model.null[own])
        assert found.expected.values[k] == pytest.approx(value)
        cells = found.expected.links[pairs.cells[k] : pairs.cells[k + 1]].reshape(sizes[k])
        np.testing.assert_allclose(cells if swapped else cells.T, links, atol=1e-12)
        np.testing.assert_allclose(found.expected.null[own], nulls, atol=1e-12)
        jumps += moves
        if reach:
            departures[t.shape[1], : t.shape[1] + 1] += left
    np.testing.assert_allclose(found.jumps, jumps, atol=1e-12)
    np.testing.assert_allclose(found.departures, departures, atol=1e-12)


@given(st.integers(0, 1000), st.booleans())
def test_an_hmm_whose_jumps_are_all_even_is_model_1(seed, swapped):
    random, sizes = np.random.default_rng(seed), [(3, 5), (4, 2)]
    pairs, model = packed(sizes), direction(random, sizes, swapped, reach=2, even=1.0)
    chain, independent = (
        each.posteriors(pairs, np.arange(pairs.cells[-1]), swapped, SERIAL).expected
        for each in (model, replace(model, jumps=np.empty(0)))
    )
    for a, b in zip(chain, independent, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10)


def test_the_slope_of_the_likelihood_is_the_posterior(random):
    """t d(log-likelihood)/dt of a cell is its posterior, at a sentence pair that nobody could enumerate."""
    sizes = [(20, 25)]
    pairs, model = packed(sizes), direction(random, sizes)
    model = replace(model, rest=np.zeros_like(model.rest))
    slots = np.arange(pairs.cells[-1])
    links = model.posteriors(pairs, slots, False, SERIAL).expected.links
    for cell in random.choice(len(slots), 10, replace=False):
        values = []
        for step in (1e-4, -1e-4):
            table = model.table.copy()
            table[cell] *= np.exp(step)
            moved = replace(model, table=table)
            values.append(moved.posteriors(pairs, slots, False, SERIAL).expected.values[0])
        assert (values[0] - values[1]) / 2e-4 == pytest.approx(links[cell], abs=1e-6)


@pytest.mark.parametrize("swapped", [False, True])
def test_long_sentences_do_not_underflow(swapped, random):
    sizes = [(150, 130)]
    pairs, model = packed(sizes), direction(random, sizes, swapped)
    tiny = replace(model, table=10.0 ** random.uniform(-30, -8, size=len(model.table)), rest=model.rest * 0.0)
    expected = tiny.posteriors(pairs, np.arange(pairs.cells[-1]), swapped, SERIAL).expected
    links = expected.links.reshape(sizes[0])
    np.testing.assert_allclose(links.sum(axis=1 if swapped else 0) + expected.null, 1.0, rtol=1e-9)
    assert np.isfinite(expected.values).all()


def test_threads_find_the_same(random):
    sizes = [tuple(random.integers(1, 9, size=2)) for _ in range(40)]
    pairs, model = packed(sizes), direction(random, sizes)
    slots = np.arange(pairs.cells[-1])
    alone, again, together = (model.posteriors(pairs, slots, False, Threads(n)) for n in (1, 3, 3))
    for a, b, c in zip(alone.expected, again.expected, together.expected, strict=True):
        assert np.array_equal(a, b)
        assert np.array_equal(b, c)
    assert np.array_equal(again.jumps, together.jumps)
    np.testing.assert_allclose(alone.jumps, together.jumps)
