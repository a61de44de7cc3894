"""Every loss against the same loss in plain Python; names of labels; what is refused."""

import numpy as np
import pytest
from sklearn.utils.class_weight import compute_class_weight

from m3n.checks import check_problem
from m3n.compiled.maps import costs as compiled_costs
from m3n.losses import Cost, CostMatrix, EdgeHamming, Hamming, NoLoss, NormalizedHamming
from m3n.packed import Threads
from m3n.problem.blocks import Blocks
from m3n.structures import Chain, Multiclass
from tests.losses.cases import CASES, CLASSES, GOLD, LABELS, LENGTHS, MATRIX, POSITIONS, problem_with

CHAIN = Chain(LENGTHS, LABELS, edges=True)
PACKED = CHAIN.pack(GOLD)
WEIGHTS = np.array([0.5, 2.0, 1.0, 0.5])


def outputs():
    """Every example, its part of the chain, where its rows are, and every output."""
    for i in range(CHAIN.n):
        alone, rows = CHAIN.select(np.array([i]))
        for y in CHAIN.enumerate(i):
            yield i, alone, rows, y


@pytest.mark.parametrize("name", CASES)
def test_cost_is_the_loss_of_every_output(name):
    loss, by_hand = CASES[name]
    cost = loss.cost(CHAIN, PACKED).checked(CHAIN, PACKED)
    for i, alone, rows, y in outputs():
        expected, parts, mine = by_hand(i, GOLD[i], y), alone.encode(y), cost.select(rows, [i])
        assert mine.expected(parts) == pytest.approx(expected)
        theta = tuple(np.zeros(shape) for shape in alone.shapes)
        mine.add_to(theta, 2.0)
        assert sum(float((a * b).sum()) for a, b in zip(theta, parts, strict=True)) == pytest.approx(2.0 * expected)
        assert mine.worst().sum() >= expected - 1e-12


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["once each", "weighted"])
def test_blocks_see_the_same_loss(name, weights):
    loss, by_hand = CASES[name]
    problem = problem_with(loss)
    blocks = Blocks(problem.structure, problem.features, problem.cost, problem.gold, weights)
    for i, alone, _, y in outputs():
        expected = by_hand(i, GOLD[i], y) * (1.0 if weights is None else weights[i])
        listed, counts = alone.local_parts(y)
        indicator = np.concatenate([part.ravel() for part in alone.encode(y)])
        theta = np.zeros(len(indicator))
        compiled_costs.add_costs(blocks.costs, i, theta, -2.0)
        assert compiled_costs.loss_of(blocks.costs, i, listed[0], counts[0]) == pytest.approx(expected)
        assert compiled_costs.expected_costs(blocks.costs, i, indicator) == pytest.approx(expected)
        assert theta @ indicator == pytest.approx(-2.0 * expected)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("temperature", [0.0, 0.7])
def test_problems_against_enumeration(name, temperature):
    check_problem(problem_with(CASES[name][0], temperature=temperature))


@pytest.mark.parametrize("loss", [Hamming(), NormalizedHamming(), Hamming({1: 4.0}), NormalizedHamming({1: 4.0})])
def test_single_labels(loss):
    structure, gold = Multiclass(4, 3), np.array([0, 1, 2, 1])
    cost = loss.cost(structure, gold)
    for label in range(3):
        theta = structure.encode(np.full(4, label))
        expected = sum((4.0 if loss.class_weight and g == 1 else 1.0) for g in gold if g != label)
        assert cost.expected(theta) == pytest.approx(expected)


def test_weights_of_single_labels_may_be_numbers():
    cost = Hamming(position_weight=[0.5, 2.0]).cost(Multiclass(2, 3), np.array([0, 1]))
    np.testing.assert_array_equal(cost.weight, [0.5, 2.0])


def test_balanced_is_that_of_scikit_learn():
    gold = np.array([0, 0, 0, 1, 1, 3, 3, 3])
    expected = compute_class_weight("balanced", classes=np.array([0, 1, 3]), y=gold)
    cost = Hamming("balanced").cost(Chain([5, 3], 4), gold)
    np.testing.assert_allclose(cost.weight, expected[np.searchsorted([0, 1, 3], gold)])


