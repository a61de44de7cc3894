"""The training problem: all that a solver sees, and how a pass over the data is made."""

from m3n.problem.problem import Problem
from m3n.problem.threaded import Answer

__all__ = ["Answer", "Problem"]
