"""A logarithm that the compiler can turn into vector instructions, the companion of ``exponential``.

``log(x) = k log 2 + log m`` with ``x = 2^k m`` and m between sqrt(1/2) and sqrt(2), read off the exponent bits, and
``log m = 2 artanh(s) = 2 (s + s^3/3 + s^5/5 + ...)``, ``s = (m - 1)/(m + 1)``, |s| < 0.172. Twelve terms leave a
relative remainder below 1e-19.
"""

import numpy as np

from m3n.compiled.jit import compiled
from m3n.compiled.primitives.exponential import LOG_2_HIGH, LOG_2_LOW, as_bits, as_float

MANTISSA = 0x000FFFFFFFFFFFFF
ONE = 0x3FF0000000000000  # the bits of 1.0
LARGE = 0x4330000000000000  # the bits of 2^52: a small integer put into its mantissa is added to it
ROOT = 1.4142135623730951
COEFFICIENTS = tuple(2.0 / n for n in range(23, 0, -2))


@compiled
def log(x):
    """Return log(x) for a positive normal number x."""
    bits = as_bits(x)
    exponent = np.int64(np.uint64(bits) >> np.uint64(52))
    k = as_float(exponent | LARGE) - (2.0**52 + 1023.0)
    m = as_float((bits & MANTISSA) | ONE)
    above = m > ROOT
    m = m * 0.5 if above else m
    k = k + 1.0 if above else k
    s = (m - 1.0) / (m + 1.0)
    z = s * s
    p = COEFFICIENTS[0]
    for c in COEFFICIENTS[1:]:
        p = p * z + c
    return k * LOG_2_HIGH + (k * LOG_2_LOW + s * p)


@compiled
def log_above_one(x):
    """Return log(x) for a finite x >= 1, and -inf for 0."""
    found = log(max(x, 1.0))
    return found if x > 0.0 else -np.inf
