"""Algorithms: one file each. To add one, write its file and its line in ``BY_NAME``."""

from typing import Any

from m3n.solvers.base import Solver, State
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
from m3n.solvers.choice import choose_smooth
from m3n.solvers.dual_ascent import DualAscent
from m3n.solvers.excessive_gap import ExcessiveGap
from m3n.solvers.exponentiated_gradient import ExponentiatedGradient
from m3n.solvers.extragradient import Extragradient
from m3n.solvers.lbfgs import LBFGS
from m3n.solvers.smo import SMO
from m3n.solvers.struct_svm import StructSVM
from m3n.solvers.subgradient import Subgradient

BY_NAME: dict[str, type[Solver[Any]]] = {
    "block_frank_wolfe": BlockFrankWolfe,
    "bmrm": BMRM,
    "dual_ascent": DualAscent,
    "excessive_gap": ExcessiveGap,
    "exponentiated_gradient": ExponentiatedGradient,
    "extragradient": Extragradient,
    "lbfgs": LBFGS,
    "smo": SMO,
    "struct_svm": StructSVM,
    "subgradient": Subgradient,
}


def resolve_solver(solver: Solver[Any] | str, seed: int = 0, temperature: float = 0.0) -> Solver[Any]:
    """Turn a name into a solver object with default settings, and a seed if it draws random numbers.

    "auto" is the excessive gap method for max-margin networks and L-BFGS for a positive temperature (CRF); where the
    problem is known, ``choose_smooth`` chooses better.
    """
    if isinstance(solver, Solver):
        return solver
    if solver == "auto":
        return LBFGS() if temperature else ExcessiveGap()
    if solver not in BY_NAME:
        raise ValueError(f"unknown solver {solver!r}; choose 'auto', a solver object or one of {sorted(BY_NAME)}")
    kind: Any = BY_NAME[solver]
    return kind(seed=seed) if hasattr(kind, "seed") else kind()


__all__ = [
    "BMRM", "BY_NAME", "LBFGS", "SMO", "BlockFrankWolfe", "DualAscent", "ExcessiveGap", "ExponentiatedGradient",
    "Extragradient", "GapSampling", "Pairwise", "PlaneCache", "Shuffled", "Solver", "State", "StructSVM",
    "Subgradient", "Toward", "Uniform", "choose_smooth", "resolve_solver",
]  # fmt: skip
