"""Runs on disk: a run that is cut off goes on where it was saved last.

A checkpoint is a pickled ``Result``, the solver's state included, because no step is to be lost or repeated. Pickles
can hold code; the loader accepts nothing but arrays of numbers and the settings, states and records of this package.

Where workers hold a part of the state, they write it to files in a folder beside the checkpoint, which go with it.

With the result comes a fingerprint of what was minimised: a checkpoint of other data or settings is refused, with the
difference. States go to compiled code, which does not check its indices, so all their arrays are checked here.
"""

from __future__ import annotations

import io
import logging
import os
import pickle
import shutil
import time
from pathlib import Path
from typing import Any

import numpy as np

from m3n.io.files import check_writable, write_atomically
from m3n.problem import EngineLost, Objective
from m3n.problem.holdings import Holdings, Unreadable
from m3n.run.certificate import Certificate, Record
from m3n.run.fingerprint import Fingerprint
from m3n.run.loop import Result, Snapshot, Status
from m3n.solvers import Solver
from m3n.solvers.forms import BadState, Form, check_state

log = logging.getLogger("m3n")

EVERY = 60.0
OURS = ("m3n.solvers.", "m3n.compiled.", "m3n.run.loop", "m3n.run.certificate", "m3n.run.fingerprint")
ARRAYS = {
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
        self.lanes = Path(f"{self.path.absolute()}.lanes")  # what workers hold, if they do
        self.saved = time.perf_counter()

    def load(self, problem: Objective) -> Result | None:
        """The run that was saved, if there is one.

        Parameters
        ----------
        problem : Problem
            What is to be minimised; a run of another problem is refused.
        """
        if not self.path.exists():
            return None
        try:
            found = _Loader(io.BytesIO(self.path.read_bytes())).load()
        except Exception as error:  # whatever an arbitrary file leads to
            raise self._refusal(f"is no checkpoint of this m3n ({error})") from None
        if not isinstance(found, Result):
            raise self._refusal("is no checkpoint of this m3n")
        written_for = getattr(found, "fingerprint", None)
        if not isinstance(written_for, Fingerprint):
            raise self._refusal("was written by an older m3n, which did not note for which data")
        difference = written_for.difference(Fingerprint(problem, found.solver), but="solver")
        if difference:
            raise self._refusal(f"belongs to other data or settings ({difference})")
        held = getattr(found.state, "held", None)
        if isinstance(held, Holdings):
            held.folder = self.lanes
        try:
            _check(problem, found)
        except Unreadable as error:
            raise self._refusal(f"lacks what workers held ({error})") from None
        except (BadState, AttributeError, TypeError, IndexError) as error:
            raise self._refusal(f"is damaged ({error})") from None
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
        held = getattr(result.state, "held", None)
        if held is not None:
            held.secure(result.state, self.lanes)
        write_atomically(self.path, pickle.dumps(result, protocol=5))
        if held is not None:
            held.settle()
        self.saved = time.perf_counter()

    def ending(self, result: Result) -> None:
        """The run ends, and with it whoever works for it: what they hold must be written now or never.

        Parameters
        ----------
        result : Result
            The run.
        """
        held = getattr(result.state, "held", None)
        if held is not None and result.status is not Status.TOLERANCE:
            held.secure(result.state, self.lanes)

    def close(self, result: Result) -> None:
        """Remove the checkpoint of a run that reached its goal; save one that did not.

        Parameters
        ----------
        result : Result
            The run.
        """
        if result.status in (Status.TOLERANCE, Status.HELD_OUT, Status.FINAL):
            self.path.unlink(missing_ok=True)
            shutil.rmtree(self.lanes, ignore_errors=True)
            return
        try:
            self.save(result)
        except EngineLost as error:
            log.error("%s; the checkpoint %r stays as it was", error, os.fspath(self.path))


class _Loader(pickle.Unpickler):
    """Loads arrays of numbers and plain records of this package."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("numpy", "dtype"):
            return _plain_dtype
        if (module, name) in ARRAYS:
            return super().find_class(module, name)
        found = super().find_class(module, name) if module.startswith(OURS) and "." not in name else None
        if isinstance(found, type) and found.__module__.startswith(OURS):
            return found
        raise pickle.UnpicklingError(f"it holds {module}.{name}")


def _plain_dtype(text: str, *_: object) -> np.dtype[Any]:
    """Numbers and truth values only: arrays of objects could hold anything."""
    found = np.dtype(text)
    if found.kind not in "biuf":
        raise pickle.UnpicklingError(f"it holds an array of {found}")
    return found


def _check(problem: Objective, found: Result) -> None:
    """Refuse what no run of the solver on the problem has written."""
    kinds = {"w": np.ndarray, "certificate": Certificate, "status": Status, "trace": list, "solver": Solver}
    for name, kind in kinds.items():
        if not isinstance(getattr(found, name), kind):
            raise BadState(f"{name} is a {type(getattr(found, name)).__name__}")
    if not all(isinstance(record, Record) for record in found.trace):
        raise BadState("the trace holds something else than records")
    Form(float, ("dim",))(problem, found.w, "w")
    check_state(problem, found.solver, found.state)
