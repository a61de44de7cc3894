"""Metadata routing: which of scikit-learn's tools hand on, such as sample weights, an estimator asks for.

With ``sklearn.set_config(enable_metadata_routing=True)``, a search or a pipeline passes ``sample_weight`` and the like
to those that asked: ``tagger.set_fit_request(sample_weight=True)``. What a method can ask for are its own arguments
beside X and y. scikit-learn's base class has the same methods; it is not derived from, see ``declaration``.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable
from typing import Any

METHODS = ("fit", "predict", "predict_proba", "decision_function", "score")
DATA = ("self", "X", "y")


class Requester:
    """Has a method ``set_fit_request`` where ``fit`` takes more than data, and so on."""

    def __init_subclass__(cls, **words: Any) -> None:
        super().__init_subclass__(**words)
        for method in METHODS:
            names = _asked(cls, method)
            if names and f"set_{method}_request" not in vars(cls):
                setattr(cls, f"set_{method}_request", _setter(cls, method, names))

    def get_metadata_routing(self) -> Any:
        """What the methods ask for, as scikit-learn's ``MetadataRequest``."""
        from sklearn.utils.metadata_routing import MetadataRequest

        known = vars(self).get("_metadata_request")  # scikit-learn's ``clone`` copies an attribute of this name
        if known is not None:
            return copy.deepcopy(known)
        requests = MetadataRequest(owner=type(self).__name__)
        for method in METHODS:
            for name in _asked(type(self), method):
                getattr(requests, method).add_request(param=name, alias=None)
        return requests


def _asked(cls: type, method: str) -> list[str]:
    """The arguments of a method that are not data."""
    function = getattr(cls, method, None)
    if function is None:
        return []
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    parameters = inspect.signature(function).parameters
    return [name for name, entry in parameters.items() if entry.kind in named and name not in DATA]


def _setter(cls: type, method: str, names: list[str]) -> Callable[..., Any]:
    def set_request(self: Any, **requests: Any) -> Any:
        from sklearn import get_config

        if not get_config()["enable_metadata_routing"]:
            remedy = "sklearn.set_config(enable_metadata_routing=True)"
            raise RuntimeError(f"set_{method}_request is for metadata routing, which is switched on by {remedy}")
        unknown = sorted(requests.keys() - set(names))
        if unknown:
            raise TypeError(f"{method} cannot ask for {unknown[0]!r}; it takes {names}")
        known = self.get_metadata_routing()
        for name, wanted in requests.items():
            getattr(known, method).add_request(param=name, alias=wanted)
        self._metadata_request = known
        return self

    keywords = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None) for name in names]
    own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    setattr(set_request, "__signature__", inspect.Signature([own, *keywords]))  # noqa: B010 (mypy: no such attribute)
    set_request.__name__ = f"set_{method}_request"
    set_request.__qualname__, set_request.__module__ = f"{cls.__qualname__}.{set_request.__name__}", cls.__module__
    set_request.__doc__ = (
        f"Say what scikit-learn's tools are to pass to ``{method}``: {', '.join(names)}.\n\n"
        "True asks for it, False does without, None refuses it, and a string is the name under which it comes. With "
        "metadata routing only.\n"
    )
    return set_request
