"""The largest product of loss and margin: tables and searches against enumeration."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from m3n.losses import Cost, Hamming, NormalizedHamming
from m3n.packed import Threads
from m3n.structures import Chain, HigherOrderChain, Multiclass, SemiMarkov, Structure, Tree
from m3n.structures import chain as chain_module
from m3n.structures import slack as slack_module
from m3n.structures.slack import InexactOracle, search
from tests.structures import test_higher_order_chain
from tests.structures.template import draw_theta
from tests.structures.test_chain import chains
from tests.structures.test_graph import cycle, graphs
from tests.structures.test_loopy import loopy_graphs
from tests.structures.test_semi_markov import segmentations
from tests.structures.test_tree import path, trees

SEARCHED = {
    "chains": chains(edges=False),
    "graphs": graphs(),
    "trees": trees(tables=True),
    "paths of graphs": loopy_graphs(),
    "segmentations": segmentations(),
    "higher orders": test_higher_order_chain.chains(sparse=True),
}


def labelled(draw, structure):
    """A gold output of every example."""
    return np.concatenate([draw(st.sampled_from(list(structure.enumerate(i)))) for i in range(structure.n)])


def integer_cost(structure, gold, random, unit=1.0):
    """Costs 0, 1, 2, 3 units, positions counted once or twice."""
    labels = structure.shapes[0][1]
    table = unit * random.integers(0, 4, size=(labels, labels))
    np.fill_diagonal(table, 0.0)
    return Cost(structure.labels_of(gold), random.integers(1, 3, size=len(gold)).astype(float), table)


def real_cost(structure, gold, random):
    """Costs without a common unit."""
    table = random.random((structure.shapes[0][1],) * 2)
    np.fill_diagonal(table, 0.0)
    return Cost(structure.labels_of(gold), random.random(len(gold)) + 0.5, table)


def draw_cost(draw, structure, gold, *more):
    kind = draw(st.sampled_from(["hamming", "normalised", "integer", "fractions", *more]))
    if kind == "hamming":
        return Hamming().cost(structure, gold)
    if kind == "normalised":
        return NormalizedHamming().cost(structure, gold)
    random = np.random.default_rng(draw(st.integers(0, 1000)))
    if kind == "real":
        return real_cost(structure, gold, random)
    return integer_cost(structure, gold, random, unit=1.0 if kind == "integer" else 1 / 7)


def products(structure, theta, gold, cost, i):
    """Loss times margin and loss of every output of example i, written out."""
    alone, rows = structure.select(np.array([i]))
    mine = tuple(array if row is None else array[row] for array, row in zip(theta, rows, strict=True))
    span = structure.entries_of(np.array([i]))
    own = cost.select(rows, [i])
    gold_score = alone.score(mine, gold[span])[0]
    for y in structure.enumerate(i):
        loss = own.expected(alone.encode(y))
        yield y, loss, loss * (1.0 + alone.score(mine, y)[0] - gold_score) if loss > 0 else 0.0


def check(structure, theta, gold, cost, answer):
    values, labelling, losses = answer
    for i in range(structure.n):
        known = list(products(structure, theta, gold, cost, i))
        span = structure.entries_of(np.array([i]))
        best = max(product for _, _, product in known)
        assert values[i] == pytest.approx(best, rel=1e-9, abs=1e-9)
        (attained,) = [(loss, product) for y, loss, product in known if np.array_equal(y, labelling[span])]
        assert losses[i] == pytest.approx(attained[0], rel=1e-12, abs=1e-12)
        assert values[i] == pytest.approx(attained[1], rel=1e-9, abs=1e-9)
        if best <= 0.0:
            assert np.array_equal(labelling[span], gold[span])


def allowed_theta(draw, structure, gold):
    """Scores with some -inf, but not on gold."""
    theta = draw_theta(draw, structure)
    if not np.isfinite(structure.score(theta, gold)).all():
        theta = tuple(np.where(np.isinf(array), 0.0, array) for array in theta)
    return theta


@pytest.mark.parametrize("edges", [False, True])
def test_chains_agree_with_enumeration(edges):
    @given(st.data())
    def run(data):
        structure = data.draw(chains(edges=edges))
        gold = labelled(data.draw, structure)
        cost, theta = draw_cost(data.draw, structure, gold), allowed_theta(data.draw, structure, gold)
        copy = tuple(array.copy() for array in theta)
        answer = structure.slack(theta, gold, cost)
        check(structure, theta, gold, cost, answer)
        for one, other in zip(answer, structure.slack(theta, gold, cost, Threads(3)), strict=True):
            np.testing.assert_array_equal(one, other)
        for one, other in zip(theta, copy, strict=True):
            np.testing.assert_array_equal(one, other)

    run()


@given(st.data())
def test_single_labels_agree_with_enumeration(data):
    structure = Multiclass(data.draw(st.integers(1, 5)), data.draw(st.integers(1, 4)))
    gold = labelled(data.draw, structure)
    cost, theta = draw_cost(data.draw, structure, gold), allowed_theta(data.draw, structure, gold)
    check(structure, theta, gold, cost, structure.slack(theta, gold, cost))


def test_a_table_needs_no_max_oracle(monkeypatch, random):
    """The dynamic programme is what answers, not the search."""
    structure = Chain([3, 2], 3)
    monkeypatch.setattr(Structure, "slack", None)
    gold = random.integers(3, size=5)
    theta = tuple(random.normal(size=shape) for shape in structure.shapes)
    cost = NormalizedHamming().cost(structure, gold)
    check(structure, theta, gold, cost, structure.slack(theta, gold, cost))


@pytest.mark.parametrize("kind", SEARCHED)
def test_the_search_agrees_with_enumeration(kind):
    """Losses with few and many values, forbidden parts; nothing is refused."""

    @given(st.data())
    def run(data):
        structure = data.draw(SEARCHED[kind])
        gold = labelled(data.draw, structure)
        cost, theta = draw_cost(data.draw, structure, gold, "real"), allowed_theta(data.draw, structure, gold)
        theta = tuple(data.draw(st.sampled_from([0.1, 1.0, 4.0])) * array for array in theta)
        check(structure, theta, gold, cost, search(structure, theta, gold, cost))

    run()


@pytest.fixture
def divisions(monkeypatch):
    """A list that gets the branches whenever outputs are divided."""
    found, plain, cut = [], Structure.branches, SemiMarkov.branches

    def branches(structure, one, other):
        found.append((cut if isinstance(structure, SemiMarkov) else plain)(structure, one, other))
        return found[-1]

    for kind in (Chain, Tree, HigherOrderChain, SemiMarkov):
        monkeypatch.setattr(kind, "branches", branches)
    return found


@pytest.mark.parametrize(
    "structure",
    [Chain([4], 3), Tree([5], 3, [path(5)]), SemiMarkov([4], 3, 2), HigherOrderChain([4], 3, 2)],
    ids=lambda structure: type(structure).__name__,
)
def test_optima_below_the_hull_are_found(structure, divisions):
    """Losses of many values: one example in three has to be divided, and a few divisions are enough."""
    for seed in range(30):
        random = np.random.default_rng(seed)
        theta = tuple(random.normal(size=shape) for shape in structure.shapes)
        gold = structure.hard(tuple(random.normal(size=shape) for shape in structure.shapes))[1]
        cost = real_cost(structure, gold, random)
        check(structure, theta, gold, cost, search(structure, theta, gold, cost))
    assert 5 <= len(divisions) <= 60


def test_costs_of_segments_alone(random, divisions):
    """Outputs may differ in their segments and have the same labels, here the only one."""
    structure = SemiMarkov([6], 1, 4)
    for _ in range(20):
        theta = tuple(random.normal(size=shape) for shape in structure.shapes)
        gold = structure.hard(tuple(random.normal(size=shape) for shape in structure.shapes))[1]
        costs = np.where(structure.encode(gold)[4] > 0, 0.0, random.random(structure.shapes[4]))
        cost = Cost.of_parts(structure, gold, {4: costs})
        check(structure, theta, gold, cost, search(structure, theta, gold, cost))
    assert sum(branches[0][0] == 4 for branches in divisions) >= 5


class Maximising(Multiclass):
    """A user's structure with nothing but a max-oracle; it counts its calls."""

    calls = 0
    slack = Structure.slack

    def hard(self, theta, threads=None):
        type(self).calls += self.n
        return super().hard(theta)

    def select(self, examples):
        return Maximising(len(np.arange(self.n)[examples]), self.labels), (examples,)


