"""Several solvers on one problem."""

from m3n.comparison.entry import Entry
from m3n.comparison.measures import measured_exponent, memory_of
from m3n.comparison.result import Comparison
from m3n.comparison.run import compare, label_solvers

__all__ = ["Comparison", "Entry", "compare", "label_solvers", "measured_exponent", "memory_of"]
