"""Models read shards as they read the sequences themselves, whatever dictionaries either has."""

from itertools import pairwise

import numpy as np
import pytest

import m3n
from m3n.estimators.inputs import SequenceReader
from m3n.estimators.packed_inputs import PackedInputs
from m3n.features import Templates
from tests.shards.corpora import columns, dense, dicts, labels_for, lengths, lists, sparse

TEMPLATES = Templates(["U0:%x[0,0]", "U1:%x[-1,0]/%x[0,1]", "U2:%x[1,0:suffix2]", "B1:%x[0,1]"])
KINDS = {"lists": lists, "dicts": dicts, "dense": dense, "sparse": sparse, "columns": columns}


def corpus(kind, random):
    sizes = lengths(random, 30)
    return KINDS[kind](random, sizes), labels_for(random, sizes)


def fitted(kind, X, y, **settings):
    templates = TEMPLATES if kind == "columns" else None
    return m3n.SequenceTagger(n_jobs=1, templates=templates, rtol=0.1, **settings).fit(X, y)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("settings", [{}, {"observed_only": True}])
def test_predictions_are_those_of_the_sequences(kind, settings, random, tmp_path):
    if kind == "dense" and settings:
        pytest.skip("dense attributes occur with every label")
    model = fitted(kind, *corpus(kind, random), **settings)
    X, y = corpus(kind, np.random.default_rng(1))
    shards = m3n.pack(X, y, tmp_path / "packed", templates=model.templates, shard_size=300)
    assert len(shards) > 1
    used, gold = [x for x, labels in zip(X, y, strict=True) if labels], [labels for labels in y if labels]
    assert model.predict(shards) == model.predict(used)
    assert model.predict(shards, decoding="posterior") == model.predict(used, decoding="posterior")
    assert model.score(shards) == pytest.approx(model.score(used, gold))
    marginals = [model.predict_marginals(X) for X in (shards, used)]
    np.testing.assert_allclose(np.concatenate(marginals[0]), np.concatenate(marginals[1]))
    assert [k[0][0] for k in model.predict_k_best(shards, 2)] == model.predict(used)
    maps = PackedInputs(shards, model.reader_)._maps
    assert (maps[0] is None) == (kind in ("dense", "sparse"))


def test_the_same_dictionary_needs_no_map(random, tmp_path):
    X, y = corpus("columns", random)
    model = fitted("columns", X, y)
    shards = m3n.pack(X, y, tmp_path / "packed", templates=TEMPLATES)
    model.reader_ = SequenceReader(*shards.reader())
    assert PackedInputs(shards, model.reader_)._maps == (None, None)


def test_weights_count_in_scores(random, tmp_path):
    X, y = corpus("lists", random)
    model, weights = fitted("lists", X, y), random.integers(0, 4, size=len(X)).astype(float)
    shards = m3n.pack(X, y, tmp_path / "packed", sample_weight=weights, shard_size=300)
    assert model.score(shards) == pytest.approx(model.score(X, y, weights))


def test_models_with_joined_names(tmp_path):
    X, y = [[{"word": "the"}, {"word": "dog"}], [{"word": "dogs"}]] * 4, [["D", "N"], ["N"]] * 4
    from m3n.compat.sklearn_crfsuite import CRF

    model = CRF(algorithm="lbfgs").fit(X, y)
    shards = m3n.pack(X, y, tmp_path / "packed")
    assert model.model_.predict(shards) == y


