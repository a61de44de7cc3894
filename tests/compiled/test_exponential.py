import numpy as np

from m3n.compiled.jit import compiled
from m3n.compiled.primitives.exponential import exp


@compiled
def exp_all(x, out):
    for i in range(x.shape[0]):
        out[i] = exp(x[i])


def test_accuracy_is_an_ulp_or_so(random):
    x = np.concatenate([random.uniform(-708, 709, 100_000), -np.logspace(-300, 2, 1000), [0.0, -708.0]])
    out = np.empty_like(x)
    exp_all(x, out)
    expected = np.exp(x.astype(np.longdouble))
    assert float(np.max(np.abs(out / expected - 1))) < 4e-16


def test_below_the_normal_range_is_zero():
    x = np.array([-708.1, -745.0, -1e9, -np.inf])
    out = np.empty_like(x)
    exp_all(x, out)
    assert out.tolist() == [0.0, 0.0, 0.0, 0.0]
