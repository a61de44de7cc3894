"""What stands around a token, for all tokens at once."""

from __future__ import annotations

import numpy as np

from m3n.features.joint_codes import ABSENT
from m3n.io.template_syntax import Row

MARKS = ("__BOS__", "__EOS__")


class Window:
    """Looks from every token along its sentence.

    Parameters
    ----------
    offsets : array of int (sentences + 1,)
        Sentence i has the tokens offsets[i] to offsets[i + 1].
    reach : int
        How many symbols stand beyond each side of a sentence; 0 for none.
    """

    def __init__(self, offsets: np.ndarray, reach: int):
        lengths = np.diff(offsets)
        self.tokens = int(offsets[-1])
        self.place = np.arange(self.tokens) - np.repeat(offsets[:-1], lengths)
        self.first = np.arange(self.tokens) - self.place
        self.last = np.repeat(lengths, lengths) - 1
        self.reach = reach

    def shift(self, codes: np.ndarray, row: Row, beyond: np.ndarray) -> np.ndarray:
        """Codes of the tokens in a row; beyond the sentence those of symbols, or ABSENT if there are none."""
        target = self._target(row)
        before, after = target < 0, target > self.last
        moved = codes.take(self.first + target, mode="clip").astype(np.int64)
        if self.reach:
            moved[before] = beyond[np.minimum(-target[before], self.reach) - 1]
            moved[after] = beyond[np.minimum((target - self.last)[after], self.reach) - 1 + self.reach]
        else:
            moved[before | after] = ABSENT
        return moved

    def _target(self, row: Row) -> np.ndarray:
        """The places in their sentences that tokens look at."""
        if isinstance(row, int):
            return self.place + row
        place = int(row.removeprefix("@"))
        return self.last + 1 + place if place < 0 else np.full(self.tokens, place - 1)

    def constant(self, text: str) -> np.ndarray:
        """The code 0 everywhere, or, if the text is a mark, only where that stands."""
        if text not in MARKS:
            return np.zeros(self.tokens, dtype=np.int64)
        here = self.place == 0 if text == MARKS[0] else self.place == self.last
        return np.where(here, 0, ABSENT)
