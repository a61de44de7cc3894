"""Data to measure on: real data from the folder that M3N_DATA names, generated data where it is absent.

Every child process of a contest reads the same files, each in its own interpreter. Nothing here may therefore import
m3n at module level: the rivals' interpreter does not have it.
"""

from typing import Any

from benchmarks.datasets.base import Dataset, Sequences, data_folder
from benchmarks.datasets.chunking import Chunking
from benchmarks.datasets.ocr import LETTERS, FewWords, Words, ocr_problem, words

BY_NAME: dict[str, type[Dataset]] = {kind.name: kind for kind in (Chunking, Words, FewWords)}


def dataset(request: dict[str, Any]) -> Dataset:
    """The data set that ``Dataset.request`` wrote down."""
    settings = dict(request)
    return BY_NAME[settings.pop("name")](**settings)


__all__ = [
    "BY_NAME", "LETTERS", "Chunking", "Dataset", "FewWords", "Sequences", "Words", "data_folder", "dataset",
    "ocr_problem", "words",
]  # fmt: skip
