"""Tables of links, one after another, against plain loops over tables."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from m3n.alignment.grid import Grid

SIZES = st.lists(st.tuples(st.integers(1, 4), st.integers(1, 4)), min_size=1, max_size=4)


def drawn(sizes, seed, ties=False):
    grid, random = Grid(np.array(sizes)), np.random.default_rng(seed)
    values = random.integers(0, 3, grid.first[-1]).astype(float) if ties else random.random(grid.first[-1])
    return grid, values, grid.cut(values)


@given(SIZES)
def test_links_are_listed_row_by_row(sizes):
    grid = Grid(np.array(sizes))
    listed = [(k, i, j) for k, (rows, columns) in enumerate(sizes) for i in range(rows) for j in range(columns)]
    assert list(zip(grid.pair.tolist(), grid.source.tolist(), grid.target.tolist(), strict=True)) == listed
    per_pair = [[(i, j) for m, i, j in listed if m == k] for k in range(len(sizes))]
    assert grid.numbers(per_pair).tolist() == list(range(len(listed)))


@given(SIZES, st.integers(0, 99))
def test_turning_exchanges_source_and_target(sizes, seed):
    grid, values, tables = drawn(sizes, seed)
    other, links = grid.turned()
    for table, turned in zip(tables, other.cut(values[links]), strict=True):
        assert np.array_equal(table.T, turned)


@given(SIZES, st.integers(0, 99), st.integers(-2, 2), st.integers(-2, 2))
def test_neighbours(sizes, seed, down, right):
    grid, values, tables = drawn(sizes, seed)
    for table, found in zip(tables, grid.cut(grid.neighbour(values, down, right)), strict=True):
        for (i, j), value in np.ndenumerate(found):
            inside = 0 <= i + down < table.shape[0] and 0 <= j + right < table.shape[1]
            assert value == (table[i + down, j + right] if inside else 0.0)


@given(SIZES, st.integers(0, 99), st.sampled_from([0, 1]), st.booleans())
def test_rivals_and_totals(sizes, seed, side, ties):
    grid, values, tables = drawn(sizes, seed, ties)
    for table, found in zip(tables, grid.cut(grid.rivals(values, side)), strict=True):
        for (i, j), value in np.ndenumerate(found):
            others = np.delete(table[i], j) if side == 0 else np.delete(table[:, j], i)
            assert value == max(others, default=0.0)
    wanted = np.concatenate([table.sum(axis=1 - side) for table in tables])
    assert np.allclose(grid.totals(values, side), wanted)


@given(SIZES, st.integers(0, 99), st.data())
def test_some_pairs(sizes, seed, data):
    grid, values, tables = drawn(sizes, seed)
    chosen = np.array(data.draw(st.lists(st.integers(0, len(sizes) - 1), min_size=1, max_size=4)))
    part, links = grid.only(chosen)
    assert all(np.array_equal(tables[k], table) for k, table in zip(chosen, part.cut(values[links]), strict=True))
