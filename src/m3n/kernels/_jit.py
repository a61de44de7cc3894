"""The one place that decides how kernels are compiled.

Every kernel is a module-level function on plain arrays, so Numba can cache its machine code on disk. Set
``M3N_KERNEL_CACHE=0`` to switch that cache off (for example where many processes start at the same moment on a
network file system).

``contract`` lets the compiler fuse multiply and add. No other fast-math flag is set: the recursions rely on
infinities, and a reordered sum would break "same seed, same result".
"""

import os

from numba import njit

CACHE = os.environ.get("M3N_KERNEL_CACHE", "1") != "0"

kernel = njit(cache=CACHE, nogil=True, error_model="numpy", fastmath={"contract"})

# for long helpers that serve one kernel: compiled once, as part of it, and not a second time on their own
inlined = njit(inline="always", nogil=True, error_model="numpy", fastmath={"contract"})
