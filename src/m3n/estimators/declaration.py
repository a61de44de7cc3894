"""Estimators by declaration: the body of a class says which parameters and which learnt attributes it has.

A parameter is an annotated attribute with its default, and is described in the class's docstring. What ``fit`` learns
is declared by ``learnt``, arrays with the names of their sizes: model files, summaries, reports and the command follow
from that. A subclass inherits both, with their documentation, and writes down only what is its own or otherwise:

    class Mine(Trained):
        '''What it does.

        Parameters
        ----------
        depth : int
            How deep.
        '''

        depth: int = 3
        tables_: np.ndarray = learnt("labels", "labels", weights=True)

The constructor that follows has a true signature, so that ``help``, ``clone`` and type checkers see an ordinary class.

scikit-learn's tools (clone, pipelines, grid search, cross-validation) work with anything that keeps its conventions:
the arguments of ``__init__`` are kept under their names and are what ``get_params`` and ``set_params`` speak of; what
``fit`` learns gets names that end with an underscore. Deriving from its base class would keep them too, but importing
it takes as long as everything else that a first ``fit`` needs, two thirds of that for ``scipy.stats``, which no
estimator here uses. So it is imported where one of its own classes is asked for.
"""

from __future__ import annotations

import inspect
import re
import warnings
from collections.abc import Callable, Iterable, Iterator
from functools import wraps
from typing import Any, ClassVar, Literal, Self, dataclass_transform

from m3n.estimators.routing import Requester

SECTION = re.compile(r"^(Parameters|Attributes|Examples)\n-+\n", re.MULTILINE)
ENTRY = re.compile(r"^\S.*\n(?:(?: .*)?\n)*", re.MULTILINE)  # a name and the lines below it
HOW_IT_WENT = "certificate_"  # in lists of attributes, those of a subclass stand before this one


class Estimator(Requester):
    """Parameters by name, as scikit-learn has them."""

    _has_weights: ClassVar[bool] = False  # of its own, that can be shown
    _holding_data: ClassVar[tuple[str, ...]] = ()  # parameters that may be much too long to be shown

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The arguments of the constructor.

        Parameters
        ----------
        deep : bool
            Also those of arguments that have parameters of their own, as ``argument__parameter``.
        """
        params = {name: getattr(self, name) for name in self._parameter_names()}
        for name, value in list(params.items()) if deep else []:
            if hasattr(value, "get_params") and not isinstance(value, type):
                params |= {f"{name}__{key}": inner for key, inner in value.get_params().items()}
        return params

    def set_params(self, **params: Any) -> Self:
        """Change arguments of the constructor.

        Parameters
        ----------
        **params
            New values by name.
        """
        known = self._parameter_names()
        for key, value in params.items():
            name, _, inner = key.partition("__")
            if name not in known:
                raise ValueError(f"{type(self).__name__} has no parameter {name!r}; it has {known}")
            if inner:
                getattr(self, name).set_params(**{inner: value})
            else:
                setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        """The constructor's call, with the arguments that are not the default."""
        changed = [f"{name}={value!r}" for name, value in self._changed().items()]
        return f"{type(self).__name__}({', '.join(changed)})"

    def __sklearn_tags__(self) -> Any:
        """scikit-learn's description of an estimator: the one of its base class."""
        from sklearn.base import BaseEstimator

        return BaseEstimator.__sklearn_tags__(self)

    def _check_fitted(self) -> None:
        """Refuse to go on before ``fit``."""
        if not self._fitted:
            from sklearn.exceptions import NotFittedError

            raise NotFittedError(f"this {type(self).__name__} is not fitted yet; call fit first")

    def _changed(self) -> dict[str, Any]:
        """The arguments of the constructor that are not the default; of data and models only what they are."""
        signature = inspect.signature(type(self)).parameters
        params = self.get_params(deep=False)
        changed = {name: value for name, value in params.items() if not _same(value, signature[name].default)}
        return {name: _brief(value) if name in self._holding_data else value for name, value in changed.items()}

    @property
    def _holder(self) -> Any:
        """The estimator that has the weights: this one, unless it wraps another."""
        return self

    @property
    def _fitted(self) -> bool:
        known = reversed(vars(self))  # what fit has learnt came last
        return any(name.endswith("_") and not name.startswith("_") for name in known)

    @classmethod
    def _parameter_names(cls) -> list[str]:
        return list(inspect.signature(cls).parameters)


class Brief:
    """What stands for something long where parameters are shown.

    Parameters
    ----------
    text : str
        What is shown.
    """

    def __init__(self, text: str):
        self.text = text

    def __repr__(self) -> str:
        return self.text


def _brief(value: Any) -> Any:
    """Inputs and outputs, or a model, in a word."""
    if isinstance(value, Estimator):
        return Brief(f"{type(value).__name__}(...)")
    return Brief("(X, y)") if isinstance(value, (tuple, list)) else value


def _same(value: Any, default: Any) -> bool:
    return value is default or (type(value) is type(default) and bool(value == default))


class Learnt:
    """An attribute that an object has once ``fit`` has succeeded.

    Attributes
    ----------
    name : str
        Of the attribute.
    shape : tuple of str and int
        The sizes of an array, by name where they differ between models; empty for what is not an array. Where a model
        has no such size, the attribute is None.
    weights : bool
        Whether its numbers are weights; others are indices or lengths.
    limits : tuple of two or None
        Of whole numbers: the smallest one, and the size that they must be below, or None.
    """

    name: str

    def __init__(self, shape: tuple[str | int, ...], weights: bool, limits: tuple[int, str | None] | None):
        self.shape, self.weights, self.limits = shape, weights, limits

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: Any, owner: type | None = None) -> Learnt:
        """The declaration, of the class; an object that gets here has no such attribute yet."""
        if instance is None:
            return self
        raise AttributeError(f"this {type(instance).__name__} has no {self.name}: fit has not learnt it")


