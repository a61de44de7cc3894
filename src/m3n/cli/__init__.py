"""The command ``m3n``."""

from m3n.cli.app import main

__all__ = ["main"]
