"""Constraints, given labels, posterior and k-best decoding against enumeration of the allowed outputs."""

import pickle
import re
from functools import cache
from itertools import pairwise, product

import numpy as np
import pytest
from sklearn.base import clone

import m3n
from m3n.features import Dense, chain_features
from m3n.io import model_file
from m3n.losses import Hamming
from m3n.solvers import BY_NAME
from m3n.structures import Chain, Transitions
from tests.tiny import Enumerated

LABELS = ["B-X", "B-Y", "I-X", "I-Y", "O"]
VALID = re.compile(r"(O |B-X (I-X )*|B-Y (I-Y )*)+")
GOLD = [["B-X", "I-X", "O"], ["O", "B-Y"], ["B-Y", "I-Y", "B-X"], ["O"], ["B-X", "B-X", "I-X", "O"]]


def inputs(lengths, seed=0):
    random = np.random.default_rng(seed)
    return [random.normal(size=(length, 3)) for length in lengths]


def valid(labels):
    """IOB2, by a regular expression."""
    return VALID.fullmatch("".join(f"{label} " for label in labels)) is not None


def trained(constraints=None, **settings):
    model = m3n.SequenceTagger(constraints=constraints, **{"tol": 1e-2, "n_jobs": 1, **settings})
    return model.fit(inputs(map(len, GOLD)), GOLD)


def random_weights(seed, constraints, scale=1.0):
    """A tagger that knows nothing, and would break every rule."""
    model, random = trained(constraints, tol=10.0), np.random.default_rng(seed)
    for name in ("coef_", "transitions_", "start_", "end_"):
        setattr(model, name, scale * random.normal(size=getattr(model, name).shape))
    return model


def score(model, x, labels):
    k = [LABELS.index(label) for label in labels]
    total = model.start_[k[0]] + model.end_[k[-1]] + sum(x[t] @ model.coef_[:, j] for t, j in enumerate(k))
    return total + sum(model.transitions_[a, b] for a, b in pairwise(k))


def outputs(model, x, constraints, given):
    """Every allowed output that agrees with the given labels, and its score."""
    every = product(*([label] if label else LABELS for label in given))
    allowed = [list(y) for y in every if constraints is None or valid(y)]
    return allowed, np.array([score(model, x, y) for y in allowed])


def some_given(random, lengths, share=0.4):
    """Labels of valid sequences at some positions."""
    rows = []
    for length in lengths:
        every = [y for y in product(LABELS, repeat=length) if valid(y)]
        labels = every[random.integers(len(every))]
        rows.append([label if random.random() < share else None for label in labels])
    return rows


@pytest.fixture(params=[(None, False), ("iob", False), (None, True), ("iob", True)], ids=str)
def cases(request):
    """Models with random weights, sequences, and what is given about them."""
    constraints, with_given = request.param
    found = []
    for seed in range(4):
        model = random_weights(seed, constraints)
        X = inputs([1, 2, 3, 4], seed)
        given = some_given(np.random.default_rng(seed), map(len, X)) if with_given else None
        every = [outputs(model, x, constraints, given[i] if given else [None] * len(x)) for i, x in enumerate(X)]
        found.append((model, X, given, every))
    return found


def test_viterbi_is_the_best_of_the_allowed_outputs(cases):
    for model, X, given, every in cases:
        best = [allowed[int(np.argmax(scores))] for allowed, scores in every]
        assert model.predict(X, fixed=given) == best


def test_k_best_are_the_best_of_the_allowed_outputs(cases):
    for model, X, given, every in cases:
        for answers, (allowed, scores) in zip(model.predict_k_best(X, 7, fixed=given), every, strict=True):
            order = np.argsort(-scores)[:7]
            assert [labels for labels, _ in answers] == [allowed[k] for k in order]
            np.testing.assert_allclose([value for _, value in answers], scores[order])


def test_marginals_are_those_of_the_allowed_outputs(cases):
    for model, X, given, every in cases:
        for found, (allowed, scores) in zip(model.predict_marginals(X, 0.7, given), every, strict=True):
            np.testing.assert_allclose(found, marginals(allowed, scores, 0.7), atol=1e-12)


def marginals(allowed, scores, temperature):
    weights = np.exp((scores - scores.max()) / temperature)
    parts = np.array([[[label == name for name in LABELS] for label in y] for y in allowed])
    return np.tensordot(weights / weights.sum(), parts, axes=1)


