"""The training problem: all that a solver sees, and how a pass over the data is made."""

from m3n.problem.engines import EngineLost
from m3n.problem.passes import Answer, Pass
from m3n.problem.problem import Objective, Problem
from m3n.problem.sharded import Sharded

__all__ = ["Answer", "EngineLost", "Objective", "Pass", "Problem", "Sharded"]
