"""The exp-oracle of chains of higher order: logarithms of prefix sums, and products of matrices wherever they are safe.

    f_t(y) = node_t(y) + mu log sum_x exp{ (f_{t-1}(x) + step(x, y))/mu }     over the sources x of state y

The sum is a product of matrices as in ``columns``, f_t being moved to a maximum of 0 at every position, a_t(x) =
exp(f_t(x)/mu). Backwards, with p_t the probabilities of the states at position t,

    p_{t-1}(x) = a_{t-1}(x) sum_y T_xy p_t(y)/pre_t(y),    P(step x to y at t) = a_{t-1}(x) T_xy p_t(y)/pre_t(y)

without an exponential. Layout as in ``higher_order``, scratch in ``higher_order_block``. Cost per position: O(steps),
an exponential and a logarithm per state.
"""

import numpy as np

from m3n.compiled.jit import inlined, inner
from m3n.compiled.oracles.chain_scaled import SAFE
from m3n.compiled.oracles.columns import divide_column, sum_column, take_logarithms, take_ratios, warm_up
from m3n.compiled.oracles.higher_order import begin, block_maxima, four
from m3n.compiled.primitives.arrays import put
from m3n.compiled.primitives.exponential import exp, normalise
from m3n.compiled.primitives.vector import broadcast, load, multiply_add, splat, store, total


@inner
def exponentiate(machine, mu, work):
    """factors = T, block by block, rows padded by zeros; tops = the column maxima that were taken out of it."""
    scores, factors, zero, tops, inverse, place = work.scores, work.factors, work.before, work.tops, 1.0 / mu, 0
    tops[:] = -np.inf
    zero[:] = 0.0
    factors[:] = 0.0
    for b in range(machine.step_first.shape[0]):
        low, at = machine.target_first[b], machine.label.shape[0] + machine.step_first[b]
        count = machine.target_end[b] - low
        first, after = machine.source_first[b], machine.source_first[b + 1]
        block_maxima(zero, machine.sources, first, after, scores, at, count, tops, low)
        for c in range(low, low + count):
            tops[c] = tops[c] if tops[c] > -np.inf else 0.0
        for _ in range(after - first):
            row, score, top = factors[place : place + count], scores[at : at + count], tops[low : low + count]
            for c in range(count):
                row[c] = exp((score[c] - top[c]) * inverse)
            at += count
            place += four(count)


@inner
def add_counts(machine, factors, products, counts):
    """Steps have T times the sum over all positions of a(x) p(y)/pre(y)."""
    place, at = 0, machine.label.shape[0]
    for b in range(machine.step_first.shape[0]):
        count = machine.target_end[b] - machine.target_first[b]
        for _ in range(machine.source_first[b + 1] - machine.source_first[b]):
            for c in range(count):
                counts[at + c] += factors[place + c] * products[place + c]
            at += count
            place += four(count)


@inner
def forward(machine, node, mu, work):
    """The value; ``work.p`` are then the probabilities of the last state, all 0 if no output is allowed."""
    length, order, levels, label = node.shape[0] // machine.labels, machine.order, machine.levels, machine.label
    closed, warm, pre, last = work.closed, work.warm, work.pre, work.p
    blocks = machine.sources, machine.source_first, machine.target_first, machine.target_end
    value, states = 0.0, machine.block_of.shape[0]
    for t in range(length):
        first, after = levels[min(t, order - 1)], levels[min(t, order - 1) + 1]
        if t < order:
            begin(levels, machine.parent, work.scores, closed, t)
        else:
            _products(*blocks, work.factors, warm[t - 1], pre[t])
            if not take_logarithms(pre[t], work.tops, states, four(states), mu, closed[t]):
                _open_again(machine, work.scores, closed[t - 1], mu, pre[t], closed[t])
        here = node[t * machine.labels : (t + 1) * machine.labels]
        move = _add_node(here, label[first:after], closed[t])
        if move == -np.inf:
            last[:] = 0.0
            return move
        for s in range(four(after - first)):
            closed[t, s] -= move
        warm_up(closed[t], four(after - first), mu, warm[t])
        value += move
    first = levels[min(length, order) - 1]
    count = levels[min(length, order)] - first
    for s in range(count):
        last[s] = closed[length - 1, s] + work.end[label[first + s]]
    return value + normalise(last, count, mu)


@inner
def _add_node(node, label, f):
    """f(y) += node(label of y); returns the largest."""
    top = -np.inf
    for s in range(label.shape[0]):
        f[s] += node[label[s]]
        top = f[s] if f[s] > top else top
    return top


@inner
def _products(sources, source_first, target_first, target_end, factors, warm, pre):
    """pre = a T, block by block."""
    place = 0
    pre[:] = 0.0
    for b in range(target_first.shape[0]):
        low, width = target_first[b], four(target_end[b] - target_first[b])
        _block_product(warm, sources, source_first[b], source_first[b + 1], factors, place, width, pre, low)
        place += (source_first[b + 1] - source_first[b]) * width


