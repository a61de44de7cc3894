"""scikit-learn estimators: thin facades over ``Problem`` and ``minimize``."""

from m3n.estimators.persistence import load
from m3n.estimators.sequence_tagger import SequenceTagger

__all__ = ["SequenceTagger", "load"]
