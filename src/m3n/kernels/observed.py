"""Products with a matrix of weights that has only some of its entries, on ranges of rows.

The entries of row r stand in two groups. Those before ``lists[r]`` belong to attributes that occur with many labels and
meet a *run*: all labels, weight ``runs[e] + j`` for label j, with padding where a pair has no weight. Those from
``lists[r]`` on belong to attributes with few labels and meet a *list*: weight k scores label ``columns[k]``, and the
last weight of a list holds the complement ``~label`` instead. Runs are straight loops for vector instructions, lists
touch nothing in vain; most attributes of a text are rare, most occurrences are of frequent ones.
"""

from m3n.kernels._jit import kernel


@kernel
def scores(pointers, lists, runs, data, columns, w, low, high, out):
    """out[r] = the scores of row r, for rows low..high-1; the padding of ``w`` must be zero.

    Four runs at a time: the row of ``out`` is loaded and stored a quarter as often.
    """
    width = out.shape[1]
    for r in range(low, high):
        row = out[r]
        for j in range(width):
            row[j] = 0.0
        first, stop = pointers[r], lists[r]
        whole = first + (stop - first) // 4 * 4
        for e in range(first, whole, 4):
            a, b = w[runs[e] : runs[e] + width], w[runs[e + 1] : runs[e + 1] + width]
            c, d = w[runs[e + 2] : runs[e + 2] + width], w[runs[e + 3] : runs[e + 3] + width]
            p, q, s, t = data[e], data[e + 1], data[e + 2], data[e + 3]
            for j in range(width):
                row[j] += (p * a[j] + q * b[j]) + (s * c[j] + t * d[j])
        for e in range(whole, stop):
            a, p = w[runs[e] : runs[e] + width], data[e]
            for j in range(width):
                row[j] += p * a[j]
        for e in range(stop, pointers[r + 1]):
            add_list(runs[e], columns, w, data[e], row)


@kernel
def add_list(first, columns, w, x, row):
    """row += x times the weights of a list."""
    k = first
    while columns[k] >= 0:
        row[columns[k]] += x * w[k]
        k += 1
    row[~columns[k]] += x * w[k]


@kernel
def add_adjoint(pointers, lists, runs, data, columns, parts, low, high, out):
    """out += the adjoint of rows low..high-1; padding is filled like the rest, for the caller to clear."""
    width = parts.shape[1]
    for r in range(low, high):
        row = parts[r]
        for e in range(pointers[r], lists[r]):
            run, x = out[runs[e] : runs[e] + width], data[e]
            for j in range(width):
                run[j] += x * row[j]
        for e in range(lists[r], pointers[r + 1]):
            spread_list(runs[e], columns, row, data[e], out)


@kernel
def spread_list(first, columns, row, x, out):
    """The weights of a list += x times the row's entries that they score."""
    k = first
    while columns[k] >= 0:
        out[k] += x * row[columns[k]]
        k += 1
    out[k] += x * row[~columns[k]]


@kernel
def arrange(indptr, indices, values, begins, counts, wide, pointers, lists, runs, data):
    """The entries of a CSR matrix, row by row, those that meet runs first; attributes without a weight drop out."""
    size = 0
    for r in range(indptr.shape[0] - 1):
        for meets_run in (True, False):
            for e in range(indptr[r], indptr[r + 1]):
                a = indices[e]
                if counts[a] > 0 and wide[a] == meets_run:
                    runs[size] = begins[a]
                    data[size] = values[e]
                    size += 1
            if meets_run:
                lists[r] = size
        pointers[r + 1] = size
    return size
