"""The conditional random field as CRFsuite writes it: sum of the losses + c2 |w|^2 + c1 |w|_1.

Divided by n it is our J with lam = 2 c2 / n and l1 = c1 / n. Values are reported as J.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class CRF:
    """A regularised likelihood.

    Attributes
    ----------
    c2 : float
        Weight of the squared norm against the sum of the losses.
    states : {"observed", "all"}
        Whether a pair of attribute (or label) and label that training never saw has a weight.
    c1 : float
        Weight of the sum of absolute weights; with ``c2`` the penalty is called an elastic net.
    """

    c2: float = 1.0
    states: str = "observed"
    c1: float = 0.0

    name = "crf"
    temperature = 1.0

    def lam(self, n: int) -> float:
        """Our weight of the regulariser."""
        return 2 * self.c2 / n

    def l1(self, n: int) -> float:
        """Our weight of the sum of absolute weights."""
        return self.c1 / n

    def request(self) -> dict[str, Any]:
        """As JSON can hold it."""
        return {"name": self.name, **asdict(self)}
