"""Callbacks of ``minimize``: the public name of ``m3n.run.callbacks``."""

from m3n.run.callbacks import HeldOut, ProgressBar, seconds_left

__all__ = ["HeldOut", "ProgressBar", "seconds_left"]
