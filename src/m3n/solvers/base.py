"""What a solver must offer.

A solver is a frozen set of settings with two functions: ``init`` makes a state, ``step`` makes the next one from it. It
has no loop, prints nothing and knows no structure. States are never changed in place, so an interrupted step loses
nothing. Settings that it cannot work with are refused when it is made, with their names and what they may be.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import numpy as np

from m3n.problem import Objective, Problem, Sharded
from m3n.problem.sections import extent


class State(Protocol):
    """What ``minimize`` reads from a solver's state."""

    @property
    def w(self) -> np.ndarray:
        """The weights to certify."""

    @property
    def primal(self) -> float:
        """J(w) if the solver had to compute it anyway, which makes the certificate free of charge; else NaN."""

    @property
    def dual(self) -> float:
        """D at the state's feasible dual point; -inf if it has none."""

    @property
    def stalled(self) -> bool:
        """Whether no further progress is possible: because of rounding errors, or by the method's own rule."""

    @property
    def metrics(self) -> Mapping[str, float]:
        """Quantities that the solver itself watches."""


class UnknownPrimal:
    """A state without a J of its own: every visit sees other weights, or the exp-oracle gives J_mu only."""

    primal: ClassVar[float] = np.nan  # a certificate takes a pass


class NeverStalls:
    """A state from which there is always a next step: one that gains nothing leaves things as they are."""

    stalled: ClassVar[bool] = False


S = TypeVar("S", bound=State)
Held = TypeVar("Held", bound=tuple[Any, ...])

HARD, SOFT = frozenset({"hard"}), frozenset({"soft"})  # what most solvers require


class Solver(Generic[S]):
    """An algorithm on an ``Objective``; one that visits examples one by one needs a whole ``Problem``.

    Attributes
    ----------
    requires : frozenset of str
        Oracles that it calls at temperature 0: ``"hard"``, ``"soft"`` or both.
    requires_smooth : frozenset of str or None
        Oracles that it calls at a positive temperature (CRF); None if it trains max-margin networks only.
    native : str or None
        Which of its metrics, or of the numbers of a ``Record``, the algorithm's authors watch.
    rate : str
        Passes to reach eps as the literature states them, in words for a table.
    exponent : float or None
        What that says about gap ~ passes^exponent; None where the rate is not a power.
    rate_smooth : str
        The rate at a positive temperature, where it is linear as a rule and no exponent belongs to it.
    rescales : bool
        Whether it trains slack-rescaled networks, too.
    certifies : bool
        Whether its states know J as often as is worth while; the loop then makes no pass of its own in between.
    takes_l1 : bool
        Whether it minimises objectives with an l1 term, and no others.
    smooth_only : bool
        Whether it needs a positive temperature: it trains CRFs, and nothing else.
    any_prox : bool
        Whether at temperature 0 a smoothed maximum with the structure's own prox serves it as well as the exp-oracle.
    visits : bool
        Whether it visits examples one by one, which passes made elsewhere do not allow,
    divides : bool
        unless it lets whoever makes them visit their own examples.
    """

    requires: ClassVar[frozenset[str]]
    requires_smooth: ClassVar[frozenset[str] | None] = None
    native: ClassVar[str | None] = None
    rate: ClassVar[str] = ""
    exponent: ClassVar[float | None] = None
    rate_smooth: ClassVar[str] = ""
    rescales: ClassVar[bool] = False
    certifies: ClassVar[bool] = False
    takes_l1: ClassVar[bool] = False
    smooth_only: ClassVar[bool] = False
    any_prox: bool = False
    visits: bool = False
    divides: bool = False

    @property
    def restriction(self) -> str:
        """Why there are temperatures at which the solver cannot work, for error messages."""
        if self.smooth_only:
            return "trains CRFs only, whose temperature is positive"
        return "trains max-margin networks only, whose temperature is 0"

    @property
    def slack_restriction(self) -> str:
        """Why a solver without ``rescales`` cannot train slack-rescaled networks, for error messages."""
        if "soft" in self.requires:
            return "needs marginals of cliques, and the loss multiplies the score of whole outputs: there are none"
        return "adds the loss to the scores of parts, while slack rescaling multiplies the score of whole outputs by it"

    def oracles(self, temperature: float) -> frozenset[str] | None:
        """The oracles needed at a temperature; None if the solver cannot work there."""
        if temperature:
            return self.requires_smooth
        return None if self.smooth_only else self.requires

    def missing(self, problem: Objective) -> frozenset[str]:
        """The oracles that it needs at the problem's temperature, and the problem does not offer."""
        smooths = self.any_prox and not problem.temperature and "smoothed" in problem.oracles
        return (self.oracles(problem.temperature) or frozenset()) - problem.oracles - (SOFT if smooths else frozenset())

    def fits(self, problem: Objective) -> bool:
        """Whether it can minimise the problem's kind of objective, with the oracles that the problem offers."""
        kind = (self.rescales or problem.rescale == "margin") and self.takes_l1 == bool(problem.l1)
        able = self.oracles(problem.temperature) is not None and self.reaches(problem)
        return kind and able and not self.missing(problem)

    def reaches(self, problem: Objective) -> bool:
        """Whether it can work where the examples are."""
        return isinstance(problem, Problem) or not self.visits or (self.divides and isinstance(problem, Sharded))

    def footprint(self, problem: Any) -> float:
        """Bytes that it keeps of all examples together, or in a number of vectors that grows; roughly, beforehand."""
        del problem  # a few vectors are not worth a word
        return 0.0

    def init(self, problem: Any) -> S:
        """The first state."""
        raise TypeError(f"{type(self).__name__} does not define init")

    def restart(self, problem: Any, state: S) -> S:
        """The first state of a run that begins where one with another lam, on the same data, has ended.

        ``init`` for a solver that has nothing to carry over.
        """
        return self.init(problem)

    def start_at(self, problem: Any, w: np.ndarray) -> S:
        """The first state of a run that begins at given weights, for solvers that can begin anywhere."""
        raise TypeError(
            f"{type(self).__name__} cannot begin at given weights: it needs a dual point; "
            "pass the Result of an earlier run of the same solver"
        )

    def step(self, problem: Any, state: S) -> S:
        """The next state."""
        raise TypeError(f"{type(self).__name__} does not define step")


