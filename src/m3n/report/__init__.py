"""Pictures of runs and results (needs the extra ``plot``)."""

from m3n.report.convergence import paper_bound, plot_convergence, plot_gap

__all__ = ["paper_bound", "plot_convergence", "plot_gap"]
