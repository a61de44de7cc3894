"""Alignments of independent source words against enumeration and closed formulas."""

import numpy as np
import pytest

from m3n.structures import OneToMany
from tests.structures.alignments import alignments
from tests.structures.template import StructureTemplate


class TestOneToMany(StructureTemplate):
    instances = alignments(lambda draw, sizes, allowed: OneToMany(sizes, allowed))


def test_outputs_are_one_column_or_none_per_row():
    structure = OneToMany([(2, 2)], [[[True, False], [True, True]]])
    found = [structure.unpack(y)[0] for y in structure.enumerate(0)]
    expected = [[], [(1, 0)], [(1, 1)], [(0, 0)], [(0, 0), (1, 0)], [(0, 0), (1, 1)]]
    assert found == expected
    np.testing.assert_allclose(structure.log_size(), np.log(6))


@pytest.mark.parametrize(
    ("links", "message"),
    [
        ([(0, 3)], r"example 1, link \(0, 3\): rows are 0 to 1, columns 0 to 2"),
        ([(-1, 0)], r"example 1, link \(-1, 0\): rows"),
        ([(1, 1), (0, 0), (1, 1)], r"example 1, link \(1, 1\): it is listed twice"),
        ([(1, 1), (0, 0), (1, 2)], r"example 1, link \(1, 2\): its row has another link already"),
        ([(0, 2)], r"example 1, link \(0, 2\): it is not allowed"),
        ([(0, 2, 1)], r"example 1: an output is a list of links"),
        ([(0.5, 1.0)], r"example 1: an output is a list of links"),
    ],
)
def test_wrong_links_are_named(links, message):
    structure = OneToMany([(1, 1), (2, 3)], [np.ones((1, 1)), [[1, 1, 0], [1, 1, 1]]])
    with pytest.raises(ValueError, match=message):
        structure.pack([[], links])


@pytest.mark.parametrize(
    ("sizes", "allowed", "message"),
    [
        ([], None, "sizes must list"),
        ([(1, 2, 3)], None, "sizes must list"),
        ([(1.5, 2)], None, "sizes must list"),
        ([(1, 2), (2, 0)], None, r"example 1 has the size \(2, 0\)"),
        ([(1, 2)], [], "1 examples, but 0 arrays of allowed links"),
        ([(1, 2)], [np.ones((2, 1))], r"example 0: allowed must have the shape \(1, 2\), got \(2, 1\)"),
    ],
)
def test_wrong_tables_are_refused(sizes, allowed, message):
    with pytest.raises(ValueError, match=message):
        OneToMany(sizes, allowed)


def test_a_word_that_must_not_have_anything_has_no_output():
    structure = OneToMany([(2, 1)])
    values, packed = structure.hard((np.array([[1.0], [-np.inf]]), np.array([[0.0], [-np.inf]])))
    assert values[0] == -np.inf
    with pytest.raises(ValueError, match="example 0 has no output"):
        structure.unpack(packed)
