"""Folders that are made whole or not at all, and places from which files are fetched."""

import errno
import os
import subprocess
import sys

import numpy as np
import pytest

import m3n
from m3n.shards import arrays, reader
from m3n.shards.sizes import bytes_of, in_words
from tests.shards.corpora import labels_for, lengths, lists

X, Y = [[["a"], ["b"]], [["a"]]], [[0, 1], [1]]


@pytest.fixture(autouse=True)
def not_opened_before():
    reader.CHECKED.clear()


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_folders_that_are_not_empty_are_refused(tmp_path):
    folder = tmp_path / "packed"
    folder.mkdir()
    first = m3n.pack(X, Y, folder)  # an empty one will do
    with pytest.raises(FileExistsError, match=r"is not empty; choose another one, or replace it \(--force\)"):
        m3n.pack(X, Y, folder)
    (folder / "notes.txt").write_text("mine")
    second = m3n.pack(X[:1], Y[:1], folder, force=True, shard_size=1)
    assert second.digest != first.digest
    assert (folder / "notes.txt").read_text() == "mine"
    assert len(m3n.pack(X, Y, folder, force=True, shard_size=1)) == 2
    m3n.pack(X, Y, folder, force=True)
    assert len([name for name in names(folder) if name.startswith("shard")]) == 1


def test_what_is_not_packed_is_never_replaced(tmp_path):
    (tmp_path / "thesis.tex").write_text("mine")
    with pytest.raises(FileExistsError, match="what is in it cannot be replaced"):
        m3n.pack(X, Y, tmp_path, force=True)
    with pytest.raises(FileExistsError, match="is a file; choose a folder"):
        m3n.pack(X, Y, tmp_path / "thesis.tex")
    with pytest.raises(FileNotFoundError, match="does not exist"):
        m3n.pack(X, Y, tmp_path / "nowhere" / "packed")
    with pytest.raises(ValueError, match="cannot pack to the URL"):
        m3n.pack(X, Y, "s3://bucket/packed")
    assert names(tmp_path) == ["thesis.tex"]


def failing(X, after):
    yield from X[:after]
    raise KeyboardInterrupt