@inner
def _block_product(x, sources, first, after, matrix, at, width, out, low):
    """out[low + c] = sum over k of x[sources[k]] matrix[at + (k - first) width + c], for c < width, a multiple of four.

    In registers, 24 columns at a time and eight for the rest. Beyond the block this writes zeros, where later blocks
    write their own.
    """
    whole = width // 24 * 24
    for c in range(0, whole, 24):
        s0 = s1 = s2 = s3 = s4 = s5 = splat(0.0)
        row = at + c
        for k in range(first, after):
            e = broadcast(x, sources[k])
            s0 = multiply_add(e, load(matrix, row), s0)
            s1 = multiply_add(e, load(matrix, row + 4), s1)
            s2 = multiply_add(e, load(matrix, row + 8), s2)
            s3 = multiply_add(e, load(matrix, row + 12), s3)
            s4 = multiply_add(e, load(matrix, row + 16), s4)
            s5 = multiply_add(e, load(matrix, row + 20), s5)
            row += width
        store(out, low + c, s0)
        store(out, low + c + 4, s1)
        store(out, low + c + 8, s2)
        store(out, low + c + 12, s3)
        store(out, low + c + 16, s4)
        store(out, low + c + 20, s5)
    for c in range(whole, width, 8):
        d, row = min(c + 4, width - 4), at
        s0 = s1 = splat(0.0)
        for k in range(first, after):
            e = broadcast(x, sources[k])
            s0 = multiply_add(e, load(matrix, row + c), s0)
            s1 = multiply_add(e, load(matrix, row + d), s1)
            row += width
        store(out, low + c, s0)
        store(out, low + d, s1)


@inner
def _open_again(machine, scores, before, mu, pre, closed):
    """closed_t where pre_t is not safe."""
    for s in range(machine.block_of.shape[0]):
        if not pre[s] > SAFE:
            pre[s] = 0.0
            first, after, at, count = _steps_to(machine, s)
            closed[s] = sum_column(before, machine.sources, first, after, scores, at, count, mu)


@inlined
def _steps_to(machine, state):
    """The steps to a state: first source, one after the last, first step, distance of steps; no sources if none."""
    b = machine.block_of[state]
    if b < 0:
        return 0, 0, 0, 0
    low, count = machine.target_first[b], machine.target_end[b] - machine.target_first[b]
    at = machine.label.shape[0] + machine.step_first[b] + state - low
    return machine.source_first[b], machine.source_first[b + 1], at, count


@inner
def backward(machine, node, mu, weight, work):
    """Marginals from the probabilities of the last state, times the weight; those of nodes over their scores."""
    length, order, levels, label = node.shape[0] // machine.labels, machine.order, machine.levels, machine.label
    warm, pre, p, before = work.warm, work.pre, work.p, work.before
    blocks = machine.sources, machine.source_first, machine.target_first, machine.target_end
    first = levels[min(length, order) - 1]
    for s in range(levels[min(length, order)] - first):
        p[s] *= weight
        work.ends[label[first + s]] += p[s]
    node[:] = 0.0
    for t in range(length - 1, -1, -1):
        first, after = levels[min(t, order - 1)], levels[min(t, order - 1) + 1]
        for s in range(after - first):
            node[t * machine.labels + label[first + s]] += p[s]
        before[:] = 0.0
        if t < order:
            for s in range(after - first):
                work.counts[first + s] += p[s]
                if t > 0:
                    before[machine.parent[first + s]] += p[s]
        else:
            if not take_ratios(p, after - first, pre[t]):
                _retreat_again(machine, work.scores, work.closed[t - 1], mu, p, pre[t], before, work.counts)
            _retreat(*blocks, work.factors, work.products, warm[t - 1], pre[t], before)
        put(before, p)


@inner
def _retreat_again(machine, scores, closed, mu, p, ratios, before, counts):
    """Columns that were not safe are added to ``counts`` and ``before``; their ratios become 0."""
    for s in range(machine.block_of.shape[0]):
        if ratios[s] < 0.0:
            ratios[s] = 0.0
            first, after, at, count = _steps_to(machine, s)
            divide_column(p[s], closed, machine.sources, first, after, scores, at, count, mu, before, counts)


@inner
def _retreat(sources, source_first, target_first, target_end, factors, products, warm, ratios, before):
    """before(x) += a(x) sum_y T_xy ratio(y); a(x) ratio(y) is added to ``products``."""
    place = 0
    for b in range(target_first.shape[0]):
        low, width = target_first[b], four(target_end[b] - target_first[b])
        first, after = source_first[b], source_first[b + 1]
        for k in range(first, after - 1, 2):  # two rows at a time
            x, y, other = sources[k], sources[k + 1], place + width
            a, e, sums, more = broadcast(warm, x), broadcast(warm, y), splat(0.0), splat(0.0)
            for c in range(0, width, 4):
                r = load(ratios, low + c)
                sums = multiply_add(load(factors, place + c), r, sums)
                more = multiply_add(load(factors, other + c), r, more)
                store(products, place + c, multiply_add(a, r, load(products, place + c)))
                store(products, other + c, multiply_add(e, r, load(products, other + c)))
            before[x] += warm[x] * total(sums)
            before[y] += warm[y] * total(more)
            place += 2 * width
        if (after - first) % 2:
            x, sums = sources[after - 1], splat(0.0)
            a = broadcast(warm, x)
            for c in range(0, width, 4):
                r = load(ratios, low + c)
                sums = multiply_add(load(factors, place + c), r, sums)
                store(products, place + c, multiply_add(a, r, load(products, place + c)))
            before[x] += warm[x] * total(sums)
            place += width
