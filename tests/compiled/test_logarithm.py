import numpy as np

from m3n.compiled.primitives.logarithm import log, log_above_one


def test_log_is_that_of_numpy_over_all_normal_numbers(random):
    roots = np.sqrt([0.5, 2.0])
    edges = [*roots, *np.nextafter(roots, 0.0), *np.nextafter(roots, 2.0), 1.0, 2.0, 3e-308, 1e308]
    x = np.concatenate([np.exp(random.uniform(-700, 700, 5000)), 1.0 + random.normal(size=5000) * 1e-3, edges])
    np.testing.assert_allclose([log(value) for value in x], np.log(x), rtol=5e-16, atol=0)
    assert log(1.0) == 0.0


def test_logarithm_is_exact_to_two_units_in_the_last_place(random):
    x = np.concatenate([1.0 + np.logspace(-16, 0, 2000), np.exp(random.uniform(0, 700, 5000)), np.arange(1.0, 100.0)])
    found, expected = np.array([log_above_one(value) for value in x]), np.log(x)
    assert np.all(np.abs(found - expected) <= 2 * np.spacing(np.maximum(expected, 1e-300)))
    assert log_above_one(1.0) == 0.0


def test_logarithm_of_nothing():
    assert log_above_one(0.0) == -np.inf
