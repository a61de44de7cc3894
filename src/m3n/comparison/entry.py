"""What one solver did in a comparison."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from m3n.comparison.measures import measured_exponent
from m3n.run.certificate import Record
from m3n.run.loop import Status
from m3n.solvers import Solver

NOTHING = Record(  # stands for the last record of an empty trace
    passes=0.0, seconds=0.0, hard_calls=0, soft_calls=0, primal=math.inf, dual=-math.inf, gap=math.inf
)


@dataclass(frozen=True)
class Entry:
    """What one solver did in a comparison. Passes, calls and seconds are its own; those of the evaluation stand apart.

    Attributes
    ----------
    name : str
        Its label.
    solver : Solver
        The solver with all its settings.
    status : Status or None
        Why it stopped; None if it refused the problem or broke.
    error : str
        Why it refused or broke; empty otherwise.
    trace : tuple of Record
        What was known when.
    n : int
        Examples of the problem, the unit of a pass.
    temperature : float
        The problem's temperature, which decides the oracle that certificates call.
    memory : int
        Bytes of the arrays in its state, the most that any certificate saw.
    own_dual : bool
        Whether it has a dual point. Without one nothing is known about its gap.
    """

    name: str
    solver: Solver[Any]
    status: Status | None
    error: str
    trace: tuple[Record, ...]
    n: int
    temperature: float
    memory: int = 0
    own_dual: bool = True

    @property
    def outcome(self) -> str:
        """Why it stopped, in a few words."""
        return str(self.status) if self.status else self.error.partition(":")[0]

    @property
    def settings(self) -> dict[str, Any]:
        """The solver's settings by name."""
        return settings_of(self.solver)

    @property
    def passes(self) -> float:
        """The solver's own passes."""
        return self.passes_at(self._last)

    @property
    def hard_calls(self) -> int:
        """The solver's own calls of the max-oracle, counted in examples."""
        return self.calls_at(self._last)[0]

    @property
    def soft_calls(self) -> int:
        """The solver's own calls of the exp-oracle, counted in examples."""
        return self.calls_at(self._last)[1]

    @property
    def evaluation_calls(self) -> int:
        """Calls that were made only for certificates: of the max-oracle, or of the exp-oracle for a CRF."""
        return self._last.evaluation_calls

    @property
    def evaluation_passes(self) -> float:
        """The same in passes."""
        return self.evaluation_calls / self.n

    @property
    def seconds(self) -> float:
        """Time that the solver itself took."""
        return self._last.solver_seconds

    @property
    def evaluation_seconds(self) -> float:
        """Time that certificates and callbacks took."""
        return self._last.evaluation_seconds

    @property
    def primal(self) -> float | None:
        """The least J(w) that was certified."""
        return self._last.primal if self.trace else None

    @property
    def dual(self) -> float | None:
        """The greatest D(alpha); None without a dual of its own."""
        return self._last.dual if self.trace and self.own_dual else None

    @property
    def gap(self) -> float | None:
        """The certified duality gap; None without a dual of its own."""
        return self._last.gap if self.trace and self.own_dual else None

    @property
    def exponent(self) -> float | None:
        """Measured slope of log gap against log passes; None where there is too little to measure."""
        if not self.own_dual:
            return None
        return measured_exponent([self.passes_at(r) for r in self.trace], [r.gap for r in self.trace])

    @property
    def rate(self) -> str:
        """Passes to reach eps as the literature states them for the problem's temperature."""
        return self.solver.rate_smooth if self.temperature else self.solver.rate

    @property
    def expected_exponent(self) -> float | None:
        """What the literature says about the exponent; None where the rate is not a power."""
        return None if self.temperature else self.solver.exponent

    @property
    def native(self) -> float | None:
        """The last value of what the algorithm's authors watch; ``solver.native`` is its name."""
        return self.native_at(self._last)

    def passes_at(self, record: Record) -> float:
        """The solver's own passes at a record of its trace."""
        return sum(self.calls_at(record)) / self.n

    def calls_at(self, record: Record) -> tuple[int, int]:
        """The solver's own calls of the max- and the exp-oracle at a record of its trace."""
        hard, soft, evaluation = record.hard_calls, record.soft_calls, record.evaluation_calls
        return (hard, soft - evaluation) if self.temperature else (hard - evaluation, soft)

    def native_at(self, record: Record) -> float | None:
        """The solver's native quantity at a record of its trace."""
        name = self.solver.native
        return None if name is None else record.metrics.get(name, getattr(record, name, None))

    @property
    def _last(self) -> Record:
        return self.trace[-1] if self.trace else NOTHING


def settings_of(solver: Solver[Any]) -> dict[str, Any]:
    """All settings of a solver by name; empty for one that is no dataclass.

    Parameters
    ----------
    solver : Solver
        The solver.
    """
    return {f.name: getattr(solver, f.name) for f in fields(solver)} if is_dataclass(solver) else {}
