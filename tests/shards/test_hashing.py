"""Attributes without a dictionary, and attributes that have the same key."""

import numpy as np
import pytest
import scipy.sparse

import m3n
from m3n.estimators.inputs import SequenceReader
from m3n.features import HashedAttributes, HashedTemplates, Templates
from m3n.features.hashed import NumberNames
from m3n.features.hashes import decoded, encoded, joined_hashes, text_hashes
from m3n.io import Sentences
from m3n.io.matrices import renumbered
from m3n.shards import names
from tests.shards.corpora import WORDS, columns, dicts, labels_for, lengths, lists, whole
from tests.shards.test_pack import check, small_blocks  # noqa: F401 (a fixture)


def test_keys_are_what_they_are_documented_to_be():
    """Written down, as models and packed data are read elsewhere, and later."""
    assert text_hashes([b":word"], 1).tolist() == [[16851350153865836455, 7439864463939896831]]
    columns = [np.array([1, 2], np.uint64), np.array([3, 3], np.uint64)]
    assert joined_hashes(columns).tolist()[0] == [18107108118898898902, 5397193437813088986]
    assert HashedAttributes(10).transform([[["a", "b"], {"word": "dog", "size": 2.0}]]).indices.tolist() == [
        151,
        772,
        572,
        986,
    ]
    made = HashedTemplates(Templates(["U0:%x[0,0]", "U1:%x[-1,0]"]), 10).transform(Sentences.of([[("a",)]]))
    assert made.indices.tolist() == [276, 360]


@pytest.mark.parametrize("attribute", [*WORDS, ("word", "dog"), ("a:b", ":"), ("", ""), ("3", "3:x"), ("犬", "\udcff")])
def test_attributes_as_bytes(attribute):
    assert decoded(encoded(attribute)) == attribute


def test_different_attributes_are_different_bytes():
    pairs = [(a, b) for a in WORDS for b in WORDS]
    assert len({encoded(one) for one in [*WORDS, *pairs]}) == len(WORDS) + len(pairs)


def test_seeds_give_other_keys(random):
    texts = [b"a", b"b"]
    assert not np.intersect1d(text_hashes(texts, 2, 0), text_hashes(texts, 2, 1)).size
    columns = [random.integers(9, size=5).astype(np.uint64)]
    assert not np.intersect1d(joined_hashes(columns, 0), joined_hashes(columns, 1)).size


@pytest.mark.parametrize("make", [lists, dicts])
def test_hashed_attributes(make, random, tmp_path, small_blocks):  # noqa: F811
    sizes = lengths(random)
    X, y = make(random, sizes), labels_for(random, sizes)
    shards = m3n.pack(X, y, tmp_path / "packed", hash_bits=20, shard_size=400)
    assert shards.width == 1 << 20
    matrix = scipy.sparse.vstack([shards.open(i).matrix for i in range(len(shards))], format="csc")
    again = shards.reader().vectorizer.transform([x for x in X if x])
    assert abs(again - matrix).max() == 0
    plain = m3n.pack(X, y, tmp_path / "plain")
    keys = text_hashes(map(encoded, plain.attributes()), plain.width)[:, 0] % (1 << 20)
    assert len(set(keys.tolist())) == plain.width  # none has another's number
    np.testing.assert_array_equal(matrix[:, keys.astype(int)].toarray(), whole(plain)[0])


def test_hashed_templates(random, tmp_path, small_blocks):  # noqa: F811
    templates = Templates(["U0:%x[0,0]", "U1:%x[-1,0]/%x[0,1]", "B1:%x[0,1]"])
    sizes = lengths(random)
    X, y = columns(random, sizes), labels_for(random, sizes)
    shards = m3n.pack(X, y, tmp_path / "packed", hash_bits=14, templates=templates)
    assert (shards.width, shards.pair_width) == (1 << 14, 1 << 14)
    reader = SequenceReader(*shards.reader())
    inputs = reader.read(X)
    matrix, *_, pairs = whole(shards)
    np.testing.assert_array_equal(inputs.matrix.toarray(), matrix)
    np.testing.assert_array_equal(inputs.pairs.toarray(), pairs)
    plain = whole(m3n.pack(X, y, tmp_path / "plain", templates=templates))
    assert matrix.sum() == plain[0].sum()
    assert len(np.unique(matrix, axis=1).T) == len(np.unique(plain[0], axis=1).T) + 1  # and one column of zeros
    assert shards.observed_edges.shape == (1 << 14, len(shards.classes) ** 2)


