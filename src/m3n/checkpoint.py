"""Runs on disk: the public name of ``m3n.run.checkpoint``."""

from m3n.run.checkpoint import Checkpoint, CheckpointError

__all__ = ["Checkpoint", "CheckpointError"]
