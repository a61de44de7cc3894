"""The parameters of CRFsuite's algorithms: their names, defaults and types, and what becomes of them here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

UNLIMITED = 2**31 - 1


class Parameter(NamedTuple):
    """A parameter of an algorithm.

    Attributes
    ----------
    default : bool, int, float or str
        Its value unless it is set; of the type that it has.
    argument : str
        What ``sklearn_crfsuite.CRF`` calls it.
    help : str
        What it means here.
    """

    default: Any
    argument: str
    help: str

    def read(self, value: Any) -> Any:
        """A value, which may be given as text, in the type of the parameter.

        Parameters
        ----------
        value : str, bytes or number
            The value.
        """
        value = value.decode() if isinstance(value, bytes) else value
        return READERS[type(self.default)](value)


READERS: dict[type, Callable[[Any], Any]] = {
    bool: lambda value: bool(int(value)),
    int: lambda value: int(float(value)),
    float: float,
    str: str,
}
IGNORED = "Accepted; the solver is another one."
EVERYONE = {
    "feature.minfreq": Parameter(0.0, "min_freq", "The smallest frequency of a pair that gets a weight."),
    "feature.possible_states": Parameter(
        False, "all_possible_states", "Whether pairs of attribute and label that do not occur get a weight too."
    ),
    "feature.possible_transitions": Parameter(
        False, "all_possible_transitions", "Whether pairs of neighbouring labels that do not occur get a weight too."
    ),
}
C2 = Parameter(1.0, "c2", "Weight of the L2 penalty |w|^2 beside the sum of losses.")
PERIOD = Parameter(10, "period", "With c1: training ends when so many passes have brought no more than delta.")
DELTA = "Training ends when the objective is certainly within this part of its optimum."
EPSILON = Parameter(0.0, "epsilon", IGNORED)
PASSES = "The most passes over the data."
PARAMETERS: dict[str, dict[str, Parameter]] = {
    "lbfgs": {
        "c1": Parameter(0.0, "c1", "Weight of the L1 penalty |w|_1 beside the sum of losses."),
        "c2": C2,
        "max_iterations": Parameter(UNLIMITED, "max_iterations", PASSES),
        "num_memories": Parameter(6, "num_memories", IGNORED),
        "epsilon": Parameter(1e-5, "epsilon", IGNORED),
        "period": PERIOD,
        "delta": Parameter(1e-5, "delta", DELTA),
        "linesearch": Parameter("MoreThuente", "linesearch", IGNORED),
        "max_linesearch": Parameter(20, "max_linesearch", IGNORED),
    },
    "l2sgd": {
        "c2": C2,
        "max_iterations": Parameter(1000, "max_iterations", PASSES),
        "period": PERIOD,
        "delta": Parameter(1e-6, "delta", DELTA),
        "calibration.eta": Parameter(0.1, "calibration_eta", IGNORED),
        "calibration.rate": Parameter(2.0, "calibration_rate", IGNORED),
        "calibration.samples": Parameter(1000.0, "calibration_samples", IGNORED),
        "calibration.candidates": Parameter(10, "calibration_candidates", IGNORED),
        "calibration.max_trials": Parameter(20, "calibration_max_trials", IGNORED),
    },
    "ap": {"max_iterations": Parameter(100, "max_iterations", PASSES), "epsilon": EPSILON},
    "pa": {
        "type": Parameter(1, "pa_type", IGNORED),
        "c": Parameter(1.0, "c", "Weight of the losses beside 1/2 |w|^2."),
        "error_sensitive": Parameter(True, "error_sensitive", "Accepted; the loss is the number of wrong labels."),
        "averaging": Parameter(True, "averaging", IGNORED),
        "max_iterations": Parameter(100, "max_iterations", PASSES),
        "epsilon": EPSILON,
    },
    "arow": {
        "variance": Parameter(1.0, "variance", "Losses weigh variance/gamma beside 1/2 |w|^2."),
        "gamma": Parameter(1.0, "gamma", "Losses weigh variance/gamma beside 1/2 |w|^2."),
        "max_iterations": Parameter(100, "max_iterations", PASSES),
        "epsilon": EPSILON,
    },
}
TITLES = {
    "lbfgs": "Conditional random field (for L-BFGS)",
    "l2sgd": "Conditional random field (for SGD)",
    "ap": "Max-margin Markov network (for the averaged perceptron)",
    "pa": "Max-margin Markov network (for passive aggressive)",
    "arow": "Max-margin Markov network (for AROW)",
}


class Parameters:
    """The parameters of one algorithm.

    Parameters
    ----------
    algorithm : {"lbfgs", "l2sgd", "ap", "pa", "arow"}
        Which.
    """

    def __init__(self, algorithm: str):
        self.algorithm = algorithm
        self.known = EVERYONE | PARAMETERS[algorithm]
        self.values = {name: parameter.default for name, parameter in self.known.items()}

    def __getitem__(self, name: str | bytes) -> Any:
        return self.values[self.checked(name)]

    def __setitem__(self, name: str | bytes, value: Any) -> None:
        name = self.checked(name)
        try:
            self.values[name] = self.known[name].read(value)
        except (TypeError, ValueError):
            kind = type(self.known[name].default).__name__
            raise ValueError(f"{name} must be of type {kind}, got {value!r:.60}") from None

    def checked(self, name: str | bytes) -> str:
        """A name that the algorithm knows.

        Parameters
        ----------
        name : str or bytes
            The name.
        """
        text = name.decode() if isinstance(name, bytes) else name
        if text not in self.known:
            raise ValueError(f"{self.algorithm!r} has no parameter {text!r}; it has {', '.join(self.known)}")
        return text

    def arguments(self) -> dict[str, Any]:
        """The values by the names that they have in ``sklearn_crfsuite.CRF``."""
        given = {self.known[name].argument: value for name, value in self.values.items()}
        return {"algorithm": self.algorithm} | given
