"""What is packed is what would be read at once, whatever the sequences are and however they are cut."""

import pickle

import numpy as np
import pytest
import scipy.sparse

import m3n
from m3n.estimators.packed_inputs import PackedInputs
from m3n.features import CHUNKING, Templates, observed_pairs, observed_transitions
from m3n.io import Sentences, unzip
from m3n.shards.labels import joint_labels
from tests.shards.corpora import (
    columns,
    dense,
    dicts,
    labels_for,
    lengths,
    lists,
    neighbours,
    read_at_once,
    sparse,
    whole,
)

KINDS = {"lists": lists, "dicts": dicts, "dense": dense, "sparse": sparse}
PATTERNS = ["U0:%x[0,0]", "U1:%x[-2,0]/%x[0,1]", "U2:%x[1,0:suffix2]", "bias", "B1:%x[0,1]", "B2:%x[-1,0]/%x[2,0]"]


@pytest.fixture
def small_blocks(monkeypatch):
    """Blocks and parts of a few sequences, as if memory were scarce."""
    monkeypatch.setattr("m3n.estimators.packing.MOST", 300)
    monkeypatch.setattr("m3n.estimators.packing.BLOCK", 16_000_000 // 4000)
    monkeypatch.setattr("m3n.estimators.block_rows.MOST_POSITIONS", 7)
    monkeypatch.setattr("m3n.shards.runs.MANY", 3)
    monkeypatch.setattr("m3n.shards.dictionary.TEXTS", 5)


def check(shards, X, y, templates=None, min_freq=1):
    """Compare with what the reader of estimators makes of the same sequences."""
    inputs, classes, gold, reader = read_at_once(X, y, templates, min_freq)
    matrix, sizes, labels, _, pairs = whole(shards)
    order = columns_of(shards, reader)
    expected = inputs.matrix if isinstance(inputs.matrix, np.ndarray) else inputs.matrix.toarray()
    np.testing.assert_array_equal(matrix[:, order], expected)
    np.testing.assert_array_equal(sizes, inputs.lengths)
    assert shards.classes.tolist() == classes.tolist()
    np.testing.assert_array_equal(labels, gold)
    np.testing.assert_array_equal(shards.label_counts, np.bincount(gold))
    np.testing.assert_array_equal(shards.transitions, observed_transitions(gold, inputs.lengths, len(classes)))
    pairs_seen, starts, ends = neighbours(labels, sizes)
    assert set(np.flatnonzero(shards.starts)) == starts
    assert set(np.flatnonzero(shards.ends)) == ends
    assert {tuple(p) for p in np.argwhere(shards.transitions)} == pairs_seen
    if shards.kind == "dense":
        assert shards.observed is None
    else:
        found = observed_pairs(inputs.matrix, gold, len(classes)).toarray()
        np.testing.assert_array_equal(shards.observed.toarray()[order], found)
    if inputs.pairs is not None:
        order = by_names(shards, reader, "pair_names")
        np.testing.assert_array_equal(pairs[:, order], inputs.pairs.toarray())
        joint = joint_labels(gold, inputs.lengths, len(classes))
        expected = observed_pairs(inputs.pairs, joint, len(classes) ** 2).toarray()
        np.testing.assert_array_equal(shards.observed_edges.toarray()[order], expected)
    assert shards.width == reader.width
    assert shards.pair_width == reader.pair_width
    assert shards.total_weight == len(sizes)
    assert shards.sequences.sum() == len(sizes)
    assert shards.positions.sum() == len(labels)


def columns_of(shards, reader):
    """The number in shards of every attribute that was read at once."""
    if shards.kind == "attributes":
        number = {attribute: k for k, attribute in enumerate(shards.attributes())}
        assert number == shards.reader().vectorizer.vocabulary
        return [number[attribute] for attribute in reader.vectorizer.vocabulary]
    return by_names(shards, reader, "names") if shards.kind == "columns" else slice(None)


def by_names(shards, reader, which):
    """The same by the names that templates give."""
    names = getattr(shards.reader().vectorizer, which)
    assert len(set(names)) == len(names)
    return [names.index(name) for name in getattr(reader.vectorizer, which)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shard_size", [None, 1, 700])
def test_round_trip(kind, shard_size, random, tmp_path, small_blocks):
    sizes = lengths(random)
    X, y = KINDS[kind](random, sizes), labels_for(random, sizes)
    shards = m3n.pack(X, y, tmp_path / "packed", shard_size=shard_size)
    check(shards, X, y)
    occupied = int((sizes > 0).sum())
    assert shards.dropped == {"empty": len(sizes) - occupied, "weightless": 0}
    assert len(shards) == {None: 1, 1: occupied}.get(shard_size, len(shards))
    assert (len(shards) > 1) == (shard_size is not None)
    assert sorted(path.name for path in (tmp_path / "packed").iterdir()) == sorted(
        ["manifest.json", *(entry["file"] for entry in shards.manifest.files)]
    )


@pytest.mark.parametrize("padding", ["symbols", "marks", "none"])
@pytest.mark.parametrize("scarce", [False, True])
def test_round_trip_of_templates(padding, scarce, random, tmp_path, request):
    if scarce:
        request.getfixturevalue("small_blocks")
    templates = Templates(PATTERNS, padding, syntax="m3n")
    sizes = lengths(random)
    X, y = columns(random, sizes), labels_for(random, sizes)
    check(m3n.pack(X, y, tmp_path / "lists", templates=templates), X, y, templates)
    sentences = Sentences.of(X)
    check(m3n.pack(sentences, y, tmp_path / "sentences", templates=templates, shard_size=500), sentences, y, templates)


def test_round_trip_of_wapiti(random, tmp_path, small_blocks):
    templates = Templates('u:1=%x[-6,0]\nu:2=%m[-1,0,"^.a"]\n*:3=%t[7,0,"o"]/%x[@1,0]', syntax="wapiti")
    sizes = lengths(random)
    X, y = columns(random, sizes), labels_for(random, sizes)
    shards = m3n.pack(iter(X), iter(y), tmp_path / "packed", templates=templates)
    assert sorted(shards.reader().vectorizer.names) == sorted(read_at_once(X, y, templates)[3].vectorizer.names)
    again = shards.reader().vectorizer.transform(Sentences.of([x for x in X if x]))
    np.testing.assert_array_equal(again.toarray(), whole(shards)[0])


@pytest.mark.parametrize("kind", ["lists", "dicts"])
def test_rare_attributes_are_left_out(kind, random, tmp_path, small_blocks):
    sizes = lengths(random)
    X, y = KINDS[kind](random, sizes), labels_for(random, sizes)
    shards = m3n.pack(X, y, tmp_path / "packed", min_freq=12)
    assert 0 < shards.width < m3n.pack(X, y, tmp_path / "all").width
    check(shards, X, y, min_freq=12)


def test_rare_attributes_of_templates_are_left_out(random, tmp_path, small_blocks):
    templates = Templates(PATTERNS, syntax="m3n")
    sizes = lengths(random)
    X, y = columns(random, sizes), labels_for(random, sizes)
    shards = m3n.pack(X, y, tmp_path / "packed", templates=templates, min_freq=5)
    inputs, _, _, reader = read_at_once(X, y, templates, 5)
    order = by_names(shards, reader, "names")
    np.testing.assert_array_equal(whole(shards)[0][:, order], inputs.matrix.toarray())
    assert shards.width == reader.width
    assert shards.pair_width == reader.pair_width


def test_frequent_attributes_come_first(tmp_path):
    shards = m3n.pack([[["b"], ["a", "c"]], [["a"], ["c"], ["d"]]], [[1, 2], [2, 1, 1]], tmp_path / "packed")
    assert shards.attributes() == ["a", "c", "b", "d"]


def test_generators_are_read_once_and_in_step(random, tmp_path):
    sizes = lengths(random)
    X, y = lists(random, sizes), labels_for(random, sizes)
    given = unzip(zip(X, y, strict=True))
    check(m3n.pack(*given, tmp_path / "packed"), X, y)


def test_labels_may_be_numbers(random, tmp_path):
    X = [[["a"], ["b"]], [["a"]]]
    shards = m3n.pack(X, [np.array([10, 9]), [-1]], tmp_path / "whole")
    assert shards.classes.tolist() == [-1, 9, 10]
    assert m3n.pack(X, [[0.5, 2.0], [1]], tmp_path / "broken").classes.tolist() == [0.5, 1.0, 2.0]


def test_weights(random, tmp_path, small_blocks):
    sizes = lengths(random)
    X, y, weights = lists(random, sizes), labels_for(random, sizes), random.integers(0, 3, size=len(sizes)) / 2
    shards = m3n.pack(iter(X), y, tmp_path / "packed", sample_weight=weights, shard_size=300)
    kept = (sizes > 0) & (weights > 0)
    assert shards.weighted
    np.testing.assert_array_equal(whole(shards)[3], weights[kept])
    assert shards.total_weight == weights[kept].sum()
    assert shards.dropped == {"empty": int((sizes == 0).sum()), "weightless": int(((sizes > 0) & (weights == 0)).sum())}
    used = [X[i] for i in np.flatnonzero(kept)]
    np.testing.assert_array_equal(whole(shards)[1], [len(x) for x in used])
    assert set(shards.attributes()) == {attribute for x in used for token in x for attribute in token}


def test_first_places_count_as_the_input_does(tmp_path):
    X = [[], [["a"]], [["a"]] * 3, [["a"]] * 2]
    places = m3n.pack(X, [[], [0], [1, 0, 1], [1, 0]], tmp_path / "packed", sample_weight=[1, 0, 1, 1]).first_places
    assert places.pairs.tolist() == [[[-1, -1], [2, 2]], [[2, 1], [-1, -1]]]
    assert places.starts.tolist() == [[-1, -1], [2, 0]]
    assert places.ends.tolist() == [[3, 1], [2, 2]]


def test_values_that_are_all_the_same_are_kept_once(tmp_path, small_blocks):
    plain = m3n.pack([[["a", "b"]] * 4] * 50, [[0, 1, 0, 1]] * 50, tmp_path / "plain")
    matrix = plain.open(0).matrix
    assert matrix.data.strides == (0,)
    assert matrix.has_canonical_format
    assert (matrix @ np.ones(2)).tolist() == [2.0] * 200
    late = m3n.pack([[["a"]] * 4] * 50 + [[{"a": 3.0}]], [[0, 1, 0, 1]] * 50 + [[1]], tmp_path / "late")
    assert late.open(0).matrix.data.tolist() == [1.0] * 200 + [3.0]


def test_sequences_without_any_attribute(tmp_path):
    shards = m3n.pack([[[], []], [["a"]]], [[0, 1], [1]], tmp_path / "packed", shard_size=1)
    assert [shards.open(i).matrix.toarray().tolist() for i in range(2)] == [[[0.0], [0.0]], [[1.0]]]
    assert shards.entries.tolist() == [0, 1]


def test_arrays_may_be_written_on_and_the_file_stays(tmp_path):
    shards = m3n.pack([[["a"]]], [[0]], tmp_path / "packed")
    shard = shards.open(0)
    assert shard.labels.flags.writeable
    shard.labels[0] = 7
    shard.matrix.indices[0] = 7
    assert shards.open(0).labels.tolist() == [0]
    assert shards.open(0).matrix.indices.tolist() == [0]


def test_shards_are_pickled_as_their_place(tmp_path):
    shards = m3n.pack([[["a"]]], [[0]], tmp_path / "packed")
    again = pickle.loads(pickle.dumps(shards))
    assert again.digest == shards.digest
    assert len(pickle.dumps(shards)) < 500
    assert repr(shards).endswith("packed'): 1 sequences, 1 positions")


def test_the_digest_tells_data_from_others(tmp_path):
    one, same, other = (
        m3n.pack([[["a"], [b]]], [[0, 1]], tmp_path / name).digest for name, b in (("1", "b"), ("2", "b"), ("3", "c"))
    )
    assert one == same != other


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ([[["a"]], [["b"], [7]]], [[0], [1, 0]], "sequence 1, position 1: a token must be a dict with string keys"),
        ([[["a"]], [["b"]]], [[0], [1, 0]], "sequence 1 has 1 positions in X but 2 labels in y"),
        ([[["a"]], [["b"]]], [[0], [None]], "sequence 1, position 0: a label must be a string or a number"),
        (
            [[["a"]], [["b"]] * 2],
            [["x"], ["y", 1]],
            "sequence 1, position 1: labels must be all strings or all numbers",
        ),
        ([[["a"]], [["b"]]], [[0]], "X has more sequences than y, which ends after 1"),
        ([[["a"]]], [[0], [1]], "y has more sequences than X, which ends after 1"),
        ([[], []], [[], []], "X is empty"),
        ([[["a"]], "word"], [[0], [0]], "sequence 1: expected a list of positions"),
        (["word"], [[0]], "sequence 0: expected a list of positions"),
        (
            [np.ones((1, 2)), np.ones((1, 3))],
            [[0], [1]],
            "sequence 1 has 3 attributes per position, but sequence 0 has 2",
        ),
        ([np.ones((1, 2)), [[1.0, np.nan]]], [[0], [1]], "sequence 1, position 0: NaN or infinite input"),
        ([[["a"]]], None, "y is missing"),
        ("word", [[0]], "expected a list of sequences"),
        ([[["a"]]], "0", "expected a list of sequences"),
    ],
)
def test_mistakes_are_named_with_their_place(X, y, message, tmp_path, monkeypatch):
    monkeypatch.setattr("m3n.estimators.packing.MOST", 1)
    with pytest.raises((ValueError, TypeError), match=message):
        m3n.pack(X, y, tmp_path / "packed")
    assert not (tmp_path / "packed").exists()


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([[("a", "b")], [("a", "b"), ("a",)]], "sequence 1, position 1: expected 2 columns"),
        ([[("a", "b")], [("a",)]], "sequence 1, position 0: expected 2 columns as in the tokens before, found 1"),
        ([[("a", "b")], [("a", 7)]], "sequence 1, position 0: a token must be a tuple of strings"),
        ([[("a",)], [("a",)]], "reads column 1, but the columns of the tokens are 0 to 0"),
    ],
)
def test_mistakes_in_columns_are_named_with_their_place(X, message, tmp_path, monkeypatch):
    monkeypatch.setattr("m3n.estimators.packing.MOST", 1)
    with pytest.raises((ValueError, TypeError), match=message):
        m3n.pack(X, [["x"] * len(x) for x in X], tmp_path / "packed", templates=Templates(PATTERNS, syntax="m3n"))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"memory": "1MB"}, "memory must be at least 16.0 MB, got 1.0 MB"),
        ({"memory": "much"}, "memory must be a number of bytes or a text such as"),
        ({"shard_size": -1}, "shard_size must be"),
        ({"min_freq": 0}, "min_freq must be a whole number from 1"),
        ({"min_freq": 9}, "no attribute occurs 9 times or more; lower min_freq"),
        ({"hash_bits": 40}, "hash_bits must be a whole number from 1 to 30"),
        ({"hash_bits": 4, "min_freq": 2}, "attributes are not counted"),
        ({"templates": ["U0:%x[0,0]"]}, "templates must be None or m3n.features.Templates"),
        ({"sample_weight": [1.0]}, "sample_weight has only 1 numbers"),
        ({"sample_weight": [1.0, 1.0, 1.0]}, "sample_weight has more numbers than X"),
        ({"sample_weight": [1.0, -1.0]}, r"sample_weight\[1\] is -1.0: weights must be finite and not negative"),
        ({"sample_weight": [0.0, 0.0]}, "no sequence that is not empty has a weight"),
    ],
)
def test_wrong_settings(settings, message, tmp_path):
    with pytest.raises((ValueError, TypeError), match=message):
        m3n.pack([[["a"]], [["b"]]], [[0], [1]], tmp_path / "packed", **settings)
    assert not (tmp_path / "packed").exists()


