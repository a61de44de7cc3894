"""Going on from an earlier model: weights by name, the objective written out, further data and labels."""

import pickle
from itertools import pairwise, product

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone

import m3n
from m3n.features import Templates
from m3n.structures import Transitions

FIRST = [[["w=the", "d"], ["w=dog", "n"], ["w=barks"]], [["w=a", "d"], ["w=cat", "n"]], [["w=dogs"], ["w=bark"]]] * 2
FIRST_Y = [["D", "N", "V"], ["D", "N"], ["N", "V"]] * 2
SECOND = [[["w=wow"], ["w=the", "d"], ["w=cow", "n"]], [["w=cat", "n"], ["w=moos"]], [["w=big", "d"], ["w=cow", "d"]]]
SECOND_Y = [["X", "D", "N"], ["N", "V"], ["A", "N"]]
LAM = 0.1


def words(sentences):
    """Tokens in columns, for templates."""
    return [[(token[0], token[-1]) for token in sentence] for sentence in sentences]


def named(model):
    """All weights of a tagger by the names of attributes and labels."""
    labels, vectorizer = model.classes_.tolist(), model.reader_.vectorizer
    coef = model.coef_.toarray() if scipy.sparse.issparse(model.coef_) else model.coef_
    found = {(a, y): coef[k, j] for k, a in enumerate(vectorizer.names) for j, y in enumerate(labels)}
    for name in ("start_", "end_"):
        found |= {(name, y): weight for y, weight in zip(labels, getattr(model, name), strict=True)}
    found |= {("to", a, b): model.transitions_[i, j] for i, a in enumerate(labels) for j, b in enumerate(labels)}
    if model.edge_coef_ is not None:
        edge = model.edge_coef_.toarray() if scipy.sparse.issparse(model.edge_coef_) else model.edge_coef_
        edge = edge.reshape(-1, len(labels), len(labels))
        for k, name in enumerate(vectorizer.pair_names):
            found |= {(name, a, b): edge[k, i, j] for i, a in enumerate(labels) for j, b in enumerate(labels)}
    return found


def objective(model, earlier, X, y, crf=False, strengths=None):
    """J with the prior by the names of weights, every output enumerated: nothing of it is the library's."""
    w, w0, labels = named(model), named(earlier), model.classes_.tolist()
    strengths = strengths or {}
    pull = 0.0
    for key, weight in w.items():
        group = "transitions" if key[0] == "to" else "boundaries" if key[0] in ("start_", "end_") else "attributes"
        pull += strengths.get(group, 1.0) * (weight - w0.get(key, 0.0)) ** 2

    def score(sentence, output):
        total = w["start_", output[0]] + w["end_", output[-1]]
        total += sum(w.get((a, label), 0.0) for token, label in zip(sentence, output, strict=True) for a in token)
        return total + sum(w["to", a, b] for a, b in pairwise(output))

    risk = 0.0
    for sentence, gold in zip(X, y, strict=True):
        outputs = list(product(labels, repeat=len(gold)))
        values = np.array([score(sentence, output) for output in outputs]) - score(sentence, gold)
        losses = np.array([sum(a != b for a, b in zip(output, gold, strict=True)) for output in outputs])
        risk += np.logaddexp.reduce(values) if crf else (values + losses).max()
    return LAM / 2 * pull + risk / len(y)


@pytest.fixture(scope="module")
def earlier():
    return m3n.SequenceTagger(lam=LAM, tol=1e-6).fit(FIRST, FIRST_Y)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"objective": "crf"},
        {"strengths": {"transitions": 4.0, "boundaries": 0.25}},
        {"solver": "excessive_gap"},
        {"objective": "crf", "solver": "lbfgs", "strengths": {"attributes": 2.0}},
    ],
    ids=str,
)
def test_the_certificate_is_that_of_the_objective_with_the_prior(earlier, settings):
    tagger = m3n.SequenceTagger(lam=LAM, tol=1e-4, prior=earlier, **settings).fit(SECOND, SECOND_Y)
    crf = settings.get("objective") == "crf"
    known = objective(tagger, earlier, SECOND, SECOND_Y, crf=crf, strengths=settings.get("strengths"))
    assert tagger.certificate_.primal == pytest.approx(known, abs=1e-8)
    assert tagger.certificate_.gap <= 1e-4
    problem = m3n.SequenceTagger(lam=LAM, prior=earlier, **settings).problem(SECOND, SECOND_Y)
    other = m3n.minimize(problem, "lbfgs" if crf else "bmrm", tol=1e-3)
    assert tagger.certificate_.dual <= other.certificate.primal + 1e-9
    assert other.certificate.dual <= tagger.certificate_.primal + 1e-9


