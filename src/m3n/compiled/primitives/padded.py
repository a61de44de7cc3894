"""Small products on rows that are padded to a multiple of eight numbers: the inner loops of the chain's recursions.

All arrays are C-ordered and addressed by positions in their flat memory. Results are kept in registers, 24 columns at a
time (six vectors) and eight for the rest. Offsets within such a group are constants, so that one address serves all.
"""

from m3n.compiled.jit import compiled
from m3n.compiled.primitives.vector import add, broadcast, load, maximum, multiply_add, splat, store


@compiled
def copy(source, at, count, out):
    """out[:count] = source[at : at + count], rows without padding in ``source``."""
    if count < 4:
        for j in range(count):
            out[j] = source.flat[at + j]
    else:
        for j in range(0, count, 4):
            c = min(j, count - 4)
            store(out, c, load(source, at + c))


@compiled
def paste(source, out, at, count):
    """out[at : at + count] = source[:count], rows without padding in ``out``."""
    if count < 4:
        for j in range(count):
            out.flat[at + j] = source[j]
    else:
        for j in range(0, count, 4):
            c = min(j, count - 4)
            store(out, at + c, load(source, c))


@compiled
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
        _product_six(x, at, count, matrix, column, out, place + column)
    for column in range(whole, width, 8):
        _product_two(x, at, count, matrix, column, out, place + column)


@compiled
def _product_six(x, at, count, matrix, row, out, place):
    s0 = s1 = s2 = s3 = s4 = s5 = splat(0.0)
    for i in range(at, at + count):
        e = broadcast(x, i)
        s0 = multiply_add(e, load(matrix, row), s0)
        s1 = multiply_add(e, load(matrix, row + 4), s1)
        s2 = multiply_add(e, load(matrix, row + 8), s2)
        s3 = multiply_add(e, load(matrix, row + 12), s3)
        s4 = multiply_add(e, load(matrix, row + 16), s4)
        s5 = multiply_add(e, load(matrix, row + 20), s5)
        row += matrix.shape[1]
    store(out, place, s0)
    store(out, place + 4, s1)
    store(out, place + 8, s2)
    store(out, place + 12, s3)
    store(out, place + 16, s4)
    store(out, place + 20, s5)


@compiled
def _product_two(x, at, count, matrix, row, out, place):
    s0 = s1 = splat(0.0)
    for i in range(at, at + count):
        e = broadcast(x, i)
        s0 = multiply_add(e, load(matrix, row), s0)
        s1 = multiply_add(e, load(matrix, row + 4), s1)
        row += matrix.shape[1]
    store(out, place, s0)
    store(out, place + 4, s1)


@compiled
def maxima(x, at, count, matrix, out, place):
    """out[place + j] = max over i < count of x[at + i] + matrix[i, j]."""
    width = matrix.shape[1]
    whole = width // 24 * 24
    for column in range(0, whole, 24):
        _maxima_six(x, at, count, matrix, column, out, place + column)
    for column in range(whole, width, 8):
        _maxima_two(x, at, count, matrix, column, out, place + column)


@compiled
def _maxima_six(x, at, count, matrix, row, out, place):
    e = broadcast(x, at)
    s0, s1, s2 = add(e, load(matrix, row)), add(e, load(matrix, row + 4)), add(e, load(matrix, row + 8))
    s3, s4, s5 = add(e, load(matrix, row + 12)), add(e, load(matrix, row + 16)), add(e, load(matrix, row + 20))
    for i in range(at + 1, at + count):
        row += matrix.shape[1]
        e = broadcast(x, i)
        s0 = maximum(add(e, load(matrix, row)), s0)
        s1 = maximum(add(e, load(matrix, row + 4)), s1)
        s2 = maximum(add(e, load(matrix, row + 8)), s2)
        s3 = maximum(add(e, load(matrix, row + 12)), s3)
        s4 = maximum(add(e, load(matrix, row + 16)), s4)
        s5 = maximum(add(e, load(matrix, row + 20)), s5)
    store(out, place, s0)
    store(out, place + 4, s1)
    store(out, place + 8, s2)
    store(out, place + 12, s3)
    store(out, place + 16, s4)
    store(out, place + 20, s5)


