"""Sets of small numbers as bits of integers: number k is bit k % 64 of word k // 64."""

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from m3n.compiled.jit import inner

BITS = 64


@intrinsic
def lowest(typing_context, word):
    """The number of the lowest bit that is set; ``word`` is not 0."""

    def generate(context, builder, signature, arguments):
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.int64), generate


@inner
def mark(words, k):
    """Put a number into a set."""
    words[k >> 6] |= 1 << (k & 63)


@inner
def marked(words, k):
    """Whether a number is in a set."""
    return (words[k >> 6] >> (k & 63)) & 1
