"""Compilation in one piece: an entry point with everything that it calls is optimised and translated once.

Numba by itself makes machine code of every function, and again of its copy inside every caller, but only few of ours
are ever called from Python. The code of the others stays in LLVM's intermediate form, *linked*, until an entry point
takes it in. There it is private, so LLVM may inline it and drop what is left.

The classes extend parts of Numba that are not public: a ``CodeLibrary`` holds the code of one function, and a compiler
class chooses what is done with it. ``pipelines`` tries them before they are relied on.
"""

import logging
from collections.abc import Iterator
from functools import cache
from typing import Any

from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, Flags
from numba.core.environment import lookup_environment
from numba.core.registry import CPUDispatcher
from numba.core.runtime.context import NRTContext

ENVIRONMENT = "_ZN08NumbaEnv"  # how Numba names the pointer to a function's Python objects

log = logging.getLogger("m3n")


class Library(JITCodeLibrary):
    """Code of one function, linked when the machine code of a caller is made."""

    def finalize(self) -> None:
        """Nothing more is added. No optimisation, no machine code."""
        self._raise_if_finalized()
        self._finalized = True

    def _optimize_functions(self, ll_module: Any) -> None:
        """Nothing by itself: what matters is done to the whole of an entry point."""
        ll_module.data_layout = self._codegen._data_layout

    def emit(self, kept: tuple[str, ...]) -> None:
        """Make machine code of this function and of all that it calls; only the names to keep stay visible."""
        self._ensure_finalized()
        self._link_into(self._final_module)
        for function in self._final_module.functions:
            if not function.is_declaration and function.name not in kept:
                function.linkage = "internal"
        self._optimize_final_module()
        self._final_module.verify()
        self._finalize_final_module()
        for name in environments(self):
            self.codegen.set_env(name, lookup_environment(name))

    def own_module(self) -> Any:
        """This function alone, in a form that can be linked into several others."""
        for function in self._final_module.functions:
            if not function.is_declaration:
                function.linkage = "linkonce_odr"
        return self._final_module

    def _get_module_for_linking(self) -> Any:
        """This function and all that it calls, for callers that Numba compiles in its own way."""
        self._ensure_finalized()
        module = self.own_module().clone()
        self._link_into(module)
        return module

    def _link_into(self, module: Any) -> None:
        for library in self._called():
            self._reload_init.update(library._reload_init)
            ours = isinstance(library, Library)
            module.link_in(library.own_module() if ours else library._get_module_for_linking(), preserve=True)

    def _called(self) -> list[JITCodeLibrary]:
        """The code that this function calls, directly or through others of our kind."""
        found: dict[JITCodeLibrary, None] = {}
        waiting: list[JITCodeLibrary] = [self]
        while waiting:
            for library in waiting.pop()._linking_libraries:
                if library is not self and library not in found:
                    found[library] = None
                    if isinstance(library, Library):
                        waiting.append(library)
        return list(found)


def environments(library: JITCodeLibrary) -> Iterator[str]:
    """Names of the pointers to Python objects in the machine code of an entry point."""
    for variable in library._final_module.global_variables:
        if variable.name.startswith(ENVIRONMENT) and lookup_environment(variable.name) is not None:
            yield variable.name


class References(NRTContext):
    """Counts references without looking at what holds none; Numba's own reads all fields of every array for it."""

    def get_meminfos(self, builder: Any, ty: Any, val: Any) -> list[Any]:
        """The counted objects inside a value."""
        models = self._context.data_model_manager
        model = models[ty]
        found = [(ty, model.get_nrt_meminfo(builder, val))] if model.has_nrt_meminfo() else []
        for kind, field in model.traverse(builder):
            if models[kind].contains_nrt_meminfo():
                found += self.get_meminfos(builder, kind, field(val))
        return found


class Settings(Flags):
    """Compiler flags that are compared quickly, which happens whenever a function of Numba's library is looked up."""

    def values(self) -> dict[str, Any]:
        """All of them."""
        return DEFAULTS | self._values


DEFAULTS = {name: option.default for name, option in Flags.options.items()}


class Linked(Compiler):
    """Compiles a function for its callers alone."""

    wrapped = False  # for Python

    def __init__(
        self, typingctx: Any, targetctx: Any, library: Any, args: Any, return_type: Any, flags: Any, locals: Any
    ):
        super().__init__(typingctx, targetctx, library, args, return_type, Settings(flags), locals)
        self.state.library = Library(targetctx.codegen(), "linked")
        self.state.library.enable_object_caching()
        context = self.state.targetctx  # it belongs to this function alone
        context.get_executable, context.nrt = self.executable, References(context, context.enable_nrt)

    def define_pipelines(self) -> Any:
        """Numba's own. What is decided here is not seen by functions that this one calls, which others may share."""
        self.state.flags.no_cfunc_wrapper, self.state.flags.no_cpython_wrapper = True, not self.wrapped
        return super().define_pipelines()

    def executable(self, library: Library, described: Any, environment: Any) -> Any:
        """What stands for the function in Numba's tables, which want a builtin: here another useless one each time."""
        library._ensure_finalized()
        return [].append


class EntryPoint(Linked):
    """Compiles a function that Python calls."""

    wrapped = True

    def executable(self, library: Library, described: Any, environment: Any) -> Any:
        """The function as Python calls it."""
        library.emit((described.llvm_func_name, described.llvm_cpython_wrapper_name))
        context = self.state.targetctx
        return type(context).get_executable(context, library, described, environment)


@cache
def pipelines() -> tuple[type[Compiler], type[Compiler]]:
    """The compiler classes of inner functions and of entry points; Numba's own where ours do not work."""
    options = {"nopython": True}
    try:
        inner = CPUDispatcher(lambda x: x + 1, targetoptions=options, pipeline_class=Linked)
        entry = CPUDispatcher(lambda x: inner(x) + 1, targetoptions=options, pipeline_class=EntryPoint)
        if entry(1) == 3:
            return Linked, EntryPoint
    except Exception as error:  # anything may have changed in another version of Numba
        log.debug("this version of Numba compiles in its own way, which takes longer: %r", error)
    return Compiler, Compiler
