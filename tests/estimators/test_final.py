"""Predictions that are called final do not change when training goes on to the optimum."""

import numpy as np
import pytest
import scipy.sparse

import m3n
from m3n.io import read_columns

SETTINGS = {
    "margin": {},
    "crf": {"objective": "crf"},
    "softmax_margin": {"objective": "softmax_margin", "loss": "normalized_hamming"},
    "slack": {"objective": "slack"},
    "observed": {"objective": "crf", "observed_only": True},
    "strengths": {"strengths": {"attributes": 0.3, "transitions": 4.0, "boundaries": 0.1}},
    "no boundaries": {"objective": "crf", "boundaries": False},
    "l1": {"objective": "crf", "l1": 0.01, "observed_only": True},
    "poly": {"kernel": "poly", "degree": 2, "strengths": {"attributes": 2.0}},
    "rbf, pruned": {"kernel": "rbf", "objective": "crf", "support_tol": 0.2},
    "nystroem": {"kernel": "rbf", "approximation": "nystroem", "components": 4},
    "random features": {"kernel": "rbf", "approximation": "random", "components": 6, "objective": "crf"},
    "constraints": {"constraints": "observed"},
    "lbfgs": {"objective": "crf", "solver": "lbfgs"},
    "excessive_gap": {"solver": "excessive_gap"},
    "block_frank_wolfe": {"solver": "block_frank_wolfe"},
}


def sequences(random, n=12, width=3):
    """Noisy inputs whose labels can nearly be learnt."""
    names, means = np.array(["A", "B", "C"]), random.normal(size=(3, width))
    X, y = [], []
    for length in random.integers(1, 6, n):
        labels = np.sort(random.integers(3, size=length))
        X.append(means[labels] + 0.5 * random.normal(size=(length, width)))
        y.append(names[labels].tolist())
    return X, y


def texts(random, n=12):
    """The same with words."""
    X, y = sequences(random, n)
    return [[[f"{k}={v:.0f}" for k, v in enumerate(row)] for row in x.tolist()] for x in X], y


def compared(settings, seed, tol):
    """What is called final, and whether the optimum agrees, position by position."""
    random = np.random.default_rng(seed)
    X, y = (texts if settings.get("observed_only") else sequences)(random, 24)
    weights = random.uniform(0.2, 3.0, 12) if seed % 2 else None
    settings = {"lam": float(10.0 ** random.uniform(-2, 0)), "n_jobs": 1, **settings}
    loose = m3n.SequenceTagger(tol=tol, rtol=0.0, **settings).fit(X[:12], y[:12], sample_weight=weights)
    exact = {**settings, "solver": "auto", "support_tol": 0.0}
    best = m3n.SequenceTagger(tol=1e-9, rtol=0.0, max_passes=500, **exact).fit(X[:12], y[:12], sample_weight=weights)
    proof, right = loose.certify(X[12:]), best.predict(X[12:])
    assert proof.labels == loose.predict(X[12:])
    final = np.concatenate(proof.positions)
    same = np.array(
        [a == b for one, other in zip(proof.labels, right, strict=True) for a, b in zip(one, other, strict=True)]
    )
    return final, same


@pytest.mark.filterwarnings("ignore:training stopped early")
@pytest.mark.parametrize("name", SETTINGS)
def test_what_is_final_is_what_the_optimum_predicts(name):
    found = [compared(SETTINGS[name], seed, tol) for seed, tol in enumerate([0.3, 0.03, 1e-3, 1e-4])]
    final, same = (np.concatenate(each) for each in zip(*found, strict=True))
    assert same[final].all()
    assert final.any()  # at the small gaps


def test_other_predictions_do_change():
    """Else the proof would be of nothing."""
    found = [compared({}, seed, 1.0) for seed in range(12)]
    final, same = (np.concatenate(each) for each in zip(*found, strict=True))
    assert not same.all() and same[final].all()


def test_more_is_final_the_smaller_the_gap(tmp_path):
    X, y = sequences(np.random.default_rng(0), 40)
    shares = []
    for tol in (1.0, 1e-2, 1e-4, 1e-6):
        tagger = m3n.SequenceTagger("crf", lam=0.1, tol=tol, rtol=0.0).fit(X[:20], y[:20])
        proof = tagger.certify(X[20:])
        shares.append(proof.share)
        tagger.save(tmp_path / "model.m3n")
        again = m3n.load(tmp_path / "model.m3n").certify(X[20:])
        assert again.radius == proof.radius and again.share == proof.share
    assert shares == sorted(shares) and shares[0] < 0.5 and shares[-1] > 0.95
    assert f"{proof.share:.1%} of" in str(proof)


def test_attributes_of_pairs(tmp_path):
    (tmp_path / "train.txt").write_text("a X\nb Y\nc X\n\nb Y\na X\n\nc X\nb Y\nb Y\n")
    sentences = read_columns(tmp_path / "train.txt")
    templates = m3n.features.Templates(["U0:%x[0,0]", "B1:%x[0,0]"])
    proofs, exact = [], None
    for tol in (1e-9, 1e-2):
        tagger = m3n.SequenceTagger("crf", templates=templates, tol=tol, rtol=0.0).fit(sentences, sentences.labels)
        exact = exact or tagger.predict(sentences)
        proofs.append(tagger.certify(sentences))
    assert proofs[0].share == 1.0
    for proof in proofs:
        for labels, final, right in zip(proof.labels, proof.positions, exact, strict=True):
            assert all(a == b for a, b, sure in zip(labels, right, final, strict=True) if sure)