def test_nothing_learnt_is_lost(earlier):
    tagger = m3n.SequenceTagger(lam=LAM, tol=1e-6, prior=earlier).fit(SECOND, SECOND_Y)
    assert tagger.classes_.tolist() == ["A", "D", "N", "V", "X"]
    before, after = named(earlier), named(tagger)
    assert before.keys() <= after.keys()
    for key in (("w=barks", "V"), ("w=dogs", "N"), ("w=a", "D")):  # of which the new data say nothing
        assert after[key] == pytest.approx(before[key], abs=1e-12)
        assert abs(before[key]) > 1e-3
    assert abs(after["w=moos", "V"]) > 1e-3
    assert tagger.predict([[["w=dogs"], ["w=bark"]]]) == [["N", "V"]]
    assert tagger.predict(SECOND) == SECOND_Y


def test_a_strong_pull_gives_the_earlier_model(earlier):
    tagger = m3n.SequenceTagger(lam=1e7, tol=1e-6, prior=earlier).fit(SECOND, SECOND_Y)
    before, after = named(earlier), named(tagger)
    assert max(abs(after[key] - before.get(key, 0.0)) for key in after) < 1e-5


def test_a_model_without_mistakes_is_not_trained_again():
    """Its risk is 0 on the data that it came from, so it is the optimum of pull plus risk."""
    X, y = FIRST[:3], FIRST_Y[:3]
    first = m3n.SequenceTagger(lam=1e-5, tol=1e-8).fit(X, y)
    for weights in (first.coef_, first.transitions_, first.start_, first.end_):
        weights *= 1.5
    again = m3n.SequenceTagger(tol=1e-9, prior=first).fit(X, y)
    assert again.trace_[-1].passes == 1
    assert again.certificate_.gap < 1e-12
    np.testing.assert_array_equal(again.coef_, first.coef_)


TEMPLATES = ["w=%x[0,0]", "p|w=%x[-1,1]|%x[0,0]", "bias", "B:%x[0,1]", "f=%x[0,1]"]


@pytest.mark.parametrize("padding", ["symbols", "marks", "none"])
@pytest.mark.parametrize("observed", [False, True])
def test_templates_keep_their_attributes(padding, observed):
    templates = Templates(TEMPLATES, padding=padding)
    settings = {"templates": templates, "observed_only": observed, "tol": 1e-6}
    first = m3n.SequenceTagger(**settings).fit(words(FIRST), FIRST_Y)
    strong = m3n.SequenceTagger(prior=first, lam=1e8, **settings).fit(words(SECOND), SECOND_Y)
    before, after = named(first), named(strong)
    assert before.keys() < after.keys()
    assert max(abs(weight - before.get(key, 0.0)) for key, weight in after.items()) < 1e-5
    assert max(map(abs, before.values())) > 0.1
    again = m3n.SequenceTagger(prior=strong, lam=0.01, **settings).fit(words(SECOND), SECOND_Y)
    assert again.predict(words(SECOND)) == SECOND_Y
    known = set(first.reader_.vectorizer.names)
    rare = m3n.SequenceTagger(prior=first, min_freq=2, **settings).fit(words(SECOND), SECOND_Y)
    names = set(rare.reader_.vectorizer.names)
    assert known <= names
    assert "w=w=wow" not in names
    assert "w=w=wow" in set(again.reader_.vectorizer.names)


def test_rare_attributes_that_are_known_stay(earlier):
    tagger = m3n.SequenceTagger(prior=earlier, min_freq=2).fit(SECOND, SECOND_Y)
    assert tagger.reader_.vectorizer.names[: earlier.n_features_in_] == earlier.reader_.vectorizer.names
    assert "w=cow" in tagger.reader_.vectorizer.names
    assert "w=wow" not in tagger.reader_.vectorizer.names


