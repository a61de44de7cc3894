"""The common unit of the part losses of an output space.

If all losses of parts are whole multiples of a unit, so is the loss of every output, and a table can be indexed by it.
Euclid's algorithm finds the largest such unit; with rounded numbers remainders below ``ROUNDING`` of the largest loss
count as zero, and a unit below ``SMALLEST`` of it as none (1 and sqrt(2) have no common unit, rounded ones might).
"""

import numpy as np

from m3n.compiled.jit import compiled, inner

ROUNDING = 1e-10  # sums and quotients of a few numbers are exact to 1e-15 or so
SMALLEST = 1e-6  # tables with more than a million rows would be too large anyway


@compiled
def unit_of(losses):
    """The unit of an array of losses that are not negative: 1 if all are zero, 0 if there is none."""
    largest = 0.0
    for k in range(losses.shape[0]):
        largest = max(largest, losses[k])
    if largest == 0.0:
        return 1.0
    unit = largest
    for k in range(losses.shape[0]):
        share = losses[k] / unit
        if abs(share - np.floor(share + 0.5)) * unit > ROUNDING * largest:
            unit = _common(unit, losses[k], ROUNDING * largest)
            if unit < SMALLEST * largest:
                return 0.0
    return largest / np.floor(largest / unit + 0.5)


@inner
def _common(a, b, rounding):
    """Euclid's algorithm, with the remainder of least size."""
    while b > rounding:
        a, b = b, abs(a - np.floor(a / b + 0.5) * b)
    return a


@compiled
def steps_of(loss, unit):
    """A loss in units."""
    return np.int64(loss / unit + 0.5)
