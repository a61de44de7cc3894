"""A matrix game with an entropy-regularised player, solved to a certified gap.

The column player mixes columns by w, pays A_ij when the row player answers with row i, and is kept from
certainty by an entropy term of weight rho; the row player mixes rows by alpha:

    primal   J(w)     = rho sum_j w_j log w_j + max_i (A w)_i                       w in the simplex
    dual     D(alpha) = -rho log sum_j exp(-(A^T alpha)_j / rho)                    alpha in the simplex
    maps     w(alpha) = softmax(-A^T alpha / rho),    grad D(alpha) = A w(alpha)
             alpha_mu(w) = softmax(A w / mu),         V(alpha, v) = softmax(log alpha - v)

In the general form f = rho sum w log w on the simplex and g = 0. Negative entropy is 1-strongly convex in the
L1 norm: with L1 norms on both sides |A| = max_ij |A_ij|, L = |A|^2 / rho and sigma = 1. The prox-function
d = sum_i alpha_i log alpha_i + log m is at most log m on the simplex of m rows.

Run:  python examples/matrix_game.py   (needs `pip install clarabel` for the comparison)
"""

import clarabel
import numpy as np
from scipy import sparse
from scipy.special import logsumexp, softmax, xlogy

import m3n


def prox(alpha):
    """d(alpha), entropy relative to the uniform distribution."""
    return np.sum(xlogy(alpha, alpha)) + np.log(len(alpha))


def build(A, rho):
    """The saddle point of the game with payments A, (rows, columns)."""
    rows = A.shape[0]

    def weights(alpha):
        return softmax(-A.T @ alpha / rho)

    def project(alpha, v):
        with np.errstate(divide="ignore"):  # log 0 = -inf keeps a row that has underflowed at 0
            return softmax(np.log(alpha) - v)

    def regulariser(w):
        return rho * np.sum(xlogy(w, w))

    return m3n.SaddlePoint(
        primal=lambda w: regulariser(w) + np.max(A @ w),
        dual=lambda alpha: -rho * logsumexp(-A.T @ alpha / rho),
        dual_gradient=lambda alpha: A @ weights(alpha),
        weights=weights,
        smoothed=lambda w, mu: softmax(A @ w / mu),
        project=project,
        center=np.full(rows, 1.0 / rows),
        lipschitz=np.max(np.abs(A)) ** 2 / rho,
        convexity=1.0,
        diameter=np.log(rows),
        smoothed_primal=lambda w, mu: regulariser(w) + mu * (logsumexp(A @ w / mu) - np.log(rows)),
    )


def independent(A, rho):
    """Optimal w and alpha by the interior-point method of Clarabel.

    Variables (w, t, s): minimise t + rho sum s with A w <= t, sum w = 1 and (-s_j, w_j, 1) in the exponential
    cone, that is w_j exp(-s_j / w_j) <= 1, or s_j >= w_j log w_j. The multipliers of A w <= t are alpha.
    """
    m, n = A.shape
    cost = np.r_[np.zeros(n), 1.0, np.full(n, rho)]
    total = np.r_[np.ones(n), 0.0, np.zeros(n)]
    rows = np.c_[A, -np.ones(m), np.zeros((m, n))]
    cones = np.zeros((3 * n, 2 * n + 1))
    j = np.arange(n)
    cones[3 * j, n + 1 + j] = 1.0  # Clarabel wants b - M x in the cone: 0 - s_j
    cones[3 * j + 1, j] = -1.0  # 0 + w_j; the third entry is the 1 of b
    M = sparse.csc_matrix(np.vstack([total, rows, cones]))
    b = np.r_[1.0, np.zeros(m), np.tile([0.0, 0.0, 1.0], n)]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
    kinds = [clarabel.ZeroConeT(1), clarabel.NonnegativeConeT(m)] + n * [clarabel.ExponentialConeT()]
    empty = sparse.csc_matrix((2 * n + 1, 2 * n + 1))
    solution = clarabel.DefaultSolver(empty, cost, M, b, kinds, settings).solve()
    return np.array(solution.x)[:n], np.array(solution.z)[1 : m + 1]


def main():
    A = np.random.default_rng(0).uniform(-1.0, 1.0, size=(40, 30))
    rho = 0.1
    saddle = build(A, rho)
    print(f"matrix game: {A.shape[0]} rows, {A.shape[1]} columns, rho = {rho}")
    for schedule in ("paper", "adaptive"):
        result = m3n.excessive_gap(saddle, tol=1e-6, schedule=schedule)
        print(
            f"{schedule:>8}: primal {result.primal:.9f}  dual {result.dual:.9f}  gap {result.gap:.1e}  "
            f"bound {result.bound:.1e}  {result.iterations} iterations ({result.redone} redone), "
            f"{result.status}"
        )
    w, alpha = independent(A, rho)
    print(f"clarabel: primal {saddle.primal(w / w.sum()):.9f}  dual {saddle.dual(alpha / alpha.sum()):.9f}")


if __name__ == "__main__":
    main()
