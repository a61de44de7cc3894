"""The training problem: the objective, all that a solver of passes sees, and the data that make it.

    primal   J(w)     = lam/2 |w|^2 + 1/n sum_i max_y { ell_i(y) - <w, psi_i(y)> }
    dual     D(alpha) = sum_iy ell_i(y) alpha_i(y) - 1/(2 lam) |sum_iy alpha_i(y) psi_i(y)|^2
    smoothed J_mu(w)  = lam/2 |w|^2 + mu/n sum_i log sum_y q_i(y) exp{ (ell_i(y) - <w, psi_i(y)>)/mu }

with psi_i(y) = phi(x_i, y_i) - phi(x_i, y), alpha_i >= 0 summing to 1/n, and q_i the centre of the smoothing. A
distribution alpha enters only through ``vector`` = sum alpha psi and ``loss`` = sum alpha ell, both linear in it. The
factor 1/n is applied here and nowhere else.

Examples may have *weights* c_i, scaled to a mean of one: 1/n becomes c_i/n throughout, so an example of weight 2 is an
example that occurs twice.

The *temperature* T makes one family of it: max_y becomes T log sum_y exp{ . / T}, and D gains T times the entropy,

    D(alpha) = sum ell alpha + T H(alpha) - 1/(2 lam) |sum alpha psi|^2,   H(alpha) = - sum alpha log(n alpha).

T = 0 is the max-margin Markov network, T = 1 without a loss the conditional random field. H is concave: of a mixture of
distributions it is at least the mixture of their entropies, so ``offset`` = loss + T H may be mixed linearly as well
and D stays a lower bound. Whatever T, the answer at w is a tangent of the risk: value = offset - <w, vector>.

A certificate is J(w) by an exact pass and D at a feasible alpha. At T > 0 the Gibbs distribution at w itself will do:
its w(alpha) is w - grad J(w)/lam, so J(w) - D(alpha) = |grad J(w)|^2 / (2 lam). Solvers that average keep offset and
vector of the average, by the concavity of H; those that change alpha example by example know its entropy exactly.

A penalty l1 |w|_1 may join the regulariser. The risk is the largest offset(alpha) - <w, v> over alpha, where
v = sum alpha psi, and lam/2 |w|^2 + l1 |w|_1 - <w, v> is least, weight by weight, at w_k = soft(v_k, l1) / lam:

    D(alpha) = offset(alpha) - 1/(2 lam) sum_k max(|v_k| - l1, 0)^2,   at lam = 0: offset(alpha) if all |v_k| <= l1.

*Slack rescaling* (at T = 0) multiplies the margin by the loss instead of adding it,

    J(w) = lam/2 |w|^2 + 1/n sum_i max_y ell_i(y) (1 - <w, psi_i(y)>),

which is the network with ell psi in place of psi: ``vector`` = sum alpha ell psi, and all else stays, D too.

A *prior* w0 pulls the weights towards an earlier model, lam/2 |w - w0|^2. With w = w0 + v that is

    J(v) = lam/2 |v|^2 + 1/n sum_i max_y { ell_i(y) - <w0, psi_i(y)> - <v, psi_i(y)> },

the problem that we have, in v, with the loss ell_i(y) - <w0, psi_i(y)>: still 0 for gold, though it may be negative. So
solvers see v: every w that goes into an oracle, and the one that comes out of a run, is counted from the prior
(``absolute`` adds it). Oracles score with w0 + v, and ``loss`` and ``offset`` are less by <w0, vector>.

Reference: Tsochantaridis, Joachims, Hofmann, Altun, "Large margin methods for structured and interdependent output
variables", 2005.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from m3n.features.base import FeatureMap
from m3n.losses import Cost, Hamming, Loss, NoLoss
from m3n.packed import SERIAL, Threads
from m3n.packed.memory import give_back
from m3n.problem.blocks import Blocks
from m3n.problem.passes import Answer, Pass, SlackPass, ThreadedPass
from m3n.structures.base import Examples, Structure

CHUNK = 1 << 15  # numbers: a chunk of a few vectors stays in the cache
MANY = 1 << 14  # rows in use: fewer leave no memory worth giving back


class Objective:
    """A pass over training data and the strength of regularisation.

    Parameters
    ----------
    whole : Pass
        Oracles over all examples, wherever they are.
    lam : float
        Weight of the regulariser lam/2 |w|^2. It may be 0 if ``l1`` is not.
    l1 : float
        Weight of the penalty l1 |w|_1, which makes weights exactly zero, for CRFs.
    n_jobs : int or None
        Threads for sums of vectors; None takes every core.

    Attributes
    ----------
    n, dim : int
        Number of examples and of weights.
    temperature : float
        0 for max-margin networks, positive for CRFs.
    hard_calls, soft_calls : int
        Oracle calls so far, counted in examples.
    prior : array (dim,) or None
        Weights from which all weights are counted.
    """

    whole: Pass
    name = "this problem"
    rescale = "margin"
    relaxed = False
    prior: np.ndarray | None = None

    def __init__(self, whole: Pass, lam: float, *, l1: float = 0.0, n_jobs: int | None = None):
        self.whole = whole
        self._begin(whole.n, whole.dim, whole.temperature, Threads(n_jobs))
        self._set_strength(lam, l1)

    def _begin(self, n: int, dim: int, temperature: float, threads: Threads) -> None:
        self.n, self.dim, self.temperature, self.threads = n, dim, temperature, threads
        self.hard_calls = self.soft_calls = 0
        self._pieces: dict[tuple[int, int], list[Piece]] = {}

    def _set_strength(self, lam: float, l1: float) -> None:
        self.lam, self.l1 = float(lam), float(l1)
        if not 0.0 <= self.l1 < np.inf:
            raise ValueError(f"l1 must be 0 or a positive finite number, got {l1}")
        if not (0.0 < self.lam < np.inf or (self.lam == 0.0 and self.l1)):
            raise ValueError(f"lam must be a positive finite number, or 0 beside a positive l1, got {lam}")
        if self.l1 and self.prior is not None:
            raise ValueError(f"l1={self.l1:g} pulls weights to 0 and a prior to other weights; use l1=0, or no prior")

    def with_lam(self, lam: float, l1: float | None = None) -> Self:
        """The same problem with another strength of regularisation, and counters of its own.

        It shares everything that is prepared (data, blocks, buffers), so do not run the two at the same time.

        Parameters
        ----------
        lam : float
            Weight of the regulariser lam/2 |w|^2.
        l1 : float or None
            Weight of the penalty l1 |w|_1; None keeps it.
        """
        other = copy.copy(self)
        other._set_strength(lam, self.l1 if l1 is None else l1)
        other.hard_calls = other.soft_calls = 0
        other._pieces = {key: [Piece(other, piece.own) for piece in pieces] for key, pieces in self._pieces.items()}
        return other

    @property
    def oracles(self) -> frozenset[str]:
        """The oracles that can be asked."""
        return self.whole.oracles

    @property
    def passes(self) -> float:
        """Oracle calls so far in units of n."""
        return (self.hard_calls + self.soft_calls) / self.n

    @cached_property
    def log_size(self) -> float:
        """Mean of log |Y_i|, or of the diameter of the structure's own prox."""
        return self.whole.diameter()

    @cached_property
    def radius(self) -> float:
        """A bound on the largest |psi_i(y)|."""
        return self.whole.radius()

    @cached_property
    def worst_loss(self) -> float:
        """J(0), at temperature 0 the mean of max_y ell_i(y); one pass when first asked for."""
        return self.risk(np.zeros(self.dim)).value

    @cached_property
    def greatest_loss(self) -> float:
        """The mean of max_y ell_i(y) without a prior, whatever part of it that is; as J(0) if there is none."""
        return self.worst_loss if self.prior is None else self.risk(-self.prior).value

    def absolute(self, w: np.ndarray) -> np.ndarray:
        """The weights that score outputs: w, counted from the prior if there is one."""
        return w if self.prior is None else self.prior + w

    def tilted(self, w: np.ndarray, share: float) -> np.ndarray:
        """Weights, counted from the prior, that score outputs with w and ``share`` times the prior."""
        return w if self.prior is None else w + (share - 1.0) * self.prior

    def _told(self, answer: Answer) -> Answer:
        """What an oracle says, with the prior's share of the loss."""
        if self.prior is None:
            return answer
        gained = self.inner(self.prior, answer.vector)
        return replace(answer, loss=answer.loss - gained, offset=answer.offset - gained)

    def start(self) -> float:
        """J(0), computed anew by one pass and remembered as ``worst_loss``: every run begins with it."""
        self.worst_loss = self.primal(np.zeros(self.dim))
        return self.worst_loss

    def inner(self, u: np.ndarray, v: np.ndarray) -> float:
        """Inner product of two weight vectors."""
        return float(u @ v)

    def combine(self, coefficients: Sequence[float] | np.ndarray, vectors: Sequence[np.ndarray]) -> np.ndarray:
        """The linear combination sum_k coefficients[k] * vectors[k] of weight vectors, in one sweep over memory."""
        out = np.empty(self.dim)

        def lane(low: int, high: int) -> None:
            for first in range(low, high, CHUNK):
                piece = slice(first, min(first + CHUNK, high))
                np.multiply(vectors[0][piece], coefficients[0], out=out[piece])
                for coefficient, vector in zip(coefficients[1:], vectors[1:], strict=True):
                    if coefficient != 0.0:
                        out[piece] += coefficient * vector[piece]

        threads = self.threads if self.dim > CHUNK else SERIAL
        threads.run(lane, threads.rows(self.dim))
        return out

    def hard(self, w: np.ndarray, block: Examples | None = None, loss_scale: float = 1.0) -> Answer:
        """Max-oracle on all examples or a block of them (its share of the sums over n)."""
        asked = self.whole if block is None else self.whole.over(block)
        self.count(hard=asked.n)
        return self._told(asked.hard(self.absolute(w), loss_scale))

    def soft(self, w: np.ndarray, mu: float, block: Examples | None = None, loss_scale: float = 1.0) -> Answer:
        """Exp-oracle at temperature mu on all examples or a block of them (its share of the sums over n).

        At temperature 0 a structure without it may answer with its own smoothed maximum, see ``Structure.smoothed``.
        ``loss_scale`` multiplies the label loss alone, not the prior.
        """
        asked = self.whole if block is None else self.whole.over(block)
        self.count(soft=asked.n)
        return self._told(asked.soft(self.absolute(w), mu, loss_scale))

    def risk(self, w: np.ndarray) -> Answer:
        """J(w) without the regulariser, and its tangent: the max-oracle, or the exp-oracle at the temperature."""
        return self.soft(w, self.temperature) if self.temperature else self.hard(w)

    def outputs(self, w: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Max-oracle on all examples, answered in outputs instead of sums: what they are, not what they add up to.

        Returns max_y { ell_i(y) - <w, psi_i(y)> } (or the product) of every example (n,), times its weight, and the
        best outputs as lists of parts in the sense of ``Structure.local_parts``: (n, most) and their lengths (n,).
        """
        self.count(hard=self.n)
        return self.whole.outputs(self.absolute(w))

    def primal(self, w: np.ndarray) -> float:
        """J(w), exactly: one pass."""
        self.count(**{"soft" if self.temperature else "hard": self.n})
        return self.penalty(w) + self.whole.value(self.absolute(w))

    def penalty(self, w: np.ndarray) -> float:
        """lam/2 |w|^2 + l1 |w|_1."""
        square = self.lam / 2 * self.inner(w, w)
        return square + self.l1 * float(np.abs(w).sum()) if self.l1 else square

    def dual(self, u: np.ndarray, offset: float) -> float:
        """D(alpha) at l1 = 0, with w(alpha) = u; ``offset`` is the expected loss, plus T times the entropy."""
        return offset - self.lam / 2 * self.inner(u, u)

    def count(self, hard: int = 0, soft: int = 0) -> None:
        """Count oracle calls; whoever asks an oracle does so through this class, which counts here."""
        self.hard_calls += hard
        self.soft_calls += soft

    def pieces(self, count: int, seed: int = 0) -> list[Piece]:
        """The examples cut at random into ``count`` pieces of nearly equal size; kept for the next time."""
        if (count, seed) not in self._pieces:
            pieces = [Piece(self, self.whole.over(block)) for block in self.cut(count, seed)]
            self._pieces = {(count, seed): pieces}
        return self._pieces[count, seed]

    def cut(self, count: int, seed: int = 0) -> list[np.ndarray]:
        """The examples of these pieces; asking for them block by block keeps no copy of the data."""
        order = np.random.default_rng(seed).permutation(self.n)
        return [np.sort(block) for block in np.array_split(order, count)]


class Piece:
    """Some of a problem's examples, prepared for many calls: ``hard(w, block)`` prepares them every time."""

    def __init__(self, objective: Objective, own: Pass):
        self.objective = objective
        self.own = own

    def hard(self, w: np.ndarray) -> Answer:
        """Max-oracle on these examples (their share of the sums over n)."""
        self.objective.count(hard=self.own.n)
        return self.objective._told(self.own.hard(self.objective.absolute(w)))


class Problem(Objective):
    """Training data, an output space, a feature map, a loss and the strength of regularisation.

    Parameters
    ----------
    structure : Structure
        The output spaces of the n examples.
    features : FeatureMap
        The map from weights to part scores; its part arrays must have the structure's shapes.
    y : sequence
        Gold outputs as label numbers, one per example.
    loss : Loss
        Label loss; the default counts wrong labels at temperature 0 and is no loss at all above.
    lam : float or None
        Weight of the regulariser lam/2 |w|^2; None means 1/n, or 1/(sum of the sample weights). It may be 0 if ``l1``
        is not.
    sample_weight : array or None
        How often every example counts, one positive number each; None: once.
    temperature : float
        0 for a max-margin network; 1 for a conditional random field, or for softmax-margin if a loss is given.
    rescale : {"margin", "slack"}
        Whether the loss is added to the margin that an output violates, or multiplies it (at temperature 0 only).
    n_jobs : int or None
        Threads of a pass; None takes every core.
    l1 : float
        Weight of the penalty l1 |w|_1, which makes weights exactly zero, for CRFs.
    backend : {"threads", "ray"}, Backend or None
        Where ``minimize`` and ``path`` make passes: None means threads of this process, "ray" workers of a Ray cluster,
        ``m3n.Ray(...)`` says which.
    prior : array (dim,) or None
        Weights w0 of an earlier model: the regulariser is lam/2 |w - w0|^2, and solvers, results and callbacks speak of
        v = w - w0, which ``absolute`` turns into weights. Methods that visit examples one by one keep the prior's
        scores of all parts, 8 bytes each. Not with ``l1``, slack rescaling, kernels or workers elsewhere.

    Attributes
    ----------
    hard_calls, soft_calls : int
        Oracle calls so far, counted in examples.
    """

    def __init__(
        self,
        structure: Structure,
        features: FeatureMap,
        y: Sequence[Any] | np.ndarray,
        *,
        loss: Loss | None = None,
        lam: float | None = None,
        sample_weight: Sequence[float] | np.ndarray | None = None,
        temperature: float = 0.0,
        rescale: str = "margin",
        n_jobs: int | None = None,
        l1: float = 0.0,
        backend: Any = None,
        prior: np.ndarray | None = None,
    ):
        if features.shapes != structure.shapes:
            raise ValueError(
                f"the feature map fills part arrays of shapes {features.shapes}, "
                f"but {type(structure).__name__} has {structure.shapes}"
            )
        if not 0.0 <= temperature < np.inf:
            raise ValueError(f"temperature must be 0 or a positive finite number, got {temperature}")
        self.structure, self.features, self.backend = structure, features, backend
        self._begin(structure.n, features.dim, float(temperature), Threads(n_jobs))
        self.weight_sum, self.weights = _weights(sample_weight, self.n)
        self.prior = None if prior is None else _check_prior(prior, features, rescale)
        self._set_strength(1.0 / self.weight_sum if lam is None else lam, l1)
        self.rescale = _check_rescale(rescale, self.temperature)
        self.name, self.relaxed = type(structure).__name__, structure.relaxed
        self.gold = structure.pack(y)
        loss = loss or (NoLoss() if self.temperature else Hamming())
        self.cost = loss.cost(structure, self.gold).checked(structure, self.gold)

    def _set_strength(self, lam: float, l1: float) -> None:
        super()._set_strength(lam, l1)
        if self.l1 and not self.features.euclidean:
            raise TypeError(
                f"{type(self.features).__name__} has an inner product of its own: an l1 penalty on its coefficients "
                "would depend on how it writes them; use l1=0"
            )

    def inner(self, u: np.ndarray, v: np.ndarray) -> float:
        """Inner product of two weight vectors, the feature map's."""
        return self.features.inner(u, v)

    @cached_property
    def whole(self) -> ThreadedPass:  # type: ignore[override]
        """The pass over all examples, on threads."""
        data = self.structure, self.features, self.cost, self.gold, self.weights
        kind = SlackPass if self.rescale == "slack" else ThreadedPass
        return kind(*data, self.n, self.temperature, self.threads)

    @cached_property
    def blocks(self) -> Blocks:
        """The problem example by example, for compiled block methods."""
        slack = self.rescale == "slack"
        cost = self.cost if self.prior is None else self.cost + self._prior_cost(self.prior)
        blocks = Blocks(self.structure, self.features, cost, self.gold, self.weights, slack=slack)
        if len(blocks.rows.first) and blocks.rows.first[-1] > MANY:
            give_back()  # a method with a dual point is about to ask for much
        return blocks

    def _prior_cost(self, prior: np.ndarray) -> Cost:
        """By how much outputs score more than gold under the prior, as costs of parts."""
        theta = self.features.scores(prior, self.structure.empty(), self.threads)
        return Cost.of_parts(self.structure, self.gold, dict(enumerate(theta)), "gold")

    def visit(self, sweep: Any, *arguments: Any, asks: str = "hard", hard: int = 0, soft: int = 0) -> Any:
        """Run compiled code that visits examples one by one.

        ``asks`` names the oracle that it calls, if any; ``hard`` and ``soft`` say how often, if that is known before.
        """
        self.count(hard, soft)
        return self.blocks.run(sweep, *arguments, asks=asks)


def _check_rescale(rescale: str, temperature: float) -> str:
    if rescale not in ("margin", "slack"):
        raise ValueError(f"rescale must be 'margin' or 'slack', got {rescale!r}")
    if rescale == "slack" and temperature:
        raise ValueError(
            f"slack rescaling needs temperature 0, got {temperature:g}: ell(y) multiplies the score of the whole "
            "output, so sums over outputs do not factorise"
        )
    return rescale


def _check_prior(prior: np.ndarray, features: FeatureMap, rescale: str) -> np.ndarray:
    """The weights, if they fit the map and the objective."""
    weights = np.ascontiguousarray(prior, dtype=np.float64)
    if weights.shape != (features.dim,):
        raise ValueError(f"prior has weights of shape {weights.shape}, but the features have {features.dim} weights")
    if not np.isfinite(weights).all():
        raise ValueError(
            f"prior[{int(np.flatnonzero(~np.isfinite(weights))[0])}] is not finite: check where it is from"
        )
    if rescale == "slack":
        raise ValueError(
            "slack rescaling multiplies the whole margin, the prior's too: use no prior, or another objective"
        )
    if not features.euclidean:
        raise TypeError(f"{type(features).__name__} has an inner product of its own: there is no prior for its weights")
    return weights


def _weights(given: Sequence[float] | np.ndarray | None, n: int) -> tuple[float, np.ndarray | None]:
    """The sum of the sample weights, and the weights scaled to a mean of one; None if all are equal."""
    if given is None:
        return n, None
    weights = np.asarray(given, dtype=np.float64)
    if weights.shape != (n,):
        raise ValueError(f"sample_weight must have one number per example, shape ({n},), got {weights.shape}")
    bad = np.flatnonzero(~((weights > 0) & np.isfinite(weights)))
    if bad.size:
        raise ValueError(
            f"sample_weight[{bad[0]}] is {weights[bad[0]]}: weights must be positive and finite; "
            "leave out examples that are not to count"
        )
    total = float(weights.sum())
    return total, None if (weights == weights[0]).all() else weights * (n / total)
