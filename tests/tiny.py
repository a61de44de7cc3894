"""Tiny problems and what is known about them independently of the library's oracles and solvers."""

from dataclasses import dataclass
from functools import cached_property

import clarabel
import numpy as np
import scipy.optimize
import scipy.sparse

from m3n import Problem
from m3n.features import Dense, FeatureMap, chain_features
from m3n.losses import Hamming, NormalizedHamming
from m3n.structures import Chain, Multiclass


def chain_problem(
    seed=0, lengths=(1, 3, 2, 4), labels=3, lam=0.1, loss=None, attributes=4, n_jobs=1, temperature=0.0, l1=0.0
):
    """A chain M3N, or CRF, that needs real work: random inputs, random labels."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(sum(lengths), attributes))
    y = [random.integers(labels, size=length) for length in lengths]
    features = chain_features(Dense(X, labels), labels)
    loss = loss or (None if temperature else NormalizedHamming())
    settings = {"loss": loss, "lam": lam, "n_jobs": n_jobs, "temperature": temperature, "l1": l1}
    return Problem(Chain(lengths, labels), features, y, **settings)


def multiclass_problem(seed=0, n=12, labels=4, lam=0.1, attributes=3, n_jobs=1, temperature=0.0, l1=0.0):
    """A multiclass SVM, or logistic regression, on random data."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, attributes))
    y = random.integers(labels, size=n)
    loss = None if temperature else Hamming()
    settings = {"loss": loss, "lam": lam, "n_jobs": n_jobs, "temperature": temperature, "l1": l1}
    return Problem(Multiclass(n, labels), Dense(X, labels), y, **settings)


def iterates(problem, solver, steps):
    """The first state and ``steps`` more."""
    state = solver.init(problem)
    yield state
    for _ in range(steps):
        state = solver.step(problem, state)
        yield state


@dataclass
class Enumerated:
    """Every psi_i(y) and ell_i(y) of a problem, written out."""

    problem: Problem
    owner: np.ndarray  # (outputs,) example of every output
    psi: np.ndarray  # (outputs, dim)
    ell: np.ndarray  # (outputs,)

    @classmethod
    def of(cls, problem):
        owner, psi, ell = [], [], []
        structure = problem.structure
        for i in range(structure.n):
            alone, rows = structure.select(np.array([i]))
            features = problem.features.select(rows)
            span = structure.entries_of(np.array([i]))
            gold = features.adjoint(alone.encode(problem.gold[span])).copy()
            cost = problem.cost.select(rows, [i])
            for y in structure.enumerate(i):
                parts = alone.encode(y)
                owner.append(i)
                psi.append(gold - features.adjoint(parts))
                ell.append(cost.expected(parts) - (0.0 if problem.prior is None else problem.prior @ psi[-1]))
        return cls(problem, np.array(owner), np.array(psi), np.array(ell))

    @property
    def radius(self):
        return float(np.linalg.norm(self.psi, axis=1).max())

    def primal(self, w):
        margins, heat = self.ell - self.psi @ w, self.problem.temperature
        if heat:
            worst = [heat * np.logaddexp.reduce(margins[self.owner == i] / heat) for i in self.range]
        else:
            worst = [margins[self.owner == i].max() for i in self.range]
        return self.problem.lam / 2 * w @ w + self.problem.l1 * np.abs(w).sum() + float(np.mean(worst))

    def smoothed(self, w, mu):
        """J_mu with the uniform centre."""
        margins = (self.ell - self.psi @ w) / mu
        values = [np.logaddexp.reduce(margins[self.owner == i]) - np.log(np.sum(self.owner == i)) for i in self.range]
        return self.problem.lam / 2 * w @ w + mu * float(np.mean(values))

    def dual(self, alpha):
        u = alpha @ self.psi / self.problem.lam
        return float(alpha @ self.ell + self.problem.temperature * self.entropy(alpha) - self.problem.lam / 2 * u @ u)

    def entropy(self, alpha):
        """Mean entropy of the examples' distributions."""
        used = alpha > 0
        return -float(np.sum(alpha[used] * np.log(self.problem.n * alpha[used])))

    def gibbs(self, w, mu, loss_scale=1.0):
        """alpha_mu(w), written out."""
        margins = (loss_scale * self.ell - self.psi @ w) / mu
        alpha = np.empty(len(margins))
        for i in self.range:
            mine = self.owner == i
            alpha[mine] = np.exp(margins[mine] - np.logaddexp.reduce(margins[mine])) / self.problem.n
        return alpha

    @property
    def range(self):
        return range(self.problem.n)

    def divergence(self, alpha):
        """d(alpha) = KL(alpha || uniform)."""
        sizes = np.bincount(self.owner)[self.owner]
        used = alpha > 0
        return float(np.sum(alpha[used] * np.log(alpha[used] * self.problem.n * sizes[used])))

    @cached_property
    def best(self):
        """The optimum, found once."""
        return self.optimum()

    def optimum(self):
        """min J = max D, by a QP solver, or for a CRF by SciPy on the enumerated objective."""
        if not self.problem.temperature:
            return self.dual(self.solve())
        if self.problem.l1:
            return self.sparse_optimum()[1]

        def gradient(w):
            return self.problem.lam * w - self.gibbs(w, self.problem.temperature) @ self.psi

        w = np.zeros(self.problem.dim)
        for _ in range(3):  # restarts squeeze out the last digits
            w = scipy.optimize.minimize(self.primal, w, jac=gradient, method="BFGS", options={"gtol": 1e-9}).x
        return self.dual(self.gibbs(w, self.problem.temperature))

    def sparse_optimum(self):
        """w* and J(w*) with an l1 term: SciPy on w = p - q with p, q >= 0, which makes the objective smooth."""
        lam, l1, dim = self.problem.lam, self.problem.l1, self.problem.dim

        def objective(pq):
            w = pq[:dim] - pq[dim:]
            gradient = lam * w - self.gibbs(w, self.problem.temperature) @ self.psi
            value = self.primal(w) - l1 * np.abs(w).sum() + l1 * pq.sum()
            return value, np.concatenate([gradient + l1, l1 - gradient])

        settings = {"maxiter": 10_000, "ftol": 1e-16, "gtol": 1e-10, "maxcor": 50}
        pq = np.zeros(2 * dim)
        for _ in range(3):  # restarts squeeze out the last digits
            bounds = [(0, None)] * (2 * dim)
            pq = scipy.optimize.minimize(objective, pq, jac=True, method="L-BFGS-B", bounds=bounds, options=settings).x
        w = pq[:dim] - pq[dim:]
        return w, self.primal(w)

    def solve(self):
        """alpha* by an interior-point QP solver: max D over the product of simplices."""
        size, n = len(self.ell), self.problem.n
        sums = scipy.sparse.csc_matrix((np.ones(size), (self.owner, np.arange(size))), shape=(n, size))
        A = scipy.sparse.vstack([sums, -scipy.sparse.identity(size)], format="csc")
        b = np.concatenate([np.full(n, 1 / n), np.zeros(size)])
        P = scipy.sparse.csc_matrix(np.triu(self.psi @ self.psi.T / self.problem.lam))
        settings = clarabel.DefaultSettings()
        settings.verbose = False
        settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-12
        cones = [clarabel.ZeroConeT(n), clarabel.NonnegativeConeT(size)]
        answer = clarabel.DefaultSolver(P, -self.ell, A, b, cones, settings).solve()
        alpha = np.maximum(answer.x, 0.0)
        return alpha / (n * np.bincount(self.owner, alpha)[self.owner])  # exactly feasible


