"""Runs in MLflow and TensorBoard: a callback of ``minimize`` is any function of a snapshot.

    python examples/track_runs.py

Takes whichever of the two is installed, and Python's logging in any case.
"""

import logging
from importlib.util import find_spec

import numpy as np

import m3n
from m3n.features import Dense, chain_features
from m3n.structures import Chain


def to_mlflow(snapshot):
    """Into the active run of MLflow."""
    import mlflow

    record = snapshot.record
    values = {"primal": record.primal, "dual": record.dual, "gap": record.gap, "seconds": record.seconds}
    mlflow.log_metrics(values, step=round(record.passes))


class ToTensorBoard:
    """Into an event file; ``writer`` is a SummaryWriter of torch.utils.tensorboard or of tensorboardX."""

    def __init__(self, writer):
        self.writer = writer

    def __call__(self, snapshot):
        record = snapshot.record
        for name in ("primal", "dual", "gap"):
            self.writer.add_scalar(name, getattr(record, name), round(record.passes))


def callbacks():
    """Those whose library is here."""
    found = []
    if find_spec("mlflow"):
        found.append(to_mlflow)
    if find_spec("tensorboardX"):
        from tensorboardX import SummaryWriter

        found.append(ToTensorBoard(SummaryWriter()))
    return found


def main():
    logging.basicConfig(level=logging.INFO, format="%(name)s: %(message)s")  # m3n.run.loop tells how a run ended
    train, _ = m3n.datasets.digit_strings(n_train=50, n_test=1)
    structure = Chain([len(string) for string in train.labels], 10)
    features = chain_features(Dense(np.concatenate(train.inputs), 10), 10)
    problem = m3n.Problem(structure, features, train.labels, lam=0.01)
    result = m3n.minimize(problem, tol=0.1, callbacks=callbacks())
    print(f"{result.status}: {len(result.trace)} records, gap {result.certificate.gap:.3f}")


if __name__ == "__main__":
    main()
