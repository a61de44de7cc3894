"""Programs that no package registry has: they run when a user has built them, found in M3N_BIN or on the PATH."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import ClassVar

from benchmarks.solvers.base import Entry, Outcome, Task


class Program(Entry):
    """An entry made of executables that read and write text files."""

    modules = ()
    ours = True  # any interpreter can start a program
    programs: ClassVar[tuple[str, ...]]

    def missing(self) -> str:
        absent = [name for name in self.programs if find(name) is None]
        return f"not installed: {', '.join(absent)} (build it, then name its folder in M3N_BIN)" if absent else ""

    def run(self, task: Task) -> Outcome:
        with task.clock("ingest"):
            self.write(task)
        with task.clock("train"):
            log = call(*self.train(task))
        with task.clock("tag"):
            told = call(*self.tag(task))
        return self.read(task, log, told)

    def write(self, task: Task) -> None:
        """Put the data into files of the program's format."""
        raise NotImplementedError

    def train(self, task: Task) -> list[str]:
        """The command that trains."""
        raise NotImplementedError

    def tag(self, task: Task) -> list[str]:
        """The command that tags the test data."""
        raise NotImplementedError

    def read(self, task: Task, log: str, told: str) -> Outcome:
        """The outcome, from what the two commands wrote."""
        raise NotImplementedError


def find(name: str) -> str | None:
    """The path of an executable."""
    return shutil.which(name, path=os.pathsep.join([os.environ.get("M3N_BIN", ""), os.environ.get("PATH", "")]))


def call(name: str, *arguments: str) -> str:
    """Run a program and return all that it writes."""
    command = [find(name) or name, *arguments]
    return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT).stdout


def blocks(path: Path) -> list[list[str]]:
    """Lines between empty lines."""
    found: list[list[str]] = [[]]
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.strip():
            found[-1].append(line)
        elif found[-1]:
            found.append([])
    return found if found[-1] else found[:-1]


def cut(labels: list[str], like: list[list[str]]) -> list[list[str]]:
    """One list of labels as lists of the lengths of others."""
    rest = iter(labels)
    return [[next(rest) for _ in sequence] for sequence in like]