def test_matrices_have_no_names_to_count_or_hash(tmp_path):
    for settings, message in (({"min_freq": 2}, "min_freq is for attributes"), ({"hash_bits": 2}, "hash_bits is for")):
        with pytest.raises(ValueError, match=message):
            m3n.pack([np.ones((1, 2))], [[0]], tmp_path / "packed", **settings)


def test_columns_need_templates(tmp_path):
    with pytest.raises(TypeError, match="say which attributes to make of them"):
        m3n.pack(Sentences.of([[("a",)]]), [["x"]], tmp_path / "packed")


def test_words_that_are_no_labels(tmp_path):
    with pytest.raises(ValueError, match="look like words or numbers, not labels"):
        m3n.pack([[["a"]] * 300], [[f"w{k}" for k in range(300)]], tmp_path / "packed")


def test_data_frames(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"sentence": [0, 0, 1], "word": ["a", "b", "a"], "size": [1.5, 2.0, 0.0]})
    labels = pandas.Series(["x", "y", "x"])
    shards = m3n.pack(frame, labels, tmp_path / "packed")
    inputs, *_, reader = read_at_once(frame, labels)
    np.testing.assert_array_equal(whole(shards)[0][:, columns_of(shards, reader)], inputs.matrix.toarray())


def test_reader_reads_new_sequences_the_same_way(random, tmp_path):
    from m3n.estimators.inputs import SequenceReader

    sizes = lengths(random)
    for kind, make in {**KINDS, "columns": columns}.items():
        X, y = make(random, sizes), labels_for(random, sizes)
        shards = m3n.pack(X, y, tmp_path / kind, templates=CHUNKING if kind == "columns" else None)
        reader = SequenceReader(*shards.reader())
        found = reader.read(X).matrix
        np.testing.assert_array_equal(found if kind == "dense" else found.toarray(), whole(shards)[0])
        again = SequenceReader.unpacked(*reader.packed(), None).read(X).matrix
        assert scipy.sparse.issparse(again) == scipy.sparse.issparse(found)
        assert abs(again - found).max() == 0
        assert PackedInputs(shards, reader)._maps == (None, None)
