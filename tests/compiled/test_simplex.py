import numpy as np
from scipy.optimize import minimize

from m3n.compiled.primitives.simplex import maximize_on_simplex


def test_finds_the_maximum(random):
    for _ in range(20):
        size = int(random.integers(1, 7))
        factor = random.normal(size=(size, size + 2))
        gram, b = factor @ factor.T, random.normal(size=size)
        x = random.dirichlet(np.ones(size))
        maximize_on_simplex(gram, b, x)
        assert x.min() >= 0
        np.testing.assert_allclose(x.sum(), 1.0)
        reference = minimize(
            lambda z, gram=gram, b=b: 0.5 * z @ gram @ z - b @ z,
            np.full(size, 1 / size),
            bounds=[(0, 1)] * size,
            constraints={"type": "eq", "fun": lambda z: z.sum() - 1},
            options={"ftol": 1e-14, "maxiter": 500},
        )
        assert b @ x - 0.5 * x @ gram @ x >= -reference.fun - 1e-8


def test_identical_points_do_no_harm():
    x = np.array([0.5, 0.5])
    maximize_on_simplex(np.ones((2, 2)), np.array([1.0, 1.0]), x)
    np.testing.assert_allclose(x, [0.5, 0.5])
    maximize_on_simplex(np.zeros((2, 2)), np.array([0.0, 1.0]), x)
    np.testing.assert_allclose(x, [0.0, 1.0])
