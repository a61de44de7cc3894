"""Compiled functions of tests whose machine code is kept on disk."""

import hashlib
import inspect

from m3n.compiled.jit import compiled


def kept(function):
    """As ``compiled``, which keeps no code of foreign functions; here the file's name tells the function's source, too.

    Besides what it calls of ``m3n.compiled``, the function must not depend on anything that could change.
    """
    dispatcher = compiled(function)
    dispatcher.name += f" {hashlib.sha256(inspect.getsource(function).encode()).hexdigest()}"
    dispatcher.kept = True
    return dispatcher
