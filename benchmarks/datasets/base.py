"""What a data set offers to the entries of a contest."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

SAMPLE = 20  # sequences to load machine code on
Sequences = list[list[str]]  # labels of sequences
Sentence = tuple[list[list[str]], list[str]]  # attributes and label of every position


def data_folder() -> Path | None:
    """The folder of real data sets, if there is one."""
    folder = os.environ.get("M3N_DATA", "")
    return Path(folder) if folder and Path(folder).is_dir() else None


@dataclass(frozen=True)
class Dataset(ABC):
    """Files of training and of test sequences.

    Attributes
    ----------
    train, test : str
        The files.
    sample : str
        A few training sequences, on which an entry may load its machine code before the clock runs.
    origin : str
        Real or generated, and how many sequences.
    """

    train: str
    test: str
    sample: str
    origin: str

    name: ClassVar[str]
    measure: ClassVar[str]  # of the test score
    larger_is_better: ClassVar[bool]

    @property
    def small(self) -> Dataset:
        """The sample in both roles."""
        return replace(self, train=self.sample, test=self.sample)

    @classmethod
    @abstractmethod
    def prepare(cls, folder: Path, limit: int | None) -> Dataset:
        """Put the files into a folder: all of the data, or the first sequences."""

    @abstractmethod
    def sentences(self, path: str) -> Iterator[Sentence]:
        """Attributes as strings, made by the loop over positions that users of the rivals write."""

    @abstractmethod
    def score(self, gold: Sequences, found: Sequences) -> float:
        """The test score."""

    def gold(self) -> Sequences:
        """The right labels of the test sequences."""
        return [labels for _, labels in self.sentences(self.test)]

    def request(self) -> dict[str, Any]:
        """As JSON can hold it; ``dataset`` reads it."""
        return {"name": self.name, **asdict(self)}
