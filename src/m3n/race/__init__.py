"""Races: several solvers on one problem."""

from m3n.race.comparison import Comparison
from m3n.race.entry import Entry
from m3n.race.labels import label_solvers
from m3n.race.measures import measured_exponent, memory_of
from m3n.race.run import compare

__all__ = ["Comparison", "Entry", "compare", "label_solvers", "measured_exponent", "memory_of"]
