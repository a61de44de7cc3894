"""``m3n align``: the links of plain parallel text, by a model that is trained on it or that was saved before."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import m3n
from m3n.alignment.symmetrization import METHODS, best_links, symmetrize
from m3n.cli.alignments import Links, Written, load_translations, write_links
from m3n.cli.options import console
from m3n.io.parallel import Pair

# settings of training, and their options
TRAINING = {"model": "kind", "joint": "no-joint", "iterations": "iterations", "letters": "letters"}


@dataclass(frozen=True)
class Wanted:
    """What was asked for besides the data."""

    output: Path  # where the links go
    model: Path | None = None  # where the model goes
    load: Path | None = None  # a model that is there already
    settings: dict[str, Any] = field(default_factory=dict)  # of the aligner; None where its own are good
    symmetrize: str | None = None  # how the links of both directions become one alignment
    written: Written = field(default_factory=Written)  # how links are written
    quiet: bool = False  # no remarks


def check(wanted: Wanted) -> None:
    """Refuse what does not go together, before the data are read.

    Parameters
    ----------
    wanted : Wanted
        What was asked for.
    """
    given = [name for name, value in wanted.settings.items() if value is not None]
    trained = [TRAINING[name] for name in given if name in TRAINING]
    if wanted.load is not None and (trained or wanted.model is not None):
        option = trained[0] if trained else "model"
        raise ValueError(
            f"--{option} is for training, and --load names a model that is trained; leave one of them away"
        )
    if wanted.symmetrize not in (None, *METHODS):
        raise ValueError(f"unknown --symmetrize {wanted.symmetrize!r}; choose one of {', '.join(METHODS)}")
    if wanted.symmetrize is not None and "threshold" in given:
        raise ValueError("--threshold is for the mean of both directions, --symmetrize for links of each; take one")


def run(pairs: list[Pair], wanted: Wanted) -> None:
    """Train or load, align, write.

    Parameters
    ----------
    pairs : list of (source words, target words)
        The sentences.
    wanted : Wanted
        What was asked for.
    """
    begin = time.perf_counter()
    aligner = _aligner(pairs, wanted)
    if wanted.model is not None:
        aligner.save(wanted.model)
    links = aligner.predict(pairs) if wanted.symmetrize is None else _symmetrized(aligner, pairs, wanted.symmetrize)
    shares = aligner.predict_marginals(pairs) if wanted.written.confidence or wanted.written.marginals else None
    write_links(wanted.output, pairs, links, shares, wanted.written)
    if not wanted.quiet:
        many = f"{len(pairs):,} pairs, {sum(map(len, links)):,} links, {time.perf_counter() - begin:.1f} s"
        console(errors=True).print(many + (f"; model: {wanted.model}" if wanted.model else ""))


def _aligner(pairs: list[Pair], wanted: Wanted) -> Any:
    """The model, with the settings that were asked for."""
    settings = {name: value for name, value in wanted.settings.items() if value is not None}
    if wanted.load is not None:
        return load_translations(wanted.load).set_params(**settings)
    verbose = not wanted.quiet and console(errors=True).is_terminal
    return m3n.HMMAligner(verbose=verbose, **settings).fit(pairs)


def _symmetrized(aligner: Any, pairs: list[Pair], method: str) -> list[Links]:
    """In either direction every word takes its likeliest partner; then one alignment is made of both."""
    both = aligner.directions(pairs)
    back = [[(i, j) for j, i in best_links(other.T)] for _, other in both]
    return symmetrize([best_links(one) for one, _ in both], back, method)
