"""Rows of (rows, labels) arrays one by one: softmax, loss tables."""

import math

import numpy as np

from m3n.compiled.jit import compiled
from m3n.compiled.primitives.exponential import exp


@compiled
def soft(theta, low, high, mu, values):
    """Rows low..high-1 become softmax(row/mu); ``values`` their mu log sum exp(row/mu)."""
    labels = theta.shape[1]
    for i in range(low, high):
        top = -np.inf
        for j in range(labels):
            top = max(top, theta[i, j])
        values[i] = top
        if top == -np.inf:
            for j in range(labels):
                theta[i, j] = 0.0
            continue
        total = 0.0
        for j in range(labels):
            theta[i, j] = exp((theta[i, j] - top) / mu)
        for j in range(labels):
            total += theta[i, j]
        for j in range(labels):
            theta[i, j] /= total
        values[i] += mu * math.log(total)
