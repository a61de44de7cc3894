"""Products of a sparse matrix with a dense one, on ranges of rows.

One kernel serves both directions: scores use the matrix row by row (CSR), the adjoint its transpose (CSC), so that
every thread owns the rows it writes and no sum depends on the number of threads.
"""

from m3n.kernels._jit import kernel


@kernel
def multiply(pointers, indices, data, dense, low, high, out):
    """out[r] = sum over stored entries of row r of data * dense[index], for rows low..high-1.

    Four entries at a time: the row of ``out`` is loaded and stored a quarter as often.
    """
    width = dense.shape[1]
    for r in range(low, high):
        row = out[r]
        for j in range(width):
            row[j] = 0.0
        first, stop = pointers[r], pointers[r + 1]
        whole = first + (stop - first) // 4 * 4
        for k in range(first, whole, 4):
            a, b, c, d = dense[indices[k]], dense[indices[k + 1]], dense[indices[k + 2]], dense[indices[k + 3]]
            e, f, g, h = data[k], data[k + 1], data[k + 2], data[k + 3]
            for j in range(width):
                row[j] += (e * a[j] + f * b[j]) + (g * c[j] + h * d[j])
        for k in range(whole, stop):
            a, e = dense[indices[k]], data[k]
            for j in range(width):
                row[j] += e * a[j]
