"""The largest product of loss and margin: tables and searches against enumeration."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from m3n.backends import Threads
from m3n.losses import Cost, Hamming, NormalizedHamming
from m3n.structures import Chain, Multiclass, Structure
from m3n.structures import chain as chain_module
from m3n.structures.slack import InexactOracle, search
from tests.structures.template import draw_theta
from tests.structures.test_chain import chains


def labelled(draw, structure):
    """A gold output of every example."""
    return np.concatenate([draw(st.sampled_from(list(structure.enumerate(i)))) for i in range(structure.n)])


def integer_cost(structure, gold, random, unit=1.0):
    """Costs 0, 1, 2, 3 units, positions counted once or twice."""
    labels = structure.shapes[0][1]
    table = unit * random.integers(0, 4, size=(labels, labels))
    np.fill_diagonal(table, 0.0)
    return Cost(gold, random.integers(1, 3, size=len(gold)).astype(float), table)


def draw_cost(draw, structure, gold):
    kind = draw(st.sampled_from(["hamming", "normalised", "integer", "fractions"]))
    if kind == "hamming":
        return Hamming().cost(structure, gold)
    if kind == "normalised":
        return NormalizedHamming().cost(structure, gold)
    random = np.random.default_rng(draw(st.integers(0, 1000)))
    return integer_cost(structure, gold, random, unit=1.0 if kind == "integer" else 1 / 7)


def products(structure, theta, gold, cost, i):
    """Loss times margin and loss of every output of example i, written out."""
    alone, rows = structure.select(np.array([i]))
    mine = tuple(array if row is None else array[row] for array, row in zip(theta, rows, strict=True))
    span = structure.rows_of_labelling(np.array([i]))
    own = cost.select(span)
    gold_score = alone.score(mine, gold[span])[0]
    for y in structure.enumerate(i):
        loss = own.expected(alone.encode(y))
        yield y, loss, loss * (1.0 + alone.score(mine, y)[0] - gold_score) if loss > 0 else 0.0


def check(structure, theta, gold, cost, answer):
    values, labelling, losses = answer
    for i in range(structure.n):
        known = list(products(structure, theta, gold, cost, i))
        span = structure.rows_of_labelling(np.array([i]))
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


@given(st.data())
def test_the_search_is_exact_or_refuses(data):
    """On chains, with and without a unit: a refusal is right about what it found and what it cannot exclude."""
    structure = data.draw(chains(edges=False))
    gold = labelled(data.draw, structure)
    cost, theta = draw_cost(data.draw, structure, gold), allowed_theta(data.draw, structure, gold)
    if data.draw(st.booleans()):  # no unit
        weight = np.random.default_rng(data.draw(st.integers(0, 99))).random(len(gold)) + 0.5
        cost = Cost(gold, weight, cost.table)
    try:
        answer = search(structure, theta, gold, cost)
    except InexactOracle as refusal:
        best = max(product for *_, product in products(structure, theta, gold, cost, refusal.example))
        assert refusal.best - 1e-9 <= best <= refusal.bound + 1e-9
        assert f"example {refusal.example}:" in str(refusal)
    else:
        check(structure, theta, gold, cost, answer)


def test_the_search_mostly_answers(random):
    """Hamming loss on chains of random scores: the share that is refused stays small."""
    structure = Chain([4], 3)
    refused = 0
    for _ in range(200):
        gold = random.integers(3, size=4)
        theta = tuple(random.normal(size=shape) for shape in structure.shapes)
        cost = Hamming().cost(structure, gold)
        try:
            values, _, _ = search(structure, theta, gold, cost)
        except InexactOracle:
            refused += 1
        else:
            np.testing.assert_allclose(values, structure.slack(theta, gold, cost)[0], rtol=1e-9)
    assert 0 < refused <= 20


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


def test_an_optimum_below_the_hull_is_refused():
    structure, theta, gold, cost = hidden(middle=7.0)
    with pytest.raises(InexactOracle, match=r"example 0: .* margin 10, but cannot exclude one of up to 16\.5.*`slack`"):
        search(structure, theta, gold, cost)
    assert Multiclass.slack(structure, theta, gold, cost)[0][0] == 14.0


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
