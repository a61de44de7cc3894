"""Products of a sparse matrix with a dense one, on ranges of rows.

One kernel serves both directions: scores use the matrix row by row (CSR), the adjoint its transpose (CSC), so that
every thread owns the rows it writes and no sum depends on the number of threads.
"""

from m3n.kernels._jit import kernel


@kernel
def multiply(pointers, indices, data, dense, low, high, out):
    """out[r] = sum over stored entries of row r of data * dense[index], for rows low..high-1."""
    width = dense.shape[1]
    for r in range(low, high):
        for j in range(width):
            out[r, j] = 0.0
        for k in range(pointers[r], pointers[r + 1]):
            value = data[k]
            source = indices[k]
            for j in range(width):
                out[r, j] += value * dense[source, j]
