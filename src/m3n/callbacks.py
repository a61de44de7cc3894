"""Callbacks of ``minimize``: the public name of ``m3n.run.callbacks``."""

from m3n.run.callbacks import ProgressBar, seconds_left

__all__ = ["ProgressBar", "seconds_left"]
