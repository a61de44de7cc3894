"""Dynamic programmes on linear chains: Viterbi and forward-backward over a packed batch.

Layout. ``node`` (tokens, labels) holds the sequences one after another, sequence k being rows
``offsets[k]:offsets[k+1]``; ``transition`` (labels, labels), ``start`` and ``end`` (labels,) are shared by all;
``edge`` (tokens - sequences, labels, labels) is one extra table for every pair of neighbours, or has length 0.

The exp-oracle at temperature mu has two implementations with one result:

*scaled*: forward probabilities a_t, normalised at every position,

    pre_t = a_{t-1} T,   a_t ∝ pre_t * exp(node_t/mu),   T_ij = exp((transition_ij - column maximum)/mu)
    p_{t-1}(i) = a_{t-1}(i) sum_j T_ij p_t(j)/pre_t(j)

three matrix-vector products per token and no exponential per pair of labels. Rounding never hurts as all terms are
non-negative; underflow could. a_t is scaled again where its first scaling leaves it below ``SMALL``, so whatever is
lost of a_{t-1}(i) T_ij is below 1e-267, and as long as no pre_t(j) falls below ``SAFE`` the loss is relatively nil. The
first pre_t(j) below it sends the sequence to

*log domain*: f_t(j) = log-sum-exp of all prefixes that end in label j. The backward sweep uses the conditional
probabilities exp((f_{t-1}(i) + transition_ij - norm_t(j))/mu), whose columns sum to one, so marginals are those of a
distribution by construction at any temperature. Labels i from which no transition can contribute one unit in the last
place are skipped, which is most of them when mu is small.

Cost per token: O(labels^2). Memory: O(longest sequence x labels) besides the arguments.
"""

import math

import numpy as np

from m3n.kernels._jit import inlined, kernel
from m3n.kernels.exponential import exp

SAFE = 1e-250
SMALL = 1e-40  # a total below it is scaled again: 1e-308 / SMALL is still far below SAFE
NEGLIGIBLE = -45.0  # exp(-45) = 3e-20: added to a sum >= 1 it changes nothing


@kernel
def add_ends(node, start, end, offsets, low, high):
    """Add start scores to the first row and end scores to the last row of sequences low..high-1."""
    for k in range(low, high):
        for j in range(node.shape[1]):
            node[offsets[k], j] += start[j]
            node[offsets[k + 1] - 1, j] += end[j]


@kernel
def sum_ends(node, offsets, low, high, starts, ends):
    """Add the first rows of sequences low..high-1 to ``starts`` and their last rows to ``ends``."""
    for k in range(low, high):
        for j in range(node.shape[1]):
            starts[j] += node[offsets[k], j]
            ends[j] += node[offsets[k + 1] - 1, j]


@kernel
def soft_scaled(node, transition, offsets, low, high, mu, values, counts, sequences, tables, vectors):
    """The exp-oracle on sequences low..high-1 by the scaled recursion, where that is safe.

    ``node``, which includes start and end scores, is overwritten by its marginals; expected transition counts are
    added to ``counts``; ``values[k]`` becomes mu log sum exp(score/mu). Where underflow might matter ``values[k]``
    becomes NaN and ``node`` stays as it was: ``soft_log`` finishes the work. Scratch: ``sequences`` (2, longest
    sequence, labels), ``tables`` (3, labels, labels), ``vectors`` (2, labels).
    """
    labels = node.shape[1]
    forward, pre = sequences[0], sequences[1]
    weights, transposed, products = tables[0], tables[1], tables[2]
    scores, column = vectors[0], vectors[1]
    _exponentiate(transition, mu, weights, transposed, column, products)
    for k in range(low, high):
        rows = node[offsets[k] : offsets[k + 1]]
        values[k] = _scaled(rows, weights, transposed, column, mu, forward, pre, scores, products)
    for i in range(labels):
        for j in range(labels):
            counts[i, j] += weights[i, j] * products[i, j]


