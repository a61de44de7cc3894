"""An exponential that the compiler can turn into vector instructions.

The library's ``exp`` is a function call per number. This one is straight-line arithmetic:
``exp(x) = 2^k exp(r)`` with ``k = round(x / log 2)`` and ``|r| <= log(2)/2``, a Taylor polynomial of degree 13 for
``exp(r)`` (its remainder is below 5e-18) and ``2^k`` written into the exponent bits. The measured error is one unit
in the last place.
"""

import math

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from m3n.compiled.jit import compiled, inner

LOG2_E = 1.4426950408889634
LOG_2_HIGH = 0.6931471803691238  # log(2) in two pieces: k * LOG_2_HIGH is exact for |k| < 2^11
LOG_2_LOW = 1.9082149292705877e-10
ROUNDER = 6755399441055744.0  # 1.5 * 2^52: adding it leaves round(x) in the low bits of the mantissa
COEFFICIENTS = tuple(1.0 / math.factorial(k) for k in range(13, -1, -1))
SMALLEST = -708.0  # below it 2^k leaves the normal range: the answer is zero


@intrinsic
def as_bits(typing_context, x):
    def generate(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], ir.IntType(64))

    return types.int64(types.float64), generate


@intrinsic
def as_float(typing_context, x):
    def generate(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], ir.DoubleType())

    return types.float64(types.int64), generate


@compiled
def exp(x):
    """Return exp(x) for x < 709, and exactly 0 for x < -708 (also for -inf)."""
    safe = max(x, SMALLEST)
    shifted = safe * LOG2_E + ROUNDER
    k = shifted - ROUNDER
    r = (safe - k * LOG_2_HIGH) - k * LOG_2_LOW
    p = COEFFICIENTS[0]
    for c in COEFFICIENTS[1:]:
        p = p * r + c
    power = as_float(as_bits(p) + (as_bits(shifted) << 52))
    return power if x >= SMALLEST else 0.0


@inner
def normalise(scores, count, mu):
    """Scores become probabilities, all 0 if none is allowed; returns mu log-sum-exp."""
    top, total = -np.inf, 0.0
    for j in range(count):
        top = max(top, scores[j])
    if not top > -np.inf:
        scores[:] = 0.0
        return top
    for j in range(count):
        scores[j] = exp((scores[j] - top) / mu)
        total += scores[j]
    for j in range(count):
        scores[j] /= total
    return top + mu * math.log(total)
