"""Four numbers at a time: a small vocabulary of vector instructions for the innermost loops.

The compiler turns plain loops into vector code by itself, but with a price for every loop: it must check at run time
that no arrays overlap, and rows of 22 labels leave a scalar rest. With 22 labels and rows that lie anywhere in memory
that price is more than half of the time. Here a ``Vector`` holds four numbers in one register; ``load`` and ``store``
move it, by the position in the flat memory of a C-ordered array of any shape, and the rest is arithmetic. LLVM maps
it to whatever the machine has (one AVX register, two of SSE or NEON).

Arithmetic takes *groups* of vectors as it takes single ones, see ``groups``; a single vector meets all of a group.

Two ways to treat a width that is no multiple of four: arrays of our own are padded (``padded``); elsewhere the last
vector begins at ``width - 4`` and overlaps its neighbour, which is right where results are assigned, not added.

``prefetch`` asks for a cache line that will be needed soon: rows picked by an index are the one pattern that the
hardware cannot guess.
"""

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, models, register_model
from numba.np import arrayobj

from m3n.compiled.jit import compiled

LANES = 4
LINE = 8  # numbers of a cache line

_NUMBER = ir.DoubleType()
VECTOR = ir.VectorType(_NUMBER, LANES)
INTEGER = ir.IntType(64)
_INTEGERS = ir.VectorType(INTEGER, LANES)
_FUSED = ("contract",)  # as in jit.OPTIONS: multiply and add may become one instruction


class Vector(types.Type):
    """Numba's type of four numbers in one register."""

    def __init__(self):
        super().__init__(name="float64x4")


@register_model(Vector)
class _Model(models.PrimitiveModel):
    def __init__(self, manager, numba_type):
        super().__init__(manager, numba_type, VECTOR)


vector = Vector()


@compiled
def padded(width):
    """The next multiple of eight: whole cache lines, and two vectors."""
    return (width + LINE - 1) // LINE * LINE


@intrinsic
def load(typing_context, array, position):
    """Four neighbouring numbers of an array."""

    def generate(context, builder, signature, arguments):
        return builder.load(address(context, builder, signature, arguments, VECTOR), align=8)

    return vector(array, types.int64), generate


@intrinsic
def store(typing_context, array, position, x):
    """Write four neighbouring numbers of an array."""

    def generate(context, builder, signature, arguments):
        builder.store(arguments[2], address(context, builder, signature, arguments, VECTOR), align=8)
        return context.get_dummy_value()

    return types.void(array, types.int64, vector), generate


@intrinsic
def prefetch(typing_context, array, position):
    """Ask for the cache line of an entry of an array."""

    def generate(context, builder, signature, arguments):
        byte, flag = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, flag, flag, flag])
        function = builder.module.declare_intrinsic("llvm.prefetch", (byte,), kind)
        place = address(context, builder, signature, arguments, ir.IntType(8))
        builder.call(function, [place, flag(0), flag(3), flag(1)])  # to read, keep it, data
        return context.get_dummy_value()

    return types.void(array, types.int64), generate


@intrinsic
def splat(typing_context, x):
    """The same number four times."""

    def generate(context, builder, signature, arguments):
        return repeat(builder, arguments[0])

    return vector(types.float64), generate


@intrinsic
def broadcast(typing_context, array, position):
    """One entry of an array, four times."""

    def generate(context, builder, signature, arguments):
        return repeat(builder, builder.load(address(context, builder, signature, arguments, _NUMBER)))

    return vector(array, types.int64), generate


@intrinsic
def add(typing_context, x, y):
    """x + y."""
    return _each(lambda builder, a, b: builder.fadd(a, b, flags=_FUSED), x, y)


@intrinsic
def subtract(typing_context, x, y):
    """x - y."""
    return _each(lambda builder, a, b: builder.fsub(a, b, flags=_FUSED), x, y)


@intrinsic
def multiply(typing_context, x, y):
    """x y."""
    return _each(lambda builder, a, b: builder.fmul(a, b, flags=_FUSED), x, y)


@intrinsic
def maximum(typing_context, x, y):
    """The larger of x and y; y where one of them is not a number."""
    return _each(_larger, x, y)


@intrinsic
def minimum(typing_context, x, y):
    """The smaller of x and y; y where one of them is not a number."""
    return _each(_smaller, x, y)


@intrinsic
def ratio(typing_context, x, y):
    """x / y, and 0 where y is 0."""

    def generate(builder, a, b):
        zero = _constant(0.0)
        return builder.select(builder.fcmp_ordered("==", b, zero), zero, builder.fdiv(a, b))

    return _each(generate, x, y)


