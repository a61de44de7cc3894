"""``m3n predict`` and ``m3n evaluate`` on folders of packed data: shard after shard, of which one is open at a time."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from m3n.cli.predict import Wanted, texts_of
from m3n.estimators import SequenceTagger
from m3n.estimators.packed_inputs import PackedInputs
from m3n.io import Data
from m3n.io.files import write_pieces
from m3n.shards import Shards

FORMAT = "shards"
URL = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]+):/+(?=.)")


def packed_at(data: Any) -> Shards | None:
    """The shards in a folder or at a URL; None for files.

    Parameters
    ----------
    data : Path or other source
        What was given as DATA.
    """
    if not isinstance(data, Path):
        return None
    url = URL.sub(r"\1://", str(data)) if not data.exists() else ""  # a path has lost one of the two strokes
    if "://" in url:
        return Shards(url)
    return Shards(data) if data.is_dir() else None


def predict(shards: Shards, model: Any, output: Path, wanted: Wanted) -> None:
    """Predict and write: the labels alone, as shards do not hold the tokens.

    Parameters
    ----------
    shards : Shards
        The data.
    model : estimator
        The model.
    output : Path
        Where to; ``-`` is standard output.
    wanted : Wanted
        What to write.
    """
    write_pieces(output, _pieces(_inputs(shards, model), model, wanted))


def labels_of(shards: Shards, model: Any) -> tuple[list[list[Any]], list[list[Any]]]:
    """The right labels and the predicted ones.

    Parameters
    ----------
    shards : Shards
        The data.
    model : estimator or None
        The model.
    """
    if model is None:
        raise ValueError("shards hold no predicted labels: say which model predicts them (--model)")
    packed = _inputs(shards, model)
    gold, found = list[list[Any]](), list[list[Any]]()
    for i in range(len(packed)):
        shard = packed.shards.open(i)
        gold += packed.labels(shard)
        found += model._answers(packed.inputs(shard), marginals=False)[0]
    return gold, found


def _inputs(shards: Shards, model: Any) -> PackedInputs:
    if not isinstance(model, SequenceTagger):
        what = "holds packed sequences, which are for a SequenceTagger"
        raise ValueError(f"{shards.path} {what}, not a {type(model).__name__}")
    return PackedInputs(shards, model.reader_)


def _pieces(packed: PackedInputs, model: Any, wanted: Wanted) -> Iterator[str]:
    for i in range(len(packed)):
        shard = packed.shards.open(i)
        data = Data(packed.inputs(shard), packed.labels(shard), FORMAT)
        yield "".join(texts_of(model, data, wanted, 0))
