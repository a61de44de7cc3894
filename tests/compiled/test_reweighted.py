"""Sweep by sweep: what ``relaxed_map`` only shows at the end."""

import numpy as np
import pytest

from m3n.compiled.oracles import reweighted
from m3n.structures import relaxed_map
from m3n.structures.relaxation import _incidence

ROUNDS = 40


@pytest.mark.parametrize("labels", [2, 3, 6])
def test_no_sweep_makes_the_bound_worse_and_the_best_labels_are_kept(labels, random):
    nodes, edges, worse = 12, 30, 0
    for _ in range(10):
        ends = np.array([random.choice(nodes, size=2, replace=False) for _ in range(edges)])
        node, pair = random.normal(size=(nodes, labels)), random.normal(size=(edges, labels, labels))
        scores, graph = (node.ravel(), pair.ravel(), labels**2), _incidence(ends, nodes)
        messages, rows = np.zeros(2 * edges * labels), np.empty((2, labels))
        bounds, values, chosen = [], [], np.zeros(nodes, np.int64)
        for _ in range(ROUNDS):
            bounds.append(reweighted._sweep(scores, graph, 0, nodes, 0, 1, messages, *rows))
            values.append(reweighted._read_labels(scores, graph, 0, 0, messages, *rows, chosen))
            bounds.append(reweighted._sweep(scores, graph, 0, nodes, 0, 0, messages, *rows))
        assert np.diff(bounds).max() < 1e-9
        assert bounds[-1] < bounds[0]
        found = relaxed_map(node, ends, pair, offsets=[0, nodes], edge_offsets=[0, edges], max_rounds=ROUNDS)
        used = int(found.rounds[0])
        assert found.bounds[0] == pytest.approx(max(bounds[2 * used - 1], found.values[0]))
        assert found.values[0] >= max(values[:used]) - 1e-9
        worse += values[used - 1] < max(values[:used]) - 1e-9
    assert worse > 0  # the last labels are not always the best, or there would be nothing to keep
