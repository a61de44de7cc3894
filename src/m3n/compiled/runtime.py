"""Numba's runtime: the few functions that count references, from disk instead of compiled in every process.

Numba compiles them whenever a process first calls compiled code, even if all else comes from disk. That takes 0.1 s and
touches 25 MB of LLVM that loading machine code does not need. They are found in the folder of machine code, or compiled
and put there; whatever goes wrong with the file, Numba does what it does.
"""

import logging
import pickle
from pathlib import Path
from typing import Any

from numba.core.runtime import nrtdynmod, rtsys

from m3n.compiled import store

NAME = "numba.core.runtime"

log = logging.getLogger("m3n")


def initialize(target_context: Any) -> None:
    """Make the runtime ready, if it is not."""
    if getattr(rtsys, "_init", False):
        return
    usual = nrtdynmod.compile_nrt_functions
    nrtdynmod.compile_nrt_functions = _functions
    try:
        rtsys.initialize(target_context)
    finally:
        nrtdynmod.compile_nrt_functions = usual


def _functions(target_context: Any) -> Any:
    """The library of these functions."""
    path = _path()
    if path is None:
        return _compiled(target_context)
    if path.is_file():
        try:
            return target_context.codegen().unserialize_library(pickle.loads(store.read(path)))
        except Exception as error:  # as with all machine code on disk
            log.debug("the machine code of Numba's runtime in %s is of no use: %r", path, error)
    library = _compiled(target_context)
    store.write(path, pickle.dumps(library.serialize_using_object_code()))
    return library


def _compiled(target_context: Any) -> Any:
    module, library = nrtdynmod.create_nrt_module(target_context)
    library.enable_object_caching()
    library.add_ir_module(module)
    library.finalize()
    return library


def _path() -> Path | None:
    place = store.folder()
    return None if place is None else (place / store.key(NAME, "", store.processor())).with_suffix(".runtime")
