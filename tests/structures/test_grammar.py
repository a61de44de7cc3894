import math

import numpy as np
import pytest
from hypothesis import strategies as st

from m3n.structures import Grammar, NoParse, Rules
from tests.structures.template import StructureTemplate


def random_rules(random, tags, phrases, *, labels=True, classes=0):
    """A grammar in which symbol ``tags`` derives every sentence; the last symbol is the root."""
    symbols = tags + phrases + 1
    root, anything = symbols - 1, tags
    pairs = [(anything, a, b) for a in (0, anything) for b in (0, anything)]
    others = [(p, a, b) for p in range(tags, root) for a in range(root) for b in range(root)]
    chosen = [rule for rule in others if random.random() < 0.25 and rule not in pairs]
    unary = [(root, anything), (root, 0)]
    unary += [(p, c) for p in range(tags, root) for c in range(root) if random.random() < 0.4]
    order = random.permutation(len(pairs) + len(chosen))
    binary = np.array(pairs + chosen)[order]
    label = np.full(symbols, -1)
    chains = [[] for _ in unary]
    if labels:
        label[tags:root] = random.integers(-1, 3, size=phrases)
        chains = [[k for k in range(3) if random.random() < 0.4 and k != label[child]] for _, child in unary]
    given = random.integers(classes, size=(len(binary) + len(unary), 2)) if classes else None
    return Rules(symbols, tags, root, binary, unary, label if labels else None, chains if labels else (), given)


@st.composite
def grammars(draw):
    random = np.random.default_rng(draw(st.integers(0, 1000)))
    tags, phrases = draw(st.integers(1, 2)), draw(st.integers(1, 2))
    rules = random_rules(random, tags, phrases, labels=draw(st.booleans()), classes=draw(st.sampled_from([0, 3])))
    lengths = draw(st.lists(st.integers(1, 3), min_size=1, max_size=3))
    allowed = [random.random((length, tags)) < 0.6 for length in lengths]
    for mask in allowed:
        mask[:, 0] = True  # so that there is a derivation
    return Grammar(allowed, rules)


class TestGrammar(StructureTemplate):
    instances = grammars()

    def test_branches_divide_the_outputs(self):
        def check(structure, draw):
            alone, _ = structure.select(np.array([draw(st.integers(0, structure.n - 1))]))
            outputs = list(alone.enumerate(0))
            encoded = [alone.encode(y) for y in outputs]
            for y, parts in zip(outputs, encoded, strict=True):
                np.testing.assert_array_equal(parts[0], np.eye(parts[0].shape[1])[alone.labels_of(y)])
            one, other = (draw(st.integers(0, len(outputs) - 1)) for _ in range(2))
            masks = alone.branches(outputs[one], outputs[other])
            sets = [[(a > 0).tobytes() for a in encoded[k]] for k in (one, other)]
            assert bool(masks) == (sets[0] != sets[1])
            if masks:
                inside = np.array(
                    [[parts[k][mask].any() == required for parts in encoded] for k, mask, required in masks]
                )
                np.testing.assert_array_equal(inside.sum(axis=0), 1)
                assert inside[0, one] != inside[0, other]

        self.for_all(check)
