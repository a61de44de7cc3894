"""Whatever is wrong with packed data is refused by the name of the file, before anything is allocated for it."""

import json
import struct

import numpy as np
import pytest

import m3n
from m3n.features import Templates
from m3n.shards import reader
from m3n.shards.arrays import layout, save

SHARD = "shard-00000.safetensors"
X, Y = [[("the", "DT"), ("dog", "NN")], [("a", "DT"), ("dog", "NN"), ("barks", "VB")]], [["B", "I"], ["B", "I", "O"]]


@pytest.fixture
def folder(tmp_path):
    """Packed data with everything in them."""
    templates = Templates(["U0:%x[0,0]", "U1:%x[0,1]", "B1:%x[0,1]"])
    m3n.pack(X, Y, tmp_path / "packed", templates=templates, sample_weight=[1.0, 2.0])
    return tmp_path / "packed"


@pytest.fixture(autouse=True)
def not_opened_before():
    reader.CHECKED.clear()


def manifest(folder, **changes):
    """Change the manifest."""
    path = folder / "manifest.json"
    known = json.loads(path.read_text())
    for name, change in changes.items():
        known[name] = change(known[name]) if callable(change) else change
    path.write_text(json.dumps(known))


def shard(folder, name, change, file=SHARD):
    """Change an array of a shard, and the manifest with it."""
    path = folder / file
    arrays = {name: array.copy() for name, array in m3n.shards.arrays.loaded(path).items()}
    arrays[name] = change(arrays[name])
    known = save(path, {name: array for name, array in arrays.items() if array is not None})
    key = "shards" if file == SHARD else "tables"
    manifest(folder, **{key: lambda entries: [e | known if e["file"] == file else e for e in entries]})


def first(**changes):
    return {"shards": lambda entries: [entries[0] | changes, *entries[1:]]}


def refused(folder, message):
    with pytest.raises((m3n.ShardError, FileNotFoundError), match=message):
        shards = m3n.Shards(folder)
        shards.open(0)
        _ = shards.transitions, shards.observed, shards.observed_edges, shards.reader()


def test_what_is_right_is_not_refused(folder):
    shards = m3n.Shards(folder)
    assert shards.open(0).matrix.shape == (5, 7)
    (folder / "notes.txt").write_text("an extra file is nobody's concern")
    m3n.Shards(folder).open(0)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format": "bread"}, "manifest.json is no manifest of shards"),
        ({"version": 2}, "manifest.json has format version 2 .* reads 1: pack again, or install the other version"),
        ({"version": None}, "format version None"),
        ({"kind": "images"}, "kind is 'images', not one of"),
        ({"width": -1}, "width is -1"),
        ({"width": 1.5}, "width is 1.5"),
        ({"width": 10**30}, "width is 1000000"),
        ({"width": 8}, "attributes.safetensors: it has 7 attributes, the manifest says 8"),
        ({"width": 2}, "an attribute is not below 2"),
        ({"pair_width": None}, "there are arrays that nobody needs: pair_data, pair_indices, pair_indptr"),
        ({"pair_width": "3"}, "pair_width is '3'"),
        ({"classes": []}, "there are no labels"),
        ({"classes": ["B", "I", 3]}, "labels are texts and numbers"),
        ({"classes": ["I", "B", "O"]}, "labels are not sorted"),
        ({"classes": ["B", "B", "O"]}, "labels are not sorted"),
        ({"classes": [["B"], ["I"], ["O"]]}, "labels are neither texts nor numbers"),
        ({"classes": ["B", "I"]}, "label_counts are not as many as classes"),
        ({"classes": ["B", "I"], "label_counts": [2, 3]}, "a label is not one of 0 to 1"),
        ({"classes": ["B", "I", "O", "P"], "label_counts": [2, 2, 1, 0]}, "tables of 4 labels have the shapes"),
        ({"label_counts": [2, 2, 2]}, "6 labels at 5 positions"),
        ({"label_counts": [2, 4, -1]}, "label_counts are no counts"),
        ({"weighted": 1}, "weighted is 1"),
        ({"weighted": False}, "there are arrays that nobody needs: weights"),
        ({"total_weight": 0}, "total_weight is 0"),
        ({"total_weight": "3"}, "total_weight is '3'"),
        ({"settings": None}, "settings are missing"),
        ({"settings": {}}, "settings are missing"),
        ({"shards": []}, "there is no shard"),
        ({"tables": []}, "tables.safetensors is not named"),
        (
            {"tables": lambda tables: [e for e in tables if "tables" in e["file"]]},
            "attributes.safetensors is not named",
        ),
        (first(file="../shard-00000.safetensors"), "'../shard-00000.safetensors' is no file of this folder"),
        (first(file="/etc/passwd"), "'/etc/passwd' is no file of this folder"),
        (first(file="tables.safetensors"), "a file is named twice"),
        (first(file="other.safetensors"), "other.safetensors is missing, which the manifest names"),
        (first(file=7), "7 is no file of this folder"),
        (first(bytes=7), "shard-00000.safetensors has [0-9]* bytes, the manifest says 7"),
        (first(bytes=2**70), "shard-00000.safetensors has 11805916207174113"),
        (first(checksum="0" * 32), "shard-00000.safetensors: checksum differs from the manifest: the file is damaged"),
        (first(checksum=None), "shard-00000.safetensors has no checksum"),
        (first(sequences=3), "the array 'lengths' has the type int64 and the shape"),
        (first(entries=2**40), "the array 'indices' has the type int32"),
        (first(positions=-5), "shard-00000.safetensors has -5 positions"),
        ({"surprise": 1}, "unexpected keyword argument"),
    ],
)
def test_manifests(folder, changes, message):
    manifest(folder, **changes)
    refused(folder, message)


