"""Short lists of integers in ascending order."""

from m3n.compiled.jit import compiled

FEW = 40  # up to here insertion is quicker than what the library's sort takes to begin


@compiled
def ascend(numbers, low, high):
    """Sort numbers[low:high] in place."""
    if high - low > FEW:
        numbers[low:high].sort()
        return
    for k in range(low + 1, high):
        number, at = numbers[k], k
        while at > low and numbers[at - 1] > number:
            numbers[at] = numbers[at - 1]
            at -= 1
        numbers[at] = number
