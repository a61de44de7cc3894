"""``m3n demo``: train on noisy digit strings, show the certificate, draw the picture."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from m3n.datasets import DigitStrings, digit_strings
from m3n.estimators import SequenceTagger
from m3n.run.certificate import Record

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
    settings: dict[str, Any] = {"loss": "normalized_hamming", "lam": 1e-2, "tol": tol, "verbose": True}
    console.print("Reading every image by itself (multiclass M3N):")
    images = [image[None] for string in train.inputs for image in string]
    digits = [[digit] for string in train.labels for digit in string]
    alone = SequenceTagger(boundaries=False, **settings).fit(images, digits)
    console.print("Reading whole strings (chain M3N):")
    chain = SequenceTagger(**settings).fit(train.inputs, train.labels)
    one_by_one = iter(alone.predict([image[None] for string in test.inputs for image in string]))
    read_alone = [[next(one_by_one)[0] for _ in string] for string in test.labels]
    read_chain = chain.predict(test.inputs)
    _print_table(console, (alone, chain), (error(read_alone, test), error(read_chain, test)))
    console.print(
        f"Certificate ({chain.status_}): our weights have the objective {chain.certificate_.primal:.5f}, "
        f"and no weights at all can get below {chain.certificate_.dual:.5f}."
    )
    if find_spec("matplotlib") is None:
        console.print('\nNo picture: matplotlib is missing; `pip install "m3n[plot]"` brings it.', markup=False)
        return
    _draw(output, chain.trace_, test, read_alone, read_chain)
    console.print(f"\nPicture: {output}")


def error(read: list[list[int]], data: DigitStrings) -> float:
    """Share of wrong digits."""
    return float(np.mean(np.concatenate(read) != np.concatenate(data.labels)))


def _print_table(console: Console, models: tuple[SequenceTagger, ...], errors: tuple[float, ...]) -> None:
    table = Table("", "independent classifier", "chain M3N", title="\nTest strings")
    table.add_row("wrong digits", *(f"{e:.1%}" for e in errors))
    table.add_row("primal", *(f"{m.certificate_.primal:.5f}" for m in models))
    table.add_row("dual", *(f"{m.certificate_.dual:.5f}" for m in models))
    table.add_row("duality gap", *(f"{m.certificate_.gap:.1e}" for m in models))
    table.add_row("solver", *(type(m.solver_).__name__ for m in models))
    table.add_row("passes", *(f"{m.trace_[-1].passes:.0f}" for m in models))
    table.add_row("seconds (without compiling)", *(f"{m.trace_[-1].seconds:.1f}" for m in models))
    console.print(table)


def _draw(
    output: Path, trace: list[Record], test: DigitStrings, alone: list[list[int]], chain: list[list[int]]
) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    from m3n.reports import plot_convergence, plot_gap

    figure = plt.figure(figsize=(10, 7.5), layout="constrained")
    panels: Any = figure.subfigures(2, 1, height_ratios=[1.0, 1.05])
    upper, lower = panels
    left, right = upper.subplots(1, 2)
    plot_convergence(trace, left)
    plot_gap(trace, right)
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
