"""Explanations against the scores of labellings that are written out from weights and names."""

import dataclasses
import json
from itertools import pairwise, product

import numpy as np
import pytest
import scipy.sparse

import m3n
from m3n.features import Templates
from m3n.structures import Transitions

LABELS = ("A", "B", "C")
TEMPLATES = Templates(["U0:%x[0,0]", "U1:%x[-1,0]/%x[0,0]", "B0:%x[0,0]", "B1:%x[-1,0]/%x[0,0]"])


def strings(kind, count=12, seed=0):
    """Short sequences of inputs of some kind, and labels that have to do with them."""
    random = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(count):
        letters = random.integers(3, size=int(random.integers(1, 5)))
        noise = random.normal(size=len(letters)).round(2)
        X.append(sequence(kind, letters, noise))
        y.append([LABELS[(letter + (v > 1.0)) % 3] for letter, v in zip(letters, noise, strict=True)])
    return X, y


def sequence(kind, letters, noise):
    dense = np.column_stack([np.eye(3)[letters], noise, np.zeros(len(letters))])
    makers = {
        "dense": lambda: dense,
        "sparse": lambda: scipy.sparse.csr_array(dense),
        "dicts": lambda: [
            {"letter": "xyz"[k], "noise": float(v), "high": bool(v > 1.0)} for k, v in zip(letters, noise, strict=True)
        ],
        "columns": lambda: [("xyz"[k],) for k in letters],
    }
    return makers[kind]()


def active(model, x, t):
    """Names and values of the attributes of a position, from the inputs themselves."""
    kind = model.reader_.kind
    if kind in ("dense", "sparse"):
        row = np.asarray(x.toarray() if kind == "sparse" else x)[t]
        return {f"x{j}": value for j, value in enumerate(row) if value}
    if kind == "attributes":
        token = x[t]
        flags = {"high": 1.0} if token["high"] else {}
        return {f"letter={token['letter']}": 1.0, "noise": token["noise"]} | flags
    before = "_B-1" if t == 0 else x[t - 1][0]
    return {f"U0:{x[t][0]}": 1.0, f"U1:{before}/{x[t][0]}": 1.0}


def dense(matrix):
    return matrix.toarray() if scipy.sparse.issparse(matrix) else np.asarray(matrix)


def written_out(model, x, labels):
    """The score of a labelling: (position, name) to what it adds."""
    vectorizer = model.reader_.vectorizer
    names = vectorizer.names if vectorizer else [f"x{j}" for j in range(model.n_features_in_)]
    coef = dense(model.coef_)
    number = [model.classes_.tolist().index(label) for label in labels]
    found = {(0, "first"): model.start_[number[0]]}
    found[len(labels) - 1, "last"] = model.end_[number[-1]]
    for t, k in enumerate(number):
        for name, value in active(model, x, t).items():
            if name in names:
                found[t, name] = value * coef[names.index(name), k]
        if t and model.edge_coef_ is not None:
            edge = dense(model.edge_coef_).reshape(-1, 3, 3) if model.observed_only else model.edge_coef_
            for name in (f"B0:{x[t][0]}", f"B1:{x[t - 1][0]}/{x[t][0]}"):
                if name in vectorizer.pair_names:
                    found[t, name] = edge[vectorizer.pair_names.index(name), number[t - 1], k]
        if t:
            found[t, f"after {labels[t - 1]}"] = model.transitions_[number[t - 1], k]
    return found


def fitted(kind, **settings):
    settings = {"templates": TEMPLATES} | settings if kind == "columns" else settings
    X, y = strings(kind)
    return m3n.SequenceTagger(**{"n_jobs": 1, "tol": 1e-2, "lam": 0.05, **settings}).fit(X, y)


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        ("dense", {}),
        ("dense", {"objective": "crf", "boundaries": False}),
        ("sparse", {}),
        ("sparse", {"observed_only": True}),
        ("dicts", {"objective": "crf"}),
        ("dicts", {"observed_only": True}),
        ("columns", {}),
        ("columns", {"observed_only": True, "objective": "crf"}),
    ],
)
def test_contributions_are_the_terms_of_the_score(kind, settings):
    model = fitted(kind, **settings)
    X, _ = strings(kind, count=3, seed=1)
    for x, predicted in zip(X, model.predict(X), strict=True):
        every = {y: sum(written_out(model, x, y).values()) for y in product(LABELS, repeat=len(predicted))}
        partition = np.logaddexp.reduce(list(every.values()))
        for labels in (predicted, list("CAB" * 2)[: len(predicted)]):
            explanation = model.explain(x, labels, top=None)
            terms = written_out(model, x, labels)
            assert explanation.labels == labels
            assert explanation.score == pytest.approx(every[tuple(labels)], abs=1e-12)
            assert explanation.score == pytest.approx(sum(p.score for p in explanation.positions), abs=1e-12)
            assert explanation.probability == pytest.approx(np.exp(every[tuple(labels)] - partition))
            check_rival(explanation, every)
            for position in explanation.positions:
                check_position(position, model, x, labels, terms, every, partition)


