"""Loops that stand for methods of arrays, because Numba's own take long to compile.

An assignment of one array to a slice of another brings formatted messages with it, a sort several functions.
"""

from m3n.compiled.jit import compiled


@compiled
def put(source, target):
    """target[:] = source, vectors of one length."""
    for k in range(source.shape[0]):
        target[k] = source[k]


@compiled
def widest(bounds):
    """The largest difference of neighbours in an ascending list, or 0."""
    found = 0
    for k in range(bounds.shape[0] - 1):
        found = max(found, bounds[k + 1] - bounds[k])
    return found


@compiled
def largest(numbers):
    """The largest of some integers, or 0."""
    found = 0
    for number in numbers:
        found = max(found, number)
    return found
