"""Marginals of arcs over all trees, crossing arcs or not: the matrix-tree theorem without a subtraction.

With weights w(h, d) = exp(score(h, d)/mu), a tree has probability prod w(h, d)/Z. By Wilson's algorithm the head of d
in a random tree is where a walk that moves to heads goes when it leaves d for the last time (see ``walks``),

    P(h, d) = w(h, d) F(h, d) / sum_h' w(h', d) F(h', d),     F(h, d) = P(from h the walk comes to the root before d)

and Z is the product of the sums s that elimination meets. All numbers are positive, so marginals are right to all
digits that scores/mu have, and the heads of a word sum to one: O(length^3). The weights of arcs into a word may have
any scale, and the largest of them is 1. Where elimination still meets numbers that are too small, all weights are
replaced by their logarithms.

*A single root.* If arcs from the root were epsilon times as likely, with epsilon -> 0, only trees with one of them
would remain: s is then without the root, and everything else stays. The walk must be able to go from everywhere to
everywhere, or s may vanish. If it is not, there must be a smallest set of words that the walk cannot leave, and that it
comes to from everywhere, or there is no tree: the *core*. The child of the root is in the core, whose words have their
heads in it; for all other words the core is a root that may have several children, independently of the core's own
tree.

Reference: Wilson, "Generating random spanning trees more quickly than the cover time", 1996; with a matrix inverse:
Koo, Globerson, Carreras, Collins, "Structured prediction models via the matrix-tree theorem", 2007.
"""

from typing import NamedTuple

import numpy as np

from m3n.compiled.jit import borrowing, inner
from m3n.compiled.oracles.walks import SAFE, WalkScratch, solve_walks, walk_scratch, width_of
from m3n.compiled.primitives.exponential import exp, normalise

LEAST = 1e-40  # of the largest F: the sum over heads is known to all digits if it is larger


class MatrixTreeScratch(NamedTuple):
    """Memory for sentences of less than n words."""

    scores: np.ndarray  # flat (n, n), [dependent, head]
    marginals: np.ndarray  # flat (n, n), [dependent, head]
    own: np.ndarray  # flat (n, width): scores among the words at hand, and of their root
    members: np.ndarray  # (n,) integers: the words at hand
    core: np.ndarray  # (n,) whether a word is in the core
    seen: np.ndarray  # (n,)
    pending: np.ndarray  # (n,) integers
    row: np.ndarray  # (n,)
    walks: WalkScratch


@inner
def matrix_tree_scratch(n):
    """Scratch memory."""
    tables, integers, marks = np.zeros((2, n * n)), np.zeros((2, n), np.int64), np.zeros((2, n), np.bool_)
    own, row, walks = np.zeros(n * width_of(n)), np.zeros(n), walk_scratch(n)
    return MatrixTreeScratch(tables[0], tables[1], own, integers[0], marks[0], marks[1], integers[1], row, walks)


@borrowing
def sum_trees(n, single_root, mu, work):
    """mu log sum exp(score/mu) over all trees of words 1..n-1; marginals of arcs from scores, 0 if there is no tree."""
    for k in range(n * n):
        work.marginals[k] = 0.0
    for word in range(1, n):
        work.core[word] = single_root
    if not single_root:
        return _sum_group(n, False, True, mu, work)
    if not _find_core(n, work):
        return -np.inf
    value = _sum_group(n, True, False, mu, work)
    if value > -np.inf and _some_outside(n, work):
        value += _sum_group(n, False, True, mu, work)
        _divide_core(n, mu, work)
    return value


@borrowing
def _find_core(n, work):
    """Which words the walk cannot leave; whether it comes there from everywhere."""
    start = 1
    for word in range(1, n):
        work.seen[word] = False
    for word in range(1, n):
        if not work.seen[word]:
            start = word
            _mark(n, start, 1, n, work.scores, work.seen, work.pending)
    # if there is a word to which all the others lead, the last start is one
    for word in range(1, n):
        work.seen[word] = work.core[word] = False
    _mark(n, start, 1, n, work.scores, work.seen, work.pending)
    _mark(n, start, n, 1, work.scores, work.core, work.pending)
    for word in range(1, n):
        if not work.seen[word]:
            return False
    return True


@borrowing
def _mark(n, start, from_step, to_step, scores, seen, pending):
    """Mark all words that arcs lead to from a word that is not marked: from heads to dependents if from_step is 1."""
    seen[start], pending[0], left = True, start, 1
    while left > 0:
        left -= 1
        at = pending[left] * from_step
        for word in range(1, n):
            if scores[at + word * to_step] > -np.inf and not seen[word]:
                seen[word], pending[left] = True, word
                left += 1


@borrowing
def _some_outside(n, work):
    """Whether there are words outside of the core."""
    for word in range(1, n):
        if not work.core[word]:
            return True
    return False


