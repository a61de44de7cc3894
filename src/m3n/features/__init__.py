"""Feature maps: linear maps from weights to part scores, with their adjoints."""

from m3n.features.base import FeatureMap
from m3n.features.copies import Copies
from m3n.features.dense import Dense
from m3n.features.graphs import graph_features
from m3n.features.kernel import CliqueKernel, Kernel
from m3n.features.kernel_functions import KernelFunction
from m3n.features.multilabel import BinaryLabels
from m3n.features.nothing import NoFeatures
from m3n.features.observed import Observed, ObservedTable, observed_pairs, observed_transitions
from m3n.features.scaled import Scaled
from m3n.features.sparse import Sparse
from m3n.features.stack import Stack, Table, chain_features
from m3n.features.template_sets import CHUNKING, word_templates
from m3n.features.templates import Templates
from m3n.features.vectorizer import AttributeVectorizer

__all__ = [
    "CHUNKING", "AttributeVectorizer", "BinaryLabels", "CliqueKernel", "Copies", "Dense", "FeatureMap", "Kernel",
    "KernelFunction", "NoFeatures", "Observed", "ObservedTable", "Scaled", "Sparse", "Stack", "Table",
    "Templates", "chain_features", "graph_features", "observed_pairs", "observed_transitions",
    "word_templates",
]  # fmt: skip
