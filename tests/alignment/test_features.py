"""Features of links, checked on sentences small enough to see them."""

import numpy as np

from m3n.alignment.features import Evidence, link_features, word_features
from m3n.alignment.grid import Grid

X = [(["the", "Parliament", "sat", "."], ["le", "parlement", "siégea", "en", "1999", "."]), (["no"], ["non", "!"])]


def evidence(grid, random):
    links, words = int(grid.first[-1]), grid.sizes.sum(axis=0)
    numbers = [random.random(links) / 6 for _ in range(5)]
    return Evidence(*numbers, (random.integers(0, 1000, words[0]), random.integers(0, 1000, words[1])))


def features():
    grid = Grid.of(X)
    given = evidence(grid, np.random.default_rng(0))
    return grid, given, {name: grid.cut(np.asarray(v, float)) for name, v in link_features(grid, [given], X).items()}


def test_spelling():
    _, _, found = features()
    assert found["equal"][0][3].tolist() == [0, 0, 0, 0, 0, 1]  # the full stop
    assert found["both punctuation"][0][3, 5] == 1.0 and found["one punctuation"][0][3, 0] == 1.0
    assert found["one number"][0][1].tolist() == [0, 0, 0, 0, 1, 0]
    assert found["prefix"][0][1, 1] == 4 / 10  # parl, in whatever case
    assert found["prefix"][1][0, 0] == 2 / 3 and not found["equal"][1].any()
    assert found["lengths"][0][1, 0] == 8 / 10


def test_places():
    _, _, found = features()
    assert found["same end"][0][0, 0] == found["same end"][0][3, 5] == 1.0 and found["same end"][0].sum() == 2.0
    assert np.isclose(found["distance"][0][1, 4], abs(1.5 / 4 - 4.5 / 6))


def test_probabilities_beside_rivals():
    grid, given, found = features()
    forward = grid.cut(given.forward)[0]
    others = np.delete(forward[2], 3).max()
    assert np.isclose(found["forward above rivals of source"][0][2, 3], forward[2, 3] - others)
    assert found["forward best of target"][0].sum() == 6.0  # one for every target word
    both = np.sqrt(forward * grid.cut(given.backward)[0])
    assert np.isclose(found["both at -1+1"][0][1, 2], both[0, 3])
    assert np.isclose(found["both"][0], both).all()


def test_all_features_are_moderate_numbers():
    grid, given, found = features()
    for name, tables in found.items():
        assert all(np.isfinite(table).all() and np.abs(table).max() <= 1.0 for table in tables), name
    for side in (0, 1):
        own = word_features(grid, [given], side)
        assert all(np.asarray(v).shape == (grid.sizes[:, side].sum(),) for v in own.values())
        assert all(np.abs(np.asarray(v, float)).max() <= 1.0 for v in own.values())
        assert np.allclose(own["null"], 1 - grid.totals((given.forward, given.backward)[side], side))


def test_probabilities_of_zero_are_no_trouble():
    grid = Grid.of(X)
    nothing = np.zeros(int(grid.first[-1]))
    given = Evidence(nothing, nothing, nothing, nothing, nothing, (np.zeros(5, int), np.zeros(8, int)))
    assert all(np.isfinite(np.asarray(v, float)).all() for v in link_features(grid, [given], X).values())
