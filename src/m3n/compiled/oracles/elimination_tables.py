"""The table t(v, S) of one bucket: how it is made from scores, reduced to a message, and taken apart again.

A table has a row for every label of v, padded to a multiple of four; its columns are the labellings of S. See
``oracles.elimination`` for what the numbers mean, ``oracles.elimination_links`` for links.
"""

import numpy as np

from m3n.compiled.jit import borrowing
from m3n.compiled.oracles.elimination_links import LEAST, add_row, add_strided, row_sum, shift_row, shifted_row
from m3n.compiled.primitives.logarithm import log_above_one
from m3n.compiled.primitives.vector import add, exponential, load, maximum, multiply, splat, store, subtract

ARRAY, OFFSET, SIZE, LEAD, MEMBER, STRIDE, DIMS = range(7)  # columns of links
MESSAGES = -1  # the array of a link that carries a message


@borrowing
def grow(row, members, columns, width, links, first, last, bases, theta, messages, tables, at):
    """t(v, S) = row(v) + the links of v and one member of S each: first..last-1, those of the last member first.

    Member by member, the last one first, a row grows from one entry to all of its columns: every step writes a shifted
    copy of what is there for each label of the member. All steps together cost little more than the last one.
    """
    labels = row.shape[0]
    if members == 1:
        pair_up(row, width, links, first, last, bases, theta, messages, tables, at)
        return
    for j in range(labels):
        length, k = 1, first
        for c in range(at, at + (width if members == 0 else labels), 4):
            store(tables, c, splat(row[j]))
        for member in range(members - 1, -1, -1):
            begin = k
            while k < last and links[k, MEMBER] == member:
                k += 1
            if length == 1:
                for i in range(begin, k):
                    array, place, stride = links[i, ARRAY], links[i, OFFSET] + j * links[i, LEAD], links[i, STRIDE]
                    if array == MESSAGES:
                        add_strided(tables, at, 1, messages, place, stride, labels)
                    else:
                        add_strided(tables, at, 1, theta, bases[array] + place, stride, labels)
            else:
                for x in range(labels - 1, -1, -1):
                    shift = 0.0
                    for i in range(begin, k):
                        array, place = links[i, ARRAY], links[i, OFFSET] + j * links[i, LEAD] + x * links[i, STRIDE]
                        shift += messages[place] if array == MESSAGES else theta[bases[array] + place]
                    if x > 0:
                        shifted_row(tables, at, length, shift, at + x * length)
                    elif k > begin:
                        shift_row(tables, at, length, shift)
            length *= labels
        for c in range(columns, width):
            tables[at + c] = row[j]
        at += width


@borrowing
def pair_up(row, width, links, first, last, bases, theta, messages, tables, at):
    """``grow`` for a single member, link by link."""
    labels = row.shape[0]
    for j in range(labels):
        for c in range(at + j * width, at + (j + 1) * width, 4):
            store(tables, c, splat(row[j]))
    for i in range(first, last):
        array, offset, lead, stride = links[i, ARRAY], links[i, OFFSET], links[i, LEAD], links[i, STRIDE]
        if array == MESSAGES:
            for j in range(labels):
                add_strided(tables, at + j * width, 1, messages, offset + j * lead, stride, labels)
        else:
            offset += bases[array]
            for j in range(labels):
                add_strided(tables, at + j * width, 1, theta, offset + j * lead, stride, labels)


@borrowing
def shrink(row, members, columns, width, links, first, last, targets, messages, tables, at, sums):
    """The reverse of ``grow``: row(v) = sum_S p(v, S), and the sums over all but v and one member to their links."""
    shared, tallies, bases, theta, counts = targets
    labels = row.shape[0]
    for j in range(labels):
        length, k = columns, last
        for member in range(members):
            length //= labels
            end = k
            while k > first and links[k - 1, MEMBER] == member:
                k -= 1
            for x in range(labels if k < end else 0):
                sums[x] = tables[at + x] if length == 1 else row_sum(tables, at + x * length, length)
            for i in range(k, end):
                array, place, stride = links[i, ARRAY], links[i, OFFSET] + j * links[i, LEAD], links[i, STRIDE]
                if array == MESSAGES:
                    add_strided(messages, place, stride, sums, 0, 1, labels)
                elif shared[array]:
                    add_strided(counts, tallies[array] + place, stride, sums, 0, 1, labels)
                else:
                    add_strided(theta, bases[array] + place, stride, sums, 0, 1, labels)
            for x in range(1, labels if length > 1 else 1):
                add_row(tables, at, length, tables, at + x * length)
        row[j] = row_sum(tables, at, labels) if members > 0 else tables[at]
        at += width


@borrowing
def tops(tables, at, labels, width, messages, m):
    """message(S) = max_v t(v, S), sixteen columns at a time."""
    whole = width - width % 16
    for c in range(0, whole, 16):
        p = at + c
        s0, s1, s2, s3 = load(tables, p), load(tables, p + 4), load(tables, p + 8), load(tables, p + 12)
        for _ in range(1, labels):
            p += width
            s0, s1 = maximum(load(tables, p), s0), maximum(load(tables, p + 4), s1)
            s2, s3 = maximum(load(tables, p + 8), s2), maximum(load(tables, p + 12), s3)
        store(messages, m + c, s0)
        store(messages, m + c + 4, s1)
        store(messages, m + c + 8, s2)
        store(messages, m + c + 12, s3)
    for c in range(whole, width, 4):
        s0 = load(tables, at + c)
        for p in range(at + c + width, at + c + labels * width, width):
            s0 = maximum(load(tables, p), s0)
        store(messages, m + c, s0)


@borrowing
def keep(tables, at, count, mass):
    """Entries without mass become -inf, padding among them."""
    for p in range(at, at + count):
        if not mass[p] > 0.0:
            tables[p] = -np.inf


@borrowing
def add_logarithms(out, mu, x, at, count):
    """out += mu log(x), of so many numbers from ``at`` on."""
    for c in range(at, at + count):
        out[c] += mu * log_above_one(x[c])


@borrowing
def exponentiate(tables, at, labels, width, mu, messages, sums, m):
    """t = exp((t - message)/mu), and the sums of the columns, eight at a time."""
    colder, least = splat(1.0 / mu), splat(LEAST)
    whole = width - width % 8
    for c in range(0, whole, 8):
        top0, top1 = maximum(load(messages, m + c), least), maximum(load(messages, m + c + 4), least)
        mass0 = mass1 = splat(0.0)
        for p in range(at + c, at + c + labels * width, width):
            x = exponential(multiply(subtract(load(tables, p), top0), colder))
            y = exponential(multiply(subtract(load(tables, p + 4), top1), colder))
            store(tables, p, x)
            store(tables, p + 4, y)
            mass0, mass1 = add(mass0, x), add(mass1, y)
        store(sums, m + c, mass0)
        store(sums, m + c + 4, mass1)
    for c in range(whole, width, 4):
        top0, mass0 = maximum(load(messages, m + c), least), splat(0.0)
        for p in range(at + c, at + c + labels * width, width):
            x = exponential(multiply(subtract(load(tables, p), top0), colder))
            store(tables, p, x)
            mass0 = add(mass0, x)
        store(sums, m + c, mass0)


@borrowing
def join(tables, at, labels, width, messages, inverses, m):
    """p(v, S) = q(v | S) p(S)."""
    for c in range(m, m + width, 4):
        store(messages, c, multiply(load(messages, c), load(inverses, c)))
    for _ in range(labels):
        for c in range(0, width, 4):
            store(tables, at + c, multiply(load(tables, at + c), load(messages, m + c)))
        at += width
