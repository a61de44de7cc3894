"""Indicator features: sums over the weights whose numbers are listed for a row, and additions to them.

A row has the entries pointers[r]..pointers[r + 1]-1; ``codes`` names the weight of each. Weights lie anywhere among
millions, so those of the rows to come are asked for in advance.
"""

from m3n.compiled.jit import compiled
from m3n.compiled.primitives.vector import prefetch

AHEAD = 64  # entries between asking for a weight and using it


@compiled
def sum_codes(low, high, pointers, codes, w, out):
    """out[r] = the sum of the weights of row r, for rows low..high-1."""
    last = pointers[high] - 1
    for r in range(low, high):
        total = 0.0
        for e in range(pointers[r], pointers[r + 1]):
            prefetch(w, codes[min(e + AHEAD, last)])
            total += w[codes[e]]
        out[r] = total


@compiled
def add_codes(low, high, pointers, codes, rows, scale, out):
    """out += scale * rows[r] at the weights of row r, for rows low..high-1; rows that are zero are left out."""
    for r in range(low, high):
        amount = scale * rows[r]
        if amount != 0.0:
            for e in range(pointers[r], pointers[r + 1]):
                out[codes[e]] += amount
