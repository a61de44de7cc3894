"""Callbacks of ``minimize``: the public name of ``m3n.run.callbacks``."""

from m3n.run.callbacks import ProgressBar

__all__ = ["ProgressBar"]