def test_posterior_makes_the_fewest_errors_to_be_expected(cases):
    differs = False
    for model, X, given, every in cases:
        found = model.predict(X, fixed=given, decoding="posterior", temperature=2.0)
        for labels, (allowed, scores) in zip(found, every, strict=True):
            assert labels in allowed
            p = marginals(allowed, scores, 2.0)
            right = [sum(p[t, LABELS.index(label)] for t, label in enumerate(y)) for y in allowed]
            assert right[allowed.index(labels)] == pytest.approx(max(right), abs=1e-12)
        differs |= found != model.predict(X, fixed=given)
    assert differs


def test_probabilities_of_all_outputs_sum_to_one(cases):
    model, X, given, every = cases[0]
    for answers, (allowed, scores) in zip(
        model.predict_k_best(X, 1000, fixed=given, probabilities=True, temperature=0.5), every, strict=True
    ):
        assert len(answers) == len(allowed)
        assert sum(p for *_, p in answers) == pytest.approx(1.0)
        best = np.exp((scores.max() - scores) / 0.5)
        assert answers[0][2] == pytest.approx(1.0 / np.sum(1.0 / best))


@pytest.mark.parametrize("scale", [1.0, 1e4])
def test_no_prediction_breaks_the_constraints(scale):
    lengths = np.random.default_rng(1).integers(1, 40, size=30).tolist()
    X, free = inputs(lengths), 0
    for seed in range(5):
        model = random_weights(seed, "iob", scale)
        given = [["I-X" if t == length // 2 and t else None for t in range(length)] for length in lengths]
        predictions = model.predict(X) + model.predict(X, decoding="posterior") + model.predict(X, fixed=given)
        predictions += [labels for answers in model.predict_k_best(X, 5) for labels, _ in answers]
        assert all(valid(labels) for labels in predictions)
        model.constraints_ = None
        free += sum(not valid(labels) for labels in model.predict(X))
    assert free > 50  # the weights would have broken them


@cache
def optimum(objective, constrained):
    """The optimum of the training problem, by enumeration of the outputs and a solver that is not ours."""
    y = [[LABELS.index(label) for label in labels] for labels in GOLD]
    rule = Transitions.iob(LABELS)
    masks = {name: getattr(rule, name) for name in ("forbidden", "forbidden_start", "forbidden_end")}
    chain = Chain(list(map(len, GOLD)), 5, **(masks if constrained else {}))
    features = chain_features(Dense(np.concatenate(inputs(map(len, GOLD))), 5), 5)
    settings = {"loss": Hamming()} if objective == "margin" else {"loss": None, "temperature": 1.0}
    return Enumerated.of(m3n.Problem(chain, features, y, lam=0.1, n_jobs=1, **settings)).optimum()


@pytest.mark.parametrize("solver", ["auto", *sorted(set(BY_NAME) - {"subgradient", "owl_qn", "sparse_dual_ascent"})])
def test_training_is_over_the_allowed_outputs(solver):
    """Every solver's certificate encloses the optimum over the allowed outputs, and not that over all of them."""
    margin = solver == "auto" or BY_NAME[solver]().oracles(0.0) is not None
    objective = "margin" if margin else "crf"
    found = trained("iob", objective=objective, solver=solver, lam=0.1).certificate_
    assert found.gap <= 1e-2
    assert found.dual - 1e-9 <= optimum(objective, True) <= found.primal + 1e-9
    assert found.primal < optimum(objective, False) - 1e-2


def test_the_crf_over_the_allowed_outputs():
    found = trained("iob", objective="crf", lam=0.1, tol=1e-6).certificate_
    assert found.primal == pytest.approx(optimum("crf", True), abs=1e-6)


def test_observed_constraints_are_those_of_the_training_data():
    model = trained("observed")
    assert model.constraints_ == Transitions.observed(GOLD)
    assert trained().constraints_ is None
    assert trained("iob").constraints_ == Transitions.iob(LABELS)
    X = inputs([7] * 20, seed=3)
    assert all(model.constraints_.allows(labels) for labels in model.predict(X))


def test_constraints_may_know_more_labels_in_another_order():
    mine = Transitions.iob(["O", "I-Z", "B-Z", *reversed(LABELS[:4])])
    model = trained(mine)
    assert model.constraints_ == Transitions.iob(LABELS)
    assert model.constraints is mine
    assert clone(model).constraints == mine
    assert "constraints=Transitions(7 labels" in repr(model)


def test_numbers_as_labels():
    X = inputs([3, 2])
    model = m3n.SequenceTagger(constraints=Transitions.forbid([0, 1], [(1, 1)]), tol=1e-2).fit(X, [[0, 1, 0], [1, 0]])
    model.coef_[:], model.transitions_[:] = 0.0, [[0.0, 0.0], [0.0, 9.0]]
    model.start_[:], model.end_[:] = [0.0, 1.0], [0.0, 2.0]
    assert model.predict(X) == [[1, 0, 1], [0, 1]]
    assert model.predict(X, fixed=[np.array([0, 1, 0]), [None, 0]]) == [[0, 1, 0], [1, 0]]


@pytest.mark.parametrize(
    ("constraints", "y", "message"),
    [
        ("iob", ["O", "I-X"], "sequence 1, position 1 of y: 'I-X' follows 'O', which constraints='iob' forbid"),
        ("iob", ["I-X", "O"], "sequence 1, position 0 of y: 'I-X' stands first"),
        ("iob1", ["O", "I-X"], "sequence 0, position 0 of y: 'B-X' stands first, which constraints='iob1' forbid"),
        (
            "bioes",
            ["O", "O"],
            r"'B-X' follows 'B-X', which .* mend them by .*.schemes.repair\(y, .bioes.\).* \('iob' or .*'observed'\)",
        ),
        ("iob", ["O", "<pad>"], "sequence 1, position 1 of y: label '<pad>' is not of the scheme IOB2"),
        ("iob2", ["O", "I-X"], "sequence 1, position 1 of y: 'I-X' follows 'O', which constraints='iob2' forbid"),
        ("bilou", ["B-X", "E-X"], "sequence 1, position 1 of y: label 'E-X' is not of the scheme BILOU"),
        ("ioe2", ["O", "I-X"], "sequence 0, position 0 of y: label 'B-X' is not of the scheme IOE2"),
        (
            Transitions.forbid(LABELS, [], end=["O"]),
            ["O", "O"],
            "position 1 of y: 'O' stands last, which constraints forbid",
        ),
        (Transitions.iob(["O", "B-X"]), ["O", "B-Z"], r"do not know these labels: \['B-Z'\]"),
        ("iob3", ["O", "O"], r"unknown constraints 'iob3'; choose one of \('iob', 'iob1', 'ioe1', .*'observed'\)"),
    ],
)
def test_training_labels_that_break_the_constraints_are_named(constraints, y, message):
    with pytest.raises(ValueError, match=message):
        m3n.SequenceTagger(constraints=constraints).fit(inputs([2, 2]), [["B-X", "B-X"], y])


def test_constraints_of_the_wrong_type():
    with pytest.raises(TypeError, match=r"constraints must be None, a name or m3n\.structures\.Transitions, got \["):
        m3n.SequenceTagger(constraints=[("O", "I-X")]).fit(inputs([2]), [["O", "O"]])


@pytest.mark.parametrize(
    ("fixed", "message"),
    [
        (
            [["O", "I-X", None], None],
            "sequence 0, position 1: the constraints do not allow the fixed label 'I-X' here after 'O'",
        ),
        ([None, ["I-X", None]], "sequence 1, position 0: .* the fixed label 'I-X' here; change or free a fixed label"),
        (
            [[None, "B-X", "I-Y"], None],
            "sequence 0, position 2: .* the fixed label 'I-Y' here after 'B-X'; change or free",
        ),
        ([["O", "Q", None], None], "sequence 0, position 1: the model does not know the fixed label 'Q'; choose from"),
        ([["O", ["O"], None], None], r"sequence 0, position 1: the model does not know the fixed label \['O'\]"),
        ([None, ["O"]], "sequence 1 has 2 positions in X but 1 in fixed"),
        ([None], "X has 2 sequences but fixed has 1"),
    ],
)
def test_contradictions_are_named(fixed, message):
    model, X = trained("iob", solver="excessive_gap"), inputs([3, 2])
    for decode in (
        lambda: model.predict(X, fixed=fixed),
        lambda: model.predict(X, fixed=fixed, decoding="posterior"),
        lambda: model.predict_marginals(X, fixed=fixed),
        lambda: model.predict_k_best(X, 3, fixed=fixed),
    ):
        with pytest.raises(ValueError, match=message):
            decode()


def test_given_labels_that_leave_nothing_between_them():
    """All chunks have two positions or more, and nothing is outside."""
    y = [["B-X", "E-X"], ["B-X", "I-X", "E-X"]]
    model = m3n.SequenceTagger(constraints="bioes", tol=1e-2).fit(inputs([2, 3]), y)
    four = inputs([4])
    assert model.predict(four, fixed=[[None, "I-X", None, None]]) == [["B-X", "I-X", "I-X", "E-X"]]
    assert model.predict(four, fixed=[[None, "E-X", None, None]]) == [["B-X", "E-X", "B-X", "E-X"]]
    with pytest.raises(ValueError, match=r"sequence 0, position 3: .* the fixed label 'B-X' here; change or free"):
        model.predict(four, fixed=[["B-X", None, None, "B-X"]])
    with pytest.raises(ValueError, match=r"sequence 0, position 2: .* do not allow any label here after 'E-X'; change"):
        model.predict(inputs([3]), fixed=[[None, "E-X", None]])
    with pytest.raises(ValueError, match=r"sequence 1, position 0: .* allow no labels for a sequence of length 1"):
        model.predict([*inputs([2]), *inputs([1])])


@pytest.mark.parametrize("fixed", ["OO", 3])
def test_fixed_labels_of_the_wrong_type(fixed):
    model = trained()
    with pytest.raises(TypeError, match="fixed must be a list with a list of labels or None per sequence"):
        model.predict(inputs([2]), fixed=fixed)
    with pytest.raises(TypeError, match="sequence 0: fixed must be a list with a label or None per position"):
        model.predict(inputs([2]), fixed=[fixed])


def test_bad_settings_of_decoding():
    model, X = trained(), inputs([2])
    with pytest.raises(ValueError, match=r"unknown decoding 'mbr'; choose one of \('viterbi', 'posterior'\)"):
        model.predict(X, decoding="mbr")
    with pytest.raises(ValueError, match="temperature must be positive"):
        model.predict(X, decoding="posterior", temperature=0.0)
    with pytest.raises(ValueError, match="temperature must be positive"):
        model.predict_k_best(X, 2, probabilities=True, temperature=-1.0)
    with pytest.raises(ValueError, match="k must be at least 1, got 0"):
        model.predict_k_best(X, 0)


def test_no_sequences_at_all():
    model = trained("iob")
    assert model.predict([], fixed=[]) == model.predict_k_best([], 3) == model.predict_marginals([], fixed=[]) == []
    with pytest.raises(ValueError, match="X has 0 sequences but fixed has 1"):
        model.predict([], fixed=[["O"]])


@pytest.mark.parametrize("constraints", ["iob", "observed", Transitions.iob([*reversed(LABELS), "B-Z"])], ids=str)
def test_constraints_are_saved(constraints, tmp_path):
    model, X = random_weights(0, constraints), inputs([9] * 10)
    model.save(tmp_path / "m")
    for again in (m3n.load(tmp_path / "m"), pickle.loads(pickle.dumps(model))):
        assert again.constraints == model.constraints
        assert again.constraints_ == model.constraints_
        assert again.predict_k_best(X, 3) == model.predict_k_best(X, 3)
        assert all(valid(labels) for labels in again.predict(X))


def test_models_from_before_there_were_constraints(tmp_path):
    model, path = random_weights(0, None), tmp_path / "m"
    model.save(path)
    kind, meta, tensors = model_file.read(path)
    assert not [name for name in tensors if name.startswith("constraints")]
    del meta["params"]["constraints"]
    model_file.write(path, kind, meta, tensors)
    again = m3n.load(path)
    assert again.constraints is again.constraints_ is None
    assert again.predict(inputs([9])) == model.predict(inputs([9]))


def test_damaged_constraints(tmp_path):
    path = tmp_path / "m"
    trained("iob").save(path)
    kind, meta, tensors = model_file.read(path)
    tensors["constraints_forbidden"] = tensors["constraints_forbidden"][:3]
    model_file.write(path, kind, meta, tensors)
    with pytest.raises(model_file.ModelFileError, match="forbidden must have shape"):
        m3n.load(path)
