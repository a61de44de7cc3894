"""Parsing on real data, one module per kind of tree. Only with the data; nothing is generated in its place."""

from __future__ import annotations

from typing import Any

from benchmarks import constituency, dependency
from benchmarks.datasets.base import data_folder


def run() -> dict[str, Any]:
    """Figures of all kinds of trees."""
    folder = data_folder()
    if folder is None:
        return {"data": "none: M3N_DATA does not name the folder of real data sets"}
    return {"dependency": dependency.run(folder), "constituency": constituency.run(folder)}
