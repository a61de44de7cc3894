"""Trees that we made up, and strategies for others."""

import gzip
import os
from pathlib import Path

from hypothesis import strategies as st

from m3n.io import ParseTree

TREEBANK = [
    ParseTree.parse(text)
    for text in (
        "(S (NP (DT the) (NN dog)) (VP (VBZ barks)) (. .))",
        "(S (NP (DT the) (JJ old) (NN dog)) "
        "(VP (VBZ sees) (NP (DT a) (NN cat)) (PP (IN in) (NP (DT the) (NN house)))) (. .))",
        "(S (NP (PRP she)) (VP (VBZ sees) (NP (NP (DT the) (NN dog)) (PP (IN with) (NP (DT a) (NN hat))))) (. .))",
        "(S (NP (NNS cats)) (VP (VBP sleep) (ADVP (RB well))) (. .))",
        "(NP (DT the) (NN cat) (CC and) (DT the) (NN dog) (. .))",
        "(S (NP (PRP he)) (VP (VBZ says) (SBAR (S (NP (PRP she)) (VP (VBZ sleeps))))) (. .))",
        "(S (S (VP (VBG Sleeping))) (VP (VBZ helps)))",
        "(X (X (UH oh)))",
    )
]


def sample(low=1, high=199):
    """Trees of the WSJ sample, by number of their file, if it is there; nothing of it is part of this project."""
    path = Path(os.environ.get("M3N_DATA", "")) / "wsj_sample" / "wsj_sample.norm.trees.gz"
    if not ("M3N_DATA" in os.environ and path.exists()):
        return []
    with gzip.open(path, "rt") as file:
        rows = [line.rstrip("\n").split("\t") for line in file]
    return [ParseTree.parse(text) for name, text in rows if low <= int(name[4:8]) <= high]


def trees(labels=("S", "NP", "VP"), tags=("D", "N", "V"), words=("a", "b", "c")):
    """Trees of any shape, with chains of unary rules."""
    leaf = st.builds(lambda tag, word: ParseTree(tag, (word,)), st.sampled_from(tags), st.sampled_from(words))
    grown = st.recursive(
        leaf,
        lambda below: st.builds(
            lambda label, children: ParseTree(label, tuple(children)),
            st.sampled_from(labels),
            st.lists(below, min_size=1, max_size=4),
        ),
        max_leaves=8,
    )
    return st.builds(lambda tree: tree if not tree.is_tag else ParseTree("S", (tree,)), grown)