def test_templates_that_see_other_columns(random, tmp_path):
    """A model finds its attributes among those of more templates, and says so if it does not find them."""
    X, y = corpus("columns", random)
    model = m3n.SequenceTagger(n_jobs=1, rtol=0.1, templates=Templates(["U0:%x[0,0]", "U2:%x[1,0:suffix2]"])).fit(X, y)
    shards = m3n.pack(X, y, tmp_path / "more", templates=TEMPLATES)
    assert model.predict(shards) == model.predict([x for x in X if x])
    fewer = m3n.pack(X, y, tmp_path / "fewer", templates=Templates(["U0:%x[0,0]"]))
    with pytest.raises(ValueError, match=r"was packed without the template 'U2:%x\[1,0:suffix2\]', which is not how"):
        model.predict(fewer)
    padded = m3n.pack(X, y, tmp_path / "padded", templates=Templates(TEMPLATES.patterns, "none", "crf++"))
    with pytest.raises(ValueError, match=r"was packed with padding='none'"):
        model.predict(padded)


def test_hashed_attributes(random, tmp_path):
    X, y = corpus("lists", random)
    hashed = m3n.pack(X, y, tmp_path / "hashed", hash_bits=12)
    plain = m3n.pack(X, y, tmp_path / "plain")
    reader = SequenceReader(*hashed.reader())
    assert PackedInputs(hashed, reader)._maps == (None, None)
    with pytest.raises(ValueError, match="are numbered by a dictionary, and the model's are hashed to 12 bits"):
        PackedInputs(plain, reader)
    with pytest.raises(ValueError, match="are hashed to 12 bits, and the model's are numbered by a dictionary"):
        PackedInputs(hashed, SequenceReader(*plain.reader()))
    XX, yy = corpus("columns", random)
    one = m3n.pack(XX, yy, tmp_path / "one", hash_bits=12, templates=TEMPLATES)
    other = m3n.pack(XX, yy, tmp_path / "other", hash_bits=12, templates=Templates([*TEMPLATES.patterns, "U9:%x[1,1]"]))
    assert PackedInputs(one, SequenceReader(*one.reader()))._maps == (None, None)
    with pytest.raises(ValueError, match="was packed with other templates than the model was trained with"):
        PackedInputs(other, SequenceReader(*one.reader()))


def test_models_with_hashed_attributes_are_kept_in_files(random, tmp_path):
    """The model of shards has their reader; here it is given to one that was trained on the same matrix."""
    for kind in ("lists", "columns"):
        X, y = corpus(kind, random)
        shards = m3n.pack(X, y, tmp_path / kind, hash_bits=10, templates=TEMPLATES if kind == "columns" else None)
        shard = shards.open(0)
        ends = [0, *np.cumsum(shard.lengths).tolist()]
        rows = [shard.matrix[low:high] for low, high in pairwise(ends)]
        gold = PackedInputs(shards, SequenceReader(*shards.reader())).labels(shard)
        model = m3n.SequenceTagger(n_jobs=1, rtol=0.1).fit(rows, gold)
        expected = model.predict(rows)
        model.reader_ = SequenceReader(*shards.reader())
        if kind == "columns":
            model.edge_coef_ = np.zeros((1 << 10, len(model.classes_), len(model.classes_)))
        model.save(tmp_path / "model.m3n")
        again = m3n.load(tmp_path / "model.m3n")
        assert again.reader_.vectorizer.bits == 10
        assert again.predict([x for x in X if len(x)]) == again.predict(shards) == expected
        assert again.explain(max(X, key=len)).as_dict()["positions"]


def test_what_does_not_fit_is_refused(random, tmp_path):
    X, y = corpus("lists", random)
    model, shards = fitted("lists", X, y), m3n.pack(X, y, tmp_path / "lists")
    with pytest.raises(ValueError, match="fixed is for sequences, not for shards"):
        model.predict(shards, fixed=[None])
    with pytest.raises(ValueError, match="shards have labels and weights of their own"):
        model.score(shards, y)
    other = m3n.pack(*corpus("dense", random), tmp_path / "dense")
    with pytest.raises(ValueError, match="holds sequences of dense, but the model was trained on attributes"):
        model.predict(other)
    numbers = fitted("sparse", *corpus("sparse", random))
    with pytest.raises(ValueError, match="has 3 attributes per position, but the model was trained with 7"):
        numbers.predict(other)
