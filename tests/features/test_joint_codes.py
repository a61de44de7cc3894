import numpy as np
import pytest

from m3n.features import joint_codes
from m3n.features.joint_codes import ABSENT, JointCodes


@pytest.fixture(params=["direct tables", "sorting", "small limit"])
def way(request, monkeypatch):
    """All ways through the code: by size they would be taken only for large data."""
    if request.param != "direct tables":
        monkeypatch.setattr(joint_codes, "TABLE_PER_KEY", 0)
    if request.param == "small limit":
        monkeypatch.setattr(joint_codes, "KEY_LIMIT", 40)


def test_numbers_tell_tuples_apart(way, random):
    sizes = (4, 5, 3, 6)
    parts = [random.integers(ABSENT, size, size=300) for size in sizes]
    tuples = list(zip(*(part.tolist() for part in parts), strict=True))
    codes = JointCodes(sizes)
    numbers = codes.learn(parts)
    distinct = sorted({t for t in tuples if min(t) >= 0})
    assert len(codes) == len(distinct) > 50
    assert numbers.tolist() == [distinct.index(t) if min(t) >= 0 else ABSENT for t in tuples]
    assert [tuple(row) for row in np.stack(codes.split(), axis=1).tolist()] == distinct
    np.testing.assert_array_equal(codes.find(parts), numbers)


def test_tuples_that_were_not_learnt_are_absent(way, random):
    sizes = (7, 9, 8)
    parts = [random.integers(0, size, size=40) for size in sizes]
    new = [random.integers(ABSENT, size, size=400) for size in sizes]
    codes = JointCodes(sizes)
    numbers = dict(zip(zip(*map(np.ndarray.tolist, parts), strict=True), codes.learn(parts).tolist(), strict=True))
    expected = [numbers.get(t, ABSENT) for t in zip(*map(np.ndarray.tolist, new), strict=True)]
    assert len(set(expected)) > 5
    assert codes.find(new).tolist() == expected
    assert JointCodes(sizes, codes.tables).find(new).tolist() == expected


def test_nothing_to_learn(way):
    codes = JointCodes((3, 4))
    assert codes.learn([np.array([ABSENT, 1]), np.array([2, ABSENT])]).tolist() == [ABSENT, ABSENT]
    assert codes.find([np.array([1]), np.array([2])]).tolist() == [ABSENT]
    assert [len(part) for part in codes.split()] == [0, 0]


def test_keys_beyond_64_bits():
    """Five places of a million codes each have 10^30 keys."""
    sizes = (10**6,) * 5
    parts = [np.array([999_999, 999_999, 0]), *(np.array([k, 999_999, 5]) for k in range(4))]
    codes = JointCodes(sizes)
    assert codes.learn(parts).tolist() == [1, 2, 0]
    assert np.stack(codes.split(), axis=1)[2].tolist() == [999_999] * 5
    assert codes.find([part[::-1] for part in parts]).tolist() == [0, 2, 1]
    assert codes.find([np.array([999_998]), *(part[1:2] for part in parts[1:])]).tolist() == [ABSENT]
