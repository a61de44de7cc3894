"""Output spaces: one file each."""

from m3n.structures.alignment_chain import AlignmentChain
from m3n.structures.arcs import Arcs
from m3n.structures.base import Parts, Structure
from m3n.structures.chain import Chain
from m3n.structures.factors import Factors
from m3n.structures.grammar import Grammar, NoParse
from m3n.structures.graph import Graph, TooExpensive
from m3n.structures.higher_order import HigherOrderChain
from m3n.structures.labels import LabelStructure
from m3n.structures.loopy import LoopyGraph
from m3n.structures.matching import Matching
from m3n.structures.multiclass import Multiclass
from m3n.structures.multilabel import Multilabel, multilabel_pairs
from m3n.structures.non_projective import NonProjectiveTree
from m3n.structures.one_to_many import OneToMany
from m3n.structures.projective import ProjectiveTree
from m3n.structures.ranking import k_best
from m3n.structures.relaxation import RelaxedMap, relaxed_map
from m3n.structures.relaxed_marginals import RelaxedMarginals, relaxed_marginals
from m3n.structures.rules import Rules
from m3n.structures.semi_markov import SemiMarkov
from m3n.structures.slack import InexactOracle, Restriction
from m3n.structures.transitions import Transitions
from m3n.structures.tree import Tree

__all__ = [
    "AlignmentChain", "Arcs", "Chain", "Factors", "Grammar", "Graph", "HigherOrderChain", "InexactOracle",
    "LabelStructure", "LoopyGraph", "Matching", "Multiclass", "Multilabel", "NoParse", "NonProjectiveTree", "OneToMany",
    "Parts", "ProjectiveTree", "RelaxedMap", "RelaxedMarginals", "Restriction", "Rules", "SemiMarkov", "Structure",
    "TooExpensive", "Transitions", "Tree", "k_best", "multilabel_pairs", "relaxed_map", "relaxed_marginals",
]  # fmt: skip
