"""The max-margin Markov network: lam/2 |w|^2 + mean of max_y { ell(y) - <w, psi(y)> }.

dlib writes it as 1/2 |w|^2 + C R(w) with C = 1/lam, SVM-struct with C = 1/lam for the mean too.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Margin:
    """A structural SVM.

    Attributes
    ----------
    regularization : float or None
        lam; None means 1/n.
    loss : {"normalized_hamming", "hamming"}
        The share of wrong labels, or their number.
    states : {"all", "observed"}
        Whether a pair of attribute (or label) and label that training never saw has a weight.
    """

    regularization: float | None = None
    loss: str = "normalized_hamming"
    states: str = "all"

    name = "margin"
    temperature = 0.0

    def lam(self, n: int) -> float:
        """Our weight of the regulariser."""
        return 1 / n if self.regularization is None else self.regularization

    def l1(self, n: int) -> float:
        """Absolute weights cost nothing."""
        return 0.0

    def request(self) -> dict[str, Any]:
        """As JSON can hold it."""
        return {"name": self.name, **asdict(self)}
