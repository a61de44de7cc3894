"""Multiclass as a space for block methods: local theta = one row of labels, a label is both part and clique."""

from typing import NamedTuple

import numpy as np

from m3n.compiled.maps.costs import copy_gold, loss_of, margin_base
from m3n.compiled.oracles.hooks import implements
from m3n.compiled.primitives import rows


class MulticlassSpace(NamedTuple):
    """Plain arrays of a ``Multiclass``."""

    labels: int


@implements("workspace", MulticlassSpace)
def _workspace(space):
    return np.empty(1)


@implements("best", MulticlassSpace)
def _best(space, i, theta, parts, work):
    label = 0
    for j in range(1, space.labels):
        label = j if theta[j] > theta[label] else label
    parts[0] = label
    return theta[label], 1


@implements("slack_workspace", MulticlassSpace)
def _slack_workspace(space, costs):
    return np.empty(1)


@implements("slack", MulticlassSpace)
def _slack(space, costs, i, theta, parts, work):
    label, value, base = -1, 0.0, margin_base(costs, i, theta)
    for j in range(space.labels):
        parts[0] = j
        loss = loss_of(costs.label, i, parts, 1)
        if loss > 0.0 and not loss * (base + theta[j]) <= value:
            label, value = j, loss * (base + theta[j])
    if label < 0:
        return 0.0, copy_gold(costs, i, parts)
    parts[0] = label
    return value, 1


@implements("worst", MulticlassSpace)
def _worst(space, i, theta, mass, parts, work):
    label, least = 0, np.inf
    for j in range(space.labels):
        if mass[j] > 0.0 and theta[j] < least:
            label, least = j, theta[j]
    parts[0] = label
    return least, 1


@implements("cliques", MulticlassSpace)
def _cliques(space, i, parts, out):
    out[0] = parts[0]
    return 1


@implements("clique_range", MulticlassSpace)
def _clique_range(space):
    return space.labels


@implements("soft", MulticlassSpace)
def _soft(space, i, theta, mu, work):
    rows.soft(theta[: space.labels].reshape(1, space.labels), 0, 1, mu, work)
    return work[0]