@pytest.mark.parametrize("name", ["weighted", "sum of all"])
def test_threads_agree(name, random):
    cost = CASES[name][0].cost(CHAIN, PACKED)
    one = tuple(random.normal(size=shape) for shape in CHAIN.shapes)
    two = tuple(array.copy() for array in one)
    cost.add_to(one, 0.5)
    cost.add_to(two, 0.5, Threads(3))
    for a, b in zip(one, two, strict=True):
        np.testing.assert_array_equal(a, b)
    assert cost.expected(one) == pytest.approx(cost.expected(one, Threads(3)))


def test_names_become_numbers():
    names = np.array(["A", "B", "C"])
    table = CostMatrix({("A", "C"): 5.0, ("B", "A"): 0.0}, default=2.0).bind(names).cost(CHAIN, PACKED).table
    np.testing.assert_array_equal(table, [[0.0, 2.0, 5.0], [0.0, 0.0, 2.0], [2.0, 2.0, 0.0]])
    for loss in (Hamming({"B": 7.0}), 1.0 * Hamming({"B": 7.0}) + NoLoss()):
        np.testing.assert_array_equal(
            loss.bind(names).cost(CHAIN, PACKED).weight, np.where(np.concatenate(GOLD) == 1, 7.0, 1.0)
        )
    loss = EdgeHamming()
    assert loss.bind(names) is loss
    numbers = Hamming({7: 2.0}).bind([5, 7, 9]).cost(CHAIN, PACKED)  # names that are numbers are names all the same
    np.testing.assert_array_equal(numbers.weight, np.where(np.concatenate(GOLD) == 1, 2.0, 1.0))


@pytest.mark.parametrize("loss", [Hamming({"X": 1.0}), CostMatrix({("A", "X"): 1.0}), 2 * Hamming({"X": 1.0})])
def test_unknown_names_are_refused(loss):
    with pytest.raises(ValueError, match=r"names the label 'X', which does not exist; the labels are 'A', 'B', 'C'"):
        loss.bind(np.array(["A", "B", "C"]))


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        (Hamming({3: 1.0}), r"label 3, which does not exist; the labels are 0, 1, 2"),
        (Hamming([1.0, 2.0]), r"one number per label, shape \(3,\), got \(2,\)"),
        (Hamming([1.0, -2.0, 1.0]), r"class_weight\[1\] is -2.0"),
        (Hamming([1.0, 2.0, np.inf]), r"class_weight\[2\] is inf"),
        (Hamming("balance"), "\"balanced\" or None, got 'balance'"),
        (Hamming(position_weight=POSITIONS[:3]), "4 examples, got 3"),
        (NormalizedHamming(position_weight=(*POSITIONS[:3], [1.0])), r"position_weight\[3\] must have .* 4, got"),
        (Hamming(position_weight=([-1.0], *POSITIONS[1:])), r"position_weight\[0\]\[0\] is -1.0"),
        (Hamming(position_weight=(*POSITIONS[:3], [1, 1, np.nan, 1])), r"position_weight\[3\]\[2\] is nan"),
        (CostMatrix(np.ones((2, 2))), r"each pair of 3 labels, got shape \(2, 2\)"),
        (CostMatrix(MATRIX + np.eye(3)), r"table\[0, 0\] is 1.0; set it to 0"),
        (CostMatrix({(1, 1): 0.5}), r"table\[1, 1\] is 0.5"),
        (CostMatrix({(1, 0): -0.5}), r"must not be negative: table\[1, 0\] is -0.5"),
        (CostMatrix({"ab": 0.5}), "pairs .right, predicted. to costs, got the key 'ab'"),
    ],
)
def test_settings_that_make_no_sense(loss, message):
    with pytest.raises(ValueError, match=message):
        loss.cost(CHAIN, PACKED)


def test_pairs_need_an_array_of_pairs():
    with pytest.raises(ValueError, match=r"take Chain\(..., edges=True\) and NoFeatures"):
        problem_with(EdgeHamming(), edges=False)


def test_who_needs_edges():
    assert (Hamming() + EdgeHamming()).needs_edges
    assert not (Hamming() + CostMatrix(MATRIX)).needs_edges


@pytest.mark.parametrize("factor", [-1.0, np.nan, np.inf])
def test_factors_that_make_no_sense(factor):
    with pytest.raises(ValueError, match="finite number that is not negative"):
        factor * Hamming()