def test_empty_sequences_and_unknown_attributes():
    X, y = texts(np.random.default_rng(1), 12)
    tagger = m3n.SequenceTagger(lam=1.0, tol=1e-8, rtol=0.0).fit(X, y)
    proof = tagger.certify([[], [["new"], ["new", "newer"]], X[0]])
    assert list(map(len, proof.positions)) == [0, 2, len(X[0])]
    assert proof.examples[0] and proof.labels[0] == []
    assert tagger.certify([]).share == 1.0


def test_where_nothing_can_be_proven():
    X, y = sequences(np.random.default_rng(0))
    free = m3n.SequenceTagger("crf", lam=0.0, l1=0.01).fit(X, y)
    with pytest.raises(ValueError, match="nothing can be proven with lam=0"):
        free.certify(X)
    gram = np.concatenate(X) @ np.concatenate(X).T
    rows = np.split(gram, np.cumsum([len(x) for x in X])[:-1])
    with pytest.raises(ValueError, match="precomputed"):
        m3n.SequenceTagger(kernel="precomputed").fit(rows, y).certify(rows)


def test_sparse_matrices_as_dense_ones():
    X, y = sequences(np.random.default_rng(0), 20)
    settings = {"lam": 0.3, "tol": 1e-4, "rtol": 0.0}
    dense = m3n.SequenceTagger(**settings).fit(X, y)
    sparse = m3n.SequenceTagger(**settings).fit([scipy.sparse.csr_array(x) for x in X], y)
    one, other = dense.certify(X), sparse.certify([scipy.sparse.csr_array(x) for x in X])
    assert abs(one.share - other.share) < 0.1 and one.labels == other.labels


def changes(kind, data, settings, seed, tol):
    """As ``compared``, of any estimator; data are inputs and outputs of training, and other inputs."""
    X, y, new = data(np.random.default_rng(seed))
    loose, best = (kind(tol=t, rtol=0.0, lam=0.05, n_jobs=1, max_passes=400, **settings).fit(X, y) for t in (tol, 1e-9))
    proof, right = loose.certify(new), best.predict(new)
    assert all(np.array_equal(a, b) for a, b in zip(proof.labels, loose.predict(new), strict=True))
    same = [np.atleast_1d(np.asarray(a) == np.asarray(b)) for a, b in zip(proof.labels, right, strict=True)]
    return np.concatenate(proof.positions), np.concatenate([each.ravel() for each in same])


def sets(random, n=14):
    X, W = random.normal(size=(2 * n, 3)), random.normal(size=(3, 4))
    Y = (X @ W + random.normal(size=(2 * n, 4)) > 0.0).astype(int)
    return X[:n], Y[:n], X[n:]


def single(random):
    X, Y, new = sets(random)
    return X, Y.argmax(axis=1), new


def trees(random, n=8, features=True):
    """Trees whose neighbours tend to have the same label."""
    graphs, labels = [], []
    for count in random.integers(1, 6, 2 * n):
        edges = [(int(random.integers(k)), k) for k in range(1, count)]
        own = random.integers(3, size=count)
        nodes = np.eye(3)[own] + 0.7 * random.normal(size=(count, 3))
        parts = (nodes, np.array(edges, int).reshape(-1, 2))
        graphs.append((*parts, random.normal(size=(len(edges), 2))) if features else parts)
        labels.append(own.tolist())
    return graphs[:n], labels[:n], graphs[n:]


def plain_trees(random):
    return trees(random, features=False)


