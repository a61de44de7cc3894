"""What models of sequences share, whether they label positions or segments."""

from __future__ import annotations

import numpy as np

from m3n.estimators.declaration import learnt
from m3n.estimators.inputs import SequenceReader
from m3n.estimators.trained import Trained
from m3n.features import Templates


class SequenceModel(Trained):
    """An estimator whose inputs are sequences, with scores of neighbouring labels and of both ends.

    Parameters
    ----------
    templates : Templates or None
        Attributes to make of tokens in columns, such as ``m3n.features.CHUNKING``; X is then what
        ``m3n.io.read_columns`` returns, or lists of tokens with one string per column.

    Attributes
    ----------
    transitions_ : array (labels, labels)
        Scores of pairs of neighbouring labels.
    start_, end_ : array (labels,)
        Scores of the first and the last label.
    """

    templates: Templates | None = None

    transitions_: np.ndarray = learnt("labels", "labels", weights=True)
    start_: np.ndarray = learnt("labels", weights=True)
    end_: np.ndarray = learnt("labels", weights=True)

    _reader = SequenceReader

    def _tables(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Copies of the scores that do not depend on inputs, for oracles to write on."""
        return self.transitions_.copy(), self.start_.copy(), self.end_.copy()
