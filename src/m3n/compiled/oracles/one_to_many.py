"""Alignments in which every row picks a column or none: all oracles are row by row.

Local theta = links row by row, then the null part of every row; a part is a clique.
"""

import math
from typing import NamedTuple

import numpy as np

from m3n.compiled.jit import borrowing
from m3n.compiled.oracles.hooks import implements
from m3n.compiled.oracles.links import LinkTable, is_barred
from m3n.compiled.primitives.exponential import exp
from m3n.compiled.primitives.order import ascend


class OneToManySpace(NamedTuple):
    """Plain arrays of a ``OneToMany``."""

    table: LinkTable


@implements("workspace", OneToManySpace)
def _workspace(space):
    return np.empty(0)


@implements("best", OneToManySpace)
def _best(space, i, theta, parts, work):
    rows, value = space.table.rows[i], 0.0
    for row in range(rows):
        parts[row], score = _best_of_row(space.table, i, row, theta)
        value += score
    ascend(parts, 0, rows)
    return value, rows if value > -np.inf else 0


@implements("soft", OneToManySpace)
def _soft(space, i, theta, mu, work):
    rows, columns, value = space.table.rows[i], space.table.columns[i], 0.0
    for row in range(rows):
        links = theta[row * columns : (row + 1) * columns]
        for j in range(columns):
            links[j] = -np.inf if is_barred(space.table, i, row * columns + j) else links[j]
        value += _soft_row(links, theta, rows * columns + row, mu)
    return value


@implements("worst", OneToManySpace)
def _worst(space, i, theta, mass, parts, work):
    rows, columns, value = space.table.rows[i], space.table.columns[i], 0.0
    for row in range(rows):
        null, least = rows * columns + row, np.inf
        if mass[null] > 0.0:
            parts[row], least = null, theta[null]
        for link in range(row * columns, (row + 1) * columns):
            if mass[link] > 0.0 and theta[link] < least:
                parts[row], least = link, theta[link]
        value += least
    if value == np.inf:
        return value, 0
    ascend(parts, 0, rows)
    return value, rows


@implements("cliques", OneToManySpace)
def _cliques(space, i, parts, out):
    for row in range(space.table.rows[i]):
        out[row] = parts[row]
    return space.table.rows[i]


@implements("clique_range", OneToManySpace)
def _clique_range(space):
    found = 0
    for i in range(space.table.rows.shape[0]):
        found = max(found, space.table.rows[i] * (space.table.columns[i] + 1))
    return found


@borrowing
def _best_of_row(table, i, row, theta):
    """The best part of a row and its score; of equal ones the null part, then the first column."""
    columns = table.columns[i]
    part = table.rows[i] * columns + row
    top = theta[part]
    for link in range(row * columns, (row + 1) * columns):
        if theta[link] > top and not is_barred(table, i, link):
            part, top = link, theta[link]
    return part, top


@borrowing
def _soft_row(links, theta, null, mu):
    """Scores of a row become probabilities, all 0 if none is allowed; returns mu log-sum-exp."""
    top = theta[null]
    for j in range(links.shape[0]):
        top = max(top, links[j])
    shift = top if top > -np.inf else 0.0
    theta[null] = exp((theta[null] - shift) / mu)
    total = theta[null]
    for j in range(links.shape[0]):
        links[j] = exp((links[j] - shift) / mu)
        total += links[j]
    if not total > 0.0:
        return top
    theta[null] /= total
    for j in range(links.shape[0]):
        links[j] /= total
    return top + mu * math.log(total)
