"""How much memory a process has had, for processes that import nothing else of ours."""

from __future__ import annotations

import resource
import sys
from pathlib import Path


def peak_memory() -> float:
    """Megabytes that this process has had in use at most.

    ``ru_maxrss`` of a child begins with what its parent had in use, the kernel's high-water mark does not.
    """
    status = Path("/proc/self/status")
    if status.exists():
        return float(status.read_text().split("VmHWM:")[1].split()[0]) / 1024
    unit = 2**20 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def memory_in_use() -> float:
    """Megabytes that this process has in use now, or has had at most where the system does not tell."""
    status = Path("/proc/self/status")
    return float(status.read_text().split("VmRSS:")[1].split()[0]) / 1024 if status.exists() else peak_memory()
