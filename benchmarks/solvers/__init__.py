"""The competitors: one file each. To add one, write its file and its line here."""

from benchmarks.solvers.base import Clock, Entry, Outcome, Point, Task, Unsuitable
from benchmarks.solvers.ours import Ours
from benchmarks.solvers.python_crfsuite import PythonCRFsuite

ENTRIES: tuple[type[Entry], ...] = (Ours, PythonCRFsuite)
BY_NAME: dict[str, Entry] = {kind.name: kind() for kind in ENTRIES}

__all__ = ["BY_NAME", "Clock", "Entry", "Outcome", "Point", "Task", "Unsuitable"]