def test_iterators_arrays_and_matrices(earlier):
    whole = m3n.SequenceTagger(prior=earlier, tol=1e-6).fit(SECOND, SECOND_Y)
    once = m3n.SequenceTagger(prior=earlier, tol=1e-6).fit(iter(SECOND), iter(SECOND_Y))
    np.testing.assert_array_equal(once.coef_, whole.coef_)
    random = np.random.default_rng(0)
    X, y = [random.normal(size=(4, 3)) for _ in range(6)], [["a", "b", "a", "b"]] * 6
    for kind in (np.asarray, scipy.sparse.csr_array):
        first = m3n.SequenceTagger(lam=1e-3).fit([kind(x) for x in X], y)
        strong = m3n.SequenceTagger(lam=1e8, prior=first).fit([kind(x) for x in X[:2]], [["b", "c", "a", "a"]] * 2)
        np.testing.assert_allclose(strong.coef_[:, :2], first.coef_, atol=1e-5)
        with pytest.raises(ValueError, match="prior was trained with 3 attributes per position, but X has 2"):
            m3n.SequenceTagger(prior=first).fit([kind(x[:, :2]) for x in X], y)
    with pytest.raises(ValueError, match="prior was trained on named attributes, but X has arrays"):
        m3n.SequenceTagger(prior=earlier).fit(X, y)


def test_observed_constraints_of_both():
    first = m3n.SequenceTagger(constraints="observed").fit(FIRST, FIRST_Y)
    second = m3n.SequenceTagger(constraints="observed", prior=first).fit(SECOND, SECOND_Y)
    for sequence in (*FIRST_Y, *SECOND_Y):
        assert second.constraints_.allows(sequence)
    assert not second.constraints_.allows(["V", "X"])
    rules = Transitions.forbid(["A", "D", "N", "V", "X"], [("D", "V")])
    assert not m3n.SequenceTagger(constraints=rules, prior=first).fit(SECOND, SECOND_Y).constraints_.allows(["D", "V"])


def test_partial_fit():
    tagger = m3n.SequenceTagger(lam=LAM, tol=1e-6)
    assert tagger.partial_fit(FIRST, FIRST_Y, classes=["Z"]) is tagger
    assert tagger.classes_.tolist() == ["D", "N", "V", "Z"]
    before = pickle.loads(pickle.dumps(tagger))
    tagger.partial_fit(SECOND, SECOND_Y)
    assert tagger.prior is None
    assert tagger.classes_.tolist() == ["A", "D", "N", "V", "X", "Z"]
    assert tagger.certificate_.primal == pytest.approx(objective(tagger, before, SECOND, SECOND_Y), abs=1e-8)
    same = m3n.SequenceTagger(lam=LAM, tol=1e-6, prior=before).fit(SECOND, SECOND_Y)
    np.testing.assert_array_equal(same.coef_, tagger.coef_)
    tagger.partial_fit(FIRST[:2], FIRST_Y[:2], sample_weight=[1.0, 2.0])
    assert "w=moos" in tagger.reader_.vectorizer.names


def test_partial_fit_that_fails_changes_nothing(earlier):
    tagger = pickle.loads(pickle.dumps(earlier))
    kept = dict(vars(tagger))
    with pytest.raises(ValueError, match="sequence 0"):
        tagger.partial_fit(SECOND, [["A"]] * 3)
    assert vars(tagger) == kept


def test_clones_files_and_pickles_keep_or_drop_the_prior(earlier, tmp_path):
    tagger = m3n.SequenceTagger(prior=earlier)
    assert clone(tagger).prior is earlier
    assert tagger.get_params(deep=False)["prior"] is earlier
    tagger.fit(SECOND, SECOND_Y).save(tmp_path / "model.m3n")
    loaded = m3n.load(tmp_path / "model.m3n")
    assert loaded.prior is None
    assert loaded.predict(SECOND) == tagger.predict(SECOND)
    again = m3n.SequenceTagger(prior=loaded).fit(FIRST, FIRST_Y)
    assert again.predict(FIRST) == FIRST_Y


