"""A quadratic programme in a handful of variables: max <b, x> - 1/2 x' G x over the simplex.

Pairwise steps (the idea of SMO): move weight from the worst used coordinate to the best one, exactly to the maximum
along that direction. Every step raises the objective, so the answer is never worse than the start.
"""

import numpy as np

from m3n.compiled.jit import compiled

MOST_STEPS = 5000
ENOUGH = 1e-10  # of the spread of gradients at the start: far below what the answer is used for


@compiled
def maximize_on_simplex(gram, b, x):
    """Improve ``x`` in place."""
    size = b.shape[0]
    gradient = np.empty(size)
    first_spread = 0.0
    for _ in range(MOST_STEPS):
        best, worst = 0, -1
        for i in range(size):
            gradient[i] = b[i]
            for j in range(size):
                gradient[i] -= gram[i, j] * x[j]
            if gradient[i] > gradient[best]:
                best = i
            if x[i] > 0.0 and (worst < 0 or gradient[i] < gradient[worst]):
                worst = i
        spread = gradient[best] - gradient[worst]
        first_spread = max(first_spread, spread)
        if not spread > ENOUGH * first_spread:
            return
        curvature = gram[best, best] + gram[worst, worst] - 2.0 * gram[best, worst]
        amount = x[worst]
        if curvature * amount > spread:
            amount = spread / curvature
        x[best] += amount
        x[worst] = x[worst] - amount if amount < x[worst] else 0.0