def test_what_is_interrupted_leaves_nothing(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        m3n.pack(failing(X, 1), Y, tmp_path / "packed")
    assert names(tmp_path) == []
    old = m3n.pack(X, Y, tmp_path / "packed")
    with pytest.raises(KeyboardInterrupt):
        m3n.pack(failing(X, 1), Y, tmp_path / "packed", force=True)
    assert m3n.Shards(tmp_path / "packed").digest == old.digest
    old.open(0)


@pytest.mark.parametrize("step", ["numbering", "writing", "tables", "moving"])
def test_what_fails_at_any_step_leaves_nothing(step, tmp_path, monkeypatch):
    places = {
        "numbering": "m3n.shards.numbering.by_frequency", "writing": "m3n.shards.packer.ShardWriter.add",
        "tables": "m3n.shards.observed.Seen.write", "moving": "m3n.shards.manifest.Manifest.write",
    }  # fmt: skip

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(places[step], full)
    with pytest.raises(OSError, match="No space left on device"):
        m3n.pack(X, Y, tmp_path / "packed")
    assert names(tmp_path) == []


def test_a_disk_that_is_full(random, tmp_path, monkeypatch):
    sizes = lengths(random)
    written = [0]
    write = arrays._write

    def limited(file, digest, content):
        written[0] += len(content)
        if written[0] > 5000:
            raise OSError(errno.ENOSPC, "No space left on device")
        write(file, digest, content)

    monkeypatch.setattr(arrays, "_write", limited)
    with pytest.raises(OSError, match="No space left on device"):
        m3n.pack(lists(random, sizes), labels_for(random, sizes), tmp_path / "packed")
    assert names(tmp_path) == []


KILLED = """
import os, m3n
def sequences():
    yield [["a"], ["b"]]
    os._exit(7)
m3n.pack(sequences(), [[0, 1], [1]], "packed")
"""


def test_what_is_killed_is_no_packed_data(tmp_path):
    result = subprocess.run([sys.executable, "-c", KILLED], cwd=tmp_path)
    assert result.returncode == 7
    with pytest.raises(m3n.ShardError, match=r"holds no manifest.json: packing did not come to its end"):
        m3n.Shards(tmp_path / "packed")
    with pytest.raises(FileExistsError, match="is not empty"):
        m3n.pack(X, Y, tmp_path / "packed")


@pytest.fixture
def fsspec():
    return pytest.importorskip("fsspec")


def same(one, other):
    assert one.digest == other.digest
    for i in range(len(one)):
        found, expected = one.open(i), other.open(i)
        np.testing.assert_array_equal(found.matrix.toarray(), expected.matrix.toarray())
        np.testing.assert_array_equal(found.labels, expected.labels)
    assert one.attributes() == other.attributes()
    np.testing.assert_array_equal(one.transitions, other.transitions)


@pytest.mark.parametrize("kind", ["file", "memory"])
def test_urls(kind, tmp_path, fsspec):
    local = m3n.pack(X, Y, tmp_path / "packed", shard_size=1)
    url = f"file://{tmp_path}/packed"
    if kind == "memory":
        url = "memory://bucket/packed"
        fsspec.filesystem("memory").put(f"{tmp_path}/packed", "/bucket/packed", recursive=True)
    shards = m3n.Shards(url, cache=tmp_path / "cache")
    assert not (tmp_path / "cache").exists()  # nothing but the manifest has been fetched
    assert shards.sequences.tolist() == [1, 1]
    same(shards, local)
    (folder,) = (tmp_path / "cache").iterdir()
    assert len(names(folder)) == 4
    same(m3n.Shards(url + "/", cache=tmp_path / "cache"), local)
    assert len(names(folder)) == 4


def test_what_was_fetched_is_used_again_and_mended(tmp_path, fsspec):
    local = m3n.pack(X, Y, tmp_path / "packed")
    shards = m3n.Shards(f"file://{tmp_path}/packed", cache=tmp_path / "cache")
    shards.open(0)
    (folder,) = (tmp_path / "cache").iterdir()
    (copy,) = folder.iterdir()
    content = copy.read_bytes()
    copy.write_bytes(content[:-1] + b"?")
    reader.CHECKED.clear()
    same(m3n.Shards(f"file://{tmp_path}/packed", cache=tmp_path / "cache"), local)
    assert copy.read_bytes() == content
    time = copy.stat().st_mtime_ns
    reader.CHECKED.clear()
    m3n.Shards(f"file://{tmp_path}/packed", cache=tmp_path / "cache").open(0)
    assert copy.stat().st_mtime_ns == time


def test_the_cache_may_be_named_by_a_variable(tmp_path, fsspec, monkeypatch):
    m3n.pack(X, Y, tmp_path / "packed")
    url = f"file://{tmp_path}/packed"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    m3n.Shards(url).open(0)
    assert (tmp_path / "home" / "m3n" / "shards").is_dir()
    monkeypatch.setenv("M3N_SHARD_CACHE", str(tmp_path / "named"))
    reader.CHECKED.clear()
    m3n.Shards(url).open(0)
    assert len(names(tmp_path / "named")) == 1


def test_damage_at_a_url_is_refused_by_its_name(tmp_path, fsspec):
    m3n.pack(X, Y, tmp_path / "packed")
    url, file = f"file://{tmp_path}/packed", tmp_path / "packed" / "shard-00000.safetensors"
    content = file.read_bytes()
    shards = m3n.Shards(url, cache=tmp_path / "cache")
    file.write_bytes(content[:-1] + b"?")
    with pytest.raises(m3n.ShardError, match=r"file://.*/shard-00000.safetensors: checksum differs"):
        shards.open(0)
    file.write_bytes(content + b"?")
    with pytest.raises(m3n.ShardError, match=r"shard-00000.safetensors has \d+ bytes, the manifest says"):
        shards.open(0)
    with pytest.raises(m3n.ShardError, match=r"file://.*/shard-00000.safetensors has \d+ bytes, the manifest says"):
        m3n.Shards(url)
    file.unlink()
    with pytest.raises(m3n.ShardError, match=r"shard-00000.safetensors is missing"):
        shards.open(0)
    with pytest.raises(m3n.ShardError, match=r"shard-00000.safetensors is missing"):
        m3n.Shards(url)
    (tmp_path / "packed" / "manifest.json").unlink()
    with pytest.raises(m3n.ShardError, match=r"manifest.json is not there: packing did not come to its end"):
        m3n.Shards(url)
    (folder,) = (tmp_path / "cache").iterdir()
    assert names(folder) == []


def test_urls_need_fsspec(monkeypatch):
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(ImportError, match=r"needs fsspec to be read: pip install 'm3n\[ray\]'"):
        m3n.Shards("s3://bucket/packed")


@pytest.mark.parametrize(
    ("text", "size"),
    [("1GB", 10**9), ("1.5 mb", 1_500_000), ("2GiB", 2**31), ("7", 7), (7, 7), ("3k", 3000), ("1 TB", 10**12)],
)
def test_sizes(text, size):
    assert bytes_of(text) == size


@pytest.mark.parametrize("text", ["", "GB", "-1", "1XB", "1iB", True, 0, "0", "1e400", None, 1.5 + 1j])
def test_sizes_that_are_none(text):
    with pytest.raises(ValueError, match="cache must be"):
        bytes_of(text, "cache")


@pytest.mark.parametrize(
    ("size", "words"), [(17, "17 bytes"), (1700, "1.7 kB"), (16_000_000, "16.0 MB"), (5e14, "500.0 TB")]
)
def test_sizes_in_words(size, words):
    assert in_words(size) == words


def test_nothing_but_the_manifest_makes_packed_data(tmp_path):
    shards = m3n.pack(X, Y, tmp_path / "packed")
    os.replace(tmp_path / "packed" / "manifest.json", tmp_path / "manifest.json")
    with pytest.raises(m3n.ShardError, match="holds no manifest"):
        m3n.Shards(tmp_path / "packed")
    os.replace(tmp_path / "manifest.json", tmp_path / "packed" / "manifest.json")
    assert m3n.Shards(tmp_path / "packed").digest == shards.digest
