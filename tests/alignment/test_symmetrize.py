"""Two directions into one: examples worked by hand, and what lies within what."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from m3n.alignment.symmetrization import METHODS, best_links, symmetrize

# . x .  forward (a column has one link)    x . .  backward (a row has one link)
# x . .                                     x . .
# . . x                                     . . x
# . . .                                     . x .
FORWARD, BACKWARD = [(1, 0), (0, 1), (2, 2)], [(0, 0), (1, 0), (2, 2), (3, 1)]


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        ("intersection", [(1, 0), (2, 2)]),
        ("union", [(0, 0), (0, 1), (1, 0), (2, 2), (3, 1)]),
        # (0, 0) is above (1, 0), row 0 is free; then (0, 1) beside (1, 0): column 1 is free; (3, 1) beside (2, 2)
        ("grow-diag", [(0, 0), (0, 1), (1, 0), (2, 2), (3, 1)]),
    ],
)
def test_worked_by_hand(method, expected):
    assert symmetrize([FORWARD], [BACKWARD], method) == [expected]


def test_growth_needs_a_neighbour_and_a_free_word():
    """(3, 3) touches nothing; (0, 1) touches (0, 0), but both of its words have links."""
    forward, backward = [(0, 0), (1, 1), (0, 1), (3, 3)], [(0, 0), (1, 1)]
    assert symmetrize([forward], [backward], "grow-diag") == [[(0, 0), (1, 1)]]
    assert symmetrize([forward], [backward], "grow-diag-final") == [[(0, 0), (1, 1), (3, 3)]]
    assert symmetrize([forward], [backward], "grow-diag-final-and") == [[(0, 0), (1, 1), (3, 3)]]


def test_final_asks_for_one_free_word_and_final_and_for_both():
    forward, backward = [(0, 0), (0, 3)], [(0, 0), (4, 3)]
    assert symmetrize([forward], [backward], "grow-diag-final") == [[(0, 0), (0, 3), (4, 3)]]
    assert symmetrize([forward], [backward], "grow-diag-final-and") == [[(0, 0), (4, 3)]]


def test_what_has_grown_is_grown_from():
    """(0, 0) touches (1, 1) only, which is found after it in the order of words; both come in."""
    forward, backward = [(2, 2), (1, 1), (0, 0)], [(2, 2)]
    assert symmetrize([forward], [backward], "grow-diag") == [[(0, 0), (1, 1), (2, 2)]]


links = st.sets(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=8)


@given(links, links)
def test_every_method_lies_between_intersection_and_union(forward, backward):
    found = {method: set(symmetrize([forward], [backward], method)[0]) for method in METHODS}
    assert found["intersection"] == forward & backward
    assert found["union"] == forward | backward
    assert found["intersection"] <= found["grow-diag"] <= found["grow-diag-final-and"] <= found["union"]
    assert found["grow-diag"] <= found["grow-diag-final"] <= found["union"]


@given(links, links)
def test_what_was_added_touches_another_link(forward, backward):
    found = set(symmetrize([forward], [backward], "grow-diag")[0])
    for i, j in found - (forward & backward):
        assert any(max(abs(i - a), abs(j - b)) == 1 for a, b in found)


@given(links, links)
def test_final_leaves_no_link_of_two_free_words(forward, backward):
    for method in ("grow-diag-final", "grow-diag-final-and"):
        found = symmetrize([forward], [backward], method)[0]
        rows, columns = {i for i, _ in found}, {j for _, j in found}
        assert all(i in rows or j in columns for i, j in forward | backward)


def test_best_links_leave_out_words_without_origin():
    probabilities = np.array([[0.6, 0.1, 0.2], [0.3, 0.2, 0.5]])
    assert best_links(probabilities) == [(0, 0), (1, 2)]


def test_refusals():
    with pytest.raises(ValueError, match="method='grow' is not available; choose one of"):
        symmetrize([[]], [[]], "grow")
    with pytest.raises(ValueError, match="forward has 1 sentence pairs, backward 0"):
        symmetrize([[]], [], "union")
