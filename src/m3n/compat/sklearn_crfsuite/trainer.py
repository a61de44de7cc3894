"""A trainer that shows one line per certificate."""

from __future__ import annotations

import sys
from typing import Any

from m3n.compat.trainer import Trainer

__all__ = ["LinePerIterationTrainer"]


class LinePerIterationTrainer(Trainer):
    """Shows passes, seconds, loss, gap and weights in a line, with scores if sequences are held out."""

    def on_iteration(self, log: str, info: dict[str, Any]) -> None:
        """Show a line.

        Parameters
        ----------
        log : str
            What was said since the hook before.
        info : dict
            An entry of ``logparser.iterations``.
        """
        line = "Iter {num:<3} time={time:<5.2f} loss={loss:<8.2f} gap={gap:<8.2f} active={active_features:<5}"
        if info["scores"]:
            line += " precision={avg_precision:.3f} recall={avg_recall:.3f} F1={avg_f1:.3f}"
            line += " Acc(item/seq)={item_accuracy_float:.3f} {instance_accuracy_float:.3f}"
        sys.stdout.write(f"{line} feature_norm={{feature_norm:.2f}}\n".format(**info))
