"""Pictures of runs and results (needs the extra ``plot``)."""

from m3n.report.comparison import comparison_size, plot_comparison
from m3n.report.convergence import paper_bound, plot_convergence, plot_gap

__all__ = ["comparison_size", "paper_bound", "plot_comparison", "plot_convergence", "plot_gap"]