OTHERS = {
    "sets, pairs": (m3n.MultilabelClassifier, sets, {"strengths": {"pairs": 0.3}}),
    "sets, a tree": (m3n.MultilabelClassifier, sets, {"pairs": "tree", "objective": "crf"}),
    "sets, a kernel": (m3n.MultilabelClassifier, sets, {"pairs": "none", "kernel": "rbf", "support_tol": 0.1}),
    "single labels": (m3n.MultilabelClassifier, single, {}),
    "single labels, a kernel": (m3n.MultilabelClassifier, single, {"kernel": "poly", "objective": "crf"}),
    "trees": (m3n.GraphLabeler, trees, {}),
    "trees without features": (m3n.GraphLabeler, plain_trees, {"objective": "crf"}),
    "trees, both ways": (
        m3n.GraphLabeler, trees,
        {"directed": False, "symmetric_edge_features": [0], "antisymmetric_edge_features": [1]},
    ),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:training stopped early")
@pytest.mark.parametrize("name", OTHERS)
def test_labels_of_other_positions(name):
    kind, data, settings = OTHERS[name]
    found = [changes(kind, data, settings, seed, tol) for seed, tol in enumerate([0.3, 1e-2, 1e-5])]
    final, same = (np.concatenate(each) for each in zip(*found, strict=True))
    assert same[final].all() and final.any()


def test_relaxed_graphs_are_refused():
    pictures = [np.random.default_rng(k).normal(size=(3, 3, 1)) for k in range(3)]
    graphs, labels = [m3n.grid_graph(p) for p in pictures], [(p[..., 0] > 0).astype(int) for p in pictures]
    model = m3n.GraphLabeler(inference="relaxed", lam=0.5, tol=0.1).fit(graphs, labels)
    with pytest.raises(ValueError, match="nothing can be proven of a relaxation"):
        model.certify(graphs)


def test_other_weights_than_the_optimum():
    """Within 0 of the model nothing changes; far away anything may."""
    X, y = sequences(np.random.default_rng(0), 20)
    tagger = m3n.SequenceTagger(lam=0.3).fit(X, y)
    assert tagger.certify(X, radius=0.0).share == 1.0
    assert tagger.certify(X, radius=1e6).share == 0.0
    with pytest.raises(ValueError, match="radius must not be negative"):
        tagger.certify(X, radius=-1.0)


def test_with_a_prior_and_with_held_out_sequences():
    """The optimum is that of the objective with the prior; weights that are kept early have a radius of their own."""
    for seed in range(6):
        random = np.random.default_rng(seed)
        X, y = texts(random, 36)
        earlier = m3n.SequenceTagger("crf", lam=0.1).fit(X[:12], y[:12])
        settings = {"objective": "crf", "lam": 0.1, "prior": earlier, "observed_only": seed % 2 == 1}
        best = m3n.SequenceTagger(tol=1e-9, rtol=0.0, **settings).fit(X[12:24], y[12:24])
        for more in ({}, {"validation": (X[24:30], y[24:30]), "patience": 1}):
            tagger = m3n.SequenceTagger(tol=10.0**-seed, rtol=0.0, **settings, **more).fit(X[12:24], y[12:24])
            away = np.concatenate([(tagger.transitions_ - best.transitions_).ravel(), tagger.start_ - best.start_])
            assert np.linalg.norm(away) <= tagger.radius_ + best.radius_
            proof, right = tagger.certify(X[24:]), best.predict(X[24:])
            for labels, final, others in zip(proof.labels, proof.positions, right, strict=True):
                assert all(a == b for a, b, sure in zip(labels, others, final, strict=True) if sure)


def test_labels_that_were_not_all_known(tmp_path):
    X, y = texts(np.random.default_rng(0))
    y[0][0] = None
    tagger = m3n.SequenceTagger("crf", lam=1.0).fit(X, y)
    tagger.save(tmp_path / "model.m3n")
    for model in (tagger, m3n.load(tmp_path / "model.m3n")):
        with pytest.raises(ValueError, match="one of the last convex round only"):
            model.certify(X)


def test_training_until_predictions_are_final():
    random = np.random.default_rng(5)
    X, y = sequences(random, 60)
    for more in ({"validation": (X[40:], y[40:])}, {"validation": 0.3, "objective": "crf"}):
        tagger = m3n.SequenceTagger(lam=0.1, stop="predictions", **more).fit(X[:40], y[:40])
        assert tagger.status_ == "predictions are final"
        shares = [record.metrics["final"] for record in tagger.trace_ if "final" in record.metrics]
        assert shares[-1] >= 0.99 > shares[-2]
    proof = m3n.SequenceTagger(lam=0.1, stop=0.8, validation=(X[40:], y[40:])).fit(X[:40], y[:40]).certify(X[40:])
    assert proof.share >= 0.8
    x, sets_of, new = sets(random)
    model = m3n.MultilabelClassifier(lam=0.1, stop="predictions", validation=(new, sets_of)).fit(x, sets_of)
    assert model.certify(new).share >= 0.99
    with pytest.warns(match="before enough predictions were final"):
        m3n.SequenceTagger(stop="predictions", max_passes=3, validation=0.2).fit(X, y)


@pytest.mark.parametrize(
    ("kind", "settings", "match"),
    [
        (m3n.SequenceTagger, {"stop": "predictions"}, "give validation="),
        (m3n.SequenceTagger, {"stop": "never", "validation": 0.5}, 'stop must be "gap", "predictions" or a share'),
        (m3n.SequenceTagger, {"stop": 1.5, "validation": 0.5}, "got 1.5"),
    ],
)
def test_wrong_ways_to_stop(kind, settings, match):
    X, y = sequences(np.random.default_rng(0))
    with pytest.raises(ValueError, match=match):
        kind(**settings).fit(X, y)


def test_a_gap_of_rounding_is_no_gap_of_zero():
    """What is printed as 0 may be the last digit of J: the optimum need not be the model."""
    X, y = sequences(np.random.default_rng(0), 20)
    tagger = m3n.SequenceTagger("crf", lam=1e-3, tol=0.0, rtol=0.0, max_passes=1000).fit(X, y)
    known = tagger.certificate_
    assert known.gap == 0.0
    assert tagger.radius_ >= np.sqrt(1e-12 * known.primal / tagger.lam_) > 0.0
