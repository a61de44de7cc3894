"""Callbacks of ``minimize``: the public name of ``m3n.run.callbacks``."""

from m3n.run.callbacks import HeldOut, ProgressBar, UntilFinal, seconds_left

__all__ = ["HeldOut", "ProgressBar", "UntilFinal", "seconds_left"]