class PartCoordinates(FeatureMap):
    """The same model with weights written as coefficients of parts: w = F' c, kept as c.

    What a solver does with vectors then happens to part marginals, so that the alpha it speaks of can be read off. It
    is also what a kernel does: scores = F F' c, <c, c'> = <F' c, F' c'>.
    """

    def __init__(self, features):
        self.features = features
        self.shapes = features.shapes
        self.sizes = [int(np.prod(shape)) for shape in self.shapes]
        self.dim = sum(self.sizes)

    def parts(self, c):
        pieces = np.split(c, np.cumsum(self.sizes)[:-1])
        return tuple(piece.reshape(shape) for piece, shape in zip(pieces, self.shapes, strict=True))

    def weights(self, c):
        return self.features.adjoint(self.parts(c))

    def scores(self, w, out, threads=None):
        return self.features.scores(self.weights(w), out)

    def adjoint(self, parts, threads=None):
        return np.concatenate([part.ravel() for part in parts])

    def norms(self):
        return self.features.norms()

    def select(self, rows):
        return SelectedParts(self, rows)

    def inner(self, u, v):
        return float(self.weights(u) @ self.weights(v))


class SelectedParts(PartCoordinates):
    """Some rows of part coordinates: the weights are still coefficients of all parts."""

    def __init__(self, whole, rows):
        self.whole = whole
        self.rows = [slice(None) if chosen is None else chosen for chosen in rows]
        self.dim = whole.dim
        self.shapes = tuple(np.empty(shape)[r].shape for shape, r in zip(whole.shapes, self.rows, strict=True))

    def scores(self, w, out, threads=None):
        theta = self.whole.scores(w, tuple(np.empty(shape) for shape in self.whole.shapes))
        for filled, full, chosen in zip(out, theta, self.rows, strict=True):
            filled[...] = full[chosen]
        return out

    def adjoint(self, parts, threads=None):
        full = tuple(np.zeros(shape) for shape in self.whole.shapes)
        for target, part, chosen in zip(full, parts, self.rows, strict=True):
            target[chosen] = part
        return self.whole.adjoint(full)