def test_what_can_be_added():
    with pytest.raises(TypeError):
        Hamming() + 1.0
    with pytest.raises(ValueError, match="different gold outputs cannot be added"):
        Hamming().cost(CHAIN, PACKED) + Hamming().cost(CHAIN, 2 - PACKED)


def test_sums_keep_tables_where_they_can():
    """What a table can say is not written out."""
    cost = (Hamming() + 3.0 * Hamming(CLASSES)).cost(CHAIN, PACKED)
    assert cost.parts == ()
    np.testing.assert_array_equal(cost.weight, 1.0 + 3.0 * np.array(CLASSES)[PACKED])
    cost = (Hamming() + CostMatrix(MATRIX)).cost(CHAIN, PACKED)
    assert cost.parts == ()
    np.testing.assert_array_equal(cost.table, MATRIX + 1.0 - np.eye(3))
    cost = (EdgeHamming() + CostMatrix(MATRIX)).cost(CHAIN, PACKED)
    assert cost.parts[0] is None
    np.testing.assert_array_equal(cost.table, MATRIX)


@pytest.mark.parametrize(
    ("table", "weight", "message"),
    [
        ([[0.0, 1.0], [1.0, 0.5]], 1.0, "diagonal is not zero"),
        ([[0.0, -1.0], [1.0, 0.0]], 1.0, r"must not be negative: table\[0, 1\] is -1.0"),
        ([[0.0, 1.0], [1.0, 0.0]], -1.0, r"must not be negative: weight\[0\]"),
        ([[0.0, np.nan], [1.0, 0.0]], 1.0, r"must be finite: table\[0, 1\]"),
    ],
)
def test_improper_tables_are_refused(table, weight, message):
    with pytest.raises(ValueError, match=message):
        Cost(np.array([0]), np.array([weight]), np.array(table))


def improper(change, where=(4, (3, 1, 1))):
    """Costs of pairs, one of them changed."""
    k, at = where
    cost = EdgeHamming().cost(CHAIN, PACKED)
    parts = [None if part is None else part.copy() for part in cost.parts]
    parts[k][at] = change
    return Cost(cost.gold, cost.weight, cost.table, tuple(parts)).checked(CHAIN, PACKED)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (0.5, "example 3: the loss of the right output is 0.5, but must be 0; let the parts"),
        (np.nan, r"must be finite: parts\[4\]\[3, 1, 1\] is nan"),
        (-1.0, r"must not be negative: parts\[4\]\[3, 1, 1\] is -1.0; replace it"),
    ],
)
def test_improper_costs_of_parts_are_refused(change, message):
    improper(0.0)  # pair 3 is the first of example 3, whose right labels are 1 and 1
    with pytest.raises(ValueError, match=message):
        improper(change)


@pytest.mark.parametrize(
    ("cost", "message"),
    [
        (Cost(PACKED[1:], np.ones(9), 1 - np.eye(3)), r"gold must have shape \(10,\), got \(9,\)"),
        (Cost((PACKED + 1) % 3, np.ones(10), 1 - np.eye(3)), r"at row 0 that is 2, but the Cost was made for 0"),
        (Cost(PACKED, np.ones(9), 1 - np.eye(3)), r"weight must have shape \(10,\), got \(9,\)"),
        (Cost(PACKED, np.ones(10), 1 - np.eye(4)), r"table must have shape \(3, 3\), got \(4, 4\)"),
        (Cost.of_parts(CHAIN, PACKED, {4: np.zeros((5, 3, 3))}), r"parts\[4\] must have shape \(6, 3, 3\)"),
        (Cost.of_parts(CHAIN, PACKED, {1: np.zeros((3, 3))}), "array 1 of theta is shared by all examples"),
        (Cost(PACKED, np.ones(10), 1 - np.eye(3), (np.ones((10, 3)),)), "example 0: the loss of the right output"),
        (Cost(PACKED, np.ones(10), 1 - np.eye(3), (None,) * 5 + (np.ones(3),)), "costs of 6 arrays, but theta has 5"),
    ],
)
def test_costs_that_do_not_fit_are_refused(cost, message):
    class Own(Hamming):
        def cost(self, structure, gold):
            return cost

    with pytest.raises(ValueError, match=message):
        problem_with(Own())


def test_selections_need_the_rows_of_all_arrays():
    with pytest.raises(ValueError, match="costs of 5 arrays of theta need the rows of each, got 1"):
        EdgeHamming().cost(CHAIN, PACKED).select((slice(0, 1),), [0])
