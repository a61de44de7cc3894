"""Merging of sorted runs, with records of which nothing is in memory together."""

import numpy as np
import pytest

from m3n.shards.runs import Runs

RECORD = np.dtype([("key", "<i8"), ("count", "<i8")])


def added(records, starts):
    found = records[starts]
    found["count"] = np.add.reduceat(records["count"], starts)
    return found


@pytest.mark.parametrize("memory", [500, 10**6])
@pytest.mark.parametrize("keys", [1, 50, 10**6])
def test_counts_are_those_of_all_runs(memory, keys, random, tmp_path, monkeypatch):
    monkeypatch.setattr("m3n.shards.runs.MANY", 3)
    runs, everything = Runs(tmp_path / "run", RECORD, added, memory), []
    for _ in range(25):
        own = random.integers(-keys, keys, size=random.integers(0, 40))
        everything.append(own)
        records = np.zeros(len(own), RECORD)
        records["key"], records["count"] = own, 1
        runs.add(records)
        assert len(list(tmp_path.iterdir())) <= 3 * 3
    parts = list(runs.merged())
    assert len(parts) > 1 or memory > 500 or keys == 1
    found = np.concatenate(parts)
    expected, counts = np.unique(np.concatenate(everything), return_counts=True)
    np.testing.assert_array_equal(found["key"], expected)
    np.testing.assert_array_equal(found["count"], counts)
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_merged_to_nothing(tmp_path):
    runs = Runs(tmp_path / "run", RECORD, added, 100)
    runs.add(np.empty(0, RECORD))
    assert list(runs.merged()) == []


def test_ranges_are_about_as_large_as_memory_allows(random, tmp_path):
    runs = Runs(tmp_path / "run", RECORD, added, 60_000)
    for _ in range(20):
        records = np.zeros(1000, RECORD)
        records["key"] = random.integers(10**9, size=1000)
        runs.add(records)
    sizes = [len(part) for part in runs.merged()]
    assert max(sizes) * RECORD.itemsize < 60_000 / 6 * 2