@pytest.mark.parametrize("text", [b"{", b"\xff\xfe", b"[1]", b"7", b"[" * 100_000, b""])
def test_manifests_that_are_none(folder, text):
    (folder / "manifest.json").write_bytes(text)
    refused(folder, r"manifest.json is no (JSON|manifest)")


def test_members_that_are_missing(folder):
    known = json.loads((folder / "manifest.json").read_text())
    for name in known:
        if name not in ("m3n", "settings", "dropped"):
            rest = {key: value for key, value in known.items() if key != name}
            (folder / "manifest.json").write_text(json.dumps(rest))
            refused(folder, "manifest.json")


def test_folders_without_a_manifest(folder, tmp_path):
    refused(tmp_path / "nowhere", "there is no folder")
    (folder / "manifest.json").unlink()
    refused(folder, "holds no manifest.json: packing did not come to its end")


@pytest.mark.parametrize("file", [SHARD, "tables.safetensors", "attributes.safetensors"])
def test_damaged_files(folder, file):
    path = folder / file
    content = path.read_bytes()
    for damaged, message in (
        (content[:-1], "bytes, the manifest says"),
        (content + b"\0", "bytes, the manifest says"),
        (content[:-3] + bytes([content[-3] ^ 1]) + content[-2:], "checksum differs from the manifest"),
    ):
        path.write_bytes(damaged)
        refused(folder, f"{file}.*{message}")
    path.unlink()
    refused(folder, f"{file} is missing")


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("labels", lambda a: a + 1, "a label is not one of 0 to 2"),
        ("labels", lambda a: a - 1, "a label is not one of 0 to 2"),
        ("labels", lambda a: a.astype(np.int64), "the array 'labels' has the type int64"),
        ("labels", lambda a: None, "the array 'labels' is missing"),
        ("lengths", lambda a: a + 1, "lengths do not add up"),
        ("lengths", lambda a: np.array([0, 5]), "lengths do not add up"),
        ("weights", lambda a: -a, "a weight is not a positive number"),
        ("weights", lambda a: a * np.nan, "a weight is not a positive number"),
        ("indptr", lambda a: a[::-1].copy(), "rows do not end where entries end"),
        ("indptr", lambda a: a * np.array([1, 3, 1, 1, 1, 1], np.int32), "a row ends before it begins"),
        ("indices", lambda a: a + 100, "an attribute is not below 7"),
        ("indices", lambda a: -a, "an attribute is not below 7"),
        ("indices", lambda a: a[::-1].copy(), "the attributes of a row are not in ascending order"),
        ("indices", lambda a: a * 0, "the attributes of a row are not in ascending order"),
        ("data", lambda a: a * np.inf, "NaN or infinite input"),
        ("data", lambda a: np.ones(3), "the array 'data' has the type float64 and the shape"),
        ("pair_indices", lambda a: a + 100, "an attribute is not below"),
    ],
)
def test_contents_of_shards(folder, name, change, message):
    shard(folder, name, change)
    refused(folder, f"{SHARD}: {message}")


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("observed", lambda a: a[::-1].copy(), "pairs of attributes and labels are not in order"),
        ("observed", lambda a: a + 100, "pairs of attributes and labels are not in order"),
        ("observed", lambda a: None, "the array 'observed' is missing"),
        ("observed_pairs", lambda a: a - 100, "pairs of attributes and labels are not in order"),
        ("first_pairs", lambda a: a[:2], "tables of 3 labels have the shapes"),
        ("first_pairs", lambda a: None, "the array 'first_pairs' is missing"),
    ],
)
def test_contents_of_tables(folder, name, change, message):
    shard(folder, name, change, "tables.safetensors")
    refused(folder, f"tables.safetensors: {message}")


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("ends", lambda a: a * 2),
        ("ends", lambda a: None),
        ("letters", lambda a: a + 100),
        ("keys", lambda a: a[:-1]),
        ("keys", lambda a: a + 1000),
        ("key_tables", lambda a: a.ravel()),
        ("key_tables", lambda a: a[::-1].copy() * 3),
    ],
)
def test_contents_of_attributes(folder, name, change):
    shard(folder, name, change, "attributes.safetensors")
    with pytest.raises(m3n.ShardError, match=r"attributes.safetensors"):
        m3n.Shards(folder).reader()


