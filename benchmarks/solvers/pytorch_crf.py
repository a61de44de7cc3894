"""pytorch-crf and torch-struct: chains as differentiable layers. They have no trainer, so one full gradient is timed.

Words of similar length are padded together. The value is that of our J at w = 0, where it is known: the mean length
times log 26.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.datasets.ocr import LETTERS, PIXELS
from benchmarks.solvers.base import Entry, Outcome, Task
from benchmarks.solvers.words import images

BATCH = 256  # words; larger ones were not quicker


class PyTorchCRF(Entry):
    """``torchcrf.CRF``. Settings: ``jobs``, threads."""

    name = "pytorch-crf"
    modules = ("torchcrf", "torch", "numpy")
    objectives = ("crf",)

    def run(self, task: Task) -> Outcome:
        import torch
        import torchcrf

        crf = torchcrf.CRF(LETTERS, batch_first=True).double()
        for parameter in crf.parameters():
            torch.nn.init.zeros_(parameter)
        node = torch.zeros((PIXELS + 1, LETTERS), dtype=torch.float64, requires_grad=True)

        def loss(X: Any, y: Any, mask: Any) -> Any:
            return -crf(X @ node, y, mask=mask, reduction="sum")

        return gradient(task, loss, [node, *crf.parameters()])


class TorchStruct(Entry):
    """``torch_struct.LinearChainCRF``. Settings: ``jobs``, threads."""

    name = "torch-struct"
    modules = ("torch_struct", "torch", "numpy")
    objectives = ("crf",)

    def run(self, task: Task) -> Outcome:
        import torch
        from torch_struct import LinearChainCRF

        double = torch.float64
        node = torch.zeros((PIXELS + 1, LETTERS), dtype=double, requires_grad=True)
        tables = [torch.zeros(shape, dtype=double, requires_grad=True) for shape in ((LETTERS,) * 2, LETTERS, LETTERS)]

        def loss(X: Any, y: Any, mask: Any) -> Any:
            lengths = mask.sum(dim=1)
            theta = _potentials(torch, X @ node, *tables, lengths)
            chain = LinearChainCRF(theta, lengths=lengths)
            parts = LinearChainCRF.struct.to_parts(y, LETTERS, lengths=lengths).type_as(theta)
            return (chain.partition - (theta * parts).sum(dim=(1, 2, 3))).sum()

        return gradient(task, loss, [node, *tables])


def _potentials(torch: Any, emissions: Any, follows: Any, start: Any, end: Any, lengths: Any) -> Any:
    """Scores of pairs (words, places - 1, to, from), with those of single letters folded in."""
    rows = torch.arange(len(lengths))
    last = torch.zeros_like(emissions).index_put((rows, lengths - 1), torch.ones(LETTERS, dtype=torch.float64))
    emissions = emissions + last * end
    theta = emissions[:, 1:, :, None] + follows.T
    first = torch.zeros_like(theta[:, :, :1])
    first[:, 0] = 1.0
    return theta + first * (emissions[:, 0] + start)[:, None, None, :]


def gradient(task: Task, loss: Callable[[Any, Any, Any], Any], parameters: list[Any]) -> Outcome:
    """Time the sum of the losses of all words and its gradient."""
    import torch

    torch.set_num_threads(task.settings.get("jobs", 1))
    with task.clock("ingest"):
        X, y = images(task.dataset, task.dataset.train)
        batches = list(padded(torch, X, y))

    def whole() -> float:
        for parameter in parameters:
            parameter.grad = None
        total = 0.0
        for batch in batches:
            value = loss(*batch)
            value.backward()
            total += float(value.detach())
        return total / len(X)

    value = task.clock.best("pass", whole, times=task.settings.get("times", 3))
    seconds = task.clock.seconds["pass"], task.clock.cpu["pass"]
    return Outcome(pass_seconds=seconds, notes={"J(0)": value, "expected J(0)": _at_zero(y)})


def padded(torch: Any, X: list[np.ndarray], y: list[np.ndarray]) -> Any:
    """Batches of images, letters and masks, words in the order of their lengths."""
    order = sorted(range(len(y)), key=lambda i: len(y[i]))
    for first in range(0, len(order), BATCH):
        chosen = order[first : first + BATCH]
        images, letters = ([torch.from_numpy(z[i]) for i in chosen] for z in (X, y))
        batch = (torch.nn.utils.rnn.pad_sequence(z, batch_first=True) for z in (images, letters))
        lengths = torch.tensor([len(y[i]) for i in chosen])
        yield *batch, torch.arange(int(lengths.max())) < lengths[:, None]


def _at_zero(y: list[np.ndarray]) -> float:
    return float(np.mean([len(letters) for letters in y]) * np.log(LETTERS))