@compiled
def _maxima_two(x, at, count, matrix, row, out, place):
    e = broadcast(x, at)
    s0, s1 = add(e, load(matrix, row)), add(e, load(matrix, row + 4))
    for i in range(at + 1, at + count):
        row += matrix.shape[1]
        e = broadcast(x, i)
        s0 = maximum(add(e, load(matrix, row)), s0)
        s1 = maximum(add(e, load(matrix, row + 4)), s1)
    store(out, place, s0)
    store(out, place + 4, s1)


@compiled
def add_products(left, right, length, rows, out):
    """out[i] += sum over t = 1..length-1 of left[t-1, i] right[t], for rows i < rows; two at a time."""
    width = out.shape[1]
    whole = width // 24 * 24
    for i in range(0, rows, 2):
        for column in range(0, whole, 24):
            _add_six(left, right, length, i, column, out)
        for column in range(whole, width, 8):
            _add_two(left, right, length, i, column, out)


@compiled
def _add_six(left, right, length, i, row, out):
    """Rows i and i + 1, which may be a row of padding."""
    width = out.shape[1]
    place = i * width + row
    other = place + width
    s0, s1, s2 = load(out, place), load(out, place + 4), load(out, place + 8)
    s3, s4, s5 = load(out, place + 12), load(out, place + 16), load(out, place + 20)
    t0, t1, t2 = load(out, other), load(out, other + 4), load(out, other + 8)
    t3, t4, t5 = load(out, other + 12), load(out, other + 16), load(out, other + 20)
    for k in range(i, i + (length - 1) * width, width):
        row += width
        e, f = broadcast(left, k), broadcast(left, k + 1)
        r = load(right, row)
        s0 = multiply_add(e, r, s0)
        t0 = multiply_add(f, r, t0)
        r = load(right, row + 4)
        s1 = multiply_add(e, r, s1)
        t1 = multiply_add(f, r, t1)
        r = load(right, row + 8)
        s2 = multiply_add(e, r, s2)
        t2 = multiply_add(f, r, t2)
        r = load(right, row + 12)
        s3 = multiply_add(e, r, s3)
        t3 = multiply_add(f, r, t3)
        r = load(right, row + 16)
        s4 = multiply_add(e, r, s4)
        t4 = multiply_add(f, r, t4)
        r = load(right, row + 20)
        s5 = multiply_add(e, r, s5)
        t5 = multiply_add(f, r, t5)
    store(out, place, s0)
    store(out, place + 4, s1)
    store(out, place + 8, s2)
    store(out, place + 12, s3)
    store(out, place + 16, s4)
    store(out, place + 20, s5)
    store(out, other, t0)
    store(out, other + 4, t1)
    store(out, other + 8, t2)
    store(out, other + 12, t3)
    store(out, other + 16, t4)
    store(out, other + 20, t5)


@compiled
def _add_two(left, right, length, i, row, out):
    width = out.shape[1]
    place = i * width + row
    other = place + width
    s0, s1, t0, t1 = load(out, place), load(out, place + 4), load(out, other), load(out, other + 4)
    for k in range(i, i + (length - 1) * width, width):
        row += width
        e, f = broadcast(left, k), broadcast(left, k + 1)
        s0 = multiply_add(e, load(right, row), s0)
        s1 = multiply_add(e, load(right, row + 4), s1)
        t0 = multiply_add(f, load(right, row), t0)
        t1 = multiply_add(f, load(right, row + 4), t1)
    store(out, place, s0)
    store(out, place + 4, s1)
    store(out, other, t0)
    store(out, other + 4, t1)