def test_two_losses_are_always_settled(random):
    """Losses 0 and 1 leave nothing between the corners."""
    structure = Maximising(200, 5)
    gold = random.integers(5, size=200)
    theta = (3.0 * random.normal(size=(200, 5)),)
    cost = Hamming().cost(structure, gold)
    Maximising.calls = 0
    check(structure, theta, gold, cost, search(structure, theta, gold, cost))
    assert Maximising.calls <= 4 * 200


def hidden(middle):
    """Margins 10, ``middle``, 1 at losses 1, 2, 5: products 10, 2 * middle, 5; the chord has 7.75 at loss 2."""
    theta = (np.array([[0.0, 9.0, middle - 1.0, 0.0]]),)
    table = np.array([[0.0, 1.0, 2.0, 5.0], [0.0] * 4, [0.0] * 4, [0.0] * 4])
    return Maximising(1, 4), theta, np.array([0]), Cost(np.array([0]), np.ones(1), table)


def test_an_optimum_below_the_hull_is_found():
    structure, theta, gold, cost = hidden(middle=7.0)
    values, labelling, losses = search(structure, theta, gold, cost)
    assert (values[0], labelling[0], losses[0]) == (14.0, 2, 2.0)


def test_outputs_that_cannot_be_divided_are_refused(monkeypatch):
    structure, theta, gold, cost = hidden(middle=7.0)
    monkeypatch.setattr(Maximising, "one_label_per_row", False)
    with pytest.raises(
        InexactOracle, match=r"example 0: .* margin 10, but cannot exclude .* 16\.5: Maximising.*`slack`"
    ):
        search(structure, theta, gold, cost)


