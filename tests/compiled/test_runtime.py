"""Numba's runtime from disk: it is made once, works like Numba's own, and a damaged file does no harm."""

import os
import subprocess
import sys

import pytest

CODE = """
import numpy as np
from numba.core.runtime import nrtdynmod
real, made = nrtdynmod.create_nrt_module, []
def counted(context):
    made.append(context)
    return real(context)
nrtdynmod.create_nrt_module = counted
from numba import njit
from m3n.compiled.primitives.arrays import largest
assert largest(np.array([3, 5, 1])) == 5

@njit
def grown(n):  # what Numba compiles itself counts references, too
    found = [np.zeros(2)]
    for k in range(n):
        found.append(found[-1] + k)
    return found[-1]

assert grown(4).tolist() == [6.0, 6.0]
print(len(made))
"""


def run(folder):
    environment = os.environ | {"M3N_KERNEL_CACHE": str(folder)}
    done = subprocess.run([sys.executable, "-c", CODE], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


@pytest.mark.skipif(sys.platform == "win32", reason="folders of machine code are chosen otherwise")
def test_is_compiled_once_and_again_if_the_file_is_damaged(tmp_path):
    assert run(tmp_path) == 1
    (file,) = tmp_path.rglob("*.runtime")
    assert run(tmp_path) == 0
    file.write_bytes(file.read_bytes()[:-1] + b"?")
    assert run(tmp_path) == 1
    assert run(tmp_path) == 0


def test_without_a_folder_it_is_compiled(tmp_path):
    assert run("0") == 1
