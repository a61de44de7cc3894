"""Reports and pictures of runs and results; pictures by matplotlib need the extra ``plot``."""

from m3n.reports.page import Report, report
from m3n.reports.pictures import (
    comparison_size,
    paper_bound,
    plot_comparison,
    plot_convergence,
    plot_gap,
    plot_transitions,
    plot_weights,
    weights_size,
)

__all__ = [
    "Report", "comparison_size", "paper_bound", "plot_comparison", "plot_convergence", "plot_gap", "plot_transitions",
    "plot_weights", "report", "weights_size",
]  # fmt: skip
