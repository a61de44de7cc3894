"""Sequential tree-reweighted message passing (Kolmogorov, 2006) on a packed batch of pairwise graphs: maximisation.

Edge e = (s, t), s before t in the numbering of the nodes, has a message to either end. Messages move scores from edges
to nodes and change no total:

    node_s(x) + sum over its edges of message_e>s(x),      pair_e(x, x') - message_e>s(x) - message_e>t(x').

A sweep visits the nodes in ascending or in descending order. Let b be the moved scores of node s less their maximum
v_s. On every edge to a node t that is still to come, s spends its share g = 1 / max(edges to earlier nodes, to later
nodes, 1):

    message_e>t(x') = max_x { g b(x) - message_e>s(x) + pair_e(x, x') } - c_e,       c_e such that the maximum is 0.

Whatever the messages were, sum_s v_s + sum_e c_e bounds the score of every labelling: c_e bounds what is left of an
edge together with the share spent on it, and what is not spent of b is at most 0. The bound of the sweeps never gets
worse. A label whose moved score is -inf is part of no labelling with a finite score; it stays out of the maxima, so
that no infinities are subtracted from one another.

Labels are read off in ascending order: the scores given the labels of earlier neighbours, plus the messages from later
ones. Afterwards single labels are changed as long as that helps.

Layout. ``scores`` = (node, tables, step): ``node`` (nodes, labels) and ``tables`` are flat, the table of edge e begins
at e step (step 0: one table for all). ``graph`` = (first, middle, incident, ends, turned), edges and nodes numbered
through all graphs: node s has the edges ``incident[first[s]:middle[s]]`` to earlier nodes and
``incident[middle[s]:first[s + 1]]`` to later ones; ``ends`` (edges, 2) are the earlier and the later node; the rows of
a table belong to ends[e, turned[e]]. ``messages``, flat too, (edges of a graph, 2, labels): to the earlier, to the
later end.

Cost of a round: O(edges labels^2), twice.
"""

import numpy as np

from m3n.compiled.jit import compiled, inlined, inner
from m3n.compiled.primitives.vector import add, broadcast, highest, load, maximum, splat, store

PATIENCE = 5  # rounds without progress before giving up
PROGRESS = 1e-9  # of the bound, relative: below this a round has made none
REPAIRS = 10  # most sweeps that change single labels


@compiled
def solve(scores, graph, offsets, edge_offsets, low, high, tol, most, labelling, values, bounds, rounds):
    """Labels, their scores, upper bounds and numbers of rounds of graphs low..high-1; labels are 0 before."""
    labels = scores[0].shape[0] // graph[1].shape[0]
    score, spent = np.empty(labels), np.empty(labels)
    for k in range(low, high):
        best, edge = labelling[offsets[k] : offsets[k + 1]], edge_offsets[k]
        trial, messages = best.copy(), np.zeros(2 * (edge_offsets[k + 1] - edge) * labels)
        values[k], bounds[k], rounds[k], idle = -np.inf, np.inf, 0, 0
        while rounds[k] < most and idle < PATIENCE and not closed(values[k], bounds[k], tol):
            rounds[k] += 1
            bound = _sweep(scores, graph, offsets[k], offsets[k + 1], edge, 1, messages, score, spent)
            value = _read_labels(scores, graph, offsets[k], edge, messages, score, spent, trial)
            bound = min(bound, _sweep(scores, graph, offsets[k], offsets[k + 1], edge, 0, messages, score, spent))
            if value > values[k]:
                values[k] = value
                best[:] = trial
            idle = 0 if bounds[k] - bound > PROGRESS * (1.0 + abs(bound)) else idle + 1
            bounds[k] = min(bounds[k], bound)
        if not closed(values[k], bounds[k], tol):
            values[k] = _repair(scores, graph, offsets[k], score, best)
        bounds[k] = max(bounds[k], values[k])  # rounding


@compiled
def closed(value, bound, tol):
    """Whether a labelling is known to be the best, or that there is none."""
    return bound == -np.inf or (value > -np.inf and bound - value <= tol * (1.0 + abs(value)))


@compiled
def _sweep(scores, graph, begin, end, edge, side, messages, score, spent):
    """New messages to all earlier (side 1: the sender is the later end) or later nodes (side 0); a bound."""
    node, tables, step = scores
    first, middle, incident, _, turned = graph
    total, labels = 0.0, score.shape[0]
    for q in range(end - begin):
        s = end - 1 - q if side else begin + q
        _move(node, s * labels, first[s], middle[s], first[s + 1], incident, edge, messages, score)
        total += _normalize(score, 0, labels)
        share = 1.0 / max(middle[s] - first[s], first[s + 1] - middle[s], 1)
        for at in range(first[s] if side else middle[s], middle[s] if side else first[s + 1]):
            e = incident[at]
            place = 2 * (e - edge) * labels
            _spend(share, messages, place + side * labels, score, spent)
            place += (1 - side) * labels
            if labels < 4:
                _maxima_narrow(spent, tables, e * step, turned[e] == side, messages, place)
            elif turned[e] == side:
                _maxima_of_columns(spent, tables, e * step, messages, place)
            else:
                _maxima_of_rows(spent, tables, e * step, messages, place)
            total += _normalize(messages, place, labels)
        if total == -np.inf:
            break
    return total


