"""The suite of word alignment: its files and its figure."""

import gzip

import pytest

from benchmarks.alignment import Annotated, Task, agreement, annotated, error_rate, toy, with_test_text
from m3n.io import Alignment


def test_error_rate_by_hand():
    """5 links found, 2 of 3 sure ones among them and 1 possible one: 1 - (2 + 3) / (5 + 3)."""
    gold = [Alignment(frozenset({(0, 0), (1, 1)}), frozenset({(0, 1)})), Alignment(frozenset({(0, 0)}))]
    found = [[(0, 0), (0, 1), (2, 2)], [(0, 0), (1, 0)]]
    assert error_rate(found, gold) == pytest.approx(100.0 * (1.0 - 5 / 8))
    assert error_rate([sorted(each.sure) for each in gold], gold) == 0.0


def test_files_of_links(tmp_path):
    texts = {"dev.e": "a b\nc\n", "dev.f": "A\nC D\n", "dev.wa.nonullalign": "0001 1 1 S\n0001 2 1 P\n2 1 2 S\n"}
    for name, text in texts.items():
        with gzip.open(tmp_path / f"{name}.gz", "wt") as file:
            file.write(text)
    found = annotated(tmp_path, "dev")
    assert found.pairs == [(["a", "b"], ["A"]), (["c"], ["C", "D"])]
    assert found.alignments == [Alignment(frozenset({(0, 0)}), frozenset({(1, 0)})), Alignment(frozenset({(0, 1)}))]
    assert found.after(1).pairs == found.pairs[1:]


def test_rows_on_toy_languages():
    task = toy()
    task = Task(task.train[:300], {name: Annotated(*test) for name, test in task.tests.items()})
    found = agreement("joint", task) | with_test_text(task)
    assert len(found) == 2
    for figures in found.values():
        assert figures["seconds"] > 0.0
        assert 0.0 < figures["test"] < 40.0
