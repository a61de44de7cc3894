"""``m3n pack``: from data files of any size to packed shards, in memory that is bounded."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from m3n.cli.inputs import Reading, templates_for
from m3n.cli.options import console, print_json
from m3n.estimators.block_rows import Settings
from m3n.estimators.packing import Intake
from m3n.estimators.parts import Part
from m3n.io import Data, DataFileError, Sentences
from m3n.io.detection import recognise
from m3n.io.files import STANDARD, Held, Source, lines_of, name_of
from m3n.io.formats import FORMATS, OTHERS
from m3n.io.streams import batches
from m3n.shards import Shards
from m3n.shards.packer import Packer
from m3n.shards.sizes import in_words

SHARE = 256  # of the memory: the text that is read at a time
LEAST, MOST = 1 << 16, 1 << 22
TAB = "\t"


@dataclass(frozen=True)
class Wishes:
    """What was asked for.

    Attributes
    ----------
    output : Path
        The folder to write.
    settings : Settings
        How to pack.
    template : Path or Held or None
        A template file.
    force : bool
        Whether packed data may be replaced.
    encoding : str or None
        Of the files.
    json, quiet : bool
        Print JSON and nothing else; print nothing while it works.
    """

    output: Path
    settings: Settings
    template: Source | None = None
    force: bool = False
    encoding: str | None = None
    json: bool = False
    quiet: bool = False


def run(paths: list[Path], reading: Reading, wishes: Wishes) -> None:
    """Pack files, and say what has become of them.

    Parameters
    ----------
    paths : list of Path
        The files, one after another.
    reading : Reading
        How to read them.
    wishes : Wishes
        What to do.
    """
    if sum(os.fspath(path) == STANDARD for path in paths) > 1:
        raise ValueError("standard input can be read only once; name it once")
    files = Files(paths, reading, wishes)
    with _progress(not (wishes.json or wishes.quiet)) as tell, Packer(wishes.output, wishes.force, tell) as packer:
        intake: Intake | None = None
        for data in files.parts(tell):
            if intake is None:
                intake = Intake(packer, templates_for(data.X, wishes.template), files.settings(data))
            weights = None if data.weights is None else np.array(data.weights)
            intake.add(Part(data.X, data.y or [], weights, intake.sequences))
            del data
        assert intake is not None  # an empty file is an error
        intake.finish()
    _tell(Shards(wishes.output), wishes)


class Files:
    """The examples of files, part by part.

    Parameters
    ----------
    paths : list of Path
        The files.
    reading : Reading
        How to read them.
    wishes : Wishes
        What is done with them.
    """

    def __init__(self, paths: list[Path], reading: Reading, wishes: Wishes):
        self.paths, self.reading, self.wishes = paths, reading, wishes
        self._like: Data | None = None  # without its examples
        self._width = 0

    def settings(self, data: Data) -> Settings:
        """How these data are packed."""
        return self.wishes.settings._replace(padded=data.format == "svm_hmm")

    def parts(self, tell: Callable[[str, float], None]) -> Iterator[Data]:
        """All files, so many bytes at a time.

        Parameters
        ----------
        tell : callable
            Called with what is read, and how much of that has been.
        """
        size = min(max(self.wishes.settings.memory // SHARE, LEAST), MOST)
        total, done = sum(map(_size, self.paths)), 0
        for path in self.paths:
            for part in batches(path, self._format_of, self.wishes.encoding, size):
                yield self._read(part)
                done += len(part.content)
                tell(f"reading {name_of(path)}", min(done / total, 1.0) if total else 0.0)

    def _format_of(self, head: Held) -> str:
        """The format of a file, by its beginning; said if it was not named."""
        if self.reading.format is None:
            columns = self.reading.delimiter is not None or self.reading.label != -1
            found = recognise(head, kind="columns" if columns else None)
            if found.format in OTHERS:
                raise DataFileError(f"{head.name} holds no labels of sequences: it is {OTHERS[found.format]}")
            if self.reading.shown:
                console(errors=True).print(f"{head.name}: read as {found.format}, for {found.why}")
            self.reading = replace(self.reading, format=found.format, shown=False)
        if self.reading.format not in FORMATS:
            raise ValueError(f"unknown format {self.reading.format!r}; choose one of {', '.join(FORMATS)}")
        return self.reading.format

    def _read(self, part: Held) -> Data:
        data = self.reading.labelled(part)
        if isinstance(data.X, Sentences):
            width = len(data.X.columns)
            if self._width not in (0, width):
                what = f"expected {self._width + 1} columns as in the lines before, found {width + 1}"
                raise DataFileError.at(part, 1, what)
            self._width = width
            if self.reading.delimiter is None and data.X.delimiter == TAB and data.format == "columns":
                self.reading = replace(self.reading, delimiter=TAB)  # as where the file began
        if data.format == "json_lines":  # the one that has numbers
            self._check_labels(part, data)
        self._like = self._like or replace(data, X=None, y=[(data.y or [])[0][:1]])
        return data

    def _check_labels(self, part: Held, data: Data) -> None:
        """Refuse texts after numbers, and numbers after texts, naming the line."""
        first = next(label for labels in (self._like or data).y or [] for label in labels)
        for i, labels in enumerate(data.y or []):
            strange = [label for label in labels if isinstance(label, str) != isinstance(first, str)]
            if strange:
                lines = [number for number, text in lines_of(part) if text.strip()]
                what = f"labels must be all strings or all numbers; found {strange[0]!r} after {first!r}"
                raise DataFileError.at(part, lines[i], what)


def _size(path: Path) -> int:
    """The bytes of a file, as far as they are known."""
    return path.stat().st_size if path.is_file() else 0


@contextmanager
def _progress(wanted: bool) -> Iterator[Callable[[str, float], None]]:
    """A bar on standard error."""
    if not wanted:
        yield lambda phase, share: None
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn()
    with Progress(*columns, console=console(errors=True), transient=True) as bar:
        line = bar.add_task("reading", total=1.0)
        yield lambda phase, share: bar.update(line, description=phase, completed=share)


def peak_memory() -> int | None:
    """Bytes of memory that this process has had at most, where the system tells."""
    if sys.platform == "win32":
        return None
    import resource  # not on every system

    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


def _tell(shards: Shards, wishes: Wishes) -> None:
    known = facts(shards) | {"memory": peak_memory()}
    if wishes.json:
        print_json({"shards_at": str(wishes.output), **known})
        return
    out = console()
    out.print(
        f"{known['sequences']:,} sequences, {known['positions']:,} positions, {len(known['labels'])} labels, "
        f"{known['attributes']:,} attributes"
    )
    for what, count in known["left_out"].items():
        if count:
            out.print(f"Left out: {count:,} {'empty' if what == 'empty' else 'of weight 0'}")
    each = known["bytes"] / known["positions"]
    memory = "" if known["memory"] is None else f"; the process had {in_words(known['memory'])} of memory at most"
    out.print(
        f"{wishes.output}: {known['shards']:,} shards, {in_words(known['bytes'])}, {each:.0f} bytes per position"
        f"{memory}"
    )


def facts(shards: Shards) -> dict[str, Any]:
    """What is known about packed data, for people and for JSON.

    Parameters
    ----------
    shards : Shards
        The data.
    """
    manifest = shards.manifest
    settings = manifest.settings
    made = settings["templates"]
    return {
        "kind": shards.kind,
        "sequences": manifest.count("sequences"),
        "positions": manifest.count("positions"),
        "entries": manifest.count("entries"),
        "labels": dict(zip(map(str, manifest.classes), manifest.label_counts, strict=True)),
        "attributes": shards.width,
        "pair_attributes": shards.pair_width,
        "total_weight": shards.total_weight if shards.weighted else None,
        "left_out": shards.dropped,
        "min_freq": settings["min_freq"],
        "hash_bits": settings["hash_bits"],
        "templates": None if made is None else len(made["patterns"]),
        "shards": len(shards),
        "bytes": sum(entry["bytes"] for entry in manifest.files),
        "digest": shards.digest,
    }


def inspect(path: Path, as_json: bool) -> None:
    """Print what is known about packed data.

    Parameters
    ----------
    path : Path
        The folder.
    as_json : bool
        Whether to print JSON.
    """
    known = facts(Shards(path))
    if as_json:
        print_json(known)
        return
    from m3n.cli.inspect import print_facts

    print_facts(console(), known)


def check_paths(paths: Iterable[Path]) -> None:
    """Refuse files that are not there before anything is packed.

    Parameters
    ----------
    paths : iterable of Path
        The files.
    """
    for path in paths:
        if os.fspath(path) != STANDARD and (not path.exists() or path.is_dir()):
            raise FileNotFoundError(f"there is no data file {os.fspath(path)!r}")
