"""Small products on rows that are padded to a multiple of eight numbers: the inner loops of the chain's recursions.

All arrays are C-ordered and addressed by positions in their flat memory. Results are kept in registers, 24 columns at a
time (a group of six vectors) and eight (two) for the rest; the last argument of the inner functions says by its type
which of them it is.
"""

from m3n.compiled.jit import compiled, inner
from m3n.compiled.primitives.groups import loads, neighbours, six, stores, two
from m3n.compiled.primitives.vector import add, broadcast, load, maximum, multiply_add, store


@compiled
def copy(source, at, count, out, place):
    """out[place : place + count] = source[at : at + count], flat arrays; padding is left alone."""
    if count < 4:
        for j in range(count):
            out[place + j] = source[at + j]
    else:
        for j in range(0, count, 4):
            c = min(j, count - 4)
            store(out, place + c, load(source, at + c))


@inner
def add_to(x, at, y):
    """x[at:] += y."""
    for c in range(0, y.shape[0], 4):
        store(x, at + c, add(load(x, at + c), load(y, c)))


@compiled
def product(x, at, count, matrix, out, place):
    """out[place:] = x[at : at + count] matrix."""
    width = matrix.shape[1]
    whole = width // 24 * 24
    for column in range(0, whole, 24):
        _product(x, at, count, matrix, column, out, place + column, six(0.0))
    for column in range(whole, width, 8):
        _product(x, at, count, matrix, column, out, place + column, two(0.0))


@compiled
def products(x, at, step, count, matrix, out, place, leap):
    """``product`` for four rows of x, ``step`` apart, into rows of out that are ``leap`` apart: the same numbers.

    What is read of the matrix serves all four, which pays where it does not fit the nearest cache.
    """
    for column in range(0, matrix.shape[1], 8):
        _products(x, at, step, count, matrix, column, out, place + column, leap)


@inner
def _products(x, at, step, count, matrix, row, out, place, leap):
    a = b = c = d = two(0.0)
    offsets = neighbours(a)
    for i in range(at, at + count):
        entries = loads(matrix, row, offsets)
        a = multiply_add(broadcast(x, i), entries, a)
        b = multiply_add(broadcast(x, i + step), entries, b)
        c = multiply_add(broadcast(x, i + 2 * step), entries, c)
        d = multiply_add(broadcast(x, i + 3 * step), entries, d)
        row += matrix.shape[1]
    stores(out, place, offsets, a)
    stores(out, place + leap, offsets, b)
    stores(out, place + 2 * leap, offsets, c)
    stores(out, place + 3 * leap, offsets, d)


@inner
def _product(x, at, count, matrix, row, out, place, sums):
    offsets = neighbours(sums)
    for i in range(at, at + count):
        sums = multiply_add(broadcast(x, i), loads(matrix, row, offsets), sums)
        row += matrix.shape[1]
    stores(out, place, offsets, sums)


@compiled
def maxima(x, at, count, matrix, out, place):
    """out[place + j] = max over i < count of x[at + i] + matrix[i, j]."""
    width = matrix.shape[1]
    whole = width // 24 * 24
    for column in range(0, whole, 24):
        _maxima(x, at, count, matrix, column, out, place + column, six(0.0))
    for column in range(whole, width, 8):
        _maxima(x, at, count, matrix, column, out, place + column, two(0.0))


@compiled
def maxima_of(x, at, chosen, count, matrix, out, place):
    """The same over the rows chosen[:count] alone."""
    width = matrix.shape[1]
    whole = width // 24 * 24
    for column in range(0, whole, 24):
        _maxima_of(x, at, chosen, count, matrix, column, out, place + column, six(0.0))
    for column in range(whole, width, 8):
        _maxima_of(x, at, chosen, count, matrix, column, out, place + column, two(0.0))


@inner
def _maxima_of(x, at, chosen, count, matrix, column, out, place, group):
    offsets, width = neighbours(group), matrix.shape[1]
    best = add(broadcast(x, at + chosen[0]), loads(matrix, chosen[0] * width + column, offsets))
    for k in range(1, count):
        row = loads(matrix, chosen[k] * width + column, offsets)
        best = maximum(add(broadcast(x, at + chosen[k]), row), best)
    stores(out, place, offsets, best)


@inner
def _maxima(x, at, count, matrix, row, out, place, group):
    offsets = neighbours(group)
    best = add(broadcast(x, at), loads(matrix, row, offsets))
    for i in range(at + 1, at + count):
        row += matrix.shape[1]
        best = maximum(add(broadcast(x, i), loads(matrix, row, offsets)), best)
    stores(out, place, offsets, best)


@compiled
def add_products(left, right, length, rows, out):
    """out[i] += sum over t = 1..length-1 of left[t-1, i] right[t], for rows i < rows; two at a time."""
    width = out.shape[1]
    whole = width // 24 * 24
    for i in range(0, rows, 2):
        for column in range(0, whole, 24):
            _add_products(left, right, length, i, column, out, six(0.0))
        for column in range(whole, width, 8):
            _add_products(left, right, length, i, column, out, two(0.0))


@inner
def _add_products(left, right, length, i, row, out, group):
    """Rows i and i + 1, which may be a row of padding."""
    width, offsets = out.shape[1], neighbours(group)
    place = i * width + row
    first, second = loads(out, place, offsets), loads(out, place + width, offsets)
    for k in range(i, i + (length - 1) * width, width):
        row += width
        e, f, factors = broadcast(left, k), broadcast(left, k + 1), loads(right, row, offsets)
        first, second = multiply_add(e, factors, first), multiply_add(f, factors, second)
    stores(out, place, offsets, first)
    stores(out, place + width, offsets, second)
