"""Going on from an earlier model: its weights, at the places that their names have in a new model.

With ``prior`` a fit minimises lam/2 |w - w0|^2 + risk on the new data, where w0 are the weights of the earlier model.
The new model has all attributes and labels of the earlier one, and those of the new data besides: weights of what is
new are pulled to 0, and what the new data do not speak of keeps the weight that it had. Nothing learnt is lost by name.

Which weight of a solver stands where in the named arrays of a model is found out by numbering them: arrays are linear
in weights, so those of the weights 1, 2, 3, ... divided by those of 1, 1, 1, ... are the numbers, whatever the
strengths of groups are and whichever pairs have a weight.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import scipy.sparse

from m3n.estimators import files
from m3n.features import ObservedTable, Scaled, Stack

if TYPE_CHECKING:
    from m3n.estimators.trained import Trained


@dataclass(frozen=True)
class Old:
    """An earlier model, and where its attributes and labels are in a new one.

    Attributes
    ----------
    model : Trained
        The earlier model.
    places : mapping from str to array of int
        For the names of sizes ("attributes", "labels", "pairs") the new number of every old one; others have the same.
    labels : int
        How many labels there are now.
    """

    model: Any
    places: Mapping[str, np.ndarray]
    labels: int

    @classmethod
    def of(cls, model: Any, reader: Any, classes: np.ndarray) -> Old | None:
        """The earlier model in the numbers of a reader that knows it; None if there is none."""
        if model is None:
            return None
        number = {label: k for k, label in enumerate(classes.tolist())}
        places = {
            "labels": np.array([number[label] for label in model.classes_.tolist()]),
            "attributes": reader.places_of(model.reader_),
        }
        if reader.pair_width is not None:
            places["pairs"] = reader.places_of(model.reader_, pair=True)
        return cls(model, places, len(classes))

    def weights(self, named: Any, features: Stack) -> np.ndarray:
        """The prior for a feature map; ``named`` makes the named arrays of weights, one weight at every place."""
        prior = np.zeros(features.dim)
        ones, numbers = (named(features, w) for w in (np.ones(features.dim), np.arange(1.0, features.dim + 1)))
        for entry in self.model._arrays():
            earlier = vars(self.model).get(entry.name)
            if entry.weights and earlier is not None and numbers.get(entry.name) is not None:
                rows, columns, values = self._entries(earlier, entry.shape)
                wide = self.labels ** (len(entry.shape) - 1)
                scale, at = (_looked_up(made[entry.name], wide, rows, columns) for made in (ones, numbers))
                there = scale != 0.0  # elsewhere the new model has no weight
                prior[np.rint(at[there] / scale[there]).astype(np.int64) - 1] = values[there] / scale[there]
        for part, piece in zip(features.maps, features.split(prior), strict=True):
            table = part.map if isinstance(part, Scaled) else part
            if isinstance(table, ObservedTable):
                piece *= table.mask.ravel()
        return prior

    def nonzero(self, name: str) -> scipy.sparse.csr_array | None:
        """Where an array of the earlier model has weights, in the new numbers: True in a matrix as ``Observed`` has it.

        Parameters
        ----------
        name : str
            Of the array.
        """
        earlier = vars(self.model).get(name)
        entry = next(entry for entry in self.model._arrays() if entry.name == name)
        if earlier is None:
            return None
        rows, columns, _ = self._entries(earlier, entry.shape)
        shape = self.size_of(entry.shape[0]), self.labels ** (len(entry.shape) - 1)
        return scipy.sparse.csr_array((np.ones(len(rows), bool), (rows, columns)), shape=shape)

    def size_of(self, name: str | int) -> int:
        """At least so many there are now."""
        return self.labels if name == "labels" else int(self.places[str(name)].max(initial=-1)) + 1

    def _entries(self, earlier: Any, shape: tuple[str | int, ...]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Rows, columns and values of the weights of an array that are not zero, in the new numbers."""
        flat = earlier if scipy.sparse.issparse(earlier) else np.asarray(earlier).reshape(len(earlier), -1)
        found = scipy.sparse.coo_array(flat)
        labels, joint = self.places["labels"], np.zeros(1, np.int64)
        for _ in shape[1:]:
            joint = (joint[:, None] * self.labels + labels).ravel()
        kept = found.data != 0.0
        places = self.places.get(str(shape[0]), np.arange(len(flat) if isinstance(flat, np.ndarray) else 0))
        return places[found.row[kept]], joint[found.col[kept]], found.data[kept]


class GoesOn:
    """An estimator that can go on from an earlier model, or from itself."""

    prior: Any
    _further: tuple[Any, ...] = ()  # labels that are to be known besides those of the data

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None, *, classes: Iterable[Any] | None = None) -> Self:
        """Train on further data, with the model itself as the prior: the first call is a ``fit``.

        Every call minimises lam/2 |w - w0|^2 plus the mean loss on the data of this call alone, where w0 are the
        weights so far; ``certificate_`` speaks of that objective. It keeps what was learnt as far as the new data do
        not contradict it, and learns new attributes and labels. It is not the model of all data together: those of
        earlier calls are not seen again. ``lam`` says how strongly the past counts: with None, 1 divided by the number
        of sequences of the call, a small call moves the weights little.

        Parameters
        ----------
        X, y, sample_weight
            As in ``fit``.
        classes : collection of labels, optional
            Labels that these data may lack and that are to be known nevertheless.

        Returns
        -------
        Self
            The estimator itself.
        """
        learner: Any = copy.copy(self)
        learner.prior = copy.copy(self) if learner._fitted else self.prior
        learner.warm_start = False  # which goes on with the same data
        learner._further = tuple(np.asarray(list(classes)).tolist()) if classes is not None else ()
        learner._fit(X, y, sample_weight)
        kept = {name: vars(self)[name] for name in learner._parameter_names()}
        vars(learner).pop("_further")
        vars(self).update(vars(learner) | kept)
        return self

    @property
    def _known_labels(self) -> list[Any]:
        """Labels of the earlier model, and those that were asked for."""
        return [*([] if self.prior is None else self.prior.classes_.tolist()), *self._further]


def check_prior(estimator: Trained) -> None:
    """Refuse a prior that is no model, and what does not go with a prior.

    Parameters
    ----------
    estimator : Trained
        The estimator with its ``prior``.
    """
    earlier, kind = estimator.prior, files.kind_of(estimator)
    if earlier is None:
        return
    if not hasattr(earlier, "_arrays") or files.kind_of(earlier) != kind:
        raise TypeError(f"prior must be a fitted {kind}, such as m3n.load gives, got {earlier!r:.60}")
    if not earlier._fitted:
        raise ValueError("prior is not fitted yet: give a model that is, or None")
    if estimator._kernel_settings() is not None or not earlier._linear:
        raise ValueError("prior is for weights of attributes: the inputs of a kernel have no names to find them by")
    if estimator.l1:
        raise ValueError(f"l1={estimator.l1:g} pulls weights to 0 and prior to others; use one of the two")
    if estimator.objective == "slack":
        raise ValueError("objective='slack' multiplies the whole margin, the prior's too; use another with a prior")


def _looked_up(array: Any, wide: int, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Entries of an array whose axes after the first are joined to one, 0 where a sparse one has none."""
    if scipy.sparse.issparse(array):
        return np.asarray(array[rows, columns], dtype=np.float64).ravel() if len(rows) else np.empty(0)
    return array.reshape(-1, wide)[rows, columns]