def test_a_checkpoint_is_that_of_its_prior(earlier, tmp_path):
    settings = {"lam": LAM, "checkpoint": tmp_path / "run", "solver": "sequential_dual", "tol": 0.0}
    with pytest.warns(UserWarning, match="stopped early"):
        m3n.SequenceTagger(max_passes=3, prior=earlier, **settings).fit(SECOND, SECOND_Y)
    other = m3n.SequenceTagger(lam=1.0).fit(FIRST, FIRST_Y)
    with pytest.raises(ValueError, match="for another prior"):
        m3n.SequenceTagger(max_passes=3, prior=other, **settings).fit(SECOND, SECOND_Y)


def test_warm_start_with_a_prior(earlier):
    tagger = m3n.SequenceTagger(lam=LAM, tol=1e-2, prior=earlier, warm_start=True).fit(SECOND, SECOND_Y)
    tagger.set_params(tol=1e-5).fit(SECOND, SECOND_Y)
    assert "goes on with the last fit" in tagger.reason_
    assert tagger.certificate_.primal == pytest.approx(objective(tagger, earlier, SECOND, SECOND_Y), abs=1e-8)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"l1": 0.1, "objective": "crf"}, "pulls weights to 0 and prior to others"),
        ({"objective": "slack"}, "multiplies the whole margin"),
        ({"kernel": "linear"}, "the inputs of a kernel have no names"),
        ({"backend": "ray"}, "a prior is for threads of this process"),
        ({"templates": Templates(["w=%x[0,0]"])}, "prior was trained on named attributes, but X has tokens in columns"),
    ],
    ids=str,
)
def test_refusals(earlier, settings, words):
    X = [[["a", "b"], ["c", "d"]], [["a", "b"]]]
    with pytest.raises(ValueError, match=words):
        m3n.SequenceTagger(prior=earlier, **settings).fit(X, [["N", "V"], ["N"]])


def test_a_prior_must_be_a_fitted_model_of_the_same_kind():
    for wrong in ("model.m3n", m3n.SegmentTagger(), object()):
        with pytest.raises(TypeError, match="prior must be a fitted SequenceTagger"):
            m3n.SequenceTagger(prior=wrong).fit(FIRST, FIRST_Y)
    with pytest.raises(ValueError, match="prior is not fitted yet"):
        m3n.SequenceTagger(prior=m3n.SequenceTagger()).fit(FIRST, FIRST_Y)
    with pytest.raises(TypeError, match="prior"):
        m3n.DependencyParser(prior=None)


def segmented(seed, labels, n=12):
    """Sequences of vectors with segments of random labels; what is outside of them is O."""
    random = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        length = int(random.integers(4, 7))
        begin, end, label = 1, int(random.integers(2, 4)), str(random.choice(labels))
        x = 0.3 * random.normal(size=(length, 3))
        x[begin:end, labels.index(label) % 3] += 2.0
        X.append(x)
        y.append([(begin, end, label)])
    return X, y


def test_segments():
    X, y = segmented(0, ["per", "loc"])
    first = m3n.SegmentTagger(lam=0.01, tol=1e-4).fit(X, y)
    new, labels = segmented(1, ["per", "art"], n=6)
    strong = m3n.SegmentTagger(lam=1e8, prior=first).fit(new, labels)
    assert strong.classes_.tolist() == ["O", "art", "loc", "per"]
    place = [strong.classes_.tolist().index(label) for label in first.classes_.tolist()]
    np.testing.assert_allclose(strong.coef_[:, place], first.coef_, atol=1e-5)
    np.testing.assert_allclose(strong.transitions_[np.ix_(place, place)], first.transitions_, atol=1e-5)
    np.testing.assert_allclose(strong.segment_coef_[: len(first.segment_coef_), place], first.segment_coef_, atol=1e-5)
    assert np.abs(np.delete(strong.coef_, place, axis=1)).max() < 1e-5
    same = m3n.SegmentTagger(lam=0.01, prior=first)
    plain = m3n.SegmentTagger(lam=0.01, max_length=int(first.max_lengths_.max())).problem(X, y)
    arrays = (first.coef_, first.transitions_, first.start_, first.end_, first.segment_coef_)
    w0 = np.concatenate([array.ravel() for array in arrays])
    assert same.fit(X, y).trace_[0].primal == pytest.approx(plain.hard(w0).value)
    weak = m3n.SegmentTagger(lam=0.01).partial_fit(X, y).partial_fit(new, labels)
    assert weak.score(new, labels) == 1.0
    with pytest.raises(ValueError, match="trained with outside='O', not None"):
        m3n.SegmentTagger(prior=first, outside=None).fit([np.ones((2, 3))], [[(0, 2, "per")]])


