"""Tables of links between rows and columns: sizes, and which links are barred."""

from typing import NamedTuple

import numpy as np

from m3n.compiled.jit import borrowing


class LinkTable(NamedTuple):
    """Sizes of all examples."""

    rows: np.ndarray  # (n,)
    columns: np.ndarray  # (n,)
    pairs: np.ndarray  # (n + 1,) first link of every example
    barred: np.ndarray  # (links,) bool; () if none is


@borrowing
def is_barred(table, i, link):
    """Whether example i must not have a link, numbered within it."""
    return table.barred.shape[0] > 0 and table.barred[table.pairs[i] + link]
