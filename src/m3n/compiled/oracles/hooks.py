"""What compiled code asks of an output space, one example at a time: the hooks, and who implements them.

A structure enters as a named tuple of plain arrays, its *space*. The functions below pick their implementation by the
type of that tuple when the code that calls them is compiled. For a structure without a compiled form of a hook the same
code runs in the interpreter, where ``space`` has methods of these names.

An example's scores are one flat vector, its *local* theta: its rows of all part arrays, one array after another. An
output is the list of its *parts*, positions in that vector (a part that counts twice is listed twice).

Where reading the shared tables takes long, a space implements the *steps* of ``best``, ``soft`` and ``worst`` instead
(``STEPS``), and ``in_steps`` registers these. A pass over a batch then reads the shared tables once for all examples.
"""

from collections.abc import Callable, Iterable
from typing import Any

from numba import types
from numba.extending import overload

from m3n.compiled.jit import CHOSEN

ORACLES = {  # what the compiled form of an oracle needs
    "hard": ("workspace", "best"),
    "soft": ("workspace", "soft"),
    "smoothed": ("workspace", "smoothed"),
    "support": ("workspace", "best", "worst", "cliques", "clique_range"),
}
SLACK = ("slack_workspace", "slack")
STEPS = ("cut", "read_shared", "begin_soft", "best_own", "soft_own", "write_shared")
_IMPLEMENTATIONS: dict[tuple[str, Any], Callable[..., Any]] = {}


def implements(name: str, space: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register the implementation of a hook for a type of space."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        _IMPLEMENTATIONS[name, space] = function
        return function

    return register


def implemented(names: Iterable[str], space: Any) -> bool:
    """Whether a type of space has compiled forms of some hooks."""
    return all((name, space) in _IMPLEMENTATIONS for name in names)


def _hook(interpreted: Callable[..., Any]) -> Callable[..., Any]:
    """A function of a space that is compiled as what the space's type registered under its name."""

    def choose(space, *others):
        return _IMPLEMENTATIONS[interpreted.__name__, space.instance_class] if _compiled(space) else None

    overload(interpreted, jit_options=CHOSEN, strict=False)(choose)
    return interpreted


def _compiled(space: Any) -> bool:
    return isinstance(space, types.BaseNamedTuple)


@_hook
def workspace(space):
    """Scratch memory for one sweep."""
    return space.workspace()


@_hook
def best(space, i, theta, parts, work):
    """Max-oracle of example i: its best score and the number of parts of the best output, written to ``parts``."""
    return space.best(i, theta, parts)


@_hook
def soft(space, i, theta, mu, work):
    """Exp-oracle of example i: mu log sum exp(score/mu); the marginals of the parts are written over ``theta``."""
    return space.soft(i, theta, mu)


@_hook
def smoothed(space, i, theta, mu, work):
    """Smoothed maximum of example i with a prox of the structure's own, see ``Structure.smoothed``; as ``soft``."""
    raise TypeError(f"{type(space).__name__} has no compiled smoothed oracle")


@_hook
def slack_workspace(space, costs):
    """Scratch memory for one sweep of ``slack``."""
    return space.workspace()


@_hook
def slack(space, costs, i, theta, parts, work):
    """Max-oracle of slack rescaling of example i: the largest loss times margin, and as ``best`` who attains it."""
    return space.slack(i, theta, parts)


@_hook
def cliques(space, i, parts, out):
    """The cliques that an output uses, numbered from 0 within example i; their number, at most that of its parts."""
    raise TypeError(f"{type(space).__name__} has no factored dual")


@_hook
def clique_range(space):
    """One more than the largest number of a clique."""
    raise TypeError(f"{type(space).__name__} has no factored dual")


@_hook
def worst(space, i, theta, mass, parts, work):
    """Least score among the outputs of which every clique has positive ``mass``, and the number of its parts.

    Scores are finite; the structure's own rules may forbid outputs. Without any the least score is inf.
    """
    raise TypeError(f"{type(space).__name__} has no factored dual")


@_hook
def cut(space, i, theta):
    """The local theta of example i in two: a tuple of its own arrays, and all shared tables in one vector; views."""
    raise TypeError(f"{type(space).__name__} has no oracles in steps")


@_hook
def read_shared(space, shared, work):
    """Prepare for the oracles of examples that have these shared tables."""
    raise TypeError(f"{type(space).__name__} has no oracles in steps")


@_hook
def begin_soft(space, mu, work):
    """Prepare for exp-oracles, after the shared tables were read."""
    raise TypeError(f"{type(space).__name__} has no oracles in steps")


@_hook
def best_own(space, i, own, mass, parts, work):
    """``best`` from the own arrays of example i; with ``mass`` over the outputs of which every clique has some.

    ``parts`` has room for all parts, or for those of the rows of the first array alone, which come first.
    """
    raise TypeError(f"{type(space).__name__} has no oracles in steps")


@_hook
def soft_own(space, i, own, mu, weight, work):
    """``soft`` with marginals times a weight: over the own arrays, and added up in ``work`` for shared tables."""
    raise TypeError(f"{type(space).__name__} has no oracles in steps")


@_hook
def write_shared(space, shared, work):
    """The marginals of shared tables that were added up since they were read."""
    raise TypeError(f"{type(space).__name__} has no oracles in steps")


def in_steps(space: Any) -> Any:
    """Register ``best``, ``soft`` and ``worst`` of a type of space that implements their steps."""
    for name, function in (("best", _best_in_steps), ("soft", _soft_in_steps), ("worst", _worst_in_steps)):
        implements(name, space)(function)
    return space


def _best_in_steps(space, i, theta, parts, work):
    own, shared = cut(space, i, theta)
    read_shared(space, shared, work)
    return best_own(space, i, own, theta[:0], parts, work)


def _soft_in_steps(space, i, theta, mu, work):
    own, shared = cut(space, i, theta)
    read_shared(space, shared, work)
    begin_soft(space, mu, work)
    value = soft_own(space, i, own, mu, 1.0, work)
    write_shared(space, shared, work)
    return value


def _worst_in_steps(space, i, theta, mass, parts, work):
    theta *= -1.0
    own, shared = cut(space, i, theta)
    read_shared(space, shared, work)
    value, number = best_own(space, i, own, mass, parts, work)
    theta *= -1.0  # as it was, bit for bit
    return -value, number
