"""Algorithms: one file each. To add one, write its file and its line in ``BY_NAME``."""

from typing import Any

from m3n.problem import Objective
from m3n.solvers.base import Solver, State, seed_of
from m3n.solvers.batch_frank_wolfe import BatchFrankWolfe
from m3n.solvers.block_frank_wolfe import (
    BlockFrankWolfe,
    GapSampling,
    Pairwise,
    PlaneCache,
    Shuffled,
    Toward,
    Uniform,
)
from m3n.solvers.bmrm import BMRM
from m3n.solvers.choice import Choice, choose, choose_smooth
from m3n.solvers.dual_ascent import DualAscent
from m3n.solvers.excessive_gap import ExcessiveGap
from m3n.solvers.exponentiated_gradient import ExponentiatedGradient
from m3n.solvers.extragradient import Extragradient
from m3n.solvers.lbfgs import LBFGS
from m3n.solvers.owl_qn import OWLQN
from m3n.solvers.sequential_dual import SequentialDual
from m3n.solvers.smo import SMO
from m3n.solvers.sparse_dual_ascent import SparseDualAscent
from m3n.solvers.struct_svm import StructSVM
from m3n.solvers.subgradient import Subgradient

BY_NAME: dict[str, type[Solver[Any]]] = {
    "batch_frank_wolfe": BatchFrankWolfe,
    "block_frank_wolfe": BlockFrankWolfe,
    "bmrm": BMRM,
    "dual_ascent": DualAscent,
    "excessive_gap": ExcessiveGap,
    "exponentiated_gradient": ExponentiatedGradient,
    "extragradient": Extragradient,
    "lbfgs": LBFGS,
    "owl_qn": OWLQN,
    "sequential_dual": SequentialDual,
    "smo": SMO,
    "sparse_dual_ascent": SparseDualAscent,
    "struct_svm": StructSVM,
    "subgradient": Subgradient,
}


def resolve_solver(
    solver: Solver[Any] | str, seed: Any = 0, problem: Objective | None = None, tol: float = 0.0, rtol: float = 0.0
) -> Choice:
    """Turn a name into a solver object with default settings, and a seed if it draws random numbers.

    "auto" is what ``choose`` finds best for the problem; without a problem the name is only checked.
    """
    if isinstance(solver, Solver):
        return Choice(solver)
    seed = seed_of(seed)
    if solver == "auto":
        return Choice(SequentialDual(seed=seed)) if problem is None else choose(problem, seed, tol, rtol)
    if solver not in BY_NAME:
        raise ValueError(f"unknown solver {solver!r}; choose 'auto', a solver object or one of {sorted(BY_NAME)}")
    kind: Any = BY_NAME[solver]
    return Choice(kind(seed=seed) if hasattr(kind, "seed") else kind())


__all__ = [
    "BMRM", "BY_NAME", "LBFGS", "OWLQN", "SMO", "BatchFrankWolfe", "BlockFrankWolfe", "Choice", "DualAscent",
    "ExcessiveGap", "ExponentiatedGradient", "Extragradient", "GapSampling", "Pairwise", "PlaneCache",
    "SequentialDual", "Shuffled", "Solver", "SparseDualAscent", "State", "StructSVM", "Subgradient", "Toward",
    "Uniform", "choose", "choose_smooth", "resolve_solver",
]  # fmt: skip
