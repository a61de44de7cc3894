"""What ``predict`` returns: lists, which scripts may treat like the arrays that sklearn-crfsuite returns since 0.5.

Its array has one list per sequence or, if all sequences are equally long, two axes. A list of lists is the same in
either case, and what is asked of arrays of labels works too: ``(y_pred == y).all()`` and ``y_pred.tolist()``.
"""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np

from m3n.estimators.predictions import Predictions

__all__ = ["Answers", "Comparison"]

T = TypeVar("T")


class Comparison(np.ndarray):
    """Which entries are equal, or not; as a condition, whether that is so of the lists as a whole."""

    whole: bool | None = None

    def __bool__(self) -> bool:
        return super().__bool__() if self.whole is None else self.whole


class Answers(Predictions[T]):
    """One answer per sequence: a list that is compared entry by entry, as an array is."""

    __slots__ = ()
    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> Any:
        return _comparison(self._equals(other), super().__eq__(other) is True)

    def __ne__(self, other: object) -> Any:
        return _comparison(~self._equals(other), super().__eq__(other) is not True)

    def tolist(self) -> list[T]:
        """The plain list."""
        return list(self)

    def _equals(self, other: Any) -> np.ndarray:
        """Entry by entry, label by label if all sequences are equally long; False if that makes no sense."""
        try:
            return np.asarray(np.array(list(self), dtype=object) == np.array(list(other), dtype=object), dtype=bool)
        except (TypeError, ValueError):  # no sequence, or another shape
            return np.array(False)


def _comparison(entries: Any, whole: bool) -> Comparison:
    found = np.asarray(entries).view(Comparison)
    found.whole = whole
    return found
