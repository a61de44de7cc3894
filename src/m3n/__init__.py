"""m3n: structured prediction with a proof of quality.

Train max-margin Markov networks on structured outputs until the duality gap certifies that no weights can be better by
more than a chosen tolerance. Names are imported when they are first used, so that ``import m3n`` is quick.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from m3n import (
        alignment,
        callbacks,
        checks,
        compat,
        datasets,
        features,
        grammars,
        io,
        losses,
        reports,
        scores,
        solvers,
        structures,
    )
    from m3n.cluster import Local, Ray
    from m3n.comparison import Comparison, compare
    from m3n.estimators import (
        ConstituencyParser,
        DependencyParser,
        GraphLabeler,
        HMMAligner,
        MultilabelClassifier,
        SegmentTagger,
        SequenceTagger,
        WordAligner,
        grid_graph,
        load,
    )
    from m3n.estimators.packing import pack
    from m3n.problem import Answer, EngineLost, Problem
    from m3n.reports import report
    from m3n.run.certificate import Certificate, Record
    from m3n.run.loop import BrokenOracle, Result, Snapshot, Status, minimize
    from m3n.run.paths import Path, PathPoint, path
    from m3n.run.saddle import SaddlePoint, SaddleRecord, SaddleResult, SaddleStatus, excessive_gap
    from m3n.run.suitability import MissingOracle, WrongObjective
    from m3n.shards import ShardError, Shards
    from m3n.tuning import Guarantee, Tuning, tune

_HOME = {
    "Answer": "m3n.problem",
    "BrokenOracle": "m3n.run.loop",
    "Certificate": "m3n.run.certificate",
    "Comparison": "m3n.comparison",
    "ConstituencyParser": "m3n.estimators",
    "DependencyParser": "m3n.estimators",
    "EngineLost": "m3n.problem",
    "GraphLabeler": "m3n.estimators",
    "Guarantee": "m3n.tuning",
    "HMMAligner": "m3n.estimators",
    "Local": "m3n.cluster",
    "MissingOracle": "m3n.run.suitability",
    "MultilabelClassifier": "m3n.estimators",
    "Path": "m3n.run.paths",
    "PathPoint": "m3n.run.paths",
    "Problem": "m3n.problem",
    "Ray": "m3n.cluster",
    "Record": "m3n.run.certificate",
    "Result": "m3n.run.loop",
    "SaddlePoint": "m3n.run.saddle",
    "SaddleRecord": "m3n.run.saddle",
    "SaddleResult": "m3n.run.saddle",
    "SaddleStatus": "m3n.run.saddle",
    "SegmentTagger": "m3n.estimators",
    "SequenceTagger": "m3n.estimators",
    "ShardError": "m3n.shards",
    "Shards": "m3n.shards",
    "Snapshot": "m3n.run.loop",
    "Status": "m3n.run.loop",
    "Tuning": "m3n.tuning",
    "WordAligner": "m3n.estimators",
    "WrongObjective": "m3n.run.suitability",
    "compare": "m3n.comparison",
    "excessive_gap": "m3n.run.saddle",
    "grid_graph": "m3n.estimators",
    "load": "m3n.estimators",
    "minimize": "m3n.run.loop",
    "pack": "m3n.estimators.packing",
    "path": "m3n.run.paths",
    "report": "m3n.reports",
    "tune": "m3n.tuning",
}
_MODULES = (
    "alignment", "callbacks", "checks", "compat", "datasets", "features", "grammars", "io", "losses", "reports",
    "scores", "solvers", "structures",
)  # fmt: skip

__all__ = [
    "Answer", "BrokenOracle", "Certificate", "Comparison", "ConstituencyParser", "DependencyParser", "EngineLost",
    "GraphLabeler", "Guarantee", "HMMAligner", "Local", "MissingOracle", "MultilabelClassifier", "Path", "PathPoint",
    "Problem", "Ray", "Record", "Result", "SaddlePoint", "SaddleRecord", "SaddleResult", "SaddleStatus",
    "SegmentTagger", "SequenceTagger", "ShardError", "Shards", "Snapshot", "Status", "Tuning", "WordAligner",
    "WrongObjective", "alignment", "callbacks", "checks", "compare", "compat", "datasets", "excessive_gap", "features",
    "grammars", "grid_graph", "io", "load", "losses", "minimize", "pack", "path", "report", "reports", "scores",
    "solvers", "structures", "tune",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in _HOME:
        value = getattr(import_module(_HOME[name]), name)
    elif name in _MODULES:
        value = import_module(f"m3n.{name}")
    else:
        raise AttributeError(f"module 'm3n' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
