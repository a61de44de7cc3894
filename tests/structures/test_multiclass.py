import numpy as np
import pytest
from hypothesis import strategies as st

from m3n.features import Dense
from m3n.structures import Multiclass
from tests.structures.template import StructureTemplate
from tests.tiny import Enumerated, multiclass_problem


class TestMulticlass(StructureTemplate):
    instances = st.builds(Multiclass, st.integers(1, 5), st.integers(1, 4))


def test_radius_is_exact():
    problem = multiclass_problem()
    largest = np.sqrt(2) * np.linalg.norm(problem.features.X, axis=1).max()
    assert problem.radius == pytest.approx(largest)
    assert Enumerated.of(problem).radius == pytest.approx(problem.radius)
    assert Multiclass(3, 1).radius(Dense(np.ones((3, 2)), 1).norms()) == 0.0


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([0, 1], "3 examples but 2 outputs"),
        ([0, 1, 5], "position 2: label 5 is not in 0..1"),
        ([0, 1, -1], "position 2: label -1"),
        ([0.5, 1, 0], "flat list of integers"),
    ],
)
def test_bad_outputs_are_named(y, message):
    with pytest.raises(ValueError, match=message):
        Multiclass(3, 2).pack(y)


def test_needs_something():
    with pytest.raises(ValueError, match="at least one example"):
        Multiclass(0, 3)