def learnt(
    *shape: str | int,
    weights: bool = False,
    limits: tuple[int, str | None] | None = None,
    init: Literal[False] = False,
) -> Any:
    """Declare an attribute that ``fit`` learns, see ``Learnt``; ``init`` tells type checkers that it is no argument."""
    return Learnt(shape, weights, limits)


@dataclass_transform(eq_default=False, field_specifiers=(learnt,))
class Declared(Estimator):
    """An estimator whose constructor and docstring are made of its declarations.

    ``_parameters`` gives the order of the arguments where it is not that of the declarations, and leaves out those of
    base classes that make no sense: these keep their defaults.
    """

    _parameters: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, **words: Any) -> None:
        super().__init_subclass__(**words)
        own = [name for name in inspect.get_annotations(cls) if _is_parameter(cls, name)]
        if "__init__" in vars(cls) or not (own or "_parameters" in vars(cls)):
            return
        if "_parameters" not in vars(cls):
            cls._parameters = (*cls._parameters, *(name for name in own if name not in cls._parameters))
        setattr(cls, "__init__", _constructor(cls))  # noqa: B010 (mypy: assigning to a method)
        if cls.__doc__:
            cls.__doc__ = _documented(cls)

    def __sklearn_tags__(self) -> Any:
        """scikit-learn's description of an estimator: inputs are lists of structures, not one matrix."""
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        return tags

    @classmethod
    def _arrays(cls) -> Iterator[Learnt]:
        """The arrays that ``fit`` learns, those of base classes first."""
        names = [name for base in reversed(cls.__mro__) for name in vars(base)]
        found = (inspect.getattr_static(cls, name) for name in dict.fromkeys(names))
        yield from (entry for entry in found if isinstance(entry, Learnt) and entry.shape)


def renamed(**names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Let a function still take arguments by former names, with a warning; its signature has the new ones alone.

    Parameters
    ----------
    **names
        The new name of every former one.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def call(*values: Any, **named: Any) -> Any:
            for former in names.keys() & named.keys():
                text = f"{function.__name__}: the argument {former} is called {names[former]} now"
                warnings.warn(text, FutureWarning, stacklevel=2)
                named[names[former]] = named.pop(former)
            return function(*values, **named)

        return call

    return decorate


def _is_parameter(cls: type, name: str) -> bool:
    public = not (name.startswith("_") or name.endswith("_"))
    return public and name in vars(cls) and not isinstance(vars(cls)[name], Learnt)


def _constructor(cls: type[Declared]) -> Callable[..., None]:
    """A constructor that keeps its arguments under their names, as scikit-learn wants it."""
    types = {name: kind for base in reversed(cls.__mro__) for name, kind in inspect.get_annotations(base).items()}
    either = inspect.Parameter.POSITIONAL_OR_KEYWORD
    signature = inspect.Signature(
        [inspect.Parameter("self", either)]
        + [inspect.Parameter(n, either, default=getattr(cls, n), annotation=types[n]) for n in cls._parameters],
        return_annotation=None,
    )

    def __init__(self: Any, *values: Any, **named: Any) -> None:
        given = signature.bind(self, *values, **named)
        given.apply_defaults()
        _, *settings = given.arguments.items()
        for name, value in settings:
            setattr(self, name, value)

    __init__.__qualname__, __init__.__module__ = f"{cls.__qualname__}.__init__", cls.__module__
    setattr(__init__, "__signature__", signature)  # noqa: B010 (mypy: functions have no such attribute)
    return __init__


def _documented(cls: type[Declared]) -> str:
    """The docstring with the entries of base classes for what the class does not describe itself."""
    own = _sections(cls)
    bases = [_sections(base) for base in cls.__mro__[1:] if issubclass(base, Declared)]
    described = {heading: _entries([own, *bases], heading) for heading in ("Parameters", "Attributes")}
    inherited = list(_entries(bases, "Attributes"))
    new = [name for name in _entries([own], "Attributes") if name not in inherited]
    before = inherited.index(HOW_IT_WENT) if HOW_IT_WENT in inherited else len(inherited)
    order = {"Parameters": cls._parameters, "Attributes": (*inherited[:before], *new, *inherited[before:])}
    made = {
        name: "".join(dict.fromkeys(found[n] for n in order[name] if n in found)) for name, found in described.items()
    }
    first, *rest = (own | made).items()
    return "\n".join([first[1], *(f"{name}\n{'-' * len(name)}\n{text}" for name, text in rest if text)])


def _sections(cls: type) -> dict[str, str]:
    """A docstring by headings, the text before all of them under the empty one."""
    first, *rest = SECTION.split(inspect.cleandoc(vars(cls).get("__doc__") or "") + "\n")
    found = dict.fromkeys(("", "Parameters", "Attributes"), "") | {"": first.rstrip("\n") + "\n"}
    return found | {name: text.rstrip("\n") + "\n" for name, text in zip(rest[::2], rest[1::2], strict=True)}


def _entries(sections: Iterable[dict[str, str]], heading: str) -> dict[str, str]:
    """The entries below a heading by the names that they describe; the first that describes a name counts."""
    found: dict[str, str] = {}
    for section in sections:
        for entry in ENTRY.findall(section[heading]):
            for name in entry.partition(" : ")[0].split(", "):
                found.setdefault(name, entry)
    return found
