"""The training problem: all that a solver sees, and how a pass over the data is made."""

from m3n.problem.passes import Answer, Pass
from m3n.problem.problem import Objective, Problem

__all__ = ["Answer", "Objective", "Pass", "Problem"]
