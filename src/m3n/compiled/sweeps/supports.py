"""Between vectors of the weights that matter and vectors of all weights."""

from m3n.compiled.jit import compiled


@compiled
def pick(low, high, vector, listed, out):
    """out[k] = vector[listed[k]], for k in low..high-1."""
    for k in range(low, high):
        out[k] = vector[listed[k]]


@compiled
def place(values, listed, vector):
    """vector[listed[k]] = values[k]."""
    for k in range(values.shape[0]):
        vector[listed[k]] = values[k]


@compiled
def fill(values, listed, vector):
    """The same; all other numbers are zero."""
    for k in range(vector.shape[0]):
        vector[k] = 0.0
    place(values, listed, vector)
