"""Machine code on disk: one file for each entry point and types of its arguments.

A file's name is a hash of everything that its code depends on: the sources of all compiled code, the versions of
Python, NumPy, Numba and llvmlite, the processor, the function, and the types. So no index is needed, a change of any of
them finds no file, and processes that start together cannot disturb each other: files appear whole, and while one
process compiles a function, others that need it wait for its file instead of doing the same work.

Two places are looked at: the user's folder, with code for this very processor, and the folder *shipped* inside the
package, with code for every processor that has the features of a ``baseline``.

``M3N_KERNEL_CACHE`` names the user's folder, or switches it off if it is 0. Without it, ``NUMBA_CACHE_DIR`` is
respected; else the folder of this package is taken, or the user's own cache where that cannot be written, or a folder
among the temporary files that nobody else can write. Machine code is executed, so a folder of somebody else is never
taken there.
"""

import hashlib
import logging
import os
import pickle
import platform
import shutil
import stat
import sys
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite
import numba
import numpy as np
from filelock import FileLock, Timeout
from llvmlite import binding
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompileResult, compile_result
from numba.core.environment import lookup_environment
from numba.core.registry import cpu_target
from numba.core.serialize import dumps
from numba.misc.appdirs import AppDirs

from m3n.compiled.linking import environments

SHIPPED = Path(__file__).parent / "shipped"
MAGIC = b"m3n machine code 1\n"
MADE_FOR = "made_for.txt"
KEPT = 4  # versions whose files stay in the user's folder
PATIENCE = 120.0  # seconds to wait for a file that another process is making
BASELINES = {  # name of a processor that machine code is shipped for, and features that a host must have
    "x86_64": (
        "x86-64-v3",
        "avx avx2 bmi bmi2 cmov crc32 cx16 cx8 f16c fma fxsr lzcnt mmx movbe popcnt sahf sse sse2 sse3 sse4.1 sse4.2 "
        "ssse3 xsave",
    ),
    "aarch64": ("generic", "neon"),
}

log = logging.getLogger("m3n")


class Busy(Exception):
    """Another process is compiling the function."""


@contextmanager
def turn(name: str, types: str, wait: bool) -> Iterator[None]:
    """Compile while no other process compiles the same function, as far as locks work; wait, or raise ``Busy``."""
    place = folder()
    if place is None:
        yield
        return
    lock = FileLock(place / f"{key(name, types, processor())}.lock")
    try:
        lock.acquire(timeout=PATIENCE if wait else 0)
    except Timeout:
        if not wait:
            raise Busy from None
    except (OSError, NotImplementedError) as error:  # the file system has no locks: work may be done twice
        log.debug("no lock for %s: %s", name, error)
    try:
        yield
    finally:
        if lock.is_locked:
            with suppress(OSError):
                os.unlink(lock.lock_file)
        lock.release()


def load(name: str, types: str, target_context: Any) -> CompileResult | None:
    """The machine code of an entry point, ready to be called, if there is any."""
    path = find(name, types)
    if path is None:
        return None
    try:
        return unpack(read(path), target_context)
    except Exception as error:  # whatever a damaged file leads to, it is compiled anew
        log.debug("the machine code of %s in %s is of no use: %r", name, path, error)
        return None


def save(name: str, types: str, result: CompileResult) -> None:
    """Keep the machine code of an entry point."""
    if (place := folder()) and not result.library.has_dynamic_globals:
        write(place / key(name, types, processor()), pack(result))


def find(name: str, types: str) -> Path | None:
    """The file with the machine code of an entry point."""
    places: list[tuple[Path | None, str]] = [(folder(), processor()), (shipped(), baseline() or "")]
    paths = (place / key(name, types, kind) for place, kind in places if place is not None)
    return next((path for path in paths if path.is_file()), None)


@cache
def shipped() -> Path | None:
    """The folder with machine code inside the package, if that was made for these versions and this processor."""
    try:
        made_for = (SHIPPED / MADE_FOR).read_text()
    except OSError:
        return None
    if made_for == f"{versions()}\n{baseline()}\n":
        return SHIPPED
    log.debug(
        "shipped machine code is of no use here, it was made for %s, this is %s %s", made_for, versions(), baseline()
    )
    return None


def key(name: str, types: str, kind: str) -> str:
    """The name of such a file."""
    text = "\n".join((versions(), kind, name, types))
    return f"{hashlib.sha256(text.encode()).hexdigest()[:32]}.code"


@cache
def folder() -> Path | None:
    """Where the machine code of this version is kept; None if nowhere."""
    wish = os.environ.get("M3N_KERNEL_CACHE", "")
    if wish == "0":
        return None
    inside = Path(__file__).parent / "__pycache__"
    own = Path(AppDirs(appname="m3n", appauthor=False).user_cache_dir)
    shared = os.environ.get("NUMBA_CACHE_DIR")
    chosen = Path(wish) if wish not in ("", "1") else Path(shared, "m3n") if shared else None
    for place in [inside, own] if chosen is None else [chosen]:
        if made := _made(place):
            return made
    remedy = "set M3N_KERNEL_CACHE to a folder that can be written"
    if chosen is None and (made := _made(private := _temporary())):
        log.warning("machine code is kept in %s, as neither the package nor a home can be written; %s", private, remedy)
        return made
    log.warning("machine code cannot be kept on disk, so every process compiles for itself; %s", remedy)
    return None


