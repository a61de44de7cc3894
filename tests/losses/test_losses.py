import numpy as np
import pytest

from m3n.backends import Threads
from m3n.losses import Cost, Hamming, NormalizedHamming
from m3n.structures import Chain, Multiclass


def losses_by_hand(structure, gold, normalise):
    for i in range(structure.n):
        rows = structure.rows_of_labelling(np.array([i]))
        for y in structure.enumerate(i):
            wrong = int(np.sum(y != gold[rows]))
            yield i, y, wrong / len(y) if normalise else wrong


@pytest.mark.parametrize("loss", [Hamming(), NormalizedHamming()])
@pytest.mark.parametrize("structure", [Chain([1, 3, 2], 3), Multiclass(4, 3)])
def test_cost_is_the_loss_of_every_output(loss, structure, random):
    gold = random.integers(3, size=structure.shapes[0][0])
    cost = loss.cost(structure, gold)
    for i, y, expected in losses_by_hand(structure, gold, isinstance(loss, NormalizedHamming)):
        alone = structure.select(np.array([i]))[0]
        mine = cost.select(structure.rows_of_labelling(np.array([i])))
        assert mine.expected(alone.encode(y)) == pytest.approx(expected)
        theta = tuple(np.zeros(shape) for shape in alone.shapes)
        mine.add_to(theta, 2.0)
        scored = sum(float((a * b).sum()) for a, b in zip(theta, alone.encode(y), strict=True))
        assert scored == pytest.approx(2.0 * expected)


def test_threads_agree(random):
    structure = Chain([5, 9, 2], 4)
    gold = random.integers(4, size=16)
    cost = NormalizedHamming().cost(structure, gold)
    one, two = (random.normal(size=(16, 4)),), None
    two = (one[0].copy(),)
    cost.add_to(one, 0.5)
    cost.add_to(two, 0.5, Threads(3))
    np.testing.assert_array_equal(one[0], two[0])
    assert cost.expected(one) == pytest.approx(cost.expected(one, Threads(3)))


@pytest.mark.parametrize(
    ("table", "weight", "message"),
    [
        ([[0.0, 1.0], [1.0, 0.5]], 1.0, "diagonal is not zero"),
        ([[0.0, -1.0], [1.0, 0.0]], 1.0, "must not be negative"),
        ([[0.0, 1.0], [1.0, 0.0]], -1.0, "must not be negative"),
        ([[0.0, np.nan], [1.0, 0.0]], 1.0, "must be finite"),
    ],
)
def test_improper_losses_are_refused(table, weight, message):
    with pytest.raises(ValueError, match=message):
        Cost(np.array([0]), np.array([weight]), np.array(table))
