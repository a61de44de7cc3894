"""``m3n demo``: train on noisy digit strings, show the certificate, draw the picture."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from m3n.datasets import DigitStrings, digit_strings
from m3n.features import Dense, chain_features
from m3n.losses import NormalizedHamming
from m3n.problem import Problem
from m3n.run.callbacks import ProgressBar
from m3n.run.loop import Result, minimize
from m3n.structures import Chain, Multiclass

LABELS = 10
SHOWN = 4


def run(output: Path, tol: float, seed: int) -> None:
    """Train both models, print the comparison and write the picture.

    Parameters
    ----------
    output : Path
        Where to write the picture.
    tol : float
        Duality gap at which training stops.
    seed : int
        Seed of the data.
    """
    console = Console()
    train, test = digit_strings(seed=seed)
    tokens = sum(map(len, train.labels))
    console.print(f"{len(train.labels)} strings of noisy handwritten digits ({tokens} images) to learn from.\n")
    console.print("Reading every image by itself (multiclass M3N):")
    alone = _train(independent_problem(train), tol, console)
    console.print("Reading whole strings (chain M3N):")
    chain = _train(chain_problem(train), tol, console)
    read_alone, read_chain = predict_independent(alone.w, test), predict_chain(chain.w, test)
    _print_table(console, (alone, chain), (error(read_alone, test), error(read_chain, test)))
    _explain(console, chain)
    if find_spec("matplotlib") is None:
        console.print('\nNo picture: matplotlib is missing; `pip install "m3n[plot]"` brings it.', markup=False)
        return
    _draw(output, chain, test, read_alone, read_chain)
    console.print(f"\nPicture: {output}")


def independent_problem(data: DigitStrings) -> Problem:
    """Every image is an example of its own."""
    X, y = np.concatenate(data.inputs), np.concatenate([np.array(s) for s in data.labels])
    return Problem(Multiclass(len(y), LABELS), Dense(X, LABELS), y, lam=1e-2)


def chain_problem(data: DigitStrings) -> Problem:
    """Every string is an example."""
    X = np.concatenate(data.inputs)
    structure = Chain([len(s) for s in data.labels], LABELS)
    features = chain_features(Dense(X, LABELS), LABELS)
    return Problem(structure, features, data.labels, loss=NormalizedHamming(), lam=1e-2)


def predict_independent(w: np.ndarray, data: DigitStrings) -> list[list[int]]:
    """Labels by the multiclass model."""
    return [(x @ w.reshape(-1, LABELS)).argmax(axis=1).tolist() for x in data.inputs]


def predict_chain(w: np.ndarray, data: DigitStrings) -> list[list[int]]:
    """Labels by the chain model."""
    structure = Chain([len(s) for s in data.labels], LABELS)
    features = chain_features(Dense(np.concatenate(data.inputs), LABELS), LABELS)
    return structure.unpack(structure.hard(features.scores(w, structure.empty()))[1])


def error(read: list[list[int]], data: DigitStrings) -> float:
    """Share of wrong digits."""
    return float(np.mean(np.concatenate(read) != np.concatenate(data.labels)))


def _train(problem: Problem, tol: float, console: Console) -> Result:
    with ProgressBar(console) as bar:
        return minimize(problem, tol=tol, callbacks=[bar])


def _print_table(console: Console, results: tuple[Result, Result], errors: tuple[float, float]) -> None:
    table = Table("", "independent classifier", "chain M3N", title="\nTest strings")
    table.add_row("wrong digits", *(f"{e:.1%}" for e in errors))
    table.add_row("primal", *(f"{r.certificate.primal:.5f}" for r in results))
    table.add_row("dual", *(f"{r.certificate.dual:.5f}" for r in results))
    table.add_row("duality gap", *(f"{r.certificate.gap:.1e}" for r in results))
    table.add_row("solver", *(type(r.solver).__name__ for r in results))
    table.add_row("passes", *(f"{r.trace[-1].passes:.0f}" for r in results))
    table.add_row("seconds (compiling included)", *(f"{r.seconds:.1f}" for r in results))
    console.print(table)


def _explain(console: Console, result: Result) -> None:
    known = result.certificate
    console.print(
        f"Certificate ({result.status}): our weights have the objective {known.primal:.5f}, "
        f"and no weights at all can get below {known.dual:.5f}."
    )


def _draw(output: Path, result: Result, test: DigitStrings, alone: list[list[int]], chain: list[list[int]]) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    from m3n.reports import plot_convergence, plot_gap

    figure = plt.figure(figsize=(10, 7.5), layout="constrained")
    panels: Any = figure.subfigures(2, 1, height_ratios=[1.0, 1.05])
    upper, lower = panels
    left, right = upper.subplots(1, 2)
    plot_convergence(result.trace, left)
    plot_gap(result.trace, right)
    shown = _instructive(test, alone, chain)
    for axes, k in zip(np.atleast_1d(lower.subplots(len(shown), 1)), shown, strict=True):
        _draw_string(axes, test.images[k], test.labels[k], alone[k], chain[k])
    lower.suptitle("strings as read alone / as read by the chain (wrong digits in red)", fontsize=10)
    figure.savefig(output, dpi=110)
    plt.close(figure)


def _instructive(test: DigitStrings, alone: list[list[int]], chain: list[list[int]]) -> list[int]:
    """The long strings of which the chain corrects most, and one where it still errs."""
    wrong = [np.array([np.not_equal(r[k], test.labels[k]).sum() for k in range(len(r))]) for r in (alone, chain)]
    lengths = np.array([len(s) for s in test.labels])
    ranked = [int(k) for k in np.argsort(-(wrong[0] - wrong[1]) * (lengths >= 8), kind="stable")]
    erring = [k for k in ranked if wrong[1][k]]
    chosen = [k for k in ranked if not wrong[1][k]][: SHOWN - 1] + erring[:1]
    return chosen or [0]


def _draw_string(axes: Any, image: np.ndarray, gold: list[int], alone: list[int], chain: list[int]) -> None:
    length = len(gold)
    strip = np.hstack([np.pad(digit.reshape(8, 8), 1, constant_values=0.0) for digit in image])
    axes.imshow(strip, cmap="gray_r", vmin=-0.5, vmax=1.5, extent=(0, length, 0, 1), aspect="equal")
    axes.set_xlim(-1.6, 12.0)
    axes.set_ylim(-0.85, 1.05)
    axes.axis("off")
    for row, (name, read) in enumerate((("alone", alone), ("chain", chain))):
        height = -0.22 - 0.4 * row
        axes.text(-0.15, height, name, ha="right", va="center", fontsize=8, color="0.4")
        for t in range(length):
            colour = "black" if read[t] == gold[t] else "#b2182b"
            weight = "normal" if read[t] == gold[t] else "bold"
            axes.text(t + 0.5, height, str(read[t]), ha="center", va="center", color=colour, weight=weight, fontsize=9)
