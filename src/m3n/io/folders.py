"""Folders that are gone with whoever needs them, also when that is forgotten or the process ends."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from weakref import finalize


def temporary_folder(owner: object, inside: str | os.PathLike[str] | None = None) -> tuple[Path, finalize]:
    """A new folder, and the call that removes it, which comes by itself when the owner is no more.

    Parameters
    ----------
    owner : object
        Who needs it; copies of it in other processes do not count.
    inside : path or None
        Where to make it; None takes the usual place.
    """
    folder = Path(tempfile.mkdtemp(prefix="m3n-", dir=inside))
    return folder, finalize(owner, _remove, folder, os.getpid())


def _remove(folder: Path, process: int) -> None:
    if os.getpid() == process:  # a process that was forked has copied the owner
        shutil.rmtree(folder, ignore_errors=True)
