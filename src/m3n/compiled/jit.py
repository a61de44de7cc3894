"""The one place that decides how the inner loops are compiled.

Every one is a module-level function on plain arrays. ``compiled`` marks those that Python calls: they become machine
code, together with all that they call, and are kept on disk (``store``). ``inner`` marks those that only compiled code
calls, ``borrowing`` those of them that hot loops call. A ``compiled`` function may be called by others, too; there it
is linked like an inner one.

``contract`` lets the compiler fuse multiply and add. No other fast-math flag is set: the recursions rely on
infinities, and a reordered sum would break "same seed, same result".
"""

from collections.abc import Callable
from functools import cache, cached_property
from importlib import import_module
from operator import attrgetter
from typing import Any

from numba import njit
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import CPUDispatcher
from numba.core.sigutils import normalize_signature
from numba.extending import overload

from m3n.compiled import runtime, store
from m3n.compiled.ahead import Need, compile_another
from m3n.compiled.linking import pipelines
from m3n.compiled.progress import progress
from m3n.compiled.signatures import text_of

OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": {"contract"}}

# for long helpers that serve one function: part of it before any types are known
inlined = njit(inline="always", **OPTIONS)


def _inner_pipeline(*arguments: Any) -> Any:
    return pipelines()[0](*arguments)


def _entry_pipeline(*arguments: Any) -> Any:
    return pipelines()[1](*arguments)


# for functions that are chosen by the types of their arguments (``numba.extending.overload``)
CHOSEN: dict[str, Any] = {**OPTIONS, "pipeline_class": _inner_pipeline}


def either(py_func: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a helper that asks oracles: plain Python where they are, and part of the caller where that is compiled."""

    @overload(py_func, jit_options=CHOSEN, strict=False)
    def implementation(*arguments: Any) -> Callable[..., Any]:
        return py_func

    return py_func


class _Ours(CPUDispatcher):
    """What both kinds have in common."""

    def __init__(self, py_func: Callable[..., Any], pipeline: Callable[..., Any], **options: Any):
        options = {"nopython": True, "boundscheck": None, **OPTIONS, **options}
        super().__init__(py_func, targetoptions=options, pipeline_class=pipeline)

    def __reduce__(self) -> Any:
        """A pickle holds the name alone."""
        return _named, (self.py_func.__module__, self.py_func.__qualname__)


def _named(module: str, name: str) -> Any:
    return attrgetter(name)(import_module(module))


class Inner(_Ours):
    """A function that only compiled code calls."""

    def __init__(self, py_func: Callable[..., Any], **options: Any):
        super().__init__(py_func, _inner_pipeline, **options)

    def add_overload(self, cres: Any) -> None:
        """Keep it for callers; Python does not see it."""
        self.overloads[tuple(cres.signature.args)] = cres

    def _compile_for_args(self, *args: Any, **kws: Any) -> Any:
        name = f"{self.py_func.__module__}.{self.py_func.__name__}"
        raise TypeError(
            f"{name} is a part of other compiled functions, without machine code of its own: "
            "mark it as compiled to call it from Python"
        )


class Compiled(_Ours):
    """A function that Python calls; compiled code gets its inner form.

    Its machine code is kept on disk if it comes from this folder, whose sources the names of the files tell.
    """

    def __init__(self, py_func: Callable[..., Any], kept: bool = True):
        super().__init__(py_func, _entry_pipeline)
        self.name = f"{py_func.__module__}:{py_func.__qualname__}"
        self.kept = kept and py_func.__module__.startswith(f"{__package__}.")

    @cached_property
    def inner(self) -> Inner:
        """The function as compiled code calls it."""
        return Inner(self.py_func)

    def compile(self, sig: Any, wait: bool = True) -> Any:
        """The function for arguments of some types: from memory, from disk, or compiled.

        If another process compiles it, wait for that and compile something else meanwhile, or raise ``store.Busy``.
        """
        with global_compiler_lock:
            kinds = tuple(normalize_signature(sig)[0])
            if kinds not in self.overloads:
                need = Need(self.name, text_of(kinds))
                if progress.asked is not None:
                    progress.asked.append(need)
                if not (self.kept and self._load(kinds, need)):
                    self._make(kinds, need, wait)
            return self.overloads[kinds].entry_point

    def _load(self, kinds: tuple[Any, ...], need: Need) -> bool:
        runtime.initialize(
            self.targetctx
        )  # all that machine code needs of Numba; what compiles loads ten times as much
        found = store.load(need.name, need.types, self.targetctx)
        if found is not None:
            self._cache_hits[kinds] += 1
            self.add_overload(found)
        return found is not None

    def _make(self, kinds: tuple[Any, ...], need: Need, wait: bool) -> None:
        if not self.kept:
            with progress.measured():
                super().compile(kinds)
            return
        with progress.compiling(need):
            while kinds not in self.overloads:
                try:
                    self._take_turn(kinds, need, wait=False)
                except store.Busy:
                    if not wait:
                        raise
                    if not compile_another():
                        self._take_turn(kinds, need, wait=True)

    def _take_turn(self, kinds: tuple[Any, ...], need: Need, wait: bool) -> None:
        with store.turn(need.name, need.types, wait):
            if not self._load(kinds, need):  # another process may have made it meanwhile
                super().compile(kinds)
                store.save(need.name, need.types, self.overloads[kinds])

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """The types of a call by compiled code."""
        return self.inner.get_call_template(args, kws)

    def get_overload(self, sig: Any) -> Any:
        """What such a call is linked to."""
        return self.inner.get_overload(sig)


def compiled(function: Callable[..., Any]) -> Any:
    """Compile a function when it is first called with arguments of new types."""
    return Compiled(function)


def inner(function: Callable[..., Any]) -> Any:
    """Compile a function as a part of those that call it."""
    return Inner(function)


def borrowing(function: Callable[..., Any]) -> Any:
    """As ``inner``, for functions that are called so often that counting references to their arrays would take longer.

    They use arrays that their callers hold: they make none, and return none.
    """
    return Inner(function, _nrt=False)


@cache
def uncached(dispatcher: Any) -> Any:
    """The same function without a file on disk, for code that the fingerprint does not know."""
    return Compiled(dispatcher.py_func, kept=False)


def for_space(dispatcher: Any, space: Any) -> Any:
    """The function to call with a structure's space: a change of foreign code must not meet old machine code."""
    return dispatcher if type(space).__module__.startswith("m3n.") else uncached(dispatcher)
