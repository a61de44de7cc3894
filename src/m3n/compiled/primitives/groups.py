"""Groups of vectors: a tuple of six holds 24 numbers, enough sums in registers to keep the machine busy.

The arithmetic of ``vector`` takes groups as it takes single vectors. Memory is addressed by a position and the offsets
of a group's vectors from there: ``neighbours`` are constants, so that one address serves all; ``within`` serves rows
whose width is no multiple of the group, where the last vectors overlap.

A function that gets a group as an argument is compiled for its size: one text serves 24 columns and eight.
"""

from numba import types
from numba.extending import intrinsic

from m3n.compiled.primitives.vector import INTEGER, LANES, VECTOR, address, masked, members_of, repeat, vector

_WHOLE = ("nsw",)  # as in sums of plain integers: positions do not overflow


@intrinsic
def six(typing_context, x):
    """A group of six vectors of the same number."""
    return _same(6)


@intrinsic
def two(typing_context, x):
    """A group of two vectors of the same number."""
    return _same(2)


@intrinsic
def neighbours(typing_context, group):
    """Offsets of vectors that follow one another, as many as the group has."""

    def generate(context, builder, signature, arguments):
        return context.make_tuple(builder, signature.return_type, _steps(group))

    return types.UniTuple(types.int64, group.count)(group), generate


@intrinsic
def within(typing_context, group, end):
    """The same, but none beyond ``end``, where the last ones then meet again."""

    def generate(context, builder, signature, arguments):
        (first, *others), end = _steps(group), arguments[1]
        least = (builder.select(builder.icmp_signed("<", step, end), step, end) for step in others)
        return context.make_tuple(builder, signature.return_type, [first, *least])

    return types.UniTuple(types.int64, group.count)(group, types.int64), generate


@intrinsic
def loads(typing_context, array, position, offsets):
    """A vector from position + each of the offsets."""

    def generate(context, builder, signature, arguments):
        addresses = _addresses(context, builder, signature, arguments)
        return context.make_tuple(builder, signature.return_type, [builder.load(a, align=8) for a in addresses])

    return types.UniTuple(vector, offsets.count)(array, types.int64, offsets), generate


@intrinsic
def stores(typing_context, array, position, offsets, group):
    """Write a vector to position + each of the offsets."""

    def generate(context, builder, signature, arguments):
        addresses = _addresses(context, builder, signature, arguments)
        for place, x in zip(addresses, members_of(builder, group, arguments[3]), strict=True):
            builder.store(x, place, align=8)
        return context.get_dummy_value()

    return types.void(array, types.int64, offsets, group), generate


@intrinsic
def kept_each(typing_context, numbers, position, offsets, group):
    """The group, but 0 where the integers (of 32 bits) from position + each of the offsets on are negative."""

    def generate(context, builder, signature, arguments):
        pairs = zip(_places(builder, signature, arguments), members_of(builder, group, arguments[3]), strict=True)
        found = [masked(context, builder, signature, (arguments[0], place), x) for place, x in pairs]
        return context.make_tuple(builder, signature.return_type, found)

    return group(numbers, types.int64, offsets, group), generate


def _same(count):
    def generate(context, builder, signature, arguments):
        return context.make_tuple(builder, signature.return_type, [repeat(builder, arguments[0])] * count)

    return types.UniTuple(vector, count)(types.float64), generate


def _steps(group):
    return [INTEGER(LANES * k) for k in range(group.count)]


def _places(builder, signature, arguments):
    offsets = members_of(builder, signature.args[2], arguments[2])
    return [builder.add(arguments[1], offset, flags=_WHOLE) for offset in offsets]


def _addresses(context, builder, signature, arguments):
    places = _places(builder, signature, arguments)
    return [address(context, builder, signature, (arguments[0], place), VECTOR) for place in places]
