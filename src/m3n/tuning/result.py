"""The outcome of a search: what every setting scored, which one was chosen, and what is proven about lam."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from m3n.tuning.guarantee import Guarantee

PLAIN = (str, int, float, bool, type(None))
LONGEST = 24  # characters of a value in the table


@dataclass(frozen=True)
class Row:
    """One setting at one value of lam.

    Attributes
    ----------
    params : mapping
        The parameters of the grid.
    lam : float
        Weight of the regulariser.
    scores : tuple of float
        One per fold, as many as were made.
    gap : float
        The largest duality gap of its models.
    passes, seconds : float
        Oracle calls in units of n and time, of all its folds together.
    abandoned : bool
        Whether it was given up before the last fold.
    added : bool
        Whether it was solved for the sake of the guarantee; the table leaves it out.
    """

    params: Mapping[str, Any]
    lam: float
    scores: tuple[float, ...]
    gap: float
    passes: float
    seconds: float
    abandoned: bool = False
    added: bool = False

    @property
    def mean(self) -> float:
        """The mean score of its folds."""
        return math.fsum(self.scores) / len(self.scores)

    @property
    def std(self) -> float:
        """The standard deviation of these scores; nan for one fold."""
        if len(self.scores) < 2:
            return math.nan
        return math.sqrt(math.fsum((score - self.mean) ** 2 for score in self.scores) / (len(self.scores) - 1))


@dataclass(frozen=True)
class Tuning:
    """The outcome of a search; ``print`` shows it as a table.

    Attributes
    ----------
    rows : tuple of Row
        All settings: those of one combination of the grid one after another, the largest lam first.
    best : Row
        The one with the highest mean score that was scored on every fold; of equals that with the largest lam.
    scoring : str
        What scores are.
    folds : int
        How many there were.
    estimator : estimator or None
        Fitted to all examples with the chosen setting; None where that was not wanted.
    guarantee : Guarantee or None
        What is proven about every lam between the largest and the smallest one, at the chosen setting of the grid.
    obstacle : str
        Why nothing is proven; empty if something is.
    seconds : float
        Time of the whole search, without the last fit.
    """

    rows: tuple[Row, ...]
    best: Row
    scoring: str
    folds: int
    estimator: Any
    guarantee: Guarantee | None
    obstacle: str
    seconds: float

    @property
    def best_lam(self) -> float:
        """The chosen lam."""
        return self.best.lam

    @property
    def best_params(self) -> dict[str, Any]:
        """The chosen parameters of the grid, and lam."""
        return {**self.best.params, "lam": self.best.lam}

    @property
    def best_score(self) -> float:
        """The mean score of the chosen setting."""
        return self.best.mean

    @property
    def passes(self) -> float:
        """Oracle calls of the whole search, in units of n."""
        return sum(row.passes for row in self.rows)

    @property
    def shown(self) -> tuple[Row, ...]:
        """The rows of the table: those of the search itself, and the best."""
        return tuple(row for row in self.rows if not row.added or row is self.best)

    @property
    def line(self) -> tuple[Row, ...]:
        """The rows that differ from the chosen one in lam alone."""
        return tuple(row for row in self.rows if row.params == self.best.params)

    def __str__(self) -> str:
        names = list(self.best.params)
        heads = [*names, "lam", self.scoring, "std", "gap", "passes", "seconds", ""]
        table = [heads, *([*_values(row, self.rows), *self._figures(row)] for row in self.shown)]
        widths = [max(len(line[k]) for line in table) for k in range(len(heads))]
        lines = ["  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in table]
        return "\n".join([*(line.rstrip() for line in lines), *self.words])

    @property
    def words(self) -> list[str]:
        """What was chosen, how far other values of lam could be better, and how sure the scores are."""
        chosen = [f"{name}={_short(value)}" for name, value in self.best_params.items() if name != "lam"]
        said = [f"best: {', '.join([*chosen, f'lam={self.best_lam:.4g}'])}, {self.scoring} {self.best_score:.4f}"]
        searched = [row.lam for row in self.line]
        if len(searched) > 1 and self.best_lam in (min(searched), max(searched)):
            further = "smaller" if self.best_lam == min(searched) else "larger"
            said.append(f"that is the end of the range: {further} values of lam may be better still")
        if self.guarantee is None:
            said += [f"nothing is proven about other values of lam: {self.obstacle}"] if self.obstacle else []
        else:
            said.append(str(self.guarantee))
            near = None if self.guarantee.wish is None else self.guarantee.within(self.guarantee.wish, self.best_lam)
            if near is not None and near != (self.guarantee.low, self.guarantee.high):
                said.append(
                    f"proven: no lam from {near[0]:.4g} to {near[1]:.4g} is better by more than "
                    f"{self.guarantee.wish:g} points"
                )
        alike = self.indistinguishable
        if alike is not None and alike[0] < alike[1]:
            said.append(
                f"not proven, but likely: lam from {alike[0]:.3g} to {alike[1]:.3g} scores alike, within one standard "
                "error of the folds"
            )
        return said

    @property
    def indistinguishable(self) -> tuple[float, float] | None:
        """The values of lam whose mean is within one standard error of the best, a matter of statistics, not of proof.

        The paired differences to the best setting, fold by fold, have this standard error. None for one fold.
        """
        if len(self.best.scores) < 2:
            return None
        alike = [row.lam for row in self.line if not row.abandoned and _near(row, self.best)]
        return min(alike), max(alike)

    def _figures(self, row: Row) -> list[str]:
        spread = "-" if math.isnan(row.std) else f"{row.std:.4f}"
        mark = "best" if row is self.best else f"given up after {len(row.scores)}" if row.abandoned else ""
        return [
            f"{row.lam:.4g}", f"{row.mean:.4f}", spread, f"{row.gap:.2g}", f"{row.passes:.1f}", f"{row.seconds:.2f}",
            mark,
        ]  # fmt: skip

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON; parameters that are objects by their representation."""
        return {
            "scoring": self.scoring,
            "folds": self.folds,
            "best": {"params": _plain(self.best_params), "score": self.best_score},
            "seconds": self.seconds,
            "passes": self.passes,
            "rows": [_row(row) for row in self.rows],
            "guarantee": None if self.guarantee is None else self.guarantee.as_dict(),
            "obstacle": self.obstacle,
        }


