"""A trainer with hooks, as ``pycrfsuite.Trainer`` has them: a subclass overrides what it wants to hear of."""

from __future__ import annotations

import sys
from typing import Any

from m3n.compat.base_trainer import BaseTrainer
from m3n.compat.training_log import TrainingLog


class Trainer(BaseTrainer):
    """A trainer that keeps what it says, and calls hooks when parts are complete if it is verbose.

    Parameters
    ----------
    algorithm : {"lbfgs", "l2sgd", "ap", "pa", "arow"} or None
        See ``select``.
    params : mapping or None
        See ``set_params``.
    verbose : bool
        Whether to call the hooks, which by default show what they get.

    Attributes
    ----------
    logparser : TrainingLog or None
        What is known of the last run, also while it goes on.
    """

    logparser: TrainingLog | None = None

    def message(self, message: str) -> None:
        """Call the hook of a part that a message completes.

        Parameters
        ----------
        message : str
            A line or less.
        """
        told = self._told
        if not self.verbose or not told.events or told.events[-1][2] != len(told.log):
            return
        event, log = told.events[-1][0], told.last_log
        if event == "featgen_progress":
            self.on_featgen_progress(log, told.featgen_percent)
        elif event == "iteration":
            self.on_iteration(log, told.iterations[-1])
        else:
            getattr(self, f"on_{event}")(log)

    def _before_train(self) -> None:
        super()._before_train()
        self.logparser = self._told

    def on_start(self, log: str) -> None:
        """Training begins.

        Parameters
        ----------
        log : str
            What was said since the hook before.
        """
        sys.stdout.write(log)

    def on_featgen_progress(self, log: str, percent: int) -> None:
        """Some of the data have been read.

        Parameters
        ----------
        log : str
            What was said since the hook before.
        percent : int
            How much.
        """
        sys.stdout.write(log)

    def on_featgen_end(self, log: str) -> None:
        """All data have been read.

        Parameters
        ----------
        log : str
            What was said since the hook before.
        """
        sys.stdout.write(log)

    def on_prepared(self, log: str) -> None:
        """The parameters are known.

        Parameters
        ----------
        log : str
            What was said since the hook before.
        """
        sys.stdout.write(log)

    def on_prepare_error(self, log: str) -> None:
        """There is nothing to train on.

        Parameters
        ----------
        log : str
            What was said since the hook before.
        """
        sys.stdout.write(log)

    def on_iteration(self, log: str, info: dict[str, Any]) -> None:
        """There is a new certificate.

        Parameters
        ----------
        log : str
            What was said since the hook before.
        info : dict
            An entry of ``logparser.iterations``.
        """
        sys.stdout.write(log)

    def on_optimization_end(self, log: str) -> None:
        """The weights are found.

        Parameters
        ----------
        log : str
            What was said since the hook before.
        """
        sys.stdout.write(log)

    def on_end(self, log: str) -> None:
        """The model is written.

        Parameters
        ----------
        log : str
            What was said since the hook before.
        """
        sys.stdout.write(log)
