"""Shared fixtures: tiny problems that can be enumerated, and the real data if it is there."""

import os
import signal
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings
from numba.core import event

os.environ.setdefault("M3N_COMPILE_PROCESSES", "1")  # the tests fill the cores by themselves

settings.register_profile("m3n", deadline=None, max_examples=60, derandomize=True)  # compiling a kernel takes seconds
settings.load_profile("m3n")


class Compilation(event.Listener):
    """Seconds that this process spends in Numba's compiler."""

    def __init__(self):
        self.begins, self.seconds = [], 0.0
        event.register("numba:compile", self)

    def on_start(self, happening):
        self.begins.append(time.perf_counter())

    def on_end(self, happening):
        begin = self.begins.pop()
        if not self.begins:
            self.seconds += time.perf_counter() - begin


COMPILATION, OF_WORKERS = Compilation(), []


def pytest_sessionfinish(session):
    """A worker tells how long it compiled."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["compilation"] = COMPILATION.seconds


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    """A worker has ended."""
    OF_WORKERS.append(getattr(node, "workeroutput", {}).get("compilation", 0.0))


def pytest_terminal_summary(terminalreporter):
    """How much of the time was compilation."""
    told = " + ".join(f"{seconds:.0f}" for seconds in OF_WORKERS or [COMPILATION.seconds])
    terminalreporter.write_line(f"compilation: {told} s (less when what the tests compile is on disk)")


@pytest.fixture(autouse=True, scope="session")
def control_c():
    """A shell that starts the tests in the background makes them ignore Ctrl-C; here it must work."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def random():
    return np.random.default_rng(0)


@pytest.fixture
def data_folder():
    """The folder of real data sets; the test is skipped where there is none."""
    folder = os.environ.get("M3N_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("M3N_DATA does not name the folder of real data sets")
    return Path(folder)