@borrowing
def _sum_group(n, core, with_root, mu, work):
    """The sum over the trees of the words in the core, or of those outside, and the marginals of their arcs."""
    words = _gather(n, core, mu, work)
    value = _as_weights(words, with_root, mu, work)
    value = solve_walks(words, with_root, 0.0, work.walks) * mu + value
    if not (value > -np.inf and _all_known(words, work)):
        _copy_scores(words, work)
        value = solve_walks(words, with_root, mu, work.walks)
        if not value > -np.inf:
            return value
        _collect(n, words, mu, work)
    else:
        _collect(n, words, 0.0, work)
    return value


@borrowing
def _gather(n, core, mu, work):
    """List the words at hand and their scores; for those outside of the core, if there is one, the core is the root."""
    words, outside = 0, False
    for word in range(1, n):
        if work.core[word] == core:
            words += 1
            work.members[words] = word
        outside = outside or (work.core[word] and not core)
    width = width_of(words)
    for d in range(1, words + 1):
        at, word = d * width, work.members[d]
        work.own[at] = _core_score(n, word, mu, work) if outside else work.scores[word * n]
        for h in range(1, words + 1):
            work.own[at + h] = work.scores[word * n + work.members[h]] if h != d else -np.inf
    return words


@borrowing
def _core_score(n, word, mu, work):
    """mu log sum exp of the scores of arcs from the core into a word; ``row`` has their shares."""
    for head in range(1, n):
        work.row[head] = work.scores[word * n + head] if work.core[head] else -np.inf
    return normalise(work.row[1:n], n - 1, mu)


@borrowing
def _as_weights(words, with_root, mu, work):
    """Weights of level 0, the largest of every word 1; what was taken out of the scores."""
    width, weights, own, taken, root_top = width_of(words), work.walks.levels[0], work.own, 0.0, 0.0
    for d in range(1, words + 1):
        top = own[d * width] if with_root else -np.inf
        for at in range(d * width + 1, d * width + words + 1):
            top = max(top, own[at])
        top = top if top > -np.inf else 0.0
        taken += top
        for at in range(d * width, d * width + words + 1):
            weights[at] = own[at] - top
    if not with_root:  # every tree has one arc from it: of any scale
        root_top = -np.inf
        for d in range(1, words + 1):
            root_top = max(root_top, weights[d * width])
        root_top = root_top if root_top > -np.inf else 0.0
    for d in range(1, words + 1):
        weights[d * width] = exp((weights[d * width] - root_top) / mu)
        for at in range(d * width + 1, d * width + words + 1):
            weights[at] = exp(weights[at] / mu)
    return taken + root_top


@borrowing
def _all_known(words, work):
    """Whether the sums over heads are large enough to be known to all digits."""
    width, weights, reach = width_of(words), work.walks.levels[0], work.walks.reach
    for d in range(1, words + 1):
        total, most = weights[d * width], 0.0
        for h in range(1, words + 1):
            if h != d:
                total += weights[d * width + h] * reach[h * width + d]
                most = max(most, reach[h * width + d])
        if not (total > SAFE and total > LEAST * most and total < 1.0 / SAFE):
            return False
    return True


@borrowing
def _copy_scores(words, work):
    for at in range((words + 1) * width_of(words)):
        work.walks.levels[0, at] = work.own[at]


@borrowing
def _collect(n, words, mu, work):
    """Marginals of the arcs into all words at hand, from weights (mu = 0) or their logarithms."""
    width, weights, reach, row = width_of(words), work.walks.levels[0], work.walks.reach, work.row
    for d in range(1, words + 1):
        row[0], total = weights[d * width], weights[d * width]
        for h in range(1, words + 1):
            if mu > 0.0:
                row[h] = weights[d * width + h] + reach[h * width + d]
            else:
                row[h] = weights[d * width + h] * reach[h * width + d] if h != d else 0.0
                total += row[h]
        if mu > 0.0:
            normalise(row, words + 1, mu)
        else:
            for h in range(words + 1):
                row[h] /= total
        _write(n, words, work.members[d], work)


@borrowing
def _write(n, words, word, work):
    """The marginals of the heads of a word."""
    for h in range(1, words + 1):
        work.marginals[word * n + work.members[h]] = work.row[h]
    work.marginals[word * n] = work.row[0]


@borrowing
def _divide_core(n, mu, work):
    """What words outside of the core have of it as their root belongs to its members."""
    for word in range(1, n):
        if not work.core[word]:
            p, work.marginals[word * n] = work.marginals[word * n], 0.0
            _core_score(n, word, mu, work)
            for head in range(1, n):
                if work.core[head]:
                    work.marginals[word * n + head] = p * work.row[head]
