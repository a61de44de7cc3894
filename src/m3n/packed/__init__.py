"""Examples of different lengths, one after another, and how a pass over them runs: threads on one machine."""

from m3n.packed.threads import SERIAL, Threads, together

__all__ = ["SERIAL", "Threads", "together"]
