"""J of weights by name, against a sum over all labellings."""

from itertools import pairwise, product

import numpy as np
import pytest

from benchmarks import datasets
from benchmarks.judge import Judge
from benchmarks.objectives import CRF, Margin, objective
from benchmarks.solvers.pystruct import marked, read
from benchmarks.solvers.words import Model, features, size
from benchmarks.weights import Weights

SENTENCES = [
    ([["a", "b"], ["b"], ["c"]], ["X", "Y", "X"]),
    ([["c", "a"], ["a"]], ["Y", "Y"]),
]


class Tiny(datasets.Dataset):
    name, measure, larger_is_better = "tiny", "none", True

    @classmethod
    def prepare(cls, folder, limit):
        return cls("", "", "", "")

    def sentences(self, path):
        return iter(SENTENCES)

    def score(self, gold, found):
        return 0.0


@pytest.fixture
def weights():
    random = np.random.default_rng(3)
    states = {(a, y): random.normal() for a in "abc" for y in "XY" if (a, y) != ("b", "Y")}
    return Weights(states, {("X", "Y"): random.normal(), ("Y", "Y"): random.normal()})


def score(weights, rows, labels):
    states = sum(weights.states.get((a, y), 0.0) for row, y in zip(rows, labels, strict=True) for a in row)
    return states + sum(weights.transitions.get(pair, 0.0) for pair in pairwise(labels))


def enumerated(weights, task):
    total = 0.0
    for rows, gold in SENTENCES:
        every = list(product("XY", repeat=len(gold)))
        values = np.array([score(weights, rows, y) for y in every]) - score(weights, rows, gold)
        errors = np.array([sum(a != b for a, b in zip(y, gold, strict=True)) for y in every])
        if isinstance(task, CRF):
            total += np.log(np.exp(values).sum())
        else:
            total += (values + errors / (len(gold) if task.loss == "normalized_hamming" else 1)).max()
    values = np.array([v for table in (weights.states, weights.transitions) for v in table.values()])
    return total / 2 + task.lam(2) / 2 * (values**2).sum() + task.l1(2) * np.abs(values).sum()


@pytest.mark.parametrize("task", [CRF(c2=0.3), CRF(c2=0.1, c1=0.4), Margin(), Margin(0.2, "hamming")])
def test_objective_is_that_of_all_labellings(weights, task):
    assert Judge(Tiny.prepare(None, None)).objective(task, weights) == pytest.approx(
        enumerated(weights, task), rel=1e-12
    )


def test_crfsuites_objective_is_ours_times_n():
    assert CRF(c2=1.5).lam(10) == pytest.approx(0.3)  # n lam/2 |w|^2 = c2 |w|^2
    assert CRF(c2=1.5, c1=0.5).l1(10) == pytest.approx(0.05)


@pytest.mark.parametrize("task", [CRF(0.5, "all"), CRF(c2=0.1, c1=0.1), Margin(0.1, "hamming")])
def test_objectives_survive_the_request(task):
    assert objective(task.request()) == task


@pytest.fixture
def image():
    return np.random.default_rng(0).integers(0, 2, size=(4, 129)).astype(float)


def test_oracle_for_rivals_finds_the_best_labelling(image):
    random = np.random.default_rng(1)
    w, cost = random.normal(size=size(3)), random.random((4, 3))

    def value(y):
        return w @ features(image, np.array(y), 3) + cost[np.arange(4), y].sum()

    best = max(product(range(3), repeat=4), key=value)
    assert Model.of(w, 3).best(image, cost).tolist() == list(best)


def test_weights_by_name_give_the_same_score(image, tmp_path):
    random = np.random.default_rng(2)
    w, letters = random.normal(size=size(3)), np.array([2, 0, 1, 1])
    np.savez(tmp_path / "word.npz", pixels=image, letters=letters, offsets=np.array([0, 4]))
    data = datasets.Words(str(tmp_path / "word.npz"), "", "", "")
    ((rows, labels),) = data.sentences(data.train)
    weights = Model.of(w, 3).weights(["0", "1", "2"])
    assert score(weights, rows, labels) == pytest.approx(w @ features(image, letters, 3), rel=1e-12)


def test_pystructs_layout(image):
    random = np.random.default_rng(4)
    node, follows = random.normal(size=(3, 131)), random.normal(size=(3, 3))
    model, letters = read(np.concatenate([node.ravel(), follows.ravel()]), 3), [1, 2, 0, 0]
    own = (marked(image) * node[letters]).sum() + sum(follows[pair] for pair in pairwise(letters))
    ours = [model.node.ravel(), model.transitions.ravel(), model.start, model.end]
    assert np.concatenate(ours) @ features(image, np.array(letters), 3) == pytest.approx(own, rel=1e-12)
