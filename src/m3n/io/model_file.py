"""Model files: safetensors for the numbers, JSON in its header for everything else.

Nothing in a file is ever executed. A file is written beside its target and moved over it, so that a crash leaves
either the old file or the new one.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from m3n.io.files import write_atomically

FORMAT = "m3n"
VERSION = 1


class ModelFileError(ValueError):
    """A model file cannot be read or written."""


def write(path: str | os.PathLike[str], kind: str, meta: dict[str, Any], tensors: dict[str, np.ndarray]) -> None:
    """Write a model atomically.

    Parameters
    ----------
    path : path
        Where to.
    kind : str
        Name of the estimator's class.
    meta : dict
        Settings and texts; must be JSON.
    tensors : dict of arrays
        The numbers.
    """
    from safetensors.numpy import save

    try:
        text = json.dumps(meta, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ModelFileError(f"this model cannot be saved: {error}") from None
    header = {"format": FORMAT, "version": str(VERSION), "kind": kind, "meta": text}
    content = save({name: np.ascontiguousarray(array) for name, array in tensors.items()}, metadata=header)
    write_atomically(path, content)


def read(path: str | os.PathLike[str]) -> tuple[str, dict[str, Any], dict[str, np.ndarray]]:
    """Read a model: its kind, meta and tensors.

    Parameters
    ----------
    path : path
        A file made by ``write``.
    """
    from safetensors import SafetensorError, safe_open

    if not Path(path).is_file():
        raise FileNotFoundError(f"there is no model file {os.fspath(path)!r}")
    try:
        with safe_open(os.fspath(path), framework="numpy") as file:
            header = file.metadata() or {}
            _check_header(path, header)
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dict)
            return header["kind"], json.loads(header["meta"]), tensors
    except SafetensorError as error:
        raise ModelFileError(f"{os.fspath(path)!r} is damaged, incomplete or not an m3n model: {error}") from None
    except (KeyError, json.JSONDecodeError):
        raise ModelFileError(f"{os.fspath(path)!r} is damaged: its header is incomplete") from None


def _check_header(path: str | os.PathLike[str], header: dict[str, str]) -> None:
    if header.get("format") != FORMAT:
        raise ModelFileError(f"{os.fspath(path)!r} is a safetensors file, but not an m3n model")
    version = int(header["version"]) if header.get("version", "").isdigit() else 0
    if version > VERSION:
        raise ModelFileError(
            f"{os.fspath(path)!r} has format version {version}, this m3n reads up to {VERSION}: install a newer m3n"
        )
    if version < 1:
        raise ModelFileError(f"{os.fspath(path)!r} is damaged: it has no valid format version")
