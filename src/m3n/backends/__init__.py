"""How a pass over the data runs: threads on one machine."""

from m3n.backends.threads import SERIAL, Threads

__all__ = ["SERIAL", "Threads"]
