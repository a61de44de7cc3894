"""What models say about themselves: sizes counted from scratch, largest weights by sorting, before and after a file."""

import json

import numpy as np
import pytest
import scipy.sparse

import m3n
from m3n.estimators import summary, top_weights
from m3n.features import Templates

WORDS = [[["w=the", "t"], ["w=dog"], ["w=barks"]], [["w=dogs"], ["w=bark"]], [["w=the", "t"], ["w=bark"]]]
TAGS = [["D", "N", "V"], ["N", "V"], ["D", "N"]]


def tagger(**settings):
    return m3n.SequenceTagger(**{"n_jobs": 1, "tol": 1e-4} | settings).fit(WORDS, TAGS)


def labeler():
    graph = (np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([[0, 1]]), np.array([[1.0]]))
    return m3n.GraphLabeler(n_jobs=1).fit([graph], [["A", "B"]])


def classifier():
    X, Y = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.5], [1.0, 1.0, 0.2]]), np.array([[0, 1], [1, 0], [1, 1]])
    return m3n.MultilabelClassifier(n_jobs=1, lam=0.1).fit(X, Y)


def segmenter():
    segments = [[(0, 2, "NP"), (2, 3, "VP")], [(0, 1, "NP"), (1, 2, "VP")], [(0, 2, "NP")]]
    return m3n.SegmentTagger(n_jobs=1).fit(WORDS, segments)


ARRAYS = {
    tagger: ("coef_", "transitions_", "start_", "end_"),
    labeler: ("coef_", "pairs_", "edge_coef_"),
    classifier: ("coef_", "intercept_", "tables_"),
    segmenter: ("coef_", "transitions_", "start_", "end_", "segment_coef_"),
}


@pytest.mark.parametrize("make", ARRAYS)
def test_facts_of_every_estimator_before_and_after_a_file(make, tmp_path):
    model = make()
    facts = summary(model)
    arrays = [getattr(model, name) for name in ARRAYS[make]]
    assert facts["kind"] == type(model).__name__
    assert facts["labels"] == model.classes_.tolist()
    assert facts["attributes"] == model.coef_.shape[0]
    assert facts["weights"] == sum(array.size for array in arrays)
    assert facts["nonzero_weights"] == sum(int((array != 0).sum()) for array in arrays)
    assert facts["bytes"] == 8 * facts["weights"]
    assert facts["solver"] == type(model.solver_).__name__
    assert facts["lam"] == model.lam_
    assert facts["temperature"] == (1.0 if make is tagger else None)
    certificate = model.certificate_
    assert facts["certificate"] == {
        "primal": certificate.primal,
        "dual": certificate.dual,
        "gap": certificate.gap,
        "relaxed": certificate.relaxed,
    }
    assert facts["status"] == "tolerance reached"
    assert (facts["passes"], facts["seconds"]) == (model.trace_[-1].passes, model.trace_[-1].seconds)
    assert facts["version"] == m3n.__version__
    assert facts["parameters"]["n_jobs"] == 1
    assert "loss" not in facts["parameters"]
    model.save(tmp_path / "model")
    loaded = m3n.load(tmp_path / "model")
    assert summary(loaded) == json.loads(json.dumps(facts, allow_nan=False))
    assert top_weights(loaded, 2) == top_weights(model, 2)
    assert loaded._repr_html_() == model._repr_html_()


def test_pairs_and_observed_weights_count():
    model = m3n.SequenceTagger(
        n_jobs=1, templates=Templates(["U:%x[0,0]", "B0:%x[0,0]"]), observed_only=True, l1=0.02, objective="crf"
    ).fit([[(word[0],) for word in x] for x in WORDS], TAGS)
    facts = summary(model)
    tables = model.transitions_.size + 2 * len(model.classes_)
    assert facts["weights"] == model.coef_.nnz + model.edge_coef_.nnz + tables
    assert facts["nonzero_weights"] < facts["weights"]
    sparse = (model.coef_, model.edge_coef_)
    stored = sum(part.nbytes for matrix in sparse for part in (matrix.data, matrix.indices, matrix.indptr))
    assert facts["bytes"] == stored + 8 * tables


def test_kernel_models_count_what_they_keep():
    X = [np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([[1.0, 1.0]])]
    model = m3n.SequenceTagger(kernel="rbf", n_jobs=1).fit(X, [["A", "B"], ["B"]])
    facts = summary(model)
    assert facts["support"] == model.kernel_model_.size
    assert facts["weights"] == model.kernel_model_.coefficients.size + 4 + 2 + 2
    with pytest.raises(ValueError, match="a kernel model has no weights of attributes"):
        top_weights(model)
    assert "support inputs" in model._repr_html_()


def test_an_imported_model_has_no_certificate():
    model = tagger()
    model.certificate_, model.status_, model.trace_, model.lam_ = None, None, [], None
    del model.solver_, model.reason_, model.origin_
    facts = summary(model)
    absent = ("certificate", "status", "passes", "seconds", "solver", "lam", "version")
    assert {facts[name] for name in absent} == {None}
    assert "no certificate" in model._repr_html_()


def test_a_model_must_be_fitted():
    for function in (summary, top_weights):
        with pytest.raises(ValueError, match="not fitted"):
            function(m3n.SequenceTagger())


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(("attributes", "k"), [(1, 2), (3, 2), (4, 2), (4, 3), (5, 2), (60, 2)])
def test_top_weights_are_those_of_sorting(attributes, k, sparse, random):
    model = tagger()
    coef = random.integers(-6, 7, size=(attributes, 3)).astype(float)  # with zeros and ties
    coef[:, 1], coef[:, 2] = -1.0 - np.arange(attributes), 1.0 + np.arange(attributes)  # of one sign
    model.coef_ = scipy.sparse.csr_array(coef) if sparse else coef
    model.n_features_in_, model.reader_.vectorizer = attributes, None
    found = top_weights(model, k)
    for column, label in enumerate("DNV"):
        ordered = sorted(coef[:, column].tolist())
        largest = [w for w in ordered[::-1][:k] if w > 0]
        smallest = [w for w in ordered[:k][::-1] if w < 0]
        assert [weight for _, weight in found[label]] == largest + smallest
        assert len({name for name, _ in found[label]}) == len(found[label])
        for name, weight in found[label]:
            assert coef[int(name.removeprefix("x")), column] == weight
    with pytest.raises(ValueError, match="k must be a positive whole number"):
        top_weights(model, 0)


def test_top_weights_have_the_names_of_attributes():
    model = tagger()
    assert top_weights(model, 1)["D"][0][0] in ("w=the", "t")
    columns = [[(word[0],) for word in x] for x in WORDS]
    model = m3n.SequenceTagger(n_jobs=1, templates=Templates(["U:%x[0,0]"])).fit(columns, TAGS)
    name, weight = top_weights(model, 1)["D"][0]
    assert name == "U:w=the"
    assert weight == model.coef_[model.reader_.vectorizer.names.index(name), 0]
