"""Lists of parts: from the parts of all examples' outputs to one row of parts per example."""

from __future__ import annotations

import numpy as np


def listed(owner: np.ndarray, parts: np.ndarray, n: int, most: int) -> tuple[np.ndarray, np.ndarray]:
    """What ``Structure.local_parts`` answers.

    Parameters
    ----------
    owner : array of int
        The example of every part.
    parts : array of int
        The parts, positions in the example's own theta, in any order.
    n : int
        Number of examples.
    most : int
        Number of columns of the answer.
    """
    order = np.lexsort((parts, owner))
    counts = np.bincount(owner, minlength=n)
    first = np.cumsum(counts) - counts
    rows = np.zeros((n, most), np.int64)
    rows[owner[order], np.arange(len(order)) - np.repeat(first, counts)] = parts[order]
    return rows, counts
