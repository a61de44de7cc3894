"""The suite of word alignment: its files and its figure."""

import gzip

from benchmarks.alignment import Task, agreement, annotated, toy, with_test_text
from m3n.io import Alignment


def test_files_of_links(tmp_path):
    texts = {"dev.e": "a b\nc\n", "dev.f": "A\nC D\n", "dev.wa.nonullalign": "0001 1 1 S\n0001 2 1 P\n2 1 2 S\n"}
    for name, text in texts.items():
        with gzip.open(tmp_path / f"{name}.gz", "wt") as file:
            file.write(text)
    found = annotated(tmp_path, "dev")
    assert found.pairs == [(["a", "b"], ["A"]), (["c"], ["C", "D"])]
    assert found.alignments == [Alignment(frozenset({(0, 0)}), frozenset({(1, 0)})), Alignment(frozenset({(0, 1)}))]
    assert found.after(1).pairs == found.pairs[1:] and found.up_to(1).alignments == found.alignments[:1]


def test_rows_on_toy_languages():
    task = toy()
    task = Task(task.train[:300], task.labelled, task.tests)
    found = agreement("joint", task) | with_test_text(task)
    assert len(found) == 2
    for figures in found.values():
        assert figures["seconds"] > 0.0
        assert 0.0 < figures["test"] < 40.0