def _made(place: Path) -> Path | None:
    """The folder of this version, which can be written; None if it cannot."""
    made = place / hashlib.sha256(versions().encode()).hexdigest()[:16]
    try:
        new = not made.is_dir()
        made.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=made).close()
    except OSError as error:
        log.debug("machine code cannot be kept in %s: %s", place, error)
        return None
    if new:
        _forget_old_versions(place)
    return made


def _temporary() -> Path:
    """A folder among the temporary files that is this user's alone; one that cannot be made if it is not."""
    user = os.getuid() if hasattr(os, "getuid") else None
    place = Path(tempfile.gettempdir(), "m3n" if user is None else f"m3n-{user}")
    with suppress(OSError):
        place.mkdir(mode=0o700, exist_ok=True)
        found = place.lstat()
        if user is None or (stat.S_ISDIR(found.st_mode) and found.st_uid == user and not found.st_mode & 0o022):
            return place
    log.debug("%s is not this user's alone", place)
    return Path(os.devnull)


def _forget_old_versions(place: Path) -> None:
    """Keep the folders of the latest versions, by the time of their last new file."""
    made = [path for path in place.iterdir() if path.is_dir() and len(path.name) == 16]
    for path in sorted(made, key=lambda path: path.stat().st_mtime)[:-KEPT]:
        shutil.rmtree(path, ignore_errors=True)


@cache
def fingerprint() -> str:
    """A hash of the sources of all compiled code."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


@cache
def versions() -> str:
    """What machine code depends on besides the function, the types and the processor."""
    python = f"{sys.implementation.cache_tag}{getattr(sys, 'abiflags', '')} {platform.system()}"
    return f"{fingerprint()} {python} {np.__version__} {numba.__version__} {llvmlite.__version__}"


@cache
def processor() -> str:
    """The processor that Numba compiles for."""
    return " ".join(cpu_target.target_context.codegen().magic_tuple())


@cache
def baseline() -> str | None:
    """The processor that shipped machine code is made for, if this host can run it."""
    name, features = BASELINES.get(machine(), ("", ""))
    has = binding.get_host_cpu_features()
    if not name or not all(has.get(feature) for feature in features.split()):
        return None
    return f"{binding.get_process_triple()} {name} {target_features(features)}"


def machine() -> str:
    """The family of this processor, by one name on all platforms."""
    name = platform.machine().lower()
    return {"amd64": "x86_64", "arm64": "aarch64"}.get(name, name)


def target_features(features: str) -> str:
    """Features as LLVM reads them."""
    return ",".join(f"+{feature}" for feature in features.split())


def write(path: Path, content: bytes) -> None:
    """Write a file that appears whole or not at all; nothing happens where that is impossible."""
    own = path.with_name(f"{path.name}.{uuid.uuid4().hex}")
    with suppress(OSError):
        try:
            own.write_bytes(MAGIC + hashlib.sha256(content).digest() + content)
            os.replace(own, path)
        finally:
            own.unlink(missing_ok=True)


def read(path: Path) -> bytes:
    """The content of such a file."""
    content = path.read_bytes()
    start = len(MAGIC) + 32
    if content[:start] != MAGIC + hashlib.sha256(content[start:]).digest():
        raise ValueError("damaged")
    return content[start:]


def pack(result: CompileResult) -> bytes:
    """What is needed to call an entry point in another process."""
    library, described = result.library, result.fndesc
    described.typemap = described.calltypes = None
    names = tuple(environments(library))
    symbols = (described.llvm_func_name, described.llvm_cpython_wrapper_name, *names)
    others = tuple(other for other in map(lookup_environment, names) if other.can_cache())
    return dumps(
        (
            library._get_compiled_object(),
            symbols,
            described,
            result.environment,
            others,
            result.signature,
            result.reload_init,
        )
    )


def unpack(content: bytes, target_context: Any) -> CompileResult:
    """The entry point of such a file, ready to be called."""
    code, symbols, described, environment, others, signature, reload_init = pickle.loads(content)
    for initialize in reload_init:
        initialize()
    codegen = target_context.codegen()
    library = JITCodeLibrary(codegen, described.qualname)
    library.enable_object_caching()
    library._set_compiled_object(code)
    library._finalize_final_module()
    codegen._engine._defined_symbols.update(symbols)
    entry_point = target_context.get_executable(library, described, environment)
    for other in others:
        codegen.set_env(other.env_name, other)
    return compile_result(
        typing_context=target_context.typing_context,
        target_context=target_context,
        entry_point=entry_point,
        signature=signature,
        objectmode=False,
        lifted=(),
        fndesc=described,
        library=library,
        environment=environment,
        reload_init=reload_init,
    )