@kernel
def soft_log(node, transition, edge, offsets, low, high, mu, values, counts, sequences, tables, vectors, active):
    """The exp-oracle on those of the sequences low..high-1 whose ``values[k]`` is NaN, in the log domain.

    Arguments as for ``soft_scaled``; ``edge`` is overwritten by its marginals; a value of -inf says that no labelling
    is allowed. ``active`` (labels,) is scratch for integers.
    """
    labels = node.shape[1]
    forward, norm, lead = sequences[0], sequences[1], tables[0]
    costly = labels > offsets[high] - offsets[low]  # leads take O(labels^3): never more than the recursion itself
    _leads(transition, costly or edge.shape[0] > 0, lead)
    for k in range(low, high):
        if math.isnan(values[k]):
            rows = node[offsets[k] : offsets[k + 1]]
            shift = offsets[k] - k - 1  # edge[shift + t] belongs to positions t-1 and t
            values[k] = _log_domain(rows, transition, lead, edge, shift, mu, forward, norm, vectors, active, counts)


@inlined
def _exponentiate(transition, mu, weights, transposed, column, products):
    """weights = T, and its transpose; ``column`` = the maxima that were taken out; ``products`` = 0."""
    labels = transition.shape[0]
    for j in range(labels):
        column[j] = transition[0, j]
    for i in range(1, labels):
        for j in range(labels):
            column[j] = max(column[j], transition[i, j])
    for j in range(labels):
        column[j] = column[j] if column[j] > -np.inf else 0.0
    for i in range(labels):
        for j in range(labels):
            weights[i, j] = exp((transition[i, j] - column[j]) / mu)
        for j in range(labels):
            transposed[j, i] = weights[i, j]
            products[i, j] = 0.0


@inlined
def _scaled(rows, weights, transposed, column, mu, forward, pre, scores, products):
    """Scaled forward-backward of one sequence; NaN, with ``rows`` untouched, if underflow might matter."""
    length, labels = rows.shape
    inverse = 1.0 / mu
    value = 0.0
    for t in range(length):
        a, x = forward[t], rows[t]
        top = -np.inf
        for j in range(labels):
            scores[j] = x[j] + (column[j] if t > 0 else 0.0)
        for j in range(labels):
            top = max(top, scores[j])
        if top == -np.inf:
            return np.nan
        for j in range(labels):
            a[j] = exp((scores[j] - top) * inverse)
        if t > 0:
            b, previous = pre[t], forward[t - 1]
            _multiply(previous, weights, b)
            unsafe = 0
            for j in range(labels):
                a[j] *= b[j]
                unsafe += not b[j] > SAFE
            if unsafe:
                return np.nan
        total = 0.0
        for j in range(labels):
            total += a[j]
        if total < SMALL:
            if not total > SAFE:
                return np.nan
            top += mu * math.log(total)
            total = _rescale(scores, top, inverse, pre[t], a)
        shrink = 1.0 / total
        for j in range(labels):
            a[j] *= shrink
        value += top + mu * math.log(total)
    for j in range(labels):
        rows[length - 1, j] = forward[length - 1, j]
    for t in range(length - 1, 0, -1):
        p, out, b, previous = rows[t], rows[t - 1], pre[t], forward[t - 1]
        for j in range(labels):
            b[j] = p[j] / b[j]
        _multiply(b, transposed, out)
        for i in range(labels):
            out[i] *= previous[i]
    _add_products(forward, pre, length, products)
    return value


@kernel
def _multiply(x, matrix, out):
    """out = x matrix. Four rows at a time: out is loaded and stored a quarter as often."""
    size = x.shape[0]
    for j in range(size):
        out[j] = 0.0
    whole = size - size % 4
    for i in range(0, whole, 4):
        a, b, c, d = matrix[i], matrix[i + 1], matrix[i + 2], matrix[i + 3]
        e, f, g, h = x[i], x[i + 1], x[i + 2], x[i + 3]
        for j in range(size):
            out[j] += (e * a[j] + f * b[j]) + (g * c[j] + h * d[j])
    for i in range(whole, size):
        row, scale = matrix[i], x[i]
        for j in range(size):
            out[j] += scale * row[j]


