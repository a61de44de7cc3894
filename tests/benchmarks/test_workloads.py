"""Workloads of the roofline: generated where data is absent, and counted as they are."""

import numpy as np
import pytest

from benchmarks import workloads
from m3n.features import Observed, ObservedTable, Stack, observed_pairs, observed_transitions


@pytest.fixture(autouse=True)
def no_real_data(monkeypatch):
    monkeypatch.delenv("M3N_DATA", raising=False)


def test_weights_met_are_counted_whatever_the_map():
    X, y, labels = workloads.generated(30, labels=40, length=5, used=3)
    every = workloads.chains(X, y, labels, 1)
    assert every.met >= X.nnz * labels
    pairs = observed_pairs(X, y.ravel(), labels)
    follows = ObservedTable(observed_transitions(y.ravel(), np.full(30, 5), labels))
    ends = ObservedTable(np.zeros(labels, bool))
    some = workloads.chains(X, y, labels, 1, Stack(Observed(X, pairs), follows, ends, ends))
    assert X.nnz <= (X @ np.diff(pairs.indptr)).sum() <= some.met < every.met
    assert every.positions == 150 * 40 and every.pairs == 120 * 40**2


def test_generated_grids_are_paths_with_tables():
    nodes, edges, seen, y = workloads.generated_grids(n=2, side=3)
    assert len(edges[0]) == seen[0].shape[0] == 12 and nodes[0].shape[0] == len(y[0]) == 9


def test_tagged_words_are_read(tmp_path):
    import gzip

    path = tmp_path / "a.conllu.gz"
    rows = ["# text", "1-2\tdon't\t_\t_\t_\t_\t_\t_\t_\t_", "1\tdo\tdo\tAUX\tVB\tMood=Ind\t0\troot\t_\t_", "", ""]
    with gzip.open(path, "wt") as file:
        file.write("\n".join(rows))
    assert list(workloads.tagged(path)) == [[("do", "AUX|VB|Mood=Ind")]]