@intrinsic
def kept(typing_context, numbers, position, x):
    """x, but 0 where the four neighbouring integers of an array (of 32 bits) are negative."""

    def generate(context, builder, signature, arguments):
        return masked(context, builder, signature, arguments, arguments[2])

    return vector(numbers, types.int64, vector), generate


@intrinsic
def multiply_add(typing_context, x, y, z):
    """x y + z."""
    return _each(_fused, x, y, z)


@intrinsic
def total(typing_context, x):
    """The sum of the four numbers, in a fixed order."""
    return _reduction(lambda builder, a, b: builder.fadd(a, b))


@intrinsic
def highest(typing_context, x):
    """The largest of the four numbers."""
    return _reduction(_larger)


@intrinsic
def lowest(typing_context, x):
    """The smallest of the four numbers."""
    return _reduction(_smaller)


@intrinsic
def exponential(typing_context, x):
    """exp(x), as ``exponential.exp`` computes it: 2^k times a polynomial; exactly 0 below ``SMALLEST``."""
    from m3n.compiled.primitives import exponential as scalar

    def generate(context, builder, signature, arguments):
        (x,) = arguments
        lowest, rounder = _constant(scalar.SMALLEST), _constant(scalar.ROUNDER)
        safe = _larger(builder, x, lowest)
        shifted = _fused(builder, safe, _constant(scalar.LOG2_E), rounder)
        k = builder.fsub(shifted, rounder)
        r = _fused(builder, k, _constant(-scalar.LOG_2_HIGH), safe)
        r = _fused(builder, k, _constant(-scalar.LOG_2_LOW), r)
        p = _constant(scalar.COEFFICIENTS[0])
        for c in scalar.COEFFICIENTS[1:]:
            p = _fused(builder, p, r, _constant(c))
        exponent = builder.shl(builder.bitcast(shifted, _INTEGERS), ir.Constant(_INTEGERS, [52] * LANES))
        power = builder.bitcast(builder.add(builder.bitcast(p, _INTEGERS), exponent), VECTOR)
        return builder.select(builder.fcmp_ordered(">=", x, lowest), power, _constant(0.0))

    return vector(vector), generate


def address(context, builder, signature, arguments, kind):
    """Pointer to an entry of an array, by its position in flat memory."""
    array = arrayobj.make_array(signature.args[0])(context, builder, arguments[0])
    return builder.bitcast(builder.gep(array.data, [arguments[1]]), kind.as_pointer())


def masked(context, builder, signature, arguments, x):
    """x, but 0 where four integers are negative."""
    kind = ir.VectorType(ir.IntType(32), LANES)
    signs = builder.load(address(context, builder, signature, arguments, kind), align=4)
    return builder.select(builder.icmp_signed(">=", signs, kind([0] * LANES)), x, _constant(0.0))


def repeat(builder, x):
    """The same number four times."""
    one = builder.insert_element(ir.Constant(VECTOR, ir.Undefined), x, ir.IntType(32)(0))
    return builder.shuffle_vector(one, one, ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES))


def members_of(builder, kind, value):
    """What a tuple holds."""
    return cgutils.unpack_tuple(builder, value, kind.count)


def _constant(x):
    return ir.Constant(VECTOR, [x] * LANES)


def _larger(builder, a, b):
    return builder.select(builder.fcmp_ordered(">", a, b), a, b)


def _smaller(builder, a, b):
    return builder.select(builder.fcmp_ordered("<", a, b), a, b)


def _fused(builder, x, y, z):
    return builder.fadd(builder.fmul(x, y, flags=_FUSED), z, flags=_FUSED)


def _each(operation, *kinds):
    """Arithmetic on vectors, or on every vector of groups; a single vector meets all of a group."""
    groups = [kind for kind in kinds if isinstance(kind, types.UniTuple)]

    def generate(context, builder, signature, arguments):
        if not groups:
            return operation(builder, *arguments)
        given = zip(signature.args, arguments, strict=True)
        count = groups[0].count
        members = [[x] * count if kind == vector else members_of(builder, kind, x) for kind, x in given]
        found = [operation(builder, *each) for each in zip(*members, strict=True)]
        return context.make_tuple(builder, signature.return_type, found)

    return (groups[0] if groups else vector)(*kinds), generate


def _reduction(operation):
    def generate(context, builder, signature, arguments):
        a, b, c, d = (builder.extract_element(arguments[0], ir.IntType(32)(k)) for k in range(LANES))
        return operation(builder, operation(builder, a, b), operation(builder, c, d))

    return types.float64(vector), generate
