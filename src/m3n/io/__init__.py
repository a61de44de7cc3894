"""Files: the field's data formats, and models."""

from m3n.io.columns import read_columns
from m3n.io.files import DataFileError
from m3n.io.sentences import Column, Sentences

__all__ = ["Column", "DataFileError", "Sentences", "read_columns"]
