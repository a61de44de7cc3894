"""Logarithmic axes: which numbers stand at them, and where a value comes to lie.

Ticks are powers of ten; where fewer than three of these are in range, 1 and 3, or 1, 2 and 5 times powers of ten, and
where even these are too few, round numbers at equal distances. Where there are too many, every second or third stays.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

ENOUGH, MOST = 3, 7
MULTIPLES = ((1,), (1, 3), (1, 2, 5))


@dataclass(frozen=True)
class LogAxis:
    """A range of positive numbers on a line from ``begin`` to ``end``.

    Parameters
    ----------
    low, high : float
        The range; where it is empty it is widened.
    begin, end : float
        Where ``low`` and ``high`` lie in the picture.
    """

    low: float
    high: float
    begin: float
    end: float

    def __post_init__(self) -> None:
        if not 0 < self.low <= self.high < math.inf:
            raise ValueError(f"a logarithmic axis needs positive finite numbers, got {self.low} to {self.high}")
        if self.high < 1.05 * self.low:  # one value, or as good as one
            object.__setattr__(self, "low", self.low / 1.5)
            object.__setattr__(self, "high", self.high * 1.5)

    def at(self, value: float) -> float | None:
        """The place of a value, at the edge if it lies outside; None for what has no logarithm."""
        if not 0 < value < math.inf:
            return None
        share = math.log(value / self.low) / math.log(self.high / self.low)
        return round(self.begin + min(max(share, 0.0), 1.0) * (self.end - self.begin), 1)

    def ticks(self) -> list[float]:
        """Round numbers within the range."""
        for multiples in MULTIPLES:
            found = self._powers(multiples)
            if len(found) >= ENOUGH:
                return _thinned(found)
        return _round_numbers(self.low, self.high)

    def _powers(self, multiples: tuple[int, ...]) -> list[float]:
        first, last = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
        numbers = [float(f"{m}e{k}") for k in range(first, last + 1) for m in multiples]
        return [value for value in numbers if 0.999 * self.low <= value <= 1.001 * self.high]


def _thinned(ticks: list[float]) -> list[float]:
    every = math.ceil(len(ticks) / MOST)
    return ticks[::every]


def _round_numbers(low: float, high: float) -> list[float]:
    """Multiples of 1, 2 or 5 times a power of ten, three to seven of them."""
    rough = (high - low) / 5
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(m * power for m in (1, 2, 5, 10) if m * power >= rough)
    return [float(f"{k * step:.12g}") for k in range(math.ceil(low / step), math.floor(high / step) + 1)]