class FromWeights(Solver[S]):
    """A solver that can begin at any weights, and takes over nothing else from an earlier run."""

    def init(self, problem: Any) -> S:
        """w = 0."""
        return self.start_at(problem, np.zeros(problem.dim))

    def restart(self, problem: Any, state: S) -> S:
        """The weights of the earlier run."""
        return self.start_at(problem, state.w)


def parts_of_all(problem: Objective) -> float:
    """How many scores the own theta of every example has, all together."""
    if isinstance(problem, Sharded):
        return problem.engine.total(extent).parts
    return float(problem.structure.layout.lengths.sum())  # type: ignore[attr-defined]


def examples_held(problem: Objective) -> float:
    """Bytes of the examples where lanes hold them, to visit them one by one: a problem has its own in memory anyway."""
    return float(problem.engine.source.held.sum()) if isinstance(problem, Sharded) else 0.0


def copied(held: Held) -> Held:
    """A copy of a named tuple of arrays, which compiled code may change."""
    return type(held)(*(array.copy() for array in held))


def with_room(held: Held, size: int, visit: Callable[[Held, int], int], grow: Callable[[Held], Held]) -> Held:
    """Make ``size`` visits that fill what examples hold; where there is no room left they end early.

    ``visit`` goes on from a position and returns the next one; ``grow`` makes room. Returns what is held in the end.
    """
    at = 0
    while at < size:
        at = visit(held, at)
        if at < size:
            held = grow(held)
    return held


def at_least(least: float, *, why: str = "", **settings: float | None) -> None:
    """Refuse smaller numbers, and NaN; None stands for a choice of the solver's own."""
    for name, value in settings.items():
        if value is not None and not value >= least:
            bound = f"be at least {least:g}" if least else "not be negative"
            raise ValueError(f"{name} must {bound}, got {value}" + (f": {why}" if why else ""))


def seed_of(random: Any) -> int:
    """A whole number as it is; one that a NumPy generator, or for None the system, draws."""
    if random is None:
        random = np.random.default_rng()
    if isinstance(random, np.random.Generator):
        return int(random.integers(1 << 31))
    if isinstance(random, np.random.RandomState):
        return int(random.randint(1 << 31, dtype=np.int64))
    if isinstance(random, (int, np.integer)) and not isinstance(random, bool) and random >= 0:
        return int(random)
    raise ValueError(
        f"a random state must be a whole number that is not negative, a NumPy RandomState or Generator, or None; "
        f"got {random!r:.60}"
    )


def one_of(*choices: Any, **settings: Any) -> None:
    """Refuse everything but the choices."""
    for name, value in settings.items():
        if value not in choices:
            *others, last = map(repr, choices)
            raise ValueError(f"{name} must be {', '.join(others)} or {last}, got {value!r}")
