"""Runs on disk: a run that is cut off goes on where it was saved last.

A checkpoint is a pickled ``Result``, the solver's state included, because no step is to be lost or repeated. Pickles
can hold code; the loader accepts nothing but arrays and the settings, states and records of this package.
"""

from __future__ import annotations

import io
import os
import pickle
import time
from pathlib import Path
from typing import Any

from m3n.io.files import check_writable, write_atomically
from m3n.problem import Problem
from m3n.run.loop import Result, Snapshot, Status

EVERY = 60.0
OURS = ("m3n.solvers.", "m3n.compiled.", "m3n.run.loop", "m3n.run.certificate")
ARRAYS = {
    ("numpy", "dtype"),
    ("numpy", "ndarray"),
    ("numpy._core.multiarray", "_reconstruct"),
    ("numpy._core.multiarray", "scalar"),
    ("numpy._core.numeric", "_frombuffer"),
}


class CheckpointError(ValueError):
    """A checkpoint cannot be read, or belongs to something else."""


class Checkpoint:
    """A callback of ``minimize`` that saves the run now and then.

    Parameters
    ----------
    path : path
        Where to; written beside it and moved over it, so that there is always a whole one.
    every : float
        Seconds between two of them.

    Examples
    --------
    >>> import tempfile, m3n
    >>> train, _ = m3n.datasets.digit_strings(n_train=5, n_test=1)
    >>> tagger = m3n.SequenceTagger(checkpoint=tempfile.mkdtemp() + "/run", lam=1.0, tol=0.5)
    >>> tagger.fit(train.inputs, train.labels).status_  # cut off, the same line would go on
    <Status.TOLERANCE: 'tolerance reached'>
    """

    def __init__(self, path: str | os.PathLike[str], every: float = EVERY):
        check_writable(path)
        self.path, self.every = Path(path), every
        self.saved = time.perf_counter()

    def load(self, problem: Problem) -> Result | None:
        """The run that was saved, if there is one.

        Parameters
        ----------
        problem : Problem
            What is to be minimised; a run of a problem of another size is refused.
        """
        if not self.path.exists():
            return None
        try:
            found = _Loader(io.BytesIO(self.path.read_bytes())).load()
        except (pickle.UnpicklingError, EOFError, AttributeError, IndexError, TypeError, ValueError) as error:
            raise self._refusal(f"is no checkpoint of this m3n ({error})") from None
        if not isinstance(found, Result):
            raise self._refusal("is no checkpoint of this m3n")
        if found.w.shape != (problem.dim,):
            raise self._refusal(f"belongs to other data or settings ({len(found.w)} weights, not {problem.dim})")
        return found

    def _refusal(self, what: str) -> CheckpointError:
        return CheckpointError(f"{os.fspath(self.path)!r} {what}; remove it or choose another name")

    def __call__(self, snapshot: Snapshot) -> None:
        if snapshot.result is not None and time.perf_counter() - self.saved >= self.every:
            self.save(snapshot.result)

    def save(self, result: Result) -> None:
        """Write what is known so far.

        Parameters
        ----------
        result : Result
            The run.
        """
        write_atomically(self.path, pickle.dumps(result, protocol=5))
        self.saved = time.perf_counter()

    def close(self, result: Result) -> None:
        """Remove the checkpoint of a run that reached its goal; save one that did not.

        Parameters
        ----------
        result : Result
            The run.
        """
        if result.status is Status.TOLERANCE:
            self.path.unlink(missing_ok=True)
        else:
            self.save(result)


class _Loader(pickle.Unpickler):
    """Loads arrays and plain records of this package."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) in ARRAYS:
            return super().find_class(module, name)
        found = super().find_class(module, name) if module.startswith(OURS) and "." not in name else None
        if isinstance(found, type) and found.__module__.startswith(OURS):
            return found
        raise pickle.UnpicklingError(f"it holds {module}.{name}")
