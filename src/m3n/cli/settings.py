"""Values that are typed on the command line: solvers with settings, folds, the regularisation."""

from __future__ import annotations

import math
import os
import re
import sys
from collections.abc import Iterable
from dataclasses import fields, is_dataclass, replace
from importlib import import_module
from itertools import chain
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from m3n.problem import Problem
from m3n.solvers import BY_NAME, Solver

READERS = {int: int, float: float, str: str}
WORDS = {"none": None, "true": True, "false": False}


def parse_solver(text: str) -> Solver[Any]:
    """A solver from ``name`` or ``name:setting=value,setting=value``.

    A setting that is a small object is written by its name, with whole numbers in parentheses where it has some:
    ``block_frank_wolfe:move=pairwise,cache=plane_cache(10)``. A solver of one's own is named by its module and class,
    ``my_solvers.FrankWolfe``; the module is looked for in the working directory, too.

    Parameters
    ----------
    text : str
        What was typed.
    """
    name, _, rest = text.partition(":")
    kind = _foreign(name) if "." in name else BY_NAME.get(name)
    if kind is None:
        known = ", ".join(sorted(BY_NAME))
        raise ValueError(f"unknown solver {name!r}; choose from {known}, or name your own as module.Class")
    settings = dict(_setting(kind, name, item) for item in rest.split(",") if item)
    try:
        return kind(**settings)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name}: {error}") from None


