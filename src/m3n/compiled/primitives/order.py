"""Lists of integers in ascending order."""

from m3n.compiled.jit import compiled


@compiled
def ascend(numbers, low, high):
    """Sort numbers[low:high] in place, by insertion over ever shorter distances; Numba's sort takes long to compile."""
    distance = 1
    while distance < (high - low) // 9:
        distance = 3 * distance + 1
    while distance > 0:
        for k in range(low + distance, high):
            number, at = numbers[k], k
            while at >= low + distance and numbers[at - distance] > number:
                numbers[at] = numbers[at - distance]
                at -= distance
            numbers[at] = number
        distance //= 3
