"""The paper's Algorithm 2, line by line: it stores the marginals of every clique and infers twice per iteration.

Cliques are the nodes and the pairs of neighbours of chains. Marginals are those of alpha times n, one table per clique.
"""

from dataclasses import dataclass

import numpy as np

from m3n.structures import Chain


@dataclass
class Cliques:
    """Marginals or potentials: node (tokens, labels), pair (tokens - n, labels, labels)."""

    node: np.ndarray
    pair: np.ndarray

    def mix(self, other, tau):
        return Cliques((1 - tau) * self.node + tau * other.node, (1 - tau) * self.pair + tau * other.pair)


class Algorithm2:
    """Iterates of Algorithm 2 for a chain problem with dense inputs."""

    def __init__(self, problem, radius):
        self.problem = problem
        structure = problem.structure
        self.labels, self.lengths = structure.labels, structure.lengths
        self.chain = Chain(self.lengths, self.labels, edges=True)  # per-clique tables, log-domain recursion
        self.first, self.last = structure.offsets[:-1], structure.offsets[1:] - 1
        self.X = problem.features.maps[0].X
        self.cost = np.zeros(structure.shapes[0])
        problem.cost.add_to((self.cost,))
        self.gold = self.features(self.indicator(problem.gold))
        self.mu = radius**2 / problem.lam
        self.k = 1
        uniform = self.infer(self.potentials(0.0, np.zeros(problem.dim)))
        self.w = self.weights(uniform)  # w_1 = w(alpha_0)
        self.alpha = self.infer(self.potentials(1.0, self.w), self.mu)  # V(alpha_0, -grad D(alpha_0)/mu_1)

    def step(self):
        tau = 2.0 / (self.k + 3)  # line 3
        beta = self.infer(self.potentials(1.0, self.w), self.mu)  # line 4
        alpha_hat = self.alpha.mix(beta, tau)  # lines 5-6
        u_hat = self.weights(alpha_hat)
        eta = -tau / ((1 - tau) * self.mu)
        one, two = self.potentials(1.0, self.w), self.potentials(1.0, u_hat)
        mixed = Cliques(one.node / self.mu - eta * two.node, one.pair / self.mu - eta * two.pair)
        alpha_tilde = self.infer(mixed)  # line 8
        self.w = (1 - tau) * self.w + tau * u_hat  # line 7
        self.alpha = self.alpha.mix(alpha_tilde, tau)  # lines 9-10
        self.mu *= 1 - tau  # line 11
        self.k += 1

    def dual(self):
        u = self.weights(self.alpha)
        return float((self.cost * self.alpha.node).sum()) / self.problem.n - self.problem.lam / 2 * u @ u

    def potentials(self, loss_scale, w):
        """loss_scale * ell - <w, psi> as a sum over cliques, up to a constant per example."""
        node_weights, transition, start, end = self.problem.features.split(w)
        node = loss_scale * self.cost + self.X @ node_weights.reshape(-1, self.labels)
        node[self.first] += start
        node[self.last] += end
        return Cliques(
            node, np.tile(transition.reshape(self.labels, self.labels), (len(node) - len(self.lengths), 1, 1))
        )

    def infer(self, potentials, mu=1.0):
        zero = np.zeros((self.labels, self.labels)), np.zeros(self.labels), np.zeros(self.labels)
        marginals = self.chain.soft((potentials.node.copy(), *zero, potentials.pair.copy()), mu)[1]
        return Cliques(marginals[0], marginals[4])

    def indicator(self, labelling):
        parts = self.chain.encode(labelling)
        return Cliques(parts[0], parts[4])

    def features(self, cliques):
        """sum over cliques of the expected features, concatenated as w is."""
        ends = cliques.node[self.first].sum(axis=0), cliques.node[self.last].sum(axis=0)
        return np.concatenate([(self.X.T @ cliques.node).ravel(), cliques.pair.sum(axis=0).ravel(), *ends])

    def weights(self, cliques):
        """w(alpha) = 1/lam sum_i F[psi; alpha]."""
        return (self.gold - self.features(cliques)) / (self.problem.n * self.problem.lam)