def _foreign(name: str) -> type[Solver[Any]]:
    """A class of the user's, by module and name."""
    module, _, attribute = name.rpartition(".")
    sys.path.insert(0, os.getcwd())
    try:
        kind = getattr(import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise ValueError(f"there is no solver {name!r}: {error}") from None
    finally:
        sys.path.remove(os.getcwd())
    if not (isinstance(kind, type) and issubclass(kind, Solver)):
        raise ValueError(f"{name} is not a class that derives from m3n.solvers.Solver")
    return kind


def parse_stop(text: str) -> str | float | None:
    """When training ends: None for the gap, "predictions", or a share such as ``0.9``.

    Parameters
    ----------
    text : str
        What was typed.
    """
    if text in ("gap", "predictions"):
        return None if text == "gap" else text
    try:
        share = float(text)
    except ValueError:
        share = 0.0
    if not 0.0 < share <= 1.0:
        raise ValueError(f"training ends by gap, by predictions, or at a share of them such as 0.9, got {text!r}")
    return share


def parse_folds(text: str) -> list[int]:
    """Numbers from ``1-9`` or ``0,2,4-6``.

    Parameters
    ----------
    text : str
        What was typed.
    """
    folds: set[int] = set()
    for piece in text.split(","):
        first, dash, last = piece.strip().partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            raise ValueError(f"folds are numbers and ranges such as 1-9 or 0,2,4-6, got {text!r}")
        if int(last or first) < int(first):
            raise ValueError(f"the range {piece.strip()} is empty; write the smaller fold first")
        folds.update(range(int(first), int(last or first) + 1))
    return sorted(folds)


def parse_strength(text: str, count: float) -> float:
    """A positive number, or one divided by the number of sequences, such as ``1/n`` or ``10/n``.

    Parameters
    ----------
    text : str
        What was typed.
    count : float
        How many sequences there are, or the sum of their weights.
    """
    number, slash, what = text.replace(" ", "").partition("/")
    try:
        strength = float(number) if not slash or what == "n" else None
    except ValueError:
        strength = None
    if strength is None:
        raise ValueError(f"the regularisation is a positive number, or one divided by n such as 5/n, got {text!r}")
    if not 0.0 < strength < float("inf"):
        raise ValueError(f"the regularisation must be positive and finite, got {text}")
    return strength / count if slash else strength


def parse_class_weight(text: str | None, y: Iterable[Iterable[Any]]) -> dict[Any, float] | str | None:
    """The word balanced, or weights by labels from ``O=0.5,B-PER=2``.

    Parameters
    ----------
    text : str or None
        What was typed.
    y : lists of labels
        All labels that there are.
    """
    if text is None or text == "balanced":
        return text
    known = {str(label): label for label in chain.from_iterable(y)}
    return dict(_weight(item, known) for item in text.split(","))


def _weight(item: str, known: dict[str, Any]) -> tuple[Any, float]:
    label, _, number = item.strip().rpartition("=")
    try:
        weight = float(number)
    except ValueError:
        weight = math.nan
    if not (label and 0.0 <= weight < math.inf):
        raise ValueError(f"write balanced, or LABEL=NUMBER,LABEL=NUMBER such as O=0.5,B-PER=2; got {item!r}")
    if label not in known:
        raise ValueError(f"the data have no label {label!r}; they have {', '.join(sorted(known)):.200}")
    return known[label], weight


def fitting(problem: Problem) -> list[Solver[Any]]:
    """Every solver that can work on a problem, with default settings.

    Parameters
    ----------
    problem : Problem
        The problem.
    """
    solvers = [kind() for kind in BY_NAME.values()]
    return [s for s in solvers if s.fits(problem) and (s.oracles(problem.temperature) or set()) <= problem.oracles]


def seeded(solver: Solver[Any], seed: int) -> Solver[Any]:
    """The solver with a seed, if it draws random numbers and none was chosen for it.

    Parameters
    ----------
    solver : Solver
        The solver.
    seed : int
        The seed.
    """
    settings: Any = solver
    random = is_dataclass(solver) and any(f.name == "seed" and f.default == settings.seed for f in fields(solver))
    return replace(settings, seed=seed) if random else solver


def _setting(kind: type[Solver[Any]], name: str, item: str) -> tuple[str, Any]:
    key, equals, text = item.partition("=")
    names: list[str] = [f.name for f in fields(kind)] if is_dataclass(kind) else []
    if key not in names:
        raise ValueError(f"{name} has no setting {key!r}; it has {', '.join(names) or 'none'}")
    if not equals:
        raise ValueError(f"{name}: write {key}=VALUE")
    return key, _value(get_type_hints(kind)[key], text, f"{name}: {key}")


def _value(hint: Any, text: str, where: str) -> Any:
    """The text as the first of the types in an annotation that it fits."""
    choices = _choices(hint)
    if text in choices:  # one of the words of a Literal
        return text
    if text.lower() in WORDS and type(WORDS[text.lower()]) in choices:
        return WORDS[text.lower()]
    word, _, argument = text.rstrip(")").partition("(")
    for kind in choices:
        try:
            if is_dataclass(kind) and _word(kind) == word:
                return kind(*map(int, argument.split("/") if argument else ()))  # type: ignore[operator]
            if kind in READERS:
                return READERS[kind](text)
        except (TypeError, ValueError):
            continue
    wanted = " or ".join(map(_word, (kind for kind in choices if not getattr(kind, "_is_protocol", False))))
    raise ValueError(f"{where} must be {wanted}, got {text!r}")


def _word(kind: Any) -> str:
    """What to type for a type: ``gap_sampling`` for GapSampling, ``float`` for a number."""
    name = "none" if kind is NoneType else getattr(kind, "__name__", repr(kind))
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower() if is_dataclass(kind) else name


def _choices(hint: Any) -> tuple[Any, ...]:
    """The types of a union and the words of a Literal, in their order."""
    if get_origin(hint) in (Union, UnionType):
        return tuple(choice for part in get_args(hint) for choice in _choices(part))
    return get_args(hint) if get_origin(hint) is Literal else (hint,)


def parse_backend(name: str | None, address: str | None, workers: int | None, lanes: int | None) -> Any:
    """Where training runs.

    Parameters
    ----------
    name : str or None
        "threads" or "ray"; None is what the other settings are for.
    address : str or None
        Of a Ray cluster.
    workers, lanes : int or None
        How many workers, and parts of sums.
    """
    from m3n.cluster import Local, Ray, resolve_backend

    known: dict[str, Any] = {"address": address, "workers": workers, "lanes": lanes}
    given = {setting: value for setting, value in known.items() if value is not None}
    if name is None and not given:
        return None
    resolve_backend(name)
    if name == "ray" or (name is None and set(given) - {"lanes"}):
        return Ray(**given)
    if set(given) - {"lanes"}:
        raise ValueError(f"--{next(iter(given))} is for --backend ray")
    return Local(lanes)
