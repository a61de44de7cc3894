import numpy as np
import pytest
import scipy.sparse
from sklearn.metrics.pairwise import pairwise_kernels

from m3n.features import KernelFunction

OWN = {
    "linear": ({}, {}),
    "poly": ({"degree": 2, "gamma": 0.7, "coef0": 0.5},) * 2,
    "rbf": ({"gamma": 0.7},) * 2,
}


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("name", OWN)
def test_own_kernels_are_those_of_scikit_learn(name, sparse, random):
    ours, theirs = OWN[name]
    A, B = random.normal(size=(5, 3)), random.normal(size=(4, 3))
    kind = scipy.sparse.csr_array if sparse else np.asarray
    function = KernelFunction(name, **ours)
    expected = pairwise_kernels(A, B, metric=name, **theirs)
    np.testing.assert_allclose(function(kind(A), kind(B)), expected, rtol=1e-12)
    np.testing.assert_allclose(function.diagonal(kind(A)), function(kind(A), kind(A)).diagonal(), rtol=1e-12)


@pytest.mark.parametrize("degree", [1, 2, 3, 4, 5, 2.5])
def test_powers(degree, random):
    A = random.uniform(0.5, 1.5, size=(3, 2))
    np.testing.assert_allclose(KernelFunction("poly", degree, 1.0, 0.3)(A, A), (A @ A.T + 0.3) ** degree)


def test_other_kernels_come_from_scikit_learn(random):
    A = random.uniform(size=(5, 3))
    for name, params in (("laplacian", {"gamma": 0.3}), ("chi2", {}), ("sigmoid", {"coef0": 0.0}), ("cosine", {})):
        function = KernelFunction(name, params=params)
        np.testing.assert_allclose(function(A, A), pairwise_kernels(A, metric=name, **params))
        np.testing.assert_allclose(function.diagonal(A), pairwise_kernels(A, metric=name, **params).diagonal())


def test_functions_get_their_parameters(random):
    A = random.normal(size=(4, 2))
    function = KernelFunction(lambda X, Z, shift: X @ Z.T + shift, params={"shift": 2.0})
    np.testing.assert_allclose(function(A, A[:3]), A @ A[:3].T + 2.0)


@pytest.mark.parametrize("sparse", [False, True])
def test_gamma_from_the_inputs(sparse, random):
    A = random.uniform(size=(50, 4)) * (random.uniform(size=(50, 4)) < 0.5)
    X = scipy.sparse.csr_array(A) if sparse else A
    assert KernelFunction(gamma="scale").fitted(X).gamma == pytest.approx(1 / (4 * A.var()))
    assert KernelFunction(gamma="auto").fitted(X).gamma == 0.25
    assert KernelFunction(gamma=0.1).fitted(X).gamma == 0.1
    assert KernelFunction(gamma="scale").fitted(np.ones((3, 2))).gamma == 1.0  # no variance, no scale


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"kernel": "cubic"}, "unknown kernel 'cubic'"),
        ({"gamma": "big"}, "gamma must be"),
        ({"gamma": -1.0}, "gamma must be"),
        ({"kernel": "poly", "degree": 0}, "positive degree"),
        ({"kernel": "rbf", "params": {"gamma": 1.0}}, "takes degree, gamma and coef0"),
    ],
)
def test_wrong_parameters(arguments, message):
    with pytest.raises(ValueError, match=message):
        KernelFunction(**arguments)


def test_what_is_no_kernel():
    with pytest.raises(TypeError, match="a name or a function"):
        KernelFunction(3)


def test_wrong_shape_of_a_function():
    with pytest.raises(ValueError, match=r"returned shape \(2,\) for 2 and 3 inputs"):
        KernelFunction(lambda A, B: np.ones(len(A)))(np.ones((2, 1)), np.ones((3, 1)))


def test_what_is_an_inner_product_by_mathematics():
    certain = [KernelFunction(name) for name in ("linear", "poly", "rbf", "laplacian")]
    assert all(function.certain for function in certain)
    doubtful = [KernelFunction("poly", coef0=-1.0), KernelFunction("poly", 2.5), KernelFunction("sigmoid")]
    assert not any(function.certain for function in (*doubtful, KernelFunction(lambda A, B: A @ B.T)))
