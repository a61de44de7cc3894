"""An objective whose examples are in shards, on threads of this machine or on workers elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Self

import numpy as np

from m3n.problem.engines import Engine
from m3n.problem.lanes import Lane
from m3n.problem.passes import Answer
from m3n.problem.problem import Objective
from m3n.structures.base import Examples


class Sharded(Objective):
    """Examples in shards and the strength of regularisation.

    Parameters
    ----------
    engine : Engine
        Who works for them.
    lam : float or None
        Weight of the regulariser lam/2 |w|^2; None means 1/n.
    l1 : float
        Weight of the penalty l1 |w|_1, for CRFs.
    n_jobs : int or None
        Threads for sums of vectors.
    data : Problem, optional
        The same with its data in this process, if that is where they come from.
    """

    whole: LanesPass

    def __init__(
        self,
        engine: Engine,
        lam: float | None = None,
        *,
        l1: float = 0.0,
        n_jobs: int | None = None,
        data: Objective | None = None,
    ):
        source, self.data = engine.source, data
        super().__init__(LanesPass(engine), 1.0 / source.weight_sum if lam is None else lam, l1=l1, n_jobs=n_jobs)
        self.engine, self.name, self.rescale, self.relaxed = engine, source.name, source.rescale, source.relaxed

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.engine.close()

    @property
    def identity(self) -> Mapping[str, str]:
        """What tells its data from others, and their sums."""
        return {**self.engine.source.parts(), "lanes": str(self.engine.lanes)}

    def cut(self, count: int, seed: int = 0) -> list[np.ndarray]:
        """Every piece has a stripe of each lane, so that ranges can be read as they stand; the stripes are shuffled."""
        if count > min(self.whole.sizes):
            return super().cut(count, seed)
        edges, random = np.cumsum([0, *self.whole.sizes]), np.random.default_rng(seed)
        stripes = [np.array_split(np.arange(low, high), count) for low, high in pairwise(edges)]
        orders = [random.permutation(count) for _ in stripes]
        return [
            np.concatenate([own[order[k]] for own, order in zip(stripes, orders, strict=True)]) for k in range(count)
        ]


class LanesPass:
    """A pass over all lanes, or over some examples of them.

    Parameters
    ----------
    engine : Engine
        Who makes it.
    chosen : list of arrays, optional
        For every lane its examples, counted from its first one; all without.
    """

    def __init__(self, engine: Engine, chosen: list[np.ndarray] | None = None):
        source = engine.source
        self.engine, self.chosen, self.dim, self.temperature = engine, chosen, source.dim, source.temperature
        self.oracles = source.oracles
        self.sizes = engine.sizes if chosen is None else [len(own) for own in chosen]
        self.n = sum(self.sizes)

    def hard(self, w: np.ndarray, loss_scale: float = 1.0) -> Answer:
        """Max-oracle, summed up."""
        return self.engine.total(Lane.hard, w, loss_scale, each=self.chosen)

    def soft(self, w: np.ndarray, mu: float, loss_scale: float = 1.0) -> Answer:
        """Exp-oracle at temperature mu, summed up."""
        return self.engine.total(Lane.soft, w, mu, loss_scale, each=self.chosen)

    def value(self, w: np.ndarray) -> float:
        """What the max-oracle attains, or the exp-oracle at the temperature, summed up."""
        return self.engine.total(Lane.value, w, each=self.chosen)

    def outputs(self, w: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """As in ``Pass``; all lists come here."""
        pieces = [piece for lane in self.engine.run(Lane.outputs, w, each=self.chosen) for piece in lane]
        most = max(parts.shape[1] for _, parts, _ in pieces)
        wide = [np.pad(parts, ((0, 0), (0, most - parts.shape[1]))) for _, parts, _ in pieces]
        return (
            np.concatenate([margins for margins, _, _ in pieces]), np.concatenate(wide),
            np.concatenate([counts for _, _, counts in pieces]),
        )  # fmt: skip

    def over(self, examples: Examples) -> LanesPass:
        """Some of the examples."""
        numbers = np.sort(np.arange(self.n)[examples])
        edges = np.cumsum([0, *self.sizes])
        own = [numbers[slice(*np.searchsorted(numbers, edges[k : k + 2]))] - edges[k] for k in range(len(edges) - 1)]
        if self.chosen is not None:
            own = [mine[some] for mine, some in zip(self.chosen, own, strict=True)]
        return LanesPass(self.engine, own)

    def diameter(self) -> float:
        """Mean of log |Y_i|, or of the diameter of the structure's own prox: the share of these examples."""
        return self.engine.total(Lane.diameter, each=self.chosen)

    def radius(self) -> float:
        """A bound on the largest |psi_i(y)|."""
        return max(self.engine.run(Lane.radius, each=self.chosen))
