"""``m3n train --prior`` and ``--validation``: the same models as in Python, and the mistakes."""

import json

import numpy as np
import pytest

import m3n
from m3n.io import read_columns
from tests.cli.test_demo import plain
from tests.cli.test_toolbox import TEMPLATE, in_an_empty_folder, m3n_, sentences, trained, write  # noqa: F401


def further():
    """More sentences, some with words and labels that the first ones lack."""
    write("more.txt", sentences(count=6, seed=5) + "\n\nhello UH X\nthe DT B-NP\ncow NN I-NP\n\n")
    return "more.txt"


def test_prior_is_that_of_python():
    write("template", TEMPLATE)
    trained("-t", "template")
    told = m3n_("train", further(), "-m", "new.m3n", "--prior", "model.m3n", "--jobs", 1, "--lam", 0.01).output
    assert "no weights can get below" in plain(told)
    old, new = m3n.load("model.m3n"), m3n.load("new.m3n")
    assert new.classes_.tolist() == ["B-NP", "I-NP", "O", "X"]
    assert set(old.reader_.vectorizer.names) < set(new.reader_.vectorizer.names)
    X = read_columns("more.txt")
    settings = {"templates": old.templates, "lam": 0.01, "tol": 0.0, "rtol": 0.01, "n_jobs": 1}
    same = m3n.SequenceTagger(prior=old, **settings).fit(X, X.labels)
    np.testing.assert_array_equal(new.coef_, same.coef_)
    assert new.certificate_ == same.certificate_
    write("rest.txt", sentences(seed=9))
    before, after = (
        json.loads(m3n_("evaluate", "rest.txt", "-m", model, "--json").stdout) for model in ("model.m3n", "new.m3n")
    )
    assert before.keys() == after.keys()


def test_validation_is_that_of_python():
    write("held.txt", sentences(seed=3))
    told = plain(trained("--validation", "held.txt", "--patience", 1, "--tol", 1e-6, "--rtol", 0).output)
    assert "Stopped early: no better on held-out data." in told
    assert "at the weights that are kept" in told
    model, X, held = m3n.load("model.m3n"), read_columns("train.txt"), read_columns("held.txt")
    settings = {"templates": model.templates, "lam": 5 / 40, "tol": 1e-6, "rtol": 0.0, "n_jobs": 1}
    same = m3n.SequenceTagger(validation=(held, held.labels), patience=1, **settings).fit(X, X.labels)
    np.testing.assert_array_equal(model.coef_, same.coef_)
    report = m3n_("train", "train.txt", "-m", "m", "--validation", "held.txt", "--report", "page.html", "--json")
    assert any("held.txt: score" in remark for remark in json.loads(report.stdout)["remarks"])


def test_class_weight_balanced_is_that_of_python():
    trained("--class-weight", "balanced", "--rtol", 0, "--tol", 1e-4)
    model, X = m3n.load("model.m3n"), read_columns("train.txt")
    settings = {"templates": model.templates, "lam": 5 / 40, "tol": 1e-4, "rtol": 0.0, "n_jobs": 1}
    balanced = m3n.SequenceTagger(class_weight="balanced", **settings).fit(X, X.labels)
    np.testing.assert_array_equal(model.coef_, balanced.coef_)
    assert model.class_weight == "balanced"
    labels, counts = np.unique(np.concatenate(X.labels), return_counts=True)
    weights = dict(zip(labels.tolist(), counts.sum() / (len(counts) * counts), strict=True))
    written = m3n.SequenceTagger(class_weight=weights, **settings).fit(X, X.labels)
    np.testing.assert_allclose(written.coef_, balanced.coef_, atol=1e-12)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--prior", "none.m3n"), "none.m3n"),
        (("--prior", "train.txt"), "--prior"),
        (("--prior", "sets.m3n"), "holds a MultilabelClassifier, but --task sequences trains a SequenceTagger"),
        (("--prior", "model.m3n", "--l1", 0.1, "--objective", "crf"), "pulls weights to 0 and prior to others"),
        (("--validation", "none.txt"), "none.txt"),
        (("--patience", 0), "--patience"),
    ],
    ids=str,
)
def test_mistakes(options, words):
    trained()
    random = np.random.default_rng(0)
    m3n.MultilabelClassifier().fit(random.normal(size=(6, 2)), np.eye(2, dtype=int)[[0, 1] * 3]).save("sets.m3n")
    assert words in " ".join(plain(m3n_("train", "train.txt", "-m", "m.m3n", *options, code=2).output).split())