def test_a_search_that_takes_too_long_is_given_up(monkeypatch):
    monkeypatch.setattr(slack_module, "MOST_CALLS", 6)
    structure, gold, refused = Tree([5], 3, [cycle(5)[:4]]), np.zeros(5, np.int64), 0
    for seed in range(40):
        random = np.random.default_rng(seed)
        theta = tuple(random.normal(size=shape) for shape in structure.shapes)
        cost = real_cost(structure, gold, random)
        best = max(product for *_, product in products(structure, theta, gold, cost, 0))
        try:
            assert search(structure, theta, gold, cost)[0][0] == pytest.approx(max(best, 0.0))
        except InexactOracle as refusal:
            refused += 1
            assert refusal.best - 1e-9 <= best <= refusal.bound + 1e-9
            assert "calls of the max-oracle were not enough; give the structure" in str(refusal)
    assert 0 < refused < 40


def test_an_optimum_on_the_hull_is_proven():
    structure, theta, gold, cost = hidden(middle=8.5)
    cost.table[0, 3] = 3.0  # nothing but losses 1, 2 and 3: the corner at 2 settles it
    values, labelling, losses = search(structure, theta, gold, cost)
    assert (values[0], labelling[0], losses[0]) == (17.0, 2, 2.0)


def test_losses_without_a_unit_are_left_to_the_search(random):
    structure, gold = Chain([2], 2), np.array([0, 1])
    theta = tuple(random.normal(size=shape) for shape in structure.shapes)
    cost = Cost(gold, np.array([1.0, np.sqrt(2.0)]), 1.0 - np.eye(2))
    assert structure.loss_units(cost) is None
    check(structure, theta, gold, cost, structure.slack(theta, gold, cost))


def test_a_table_that_is_too_large_is_refused(monkeypatch):
    monkeypatch.setattr(chain_module, "LARGEST_TABLE", 100)
    structure, gold = Chain([2, 9], 3), np.zeros(11, np.int64)
    theta = tuple(np.zeros(shape) for shape in structure.shapes)
    with pytest.raises(ValueError, match=r"sequence 1 needs a table of 9 positions x 10 losses x 3 labels.*shorter"):
        structure.slack(theta, gold, Hamming().cost(structure, gold))


@pytest.mark.parametrize("structure", [Chain([1, 4], 3), Multiclass(3, 3)])
def test_numbers_that_are_none_are_seen(structure):
    gold = np.zeros(structure.shapes[0][0], np.int64)
    theta = tuple(np.zeros(shape) for shape in structure.shapes)
    theta[0][-1] = np.nan
    cost = Hamming().cost(structure, gold)
    for answer in (structure.slack(theta, gold, cost), search(structure, theta, gold, cost)):
        assert np.isnan(answer[0][-1])
        assert np.isfinite(answer[0][:-1]).all()
