"""scikit-learn estimators: thin facades over ``Problem`` and ``minimize``."""

from m3n.estimators.answer_sets import Coverage, OutputSet
from m3n.estimators.approximation import ApproximationReport
from m3n.estimators.constituency_parser import ConstituencyParser
from m3n.estimators.coverage import CoverageReport
from m3n.estimators.dependency_parser import DependencyParser
from m3n.estimators.explanation import Contribution, Explanation, Position, TreeExplanation
from m3n.estimators.final import FinalPredictions
from m3n.estimators.graph_labeler import GraphLabeler, Labelled
from m3n.estimators.grids import GridGraph, grid_graph
from m3n.estimators.hmm_aligner import HMMAligner
from m3n.estimators.kernel_scores import Support, Transformed
from m3n.estimators.model_summary import summary, top_weights
from m3n.estimators.multilabel_classifier import MultilabelClassifier
from m3n.estimators.partial_labels import Round
from m3n.estimators.predictions import Predictions
from m3n.estimators.registry import load
from m3n.estimators.segment_tagger import SegmentTagger
from m3n.estimators.sequence_tagger import SequenceTagger
from m3n.estimators.span_shares import Span
from m3n.estimators.word_aligner import WordAligner

__all__ = [
    "ApproximationReport", "ConstituencyParser", "Contribution", "Coverage", "CoverageReport", "DependencyParser",
    "Explanation", "FinalPredictions", "GraphLabeler", "GridGraph", "HMMAligner", "Labelled", "MultilabelClassifier",
    "OutputSet", "Position", "Predictions", "Round", "SegmentTagger", "SequenceTagger", "Span", "Support",
    "Transformed", "TreeExplanation", "WordAligner", "grid_graph", "load", "summary", "top_weights",
]  # fmt: skip