def graphs_with(seed, labels, edge_features, n=8):
    """Small trees whose node labels stand in their features."""
    random = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        edges = [[int(random.integers(v)), v] for v in range(1, 5)]
        numbers = random.integers(len(labels), size=5)
        nodes = np.eye(3)[numbers] + 0.3 * random.normal(size=(5, 3))
        X.append((nodes, edges, random.normal(size=(4, 2))) if edge_features else (nodes, edges))
        y.append([labels[k] for k in numbers])
    return X, y


@pytest.mark.parametrize("edge_features", [False, True])
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("inference", ["auto", "relaxed"])
def test_graphs(edge_features, directed, inference):
    settings = {"directed": directed, "inference": inference}
    if directed and edge_features:
        settings |= {"antisymmetric_edge_features": [0], "symmetric_edge_features": [1]}
    X, y = graphs_with(0, ["b", "d"], edge_features)
    if inference == "relaxed":  # which is for cycles
        X = [(nodes, [*edges, [0, 4]], *(np.vstack([z, z[:1]]) for z in more)) for nodes, edges, *more in X]
        X = [x for x in X if x[1].count([0, 4]) == 1]
    first = m3n.GraphLabeler(lam=0.01, tol=1e-3, **settings).fit(X, y[: len(X)])
    new, labels = graphs_with(1, ["a", "b", "d"], edge_features)
    strong = m3n.GraphLabeler(lam=1e8, prior=first, **settings).fit(new, labels)
    assert strong.classes_.tolist() == ["a", "b", "d"]
    assert np.abs(first.coef_).max() > 0.1
    np.testing.assert_allclose(strong.coef_[:, 1:], first.coef_, atol=1e-5)
    np.testing.assert_allclose(strong.pairs_[1:, 1:], first.pairs_, atol=1e-5)
    if edge_features:
        np.testing.assert_allclose(strong.edge_coef_[:, 1:, 1:], first.edge_coef_, atol=1e-5)
        assert np.abs(strong.edge_coef_[:, 0]).max() < 1e-5
    weak = m3n.GraphLabeler(lam=0.01, prior=first, **settings).fit(new, labels)
    assert weak.score(new, labels) > 0.9
    with pytest.raises(ValueError, match="prior was trained with 3 attributes and"):
        m3n.GraphLabeler(prior=first, **settings).fit([(x[0][:, :2], *x[1:]) for x in new], labels)
    with pytest.raises(ValueError, match="only one has directed edges"):
        m3n.GraphLabeler(prior=first, **(settings | {"directed": not directed})).fit(new, labels)


def test_validation_of_other_estimators():
    X, y = graphs_with(0, ["b", "d"], True)
    labeler = m3n.GraphLabeler(lam=1e-3, validation=(X[4:], y[4:]), patience=2, tol=1e-6).fit(X[:4], y[:4])
    assert labeler.score(X[4:], y[4:]) == max(r.metrics["held_out"] for r in labeler.trace_)
    S, t = segmented(3, ["per", "loc"])
    tagger = m3n.SegmentTagger(lam=1e-3, validation=(S[6:], t[6:]), patience=2, tol=1e-6).fit(S[:6], t[:6])
    assert tagger.score(S[6:], t[6:]) == max(r.metrics["held_out"] for r in tagger.trace_)
    random = np.random.default_rng(0)
    Z, sets = random.normal(size=(20, 3)), random.integers(2, size=(20, 3))
    classifier = m3n.MultilabelClassifier(lam=1e-3, validation=(Z[12:], sets[12:]), patience=2, tol=1e-6)
    classifier.fit(Z[:12], sets[:12])
    assert classifier.score(Z[12:], sets[12:]) == max(r.metrics["held_out"] for r in classifier.trace_)
    with pytest.raises(ValueError, match=r"validation=0\.5 is for a SequenceTagger"):
        classifier.set_params(validation=0.5).fit(Z, sets)