def check_rival(explanation, every):
    best = max(score for y, score in every.items() if list(y) != explanation.labels)
    assert explanation.rival_score == pytest.approx(best)
    assert every[tuple(explanation.rival)] == pytest.approx(best)
    assert explanation.rival != explanation.labels
    assert explanation.margin == pytest.approx(explanation.score - best)


def check_position(position, model, x, labels, terms, every, partition):
    t = position.number
    here = {name: score for (place, name), score in terms.items() if place == t}
    found = {c.name: c.score for c in position.contributions}
    assert len(found) == len(position.contributions)
    assert {name: score for name, score in found.items() if score} == {
        name: pytest.approx(score, abs=1e-12) for name, score in here.items() if score
    }
    assert {c.name: c.value for c in position.contributions if c.kind == "attribute"}.items() <= active(
        model, x, t
    ).items()
    assert position.score == pytest.approx(sum(here.values()), abs=1e-12)
    assert position.probability == pytest.approx(
        sum(np.exp(score - partition) for y, score in every.items() if y[t] == labels[t])
    )
    changed = {label: every[(*labels[:t], label, *labels[t + 1 :])] for label in LABELS}
    own = changed.pop(labels[t])
    assert position.other == max(changed, key=changed.get)
    assert position.margin == pytest.approx(own - changed[position.other], abs=1e-12)
    both = [*position.contributions, *position.after]
    assert position.margin == pytest.approx(sum(c.difference for c in both), abs=1e-12)
    swapped = written_out(model, x, [*labels[:t], position.other, *labels[t + 1 :]])
    for c in position.contributions:
        assert c.other == pytest.approx(swapped.get((t, c.name), 0.0), abs=1e-12)
    if t + 1 < len(labels):
        (after,) = (c for c in position.after if c.kind == "transition")
        assert after.name == f"before {labels[t + 1]}"
        assert after.score == pytest.approx(terms[t + 1, f"after {labels[t]}"])
    else:
        assert position.after == []


@pytest.mark.parametrize(
    ("settings", "kind", "name"),
    [
        ({"kernel": "rbf", "gamma": 0.5}, "support", "support["),
        ({"kernel": "poly", "degree": 2, "approximation": "nystroem", "components": 5}, "support", "support["),
        ({"kernel": "rbf", "gamma": 0.5, "approximation": "random", "components": 7}, "feature", "feature["),
    ],
)
def test_kernel_models_are_explained_by_the_inputs_that_count(settings, kind, name):
    model = fitted("dense", **settings)
    x = strings("dense", count=1, seed=5)[0][0]
    explanation = model.explain(x, top=2)
    score = model.predict_k_best([x], 1)[0][0][1]
    assert explanation.score == pytest.approx(score, abs=1e-12)
    for position in explanation.positions:
        first, second, *_ = position.contributions
        assert first.kind == second.kind == kind
        assert first.name.startswith(name)
        assert abs(first.difference) >= abs(second.difference)
    number = int(first.name.removeprefix(name).rstrip("]"))
    k = model.classes_.tolist().index(explanation.labels[-1])
    if settings["kernel"] == "rbf" and kind == "support":
        inputs = dense(model.kernel_model_.inputs)[number]
        value = np.exp(-0.5 * np.sum((inputs - x[-1]) ** 2))
        assert first.value == pytest.approx(value)
        assert first.score == pytest.approx(value * model.kernel_model_.coefficients[number, k])


def test_a_precomputed_kernel_names_training_positions():
    X, y = strings("dense")
    flat = np.concatenate(X)
    values = [x @ flat.T for x in X]
    model = m3n.SequenceTagger(kernel="precomputed", n_jobs=1, tol=1e-2).fit(values, y)
    explanation = model.explain(values[0], top=None)
    assert explanation.score == pytest.approx(model.predict_k_best(values[:1], 1)[0][0][1])
    for c in explanation.positions[0].contributions:
        if c.kind == "support":
            assert c.value == pytest.approx(values[0][0, int(c.name.removeprefix("training[").rstrip("]"))])


def test_top_adds_up_what_it_leaves_out():
    model, x = fitted("dense"), strings("dense", count=1, seed=2)[0][0]
    whole, short, none = (model.explain(x, top=top) for top in (None, 1, 0))
    assert short.score == pytest.approx(whole.score)
    assert none.score == pytest.approx(whole.score)
    for all_of_it, some in zip(whole.positions, short.positions, strict=True):
        assert [c.kind for c in some.contributions[:2]] == ["attribute", "rest"]
        listed = [c for c in all_of_it.contributions if c.kind == "attribute"]
        assert some.contributions[0] == max(listed, key=lambda c: abs(c.difference))
        rest = some.contributions[1]
        assert rest.name == f"{len(listed) - 1} other{'s' * (len(listed) > 2)}"
        assert rest.score == pytest.approx(sum(c.score for c in listed[1:]))
        assert rest.other == pytest.approx(sum(c.other for c in listed[1:]))
    assert none.positions[0].contributions[0].kind == "rest"


