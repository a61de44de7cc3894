"""Feature maps: linear maps from weights to part scores, with their adjoints."""

from m3n.features.anchored import AnchoredTemplates
from m3n.features.base import FeatureMap
from m3n.features.codes import Codes
from m3n.features.hashed import HashedAttributes, HashedTemplates
from m3n.features.kernel import CliqueKernel, Kernel
from m3n.features.kernel_functions import KernelFunction
from m3n.features.maps import Dense, NoFeatures, Sparse, Stack, Table, chain_features
from m3n.features.observed import Observed, ObservedTable, observed_pairs, observed_transitions
from m3n.features.templates import CHUNKING, Templates, word_templates
from m3n.features.undirected import NoTable, SymmetricTable, TwoWays
from m3n.features.vectorizer import AttributeVectorizer
from m3n.features.wrapped import BinaryLabels, Copies, Scaled, graph_features

__all__ = [
    "CHUNKING", "AnchoredTemplates", "AttributeVectorizer", "BinaryLabels", "CliqueKernel", "Codes", "Copies",
    "Dense", "FeatureMap", "HashedAttributes", "HashedTemplates", "Kernel", "KernelFunction", "NoFeatures", "NoTable",
    "Observed", "ObservedTable", "Scaled", "Sparse", "Stack", "SymmetricTable", "Table", "Templates", "TwoWays",
    "chain_features", "graph_features", "observed_pairs", "observed_transitions", "word_templates",
]  # fmt: skip
