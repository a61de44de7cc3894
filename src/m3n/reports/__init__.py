"""Reports and pictures of runs and results; pictures by matplotlib need the extra ``plot``."""

from m3n.reports.comparison import comparison_size, plot_comparison
from m3n.reports.convergence import paper_bound, plot_convergence, plot_gap
from m3n.reports.heat_maps import plot_transitions, plot_weights, weights_size
from m3n.reports.page import Report, report

__all__ = [
    "Report", "comparison_size", "paper_bound", "plot_comparison", "plot_convergence", "plot_gap", "plot_transitions",
    "plot_weights", "report", "weights_size",
]  # fmt: skip
