"""Runs of neighbouring weights that lie anywhere: sums of them in registers, and asking for those to come.

What block methods do to the weights is bound by memory. A run spans a few cache lines at a place that the hardware
cannot guess, so the weights of the next row are asked for while this one is worked on. Sums of runs stay in registers,
24 parts at a time, as in ``m3n.kernels.sparse``.
"""

from m3n.kernels._jit import kernel
from m3n.kernels.vector import LINE, load, multiply_add, prefetch, splat, store

NEAR = 1 << 14  # so many weights stay in the nearest caches anyway


@kernel
def ask(runs, first, stop, w):
    """Prefetch the runs of weights that entries first..stop-1 meet, if there are too many to be near."""
    if w.shape[0] > NEAR:
        for e in range(first, stop):
            prefetch(w, runs[e])
            prefetch(w, runs[e] + LINE)
            prefetch(w, runs[e] + 2 * LINE)


@kernel
def sum_runs(runs, data, first, stop, w, out):
    """out = sum of data[e] times the run of weights at runs[e], over entries first..stop-1."""
    width = out.shape[0]
    if width < 4:
        for j in range(width):
            out[j] = 0.0
        for e in range(first, stop):
            for j in range(width):
                out[j] += data[e] * w[runs[e] + j]
    else:
        for part in range(0, width, 24):  # the last four parts may be computed twice
            _sum_six(runs, data, first, stop, w, min(part, width - 4), out)


@kernel
def _sum_six(runs, data, first, stop, w, part, out):
    """Up to 24 parts. Beyond the last part the sums repeat one another."""
    end = out.shape[0] - 4 - part
    c1, c2, c3, c4, c5 = min(4, end), min(8, end), min(12, end), min(16, end), min(20, end)
    s0 = s1 = s2 = s3 = s4 = s5 = splat(0.0)
    for e in range(first, stop):
        at, x = runs[e] + part, splat(data[e])
        s0 = multiply_add(x, load(w, at), s0)
        s1 = multiply_add(x, load(w, at + c1), s1)
        s2 = multiply_add(x, load(w, at + c2), s2)
        s3 = multiply_add(x, load(w, at + c3), s3)
        s4 = multiply_add(x, load(w, at + c4), s4)
        s5 = multiply_add(x, load(w, at + c5), s5)
    store(out, part, s0)
    store(out, part + c1, s1)
    store(out, part + c2, s2)
    store(out, part + c3, s3)
    store(out, part + c4, s4)
    store(out, part + c5, s5)