def test_numbers_that_attributes_share(random):
    matrix = HashedAttributes(1).transform([[["a", "b", "c"], ["a"], [], {"a": 3.0, "b": 2.0, "c": 1.0, "d": -1.0}]])
    assert matrix.has_canonical_format
    assert set(matrix.data[: matrix.indptr[1]]) == {1.0}
    assert matrix.indptr.tolist() == [0, 2, 3, 3, 5]
    assert matrix.toarray()[3].max() == 3.0


def test_renumbering(random):
    matrix = scipy.sparse.csr_array([[1.0, 2.0, 0.0], [0.0, 0.0, 0.0], [0.0, 5.0, 3.0]])
    assert renumbered(matrix, np.array([2, 0, -1]), 3).toarray().tolist() == [[2, 0, 1], [0, 0, 0], [5, 0, 0]]
    assert renumbered(matrix, np.array([1, 1, 1]), 2).toarray().tolist() == [[0, 2], [0, 0], [0, 5]]
    assert renumbered(matrix[:0], np.array([1, 1, 1]), 2).shape == (0, 2)


def test_names_are_numbers():
    found = NumberNames(4)
    assert list(found) == ["#0", "#1", "#2", "#3"]
    assert found[1:3] == ["#1", "#2"]
    assert len(NumberNames(1 << 30)) == 1 << 30


@pytest.fixture
def weak_keys(monkeypatch):
    """Keys of two bits, but for the seeds from 3 on; the second keys are as they are."""

    seeds = set()

    def weaken(owner, name):
        strong = getattr(owner, name)

        def weak(*arguments):
            found = strong(*arguments)
            seeds.add(arguments[-1])
            if arguments[-1] < 3:
                found[:, 0] %= np.uint64(4)
            return found

        monkeypatch.setattr(owner, name, weak)

    weaken(names, "text_hashes")
    weaken(names, "tuple_keys")
    return seeds


@pytest.mark.parametrize("columned", [False, True])
def test_attributes_with_the_same_key_are_told_apart(columned, random, tmp_path, weak_keys):
    sizes = lengths(random)
    templates = Templates(["U0:%x[0,0]", "U1:%x[-1,0]/%x[0,1]", "B1:%x[0,1]"]) if columned else None
    X, y = (columns if columned else lists)(random, sizes), labels_for(random, sizes)
    check(m3n.pack(X, y, tmp_path / "packed", templates=templates), X, y, templates)
    assert {0, 1, 2, 3} <= weak_keys


def test_a_hash_that_is_none_is_refused(tmp_path, monkeypatch):
    def same_first_keys(texts, count, seed):
        return np.stack([np.zeros(count, np.uint64), np.arange(count, dtype=np.uint64)], axis=1)

    monkeypatch.setattr(names, "text_hashes", same_first_keys)
    with pytest.raises(RuntimeError, match="have the same keys, whatever the seed"):
        m3n.pack([[["a"], ["b"]]], [[0, 1]], tmp_path / "packed")
    assert not (tmp_path / "packed").exists()


def test_dictionaries_that_do_not_fit_are_refused_with_numbers(random, tmp_path, monkeypatch):
    monkeypatch.setattr("m3n.shards.numbering.EACH", 1_900_000)
    X = [[[f"a{k}"] for k in range(20)]]
    with pytest.raises(
        ValueError, match=r"more than 4 attributes that occur 1 times .* 16.0 MB: allow more memory, raise"
    ):
        m3n.pack(X, [[0] * 20], tmp_path / "packed", memory="16MB")
    m3n.pack(X, [[0] * 20], tmp_path / "packed", memory="16MB", hash_bits=8)


def test_values_of_columns_that_do_not_fit_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("m3n.shards.values.EACH", 3_000_000)
    X = [[(f"a{k}",) for k in range(20)]]
    with pytest.raises(ValueError, match=r"the values of columns take 60.0 MB, more than half of the memory, 16.0 MB"):
        m3n.pack(X, [[0] * 20], tmp_path / "packed", memory="16MB", templates=Templates(["U0:%x[0,0]"]))