def test_constraints_leave_out_other_labels():
    pairs = [("A", "A"), ("A", "C"), ("B", "B"), ("C", "A"), ("C", "B"), ("C", "C"), ("B", "A")]
    X = [[["a"], ["b"], ["c"]], [["a"], ["b"]]]
    y = [["A", "B", "C"], ["A", "B"]]
    constraints = Transitions.forbid(LABELS, pairs)
    model = m3n.SequenceTagger(constraints=constraints, n_jobs=1).fit(X, y)
    explanation = model.explain(X[0], ["A", "B", "C"])
    middle = explanation.positions[1]
    assert middle.other is None
    assert middle.margin is None
    assert middle.other_probability is None
    assert {c.other for c in middle.contributions} == {None}
    assert "no other label is possible here" in str(explanation)
    assert "none possible" in explanation._repr_html_()
    assert explanation.rival is None
    assert "no other labels are possible" in str(explanation)
    with pytest.raises(ValueError, match=r"position 1: the model's constraints do not allow 'C' here.*explain labels"):
        model.explain(X[0], ["A", "C", "C"])


def test_the_other_label_may_stand_between_its_neighbours():
    """Some labels may not stand beside some others, in one order only."""
    X, y = [["a", "b", "c"], ["c", "a"], ["b", "b"]], [["A", "B", "C"], ["C", "A"], ["B", "B"]]
    constraints = Transitions.forbid(LABELS, [("A", "C"), ("B", "A"), ("C", "B")])
    model = m3n.SequenceTagger(constraints=constraints, n_jobs=1).fit([[[word] for word in x] for x in X], y)
    x = [["c"], ["a"], ["b"], ["c"]]
    allowed = [y for y in product(LABELS, repeat=4) if constraints.allows(y)]
    every = {y: sum(terms_of_words(model, x, y)) for y in allowed}
    for labels in allowed:
        for t, position in enumerate(model.explain(x, list(labels)).positions):
            swaps = [(*labels[:t], label, *labels[t + 1 :]) for label in LABELS if label != labels[t]]
            possible = {y[t]: every[y] for y in swaps if y in every}
            assert (position.other is None) == (not possible)
            if possible:
                assert every[labels] - max(possible.values()) == pytest.approx(position.margin, abs=1e-12)
                assert possible[position.other] == pytest.approx(max(possible.values()), abs=1e-12)


def terms_of_words(model, x, labels):
    number = [model.classes_.tolist().index(label) for label in labels]
    yield from (model.start_[number[0]], model.end_[number[-1]])
    yield from (model.coef_[model.reader_.vectorizer.names.index(w), k] for (w,), k in zip(x, number, strict=True))
    yield from (model.transitions_[pair] for pair in pairwise(number))


def test_mistakes():
    model, x = fitted("columns"), strings("columns", count=1, seed=3)[0][0]
    with pytest.raises(ValueError, match="does not know the label 'Z'"):
        model.explain(x, ["Z"] * len(x))
    with pytest.raises(ValueError, match="positions in X but"):
        model.explain(x, ["A"] * (len(x) + 1))
    with pytest.raises(ValueError, match="top must be"):
        model.explain(x, top=-1)
    with pytest.raises(TypeError, match=r"explain looks at one sequence: give X\[0\]"):
        model.explain(m3n.io.Sentences.of([x]))
    with pytest.raises(ValueError, match="not fitted"):
        m3n.SequenceTagger().explain(x)


def test_it_is_plain_and_frozen():
    model, x = fitted("columns"), [("x",), ("y",)]
    explanation = model.explain(x, top=1)
    written = json.loads(json.dumps(explanation.as_dict(), allow_nan=False))
    assert written["labels"] == explanation.labels
    assert written["margin"] == explanation.margin
    first = written["positions"][0]
    assert first["text"] == "x"
    assert first["contributions"][0]["difference"] == explanation.positions[0].contributions[0].difference
    assert first["after"][0]["difference"] == explanation.positions[0].after[0].difference
    with pytest.raises(dataclasses.FrozenInstanceError):
        explanation.score = 0.0


def test_text_is_aligned_and_adds_up():
    model = fitted("dense")
    text = str(model.explain(np.array([[0.0, 1.0, 0.0, 0.25, 0.0], [1.0, 0.0, 0.0, 0.0, 0.0]])))
    first = text.split("\n\n")[1].splitlines()
    assert first[0].startswith("position 0: ")
    ends = {len(line) for line in first[1:]}
    assert len(ends) == 1  # numbers stand below one another
    assert any(line.strip().startswith("x3 × 0.25 ") for line in first)
    rows = {line[:26].strip(): [float(word) for word in line.split()[-3:]] for line in first[2:]}
    total = next(numbers for name, numbers in rows.items() if name.startswith("this position"))
    parts = [numbers for name, numbers in rows.items() if name.startswith(("x", "first"))]
    np.testing.assert_allclose(np.sum(parts, axis=0), total, atol=0.005)
    worse = model.explain(np.eye(5)[:1], ["C" if model.predict([np.eye(5)[:1]])[0][0] == "A" else "A"])
    assert worse.margin < 0
    assert " above and differ at position 0" in str(worse)
    assert "instead would gain" in str(worse)
