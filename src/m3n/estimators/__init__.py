"""scikit-learn estimators: thin facades over ``Problem`` and ``minimize``."""

from m3n.estimators.approximation import ApproximationReport
from m3n.estimators.kernel_scores import Support, Transformed
from m3n.estimators.persistence import load
from m3n.estimators.sequence_tagger import SequenceTagger

__all__ = ["ApproximationReport", "SequenceTagger", "Support", "Transformed", "load"]