def test_contents_of_names(tmp_path):
    m3n.pack([[["a", "b"]]], [[0]], tmp_path / "packed")
    shard(tmp_path / "packed", "ends", lambda a: np.append(a, a[-1]), "attributes.safetensors")
    with pytest.raises(m3n.ShardError, match=r"attributes.safetensors: it has 3 attributes, the manifest says 2"):
        m3n.Shards(tmp_path / "packed").reader()


def header(folder, text, length=None):
    """Another header of a file of the same size as the manifest says."""
    text += b" " * (-len(text) % 8)
    content = struct.pack("<Q", len(text) if length is None else length) + text
    (folder / SHARD).write_bytes(content)
    manifest(folder, **first(bytes=len(content), checksum=m3n.shards.arrays.checksum(folder / SHARD)))


def entry(dtype="F64", shape=(0,), offsets=(0, 0)):
    return json.dumps({"data": {"dtype": dtype, "shape": shape, "data_offsets": offsets}}).encode()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (entry(shape=[2**60], offsets=[0, 2**63 - 8]), "does not describe arrays"),
        (entry(shape=[2**40], offsets=[0, 2**43]), "is said to be at bytes"),
        (entry(shape=[2**40]), "of shape .* has 0 bytes"),
        (entry(shape=[2**31] * 4), "of shape .* has 0 bytes"),
        (entry(shape=[-1]), "does not describe arrays"),
        (entry(shape=[1.5]), "does not describe arrays"),
        (entry(shape="many"), "does not describe arrays"),
        (entry(offsets=[8, 8]), "it should begin at"),
        (entry(dtype="F99"), "does not describe arrays"),
        (b"[]", "does not describe arrays"),
        (b'{"data": 7}', "does not describe arrays"),
        (b"{}" + b"\0" * 8, "its header is no JSON"),
        (b"\xff\xff", "its header is no JSON"),
    ],
)
def test_headers(folder, text, message):
    header(folder, text)
    refused(folder, f"{SHARD}.*{message}")


def test_headers_of_a_huge_length(folder):
    header(folder, b"{}", 2**62)
    refused(folder, f"{SHARD}: a header of 4611686018427387904 bytes in a file of 16")


def test_arrays_that_overlap_or_leave_gaps(tmp_path):
    path = tmp_path / "file"
    for places in ([[0, 8], [0, 8]], [[0, 8], [16, 24]], [[0, 8], [8, 16]]):
        named = {f"a{k}": {"dtype": "I64", "shape": [1], "data_offsets": place} for k, place in enumerate(places)}
        text = json.dumps(named).encode()
        text += b" " * (-len(text) % 8)
        path.write_bytes(struct.pack("<Q", len(text)) + text + b"\0" * 24)
        with pytest.raises(m3n.ShardError, match=r"it should begin|its arrays end at"):
            layout(path)


def test_the_library_of_the_format_reads_the_same(folder):
    from safetensors.numpy import load_file

    for file in (SHARD, "tables.safetensors", "attributes.safetensors"):
        mine, theirs = m3n.shards.arrays.mapped(folder / file), load_file(folder / file)
        assert mine.keys() == theirs.keys()
        for name, array in mine.items():
            np.testing.assert_array_equal(array, theirs[name])
            assert array.dtype == theirs[name].dtype


def test_later_openings_look_at_sizes_only(folder, monkeypatch):
    shards = m3n.Shards(folder)
    shards.open(0)
    monkeypatch.setattr("m3n.shards.places.check_checksum", None)
    monkeypatch.setattr("m3n.shards.contents.Contents.check_values", None)
    shards.open(0)
    (folder / SHARD).write_bytes(b"short")
    with pytest.raises(m3n.ShardError, match="has 5 bytes"):
        shards.open(0)


@pytest.mark.parametrize("wrong", [1, -2, 10])
def test_shards_that_do_not_exist(folder, wrong):
    with pytest.raises(IndexError):
        m3n.Shards(folder).open(wrong)
