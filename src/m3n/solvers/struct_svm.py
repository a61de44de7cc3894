"""SVM-struct: cutting planes with one slack for all examples (``one_slack``) or one for each of them (``n_slack``)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from m3n.problem import Problem
from m3n.solvers import n_slack, one_slack
from m3n.solvers.base import HARD, Solver
from m3n.solvers.settings import at_least, one_of

StructSVMState = one_slack.OneSlackState | n_slack.NSlackState


@dataclass(frozen=True)
class StructSVM(Solver[StructSVMState]):
    """Cutting-plane training of structural SVMs.

    Parameters
    ----------
    slack : {"one", "n"}
        One slack variable and joint constraints, or a slack and a working set for every example.
    cache : int
        With one slack: outputs that every example remembers, to make constraints without the oracle; 0 asks it always.
    patience : int or None
        With one slack: forget constraints that had no weight in so many steps; None keeps all.
    most_planes : int
        With one slack: mix constraints of little weight into one when there are more. Memory is constraints x weights.
    batch : float
        With n slacks: share of the examples that are asked before the quadratic programme is solved again.
    seed : int
        With n slacks: seed of the order of the examples.
    """

    slack: Literal["one", "n"] = "one"
    cache: int = 10
    patience: int | None = 50
    most_planes: int = 200
    batch: float = 0.1
    seed: int = 0

    requires = HARD
    rescales = True
    native = "violation"
    rate = "G^2 / (lam eps^2)"
    exponent = -0.5

    def __post_init__(self) -> None:
        one_of("one", "n", slack=self.slack)
        at_least(0, cache=self.cache, patience=self.patience)
        at_least(3, most_planes=self.most_planes, why="one plane, a new one and a mixture")
        if not 0.0 < self.batch <= 1.0:
            raise ValueError(f"batch is a share of the examples, 0 < batch <= 1, got {self.batch}")

    @property
    def visits(self) -> bool:  # type: ignore[override]
        """With some settings."""
        return self.slack == "n" or self.cache > 0

    def init(self, problem: Problem) -> StructSVMState:
        """w = 0 and gold's constraints alone."""
        if self.slack == "one":
            return one_slack.init(problem, self.cache)
        return n_slack.init(problem)

    def step(self, problem: Problem, state: StructSVMState) -> StructSVMState:
        """New constraints, then the quadratic programme, or the other way round."""
        if isinstance(state, one_slack.OneSlackState):
            return one_slack.step(problem, state, self.patience, self.most_planes)
        return n_slack.step(problem, state, self.batch, self.seed)
