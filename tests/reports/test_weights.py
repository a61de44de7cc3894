from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse

from m3n.reports.weights import BEGIN, END, LABELS, MOST, TOP, attributes, transitions
from m3n.structures import Transitions
from tests.reports.pages import Page, fixed


def named(coef, names, **more):
    reader = SimpleNamespace(vectorizer=SimpleNamespace(names=names))
    classes = [f"L{k:03d}" for k in range(coef.shape[1])]
    return fixed([], classes=classes, coef_=coef, reader_=reader, **more)


def test_transitions_with_begin_and_end():
    table = np.array([[2.0, -1.0], [0.0, 0.001]])
    model = fixed([], classes=["A", "B"], transitions_=table, start_=np.array([0.5, -0.5]), end_=np.array([0.0, 1.0]))
    page = Page(transitions(model, []))
    heads = [th["text"] for th in page.all("th")]
    assert heads == ["A", "B", END, BEGIN, "A", "B"]
    cells = [td for td in page.all("td") if "tbody" in td["inside"]]
    assert [td["text"] for td in cells] == ["0.50", "−0.50", "", "2.00", "−1.00", "0", "0", "0", "1.00"]
    styles = [td["attributes"].get("class") for td in cells]
    assert styles == ["blue-2", "orange-2", None, "blue-6", "orange-3", None, None, None, "blue-3"]
    assert cells[3]["attributes"]["title"] == "A → A: 2"


def test_forbidden_transitions_are_marked():
    labels = ["B-x", "I-x", "O"]
    model = fixed([], classes=labels, transitions_=np.ones((3, 3)), constraints_=Transitions.iob(labels))
    page = Page(transitions(model, []))
    assert [td["text"] for td in page.all("td") if "tbody" in td["inside"]].index("×") == 7
    assert "forbidden" in page.texts("p")[0]


def test_forbidden_begins_and_ends_are_marked():
    labels = ["B-x", "E-x", "O"]
    ends = {"start_": np.ones(3), "end_": np.ones(3)}
    model = fixed([], classes=labels, transitions_=np.ones((3, 3)), constraints_=Transitions.bioes(labels), **ends)
    page = Page(transitions(model, []))
    rows = [row["text"] for row in page.all("tr")[1:]]
    assert rows == ["(begin)1.00×1.00", "B-x×1.00××", "E-x1.00×1.001.00", "O1.00×1.001.00"]


def test_of_many_labels_the_most_frequent_are_shown():
    model = fixed([], classes=list(range(100)), transitions_=np.zeros((100, 100)))
    gold = [[k] * (k % 50) for k in range(100)]
    page = Page(transitions(model, gold))
    shown = [int(th["text"]) for th in page.all("th") if "thead" in th["inside"]]
    seen = sorted(((k % 50, k) for k in range(100)), key=lambda pair: -pair[0])[:MOST]
    assert shown == sorted(k for _, k in seen)
    assert f"The {MOST} most frequent of 100 labels" in page.texts("p")[0]


@pytest.mark.parametrize("model", [fixed([]), fixed([["A"]], pairs_=np.zeros((4, 2)))])
def test_models_without_transitions(model):
    assert "no scores for pairs" in transitions(model, [])


@pytest.mark.parametrize("kind", [np.asarray, scipy.sparse.csr_array])
def test_largest_weights_of_either_sign(random, kind):
    coef = random.normal(size=(60, 3)) * (random.uniform(size=(60, 3)) < 0.5)
    names = [f"<a{k}>" for k in range(60)]
    page = Page(attributes(named(kind(coef), names), []))
    codes = page.texts("code")
    expected = []
    for column in coef.T:
        order = np.argsort(column)
        expected += [names[k] for k in order[::-1][:TOP]] + [names[k] for k in order[:TOP]]
    assert codes == expected


def test_few_weights_of_one_sign():
    page = Page(attributes(named(np.array([[1.0, 0.0], [0.5, 0.0]]), ["a", "b"]), []))
    assert page.texts("code") == ["a", "b"]
    assert [td["text"] for td in page.all("td")][1:] == ["–", "–", "–"]


def test_many_labels_and_attributes_without_names():
    coef = np.ones((2, 150))
    assert len(Page(attributes(named(coef, ["a", "b"]), [])).all("tr")) == LABELS + 1
    assert "have no names" in attributes(named(coef, None), [])
    assert "have no names" in attributes(fixed([["A"]], coef_=np.ones((2, 1))), [])
    assert "by a kernel" in attributes(fixed([["A"]]), [])