def _row(row: Row) -> dict[str, Any]:
    return {
        "params": _plain(row.params), "lam": row.lam, "mean": row.mean,
        "std": None if math.isnan(row.std) else row.std, "scores": list(row.scores), "gap": row.gap,
        "passes": row.passes, "seconds": row.seconds, "abandoned": row.abandoned, "added": row.added,
    }  # fmt: skip


def _plain(params: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value if isinstance(value, PLAIN) else repr(value) for name, value in params.items()}


def _near(row: Row, best: Row) -> bool:
    """Whether a row is within one standard error of the best, fold by fold."""
    away = [a - b for a, b in zip(best.scores, row.scores, strict=True)]
    mean = math.fsum(away) / len(away)
    square = math.fsum((value - mean) ** 2 for value in away) / (len(away) - 1)
    return mean <= math.sqrt(square / len(away)) + 1e-12


def _values(row: Row, rows: tuple[Row, ...]) -> list[str]:
    """The parameters of the grid, long ones by their number."""
    found = []
    for name, value in row.params.items():
        different: list[Any] = []
        for other in rows:
            if not any(other.params[name] is known for known in different):
                different.append(other.params[name])
        number = next(k for k, known in enumerate(different, start=1) if known is value)
        text = _short(value)
        found.append(text if len(text) <= LONGEST else f"{type(value).__name__} {number}")
    return found


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= 2 * LONGEST else f"{text[: 2 * LONGEST - 1]}…"


def scoring_name(scoring: Any) -> str:
    """What a table calls a score.

    Parameters
    ----------
    scoring : str, callable or None
        As ``tune`` takes it.
    """
    return (
        "accuracy"
        if scoring is None
        else scoring
        if isinstance(scoring, str)
        else getattr(scoring, "__name__", "score")
    )