@inlined
def _move(node, row, first, middle, last, incident, edge, messages, score):
    """The moved scores of a node."""
    labels = score.shape[0]
    for x in range(labels):
        score[x] = node[np.uint64(row + x)]
    for at in range(first, last):
        place = (2 * (incident[at] - edge) + (at < middle)) * labels
        for x in range(labels):
            score[x] += messages[np.uint64(place + x)]


@inlined
def _normalize(x, place, labels):
    """Take the maximum off numbers of x, unless all are -inf; the maximum."""
    top = x[place]
    for j in range(place + 1, place + labels):
        top = max(top, x[np.uint64(j)])
    if top > -np.inf:
        for j in range(place, place + labels):
            x[np.uint64(j)] -= top
    return top


@inlined
def _spend(share, messages, place, score, spent):
    """What a node puts on an edge: its share, less what the edge has given."""
    for x in range(score.shape[0]):
        left = share * score[x] - messages[np.uint64(place + x)]
        spent[x] = left if score[x] > -np.inf else -np.inf


@inlined
def _maxima_narrow(spent, tables, table, mine, out, place):
    """out[place + y] = max over x of spent[x] + the table's entry, whose rows are x if they are ``mine``."""
    labels = spent.shape[0]
    across, along = (labels, 1) if mine else (1, labels)
    for y in range(labels):
        top = -np.inf
        for x in range(labels):
            top = max(top, spent[x] + tables[np.uint64(table + x * across + y * along)])
        out[np.uint64(place + y)] = top


@inlined
def _maxima_of_columns(spent, tables, table, out, place):
    """The same for rows of at least four labels that belong to the sender; the last vector may overlap."""
    labels = spent.shape[0]
    for column in range(0, labels, 4):
        c = min(column, labels - 4)
        top = splat(-np.inf)
        for x in range(labels):
            top = maximum(add(broadcast(spent, x), load(tables, table + x * labels + c)), top)
        store(out, place + c, top)


@inlined
def _maxima_of_rows(spent, tables, table, out, place):
    """The same for rows that belong to the receiver."""
    labels = spent.shape[0]
    for y in range(labels):
        top = splat(-np.inf)
        for column in range(0, labels, 4):
            c = min(column, labels - 4)
            top = maximum(add(load(spent, c), load(tables, table + y * labels + c)), top)
        out[np.uint64(place + y)] = highest(top)


@compiled
def _read_labels(scores, graph, begin, edge, messages, score, spent, chosen):
    """Labels of a graph, one by one given the earlier ones; their score."""
    node, tables, step = scores
    first, middle, incident, ends, turned = graph
    labels, total = score.shape[0], 0.0
    for s in range(begin, begin + chosen.shape[0]):
        _given(node, tables, step, first, incident, ends, turned, begin, s, middle[s], score, chosen)
        for x in range(labels):
            spent[x] = score[x]
        for at in range(middle[s], first[s + 1]):
            place = 2 * (incident[at] - edge) * labels
            for x in range(labels):
                spent[x] += messages[np.uint64(place + x)]
        best = 0
        for x in range(1, labels):
            best = x if spent[x] > spent[best] else best
        chosen[s - begin] = best
        total += score[best]
    return total


@inlined
def _given(node, tables, step, first, incident, ends, turned, begin, s, last, score, chosen):
    """The scores of the labels of node s with the pairs of its edges up to ``last``, as their other ends are chosen."""
    labels = score.shape[0]
    for x in range(labels):
        score[x] = node[np.uint64(s * labels + x)]
    for at in range(first[s], last):
        e = incident[at]
        side = 1 if ends[e, 1] == s else 0
        other = chosen[ends[e, 1 - side] - begin]
        across, along = (labels, 1) if turned[e] == side else (1, labels)
        for x in range(labels):
            score[x] += tables[np.uint64(e * step + x * across + other * along)]


@inner
def _repair(scores, graph, begin, score, chosen):
    """Change single labels for better ones, in place; the score then."""
    node, tables, step = scores
    first, middle, incident, ends, turned = graph
    end = begin + chosen.shape[0]
    for _ in range(REPAIRS):
        changed = False
        for s in range(begin, end):
            _given(node, tables, step, first, incident, ends, turned, begin, s, first[s + 1], score, chosen)
            best = chosen[s - begin]
            for x in range(score.shape[0]):
                best = x if score[x] > score[best] else best
            changed |= best != chosen[s - begin]
            chosen[s - begin] = best
        if not changed:
            break
    total = 0.0
    for s in range(begin, end):
        _given(node, tables, step, first, incident, ends, turned, begin, s, middle[s], score, chosen)
        total += score[chosen[s - begin]]
    return total