@kernel
def _add_products(left, right, length, out):
    """out += sum over t = 1..length-1 of the outer product of left[t-1] and right[t], four at a time."""
    size = out.shape[0]
    whole = 1 + (length - 1) // 4 * 4
    for t in range(1, whole, 4):
        a, b, c, d = right[t], right[t + 1], right[t + 2], right[t + 3]
        for i in range(size):
            row = out[i]
            e, f, g, h = left[t - 1, i], left[t, i], left[t + 1, i], left[t + 2, i]
            for j in range(size):
                row[j] += (e * a[j] + f * b[j]) + (g * c[j] + h * d[j])
    for t in range(whole, length):
        a = right[t]
        for i in range(size):
            row, scale = out[i], left[t - 1, i]
            for j in range(size):
                row[j] += scale * a[j]


@inlined
def _rescale(scores, top, inverse, pre, a):
    """a(j) = pre(j) exp((score(j) - top)/mu), where ``top`` now counts pre in, so that the total is about 1."""
    total = 0.0
    for j in range(a.shape[0]):
        a[j] = pre[j] * math.exp((scores[j] - top) * inverse)
        total += a[j]
    return total


@inlined
def _log_domain(rows, transition, lead, edge, shift, mu, forward, norm, scratch, active, counts):
    """Forward-backward of one sequence with logarithms; exact at any temperature, -inf entries included."""
    length, labels = rows.shape
    value = 0.0
    for t in range(length):
        f, x = forward[t], rows[t]
        if t > 0:
            count = _active_rows(forward[t - 1], lead, mu, active)
            _log_advance(forward[t - 1], active[:count], transition, edge, shift + t, mu, norm[t], scratch, f)
        top = -np.inf
        for j in range(labels):
            f[j] = x[j] + (f[j] if t > 0 else 0.0)
            top = max(top, f[j])
        if top == -np.inf:
            _forbid(rows, edge, shift)
            return -np.inf
        for j in range(labels):  # a maximum of 0 keeps the rounding error from growing with the length
            f[j] -= top
        value += top
    last = rows[length - 1]
    total = 0.0
    for j in range(labels):
        last[j] = math.exp(forward[length - 1, j] / mu)
        total += last[j]
    for j in range(labels):
        last[j] /= total
    for t in range(length - 1, 0, -1):
        count = _active_rows(forward[t - 1], lead, mu, active)
        p, out, used = rows[t], rows[t - 1], active[:count]
        _log_retreat(forward[t - 1], used, transition, edge, shift + t, mu, norm[t], scratch[0], p, out, counts)
    return value + mu * math.log(total)


@inlined
def _leads(transition, unknown, lead):
    """lead[i, k] = max_j (transition_ij - transition_kj): what row i can gain on row k in one step; inf if unknown."""
    labels = transition.shape[0]
    for i in range(labels):
        for k in range(labels):
            lead[i, k] = np.inf if unknown else -np.inf
            for j in range(labels):
                if transition[i, j] > -np.inf:
                    lead[i, k] = max(lead[i, k], transition[i, j] - transition[k, j])


@kernel
def _active_rows(f, lead, mu, active):
    """Labels i whose f(i) + transition_ij comes near the best one for some j; returns how many."""
    best = 0
    for i in range(f.shape[0]):
        best = i if f[i] > f[best] else best
    count = 0
    for i in range(f.shape[0]):
        if f[i] > -np.inf and f[i] + lead[i, best] > NEGLIGIBLE * mu:
            active[count] = i
            count += 1
    return count


@inlined
def _log_advance(f, active, transition, edge, pair, mu, norm, scratch, out):
    """out(j) = mu log sum_i exp((f(i) + transition_ij)/mu); ``norm`` likewise, but 0 where j cannot be reached."""
    labels = f.shape[0]
    inverse = 1.0 / mu
    x, total = scratch[0], scratch[1]
    for j in range(labels):
        out[j] = -np.inf
        total[j] = 0.0
    for i in active:
        _pair_scores(f[i], transition[i], edge, pair, i, x)
        for j in range(labels):
            out[j] = max(out[j], x[j])
    for j in range(labels):
        norm[j] = out[j] if out[j] > -np.inf else 0.0
    for i in active:
        _pair_scores(f[i], transition[i], edge, pair, i, x)
        for j in range(labels):
            total[j] += exp((x[j] - norm[j]) * inverse)
    for j in range(labels):
        if out[j] > -np.inf:
            norm[j] += mu * math.log(total[j])
            out[j] = norm[j]


