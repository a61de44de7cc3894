"""Threads that wait for one another inside compiled code, without going back to Python.

A counter in an array is raised by every thread that arrives. It never falls: whoever waits for a number of arrivals
goes on as soon as there were so many. What a thread wrote before it arrived is seen by those that waited for it.
"""

import sys

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from m3n.compiled.jit import compiled
from m3n.compiled.primitives.vector import INTEGER, address

SPINS = 2000  # looks at the counter: a few microseconds, after that others may need the core more
YIELD = "SwitchToThread" if sys.platform == "win32" else "sched_yield"


@intrinsic
def raise_by(typing_context, counter, amount):
    """counter[0] += amount, at once for all threads; returns the number before."""

    def generate(context, builder, signature, arguments):
        place = _first(context, builder, signature, arguments)
        return builder.atomic_rmw("add", place, arguments[1], "seq_cst")

    return types.int64(counter, types.int64), generate


@intrinsic
def current(typing_context, counter):
    """counter[0] as other threads have left it."""

    def generate(context, builder, signature, arguments):
        return builder.load_atomic(_first(context, builder, signature, arguments), "seq_cst", 8)

    return types.int64(counter), generate


@intrinsic
def give_way(typing_context):
    """Another thread may have this core."""

    def generate(context, builder, signature, arguments):
        kind = ir.FunctionType(ir.IntType(32), [])
        builder.call(cgutils.get_or_insert_function(builder.module, kind, YIELD), [])
        return context.get_dummy_value()

    return types.void(), generate


@compiled
def arrive(counter, expected):
    """Say that this thread is here, and wait until ``expected`` arrivals have been counted."""
    raise_by(counter, 1)
    looks = 0
    while current(counter) < expected:
        looks += 1
        if looks > SPINS:
            give_way()


def _first(context, builder, signature, arguments):
    zero = ir.Constant(INTEGER, 0)
    return address(context, builder, signature, [arguments[0], zero], INTEGER)
