"""Shared fixtures: tiny problems that can be enumerated, and the real data if it is there."""

import os
import signal
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

if "PYTEST_XDIST_WORKER" in os.environ:  # Numba's cache is not made for several processes; before Numba is imported
    caches = Path(__file__).parents[1] / ".pytest_cache" / "numba"
    os.environ["NUMBA_CACHE_DIR"] = str(caches / os.environ["PYTEST_XDIST_WORKER"])

settings.register_profile("m3n", deadline=None, max_examples=60, derandomize=True)  # compiling a kernel takes seconds
settings.load_profile("m3n")


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
