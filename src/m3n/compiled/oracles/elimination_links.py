"""Links: how the entries of a table meet those of a smaller one, in both directions.

A *table* holds one number per joint labelling of some variables: a padded row for every label of the first one, and
within a row the labellings of the others in row-major order. A *link* says where the labelling x of the table is found
in a buffer that knows only some of the variables, or has them in another order:

    place(x) = offset + sum_k stride_k x_k

with a stride of 0 for a variable that the buffer does not have. ``dims`` lists (extent, stride) of the others from the
outermost digit to the innermost; neighbours of which one stride follows from the other are one longer digit there, so
that most runs are long even for two labels. ``add_link`` adds what is found to the table, ``sum_link`` adds the table
to what is found: the same link carries scores up and marginals down.
"""

from m3n.compiled.jit import borrowing
from m3n.compiled.primitives.vector import add, highest, load, maximum, splat, store, total

EXTENT, STRIDE = 0, 1
LEAST = -1.7e308  # instead of -inf where it is subtracted: the difference must not become NaN


@borrowing
def add_link(table, at, labels, width, buffer, offset, lead, dims, first, last, digits):
    """table[at + x] += buffer[place(x)]; ``lead`` is the stride of the first variable.

    ``digits`` is scratch, one integer per dimension.
    """
    inner, stride, outer = dims[last - 1, EXTENT], dims[last - 1, STRIDE], last - first > 1
    for label in range(labels):
        row, found = at + label * width, offset + label * lead
        for _ in range(start(dims, first, last, digits) if outer else 1):
            if stride == 1:
                add_row(table, row, inner, buffer, found)
            elif stride == 0:
                shift_row(table, row, inner, buffer[found])
            else:
                for j in range(inner):
                    table[row + j] += buffer[found + j * stride]
            if outer:
                row += inner
                found = advance(dims, first, last, digits, found)


@borrowing
def sum_link(table, at, labels, width, buffer, offset, lead, dims, first, last, digits):
    """buffer[place(x)] += table[at + x]; arguments as for ``add_link``."""
    inner, stride, outer = dims[last - 1, EXTENT], dims[last - 1, STRIDE], last - first > 1
    for label in range(labels):
        row, found = at + label * width, offset + label * lead
        for _ in range(start(dims, first, last, digits) if outer else 1):
            if stride == 1:
                add_row(buffer, found, inner, table, row)
            elif stride == 0:
                buffer[found] += row_sum(table, row, inner)
            else:
                for j in range(inner):
                    buffer[found + j * stride] += table[row + j]
            if outer:
                row += inner
                found = advance(dims, first, last, digits, found)


@borrowing
def start(dims, first, last, digits):
    """All digits but the innermost become 0; returns how many values they take together."""
    rows = 1
    for k in range(first, last - 1):
        digits[k - first] = 0
        rows *= dims[k, EXTENT]
    return rows


@borrowing
def advance(dims, first, last, digits, offset):
    """Count up the digits by one; the new offset."""
    for k in range(last - 2, first - 1, -1):
        digits[k - first] += 1
        offset += dims[k, STRIDE]
        if digits[k - first] < dims[k, EXTENT]:
            return offset
        digits[k - first] = 0
        offset -= dims[k, EXTENT] * dims[k, STRIDE]
    return offset


@borrowing
def add_row(out, at, count, source, offset):
    """out[at + j] += source[offset + j] for j < count."""
    whole = count - count % 4
    for j in range(0, whole, 4):
        store(out, at + j, add(load(out, at + j), load(source, offset + j)))
    for j in range(whole, count):
        out[at + j] += source[offset + j]


@borrowing
def add_strided(out, at, step, source, offset, stride, count):
    """out[at + step j] += source[offset + stride j] for j < count."""
    if step == 1 and stride == 1:
        add_row(out, at, count, source, offset)
    else:
        for j in range(count):
            out[at + step * j] += source[offset + stride * j]


@borrowing
def shift_row(row, at, count, amount):
    """row[at : at + count] += amount."""
    four, whole = splat(amount), count - count % 4
    for j in range(0, whole, 4):
        store(row, at + j, add(load(row, at + j), four))
    for j in range(whole, count):
        row[at + j] += amount


@borrowing
def shifted_row(row, at, count, amount, place):
    """row[place + j] = row[at + j] + amount for j < count; the two do not overlap."""
    if count < 4:
        for j in range(count):
            row[place + j] = row[at + j] + amount
    else:
        four = splat(amount)
        for j in range(0, count, 4):
            c = min(j, count - 4)
            store(row, place + c, add(load(row, at + c), four))


@borrowing
def row_sum(row, at, count):
    """The sum of row[at : at + count], in a fixed order."""
    fours, whole, rest = splat(0.0), count - count % 4, 0.0
    for j in range(0, whole, 4):
        fours = add(fours, load(row, at + j))
    for j in range(whole, count):
        rest += row[at + j]
    return total(fours) + rest


@borrowing
def row_top(row, at, count):
    """The largest of row[at : at + count]."""
    if count < 4:
        top = row[at]
        for j in range(1, count):
            top = max(top, row[at + j])
        return top
    tops = load(row, at + count - 4)
    for j in range(0, count - 4, 4):
        tops = maximum(load(row, at + j), tops)
    return highest(tops)


@borrowing
def first_top(row, at, count, stride):
    """The first k with the largest row[at + k * stride]."""
    best = 0
    for j in range(1, count):
        best = j if row[at + j * stride] > row[at + best * stride] else best
    return best