@inlined
def _log_retreat(f, active, transition, edge, pair, mu, norm, x, p, out, counts):
    """Marginals one position earlier, through the conditional probabilities of label i given label j."""
    labels = f.shape[0]
    inverse = 1.0 / mu
    for i in range(labels):
        out[i] = 0.0
        if edge.shape[0] and f[i] == -np.inf:
            for j in range(labels):
                edge[pair, i, j] = 0.0
    for i in active:
        _pair_scores(f[i], transition[i], edge, pair, i, x)
        row = counts[i]
        for j in range(labels):
            x[j] = exp(min((x[j] - norm[j]) * inverse, 0.0)) * p[j]
            row[j] += x[j]
        for j in range(labels):
            out[i] += x[j]
        if edge.shape[0]:
            for j in range(labels):
                edge[pair, i, j] = x[j]


@kernel
def _pair_scores(f, transition, edge, pair, i, x):
    """x(j) = f(i) + transition_ij (+ edge)."""
    for j in range(x.shape[0]):
        x[j] = f + transition[j]
    if edge.shape[0]:
        row = edge[pair, i]
        for j in range(x.shape[0]):
            x[j] += row[j]


@inlined
def _forbid(rows, edge, shift):
    """All marginals of a sequence that has no allowed labelling are zero."""
    length, labels = rows.shape
    for t in range(length):
        for i in range(labels):
            rows[t, i] = 0.0
            if t > 0 and edge.shape[0]:
                for j in range(labels):
                    edge[shift + t, i, j] = 0.0


@kernel
def hard(node, transition, start, end, edge, offsets, low, high, values, labelling, vectors, source):
    """Viterbi on sequences low..high-1: best score into ``values``, best labels (lowest at ties) into ``labelling``.

    Scratch: ``vectors`` (2, labels) and ``source`` (longest sequence, labels) for integers.
    """
    labels = node.shape[1]
    f, best = vectors[0], vectors[1]
    for k in range(low, high):
        first, length = offsets[k], offsets[k + 1] - offsets[k]
        for j in range(labels):
            f[j] = node[first, j] + start[j]
        for t in range(1, length):
            for j in range(labels):
                best[j] = f[0] + transition[0, j] + (edge[first - k - 1 + t, 0, j] if edge.shape[0] else 0.0)
                source[t, j] = 0
            for i in range(1, labels):
                for j in range(labels):
                    score = f[i] + transition[i, j] + (edge[first - k - 1 + t, i, j] if edge.shape[0] else 0.0)
                    better = score > best[j]
                    best[j] = score if better else best[j]
                    source[t, j] = i if better else source[t, j]
            for j in range(labels):
                f[j] = best[j] + node[first + t, j]
        last = 0
        for j in range(labels):
            f[j] += end[j]
            last = j if f[j] > f[last] else last
        values[k] = f[last]
        labelling[first + length - 1] = last
        for t in range(length - 1, 0, -1):
            labelling[first + t - 1] = source[t, labelling[first + t]]


@kernel
def count(labelling, offsets, node, counts, starts, ends, edge):
    """Add the parts of a labelling: ones in ``node`` and ``edge`` (zero at entry), transition, start and end counts."""
    for k in range(offsets.shape[0] - 1):
        first, last = offsets[k], offsets[k + 1] - 1
        starts[labelling[first]] += 1.0
        ends[labelling[last]] += 1.0
        for t in range(first, last + 1):
            node[t, labelling[t]] += 1.0
            if t > first:
                counts[labelling[t - 1], labelling[t]] += 1.0
                if edge.shape[0]:
                    edge[t - k - 1, labelling[t - 1], labelling[t]] += 1.0
