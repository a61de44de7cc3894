"""Losses of estimators: weights of classes, and objectives that have none."""

import numpy as np
import pytest
from sklearn.base import clone

import m3n
from m3n.losses import CostMatrix, Hamming, NormalizedHamming


def sequences(n=12):
    random = np.random.default_rng(1)
    y = [random.choice(3, p=[0.7, 0.2, 0.1], size=4) for _ in range(n)]
    return [np.eye(3)[labels] + random.normal(size=(4, 3)) for labels in y], [
        ["ONP"[k] for k in labels] for labels in y
    ]


def graphs():
    X, y = sequences()
    return [(x, np.array([[0, 1], [1, 2], [2, 3]])) for x in X], [np.array(labels) for labels in y]


def segments():
    X, y = sequences()
    return X, [[(t, t + 1, label) for t, label in enumerate(labels)] for labels in y]


KINDS = {m3n.SequenceTagger: sequences, m3n.GraphLabeler: graphs, m3n.SegmentTagger: segments}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["hamming", "normalized_hamming"])
@pytest.mark.parametrize("weight", [{"P": 5.0, "N": 2.0}, "balanced"])
def test_class_weights_are_those_of_the_loss(kind, name, weight):
    loss = {"hamming": Hamming, "normalized_hamming": NormalizedHamming}[name](class_weight=weight)
    X, y = KINDS[kind]()
    models = [
        kind(lam=0.1, tol=1e-3, n_jobs=1, **settings).fit(X, y)
        for settings in ({"loss": name, "class_weight": weight}, {"loss": loss}, {"loss": name})
    ]
    np.testing.assert_array_equal(models[0].coef_, models[1].coef_)
    assert models[0].certificate_ == models[1].certificate_
    assert not np.allclose(models[0].coef_, models[2].coef_)


def test_class_weights_in_files_and_clones(tmp_path):
    X, y = sequences()
    model = m3n.SequenceTagger("softmax_margin", class_weight={"P": 5.0}, lam=0.1, n_jobs=1).fit(X, y)
    model.save(tmp_path / "model.m3n")
    assert m3n.load(tmp_path / "model.m3n").class_weight == {"P": 5.0}
    np.testing.assert_array_equal(clone(model).fit(X, y).coef_, model.coef_)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"class_weight": "heavy"}, "class_weight must be a mapping, 'balanced' or None, got 'heavy'"),
        ({"class_weight": {"Q": 2.0}}, "Q"),
        (
            {"class_weight": "balanced", "loss": CostMatrix({("P", "O"): 2.0})},
            "say in the loss itself what errors cost",
        ),
        ({"class_weight": "balanced", "loss": Hamming(class_weight={"P": 2.0})}, "without weights of their own"),
        ({"objective": "crf", "class_weight": "balanced"}, "has no loss that class_weight could weigh.*softmax_margin"),
        ({"objective": "crf", "loss": "normalized_hamming"}, "has no loss.*'margin', 'slack', 'softmax_margin'"),
        ({"objective": "crf", "loss": Hamming(class_weight={"P": 2.0})}, "would be ignored"),
    ],
)
def test_what_has_no_effect_is_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        m3n.SequenceTagger(**settings).fit(*sequences())


@pytest.mark.parametrize(
    "kind",
    [m3n.SequenceTagger, m3n.SegmentTagger, m3n.GraphLabeler, m3n.MultilabelClassifier, m3n.DependencyParser,
     m3n.ConstituencyParser],
)  # fmt: skip
def test_every_estimator_refuses_a_loss_that_it_would_ignore(kind):
    """Before it looks at the data."""
    with pytest.raises(ValueError, match="objective='crf' has no loss, loss='normalized_hamming' would be ignored"):
        kind(objective="crf", loss="normalized_hamming").fit([], [])


def test_the_default_loss_is_no_choice():
    X, y = sequences()
    usual = clone(m3n.SequenceTagger("crf", loss="hamming", lam=0.1, rtol=0.0, n_jobs=1)).fit(X, y)
    assert usual.get_params()["loss"] == "hamming"
    assert usual.certificate_.gap <= 1e-3
