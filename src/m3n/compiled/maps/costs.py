"""A loss as compiled code sees it: a constant and costs of parts, one example at a time, or rows of labels."""

from typing import NamedTuple

import numpy as np

from m3n.compiled.jit import compiled, inner


class Costs(NamedTuple):
    """ell(y) = constant + costs of the parts of y; those of gold add up to minus the constant.

    Labels cost weight[r] * table[gold[r], label] on the rows of the first array of theta. Example i has
    ``values[starts[i]:starts[i + 1]]`` on top, at neighbouring parts from ``places[i]`` on. Label losses have none, and
    then all three arrays are empty; losses of other kinds have no rows of labels.
    """

    gold: np.ndarray
    weight: np.ndarray
    table: np.ndarray
    first: np.ndarray  # (n + 1,) rows of every example
    values: np.ndarray  # costs of single parts, example after example
    starts: np.ndarray  # (n + 1,) where those of an example begin
    places: np.ndarray  # (n,) where they stand in the local theta
    constants: np.ndarray  # (n,)


class SlackCosts(NamedTuple):
    """A label loss that multiplies the margin."""

    label: Costs
    units: np.ndarray  # (n,) of which every loss of the example is a multiple
    levels: np.ndarray  # (n,) the largest loss in units
    gold: np.ndarray  # (n, most) parts of the gold outputs
    gold_counts: np.ndarray  # (n,)


@compiled
def add_costs(costs, i, theta, scale):
    """theta += scale * loss of example i."""
    labels = costs.table.shape[1]
    for r in range(costs.first[i], costs.first[i + 1]):
        at, factor, gold = (r - costs.first[i]) * labels, scale * costs.weight[r], costs.gold[r]
        for j in range(labels):
            theta[at + j] += factor * costs.table[gold, j]
    if costs.values.shape[0] > 0:
        start, place = costs.starts[i], costs.places[i]
        for k in range(costs.starts[i + 1] - start):
            theta[place + k] += scale * costs.values[start + k]


@compiled
def loss_of(costs, i, parts, count):
    """The loss of an output of example i."""
    labels = costs.table.shape[1]
    end = (costs.first[i + 1] - costs.first[i]) * labels
    total = costs.constants[i]
    for k in range(count):
        if parts[k] < end:
            r = costs.first[i] + parts[k] // labels
            total += costs.weight[r] * costs.table[costs.gold[r], parts[k] % labels]
    if costs.values.shape[0] > 0:
        start, place = costs.starts[i], costs.places[i]
        for k in range(count):
            if place <= parts[k] < place + costs.starts[i + 1] - start:
                total += costs.values[start + parts[k] - place]
    return total


@compiled
def expected_costs(costs, i, marginals):
    """The expected costs of the parts of example i, without the constant: differences of marginals are taken, too."""
    labels = costs.table.shape[1]
    total = 0.0
    for r in range(costs.first[i], costs.first[i + 1]):
        at = (r - costs.first[i]) * labels
        row = 0.0
        for j in range(labels):
            row += costs.table[costs.gold[r], j] * marginals[at + j]
        total += costs.weight[r] * row
    if costs.values.shape[0] > 0:
        start, place = costs.starts[i], costs.places[i]
        for k in range(costs.starts[i + 1] - start):
            total += costs.values[start + k] * marginals[place + k]
    return total


@compiled
def score_of(theta, parts, count):
    """The score of an output."""
    total = 0.0
    for k in range(count):
        total += theta[parts[k]]
    return total


@inner
def margin_base(costs, i, theta):
    """1 - s(gold) of example i, for slack rescaling."""
    return 1.0 - score_of(theta, costs.gold[i], costs.gold_counts[i])


@inner
def copy_gold(costs, i, parts):
    """The gold output of example i as an answer; its number of parts."""
    for m in range(costs.gold_counts[i]):
        parts[m] = costs.gold[i, m]
    return costs.gold_counts[i]


@compiled
def add_to_rows(low, high, theta, gold, weight, table, scale):
    """theta[r, :] += scale * weight[r] * table[gold[r], :] for rows low..high-1."""
    for r in range(low, high):
        factor = scale * weight[r]
        for j in range(theta.shape[1]):
            theta[r, j] += factor * table[gold[r], j]


@compiled
def expected_of_rows(low, high, marginals, gold, weight, table):
    """Sum over rows low..high-1 of weight[r] * <table[gold[r]], marginals[r]>."""
    total = 0.0
    for r in range(low, high):
        row = 0.0
        for j in range(marginals.shape[1]):
            row += table[gold[r], j] * marginals[r, j]
        total += weight[r] * row
    return total
