"""Word alignments for commands: sentence pairs in a file, links beside them or in a file of their own."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import m3n
from m3n.cli.options import console, print_json
from m3n.estimators.forms import ALIGNMENTS, Form
from m3n.io import Alignment, Data, read_alignments, read_parallel
from m3n.io.alignments import FORMATS, alignment_texts
from m3n.io.files import Source, hold, name_of, write_text
from m3n.io.parallel import Pair, sizes_of
from m3n.scores import alignment_scores

FORMAT = "parallel"
Links = list[tuple[int, int]]


@dataclass(frozen=True)
class Written:
    """How links are written."""

    format: str | None = None  # pharaoh, which is the default, or naacl
    confidence: bool = False  # with the probability of every link
    marginals: bool = False  # with those of all pairs of words
    json: bool = False  # JSON lines

    def __post_init__(self) -> None:
        if self.format not in (None, *FORMATS):
            raise ValueError(f"unknown --output-format {self.format!r}; choose one of {', '.join(FORMATS)}")
        if self.json and self.format is not None:
            raise ValueError("--json is a format, too; leave --output-format away")
        if self.marginals and not self.json:
            raise ValueError("probabilities of all pairs of words have no place in a line of links; add --json")


def read_pairs(path: Source, format: str | None = None, links: Path | None = None, gold: bool = True) -> Data:
    """The sentence pairs of a file, with their links if these are wanted.

    Parameters
    ----------
    path : Path
        The file.
    format : str or None
        Its format, if it was said.
    links : Path or None
        Another file with the links.
    gold : bool
        Whether there must be links.
    """
    if format not in (None, FORMAT):
        raise ValueError(f"{ALIGNMENTS.kind} come in the format {FORMAT}, not {format}")
    pairs, found = read_parallel(path)
    if not gold:
        return Data(pairs, None, FORMAT)
    if links is not None and found is not None:
        raise ValueError(f"{name_of(path)} has links itself, in its third field; leave the file of links away")
    known: Any = found if links is None else read_alignments(links, sizes_of(pairs))
    if known is None:
        remedy = "write them into a third field (the house ||| la maison ||| 0-0 1-1), or name a file of them (--links)"
        raise ValueError(f"{name_of(path)} has no links; {remedy}. Without any links, m3n align learns from plain text")
    return Data(pairs, known, FORMAT)


def read_more(path: Path | None, form: Form) -> list[Pair] | None:
    """Further sentence pairs, whose links are not known.

    Parameters
    ----------
    path : Path or None
        The file, if there is one.
    form : Form
        Of what is learnt.
    """
    if path is None:
        return None
    if form is not ALIGNMENTS:
        raise ValueError(f"unlabelled text is for alignments, not for {form.kind}")
    return read_parallel(path)[0]


def load_translations(path: Path | None) -> Any:
    """A model that was trained without links.

    Parameters
    ----------
    path : Path or None
        Its file, if there is one.
    """
    if path is None:
        return None
    model = m3n.load(path)
    if not isinstance(model, m3n.HMMAligner):
        raise ValueError(
            f"{path} holds a {type(model).__name__}, not an HMMAligner, such as m3n align -m {path} writes"
        )
    return model


def predicted_links(model: Any, data: Data, wanted: Written, first: int = 0) -> Iterator[str]:
    """What is written about the links that a model finds.

    Parameters
    ----------
    model : estimator
        The aligner.
    data : Data
        The sentence pairs.
    wanted : Written
        What to write.
    first : int
        How many sentence pairs have come before.
    """
    shares = model.predict_marginals(data.X) if wanted.confidence or wanted.marginals else None
    return _texts(data.X, model.predict(data.X), shares, wanted, first)


def write_links(output: Path, pairs: list[Pair], links: list[Links], shares: Any, wanted: Written) -> None:
    """Write links that were found.

    Parameters
    ----------
    output : Path
        Where to; ``-`` is standard output.
    pairs : list of (source words, target words)
        The sentences.
    links : list of lists of (int, int)
        What was found.
    shares : list of arrays (source words, target words), or None
        Probabilities of all links, if they are wanted.
    wanted : Written
        What to write.
    """
    write_text(output, _texts(pairs, links, shares, wanted))


def _texts(pairs: list[Pair], links: list[Links], shares: Any, wanted: Written, first: int = 0) -> Iterator[str]:
    if wanted.json:
        return _json(pairs, links, shares, wanted)
    return alignment_texts(links, wanted.format or "pharaoh", shares, first)


def _json(pairs: list[Pair], links: list[Links], shares: Any, wanted: Written) -> Iterator[str]:
    for k, (source, target) in enumerate(pairs):
        entry: dict[str, Any] = {"source": source, "target": target, "links": links[k]}
        if wanted.confidence:
            entry["confidence"] = [round(float(shares[k][i, j]), 6) for i, j in links[k]]
        if wanted.marginals:
            entry["marginals"] = np.round(shares[k], 6).tolist()
        yield json.dumps(entry, ensure_ascii=False) + "\n"


def compare_files(found: Source, gold: Source) -> tuple[list[Alignment], list[Alignment]]:
    """The right links and others, of two files.

    Parameters
    ----------
    found, gold : Path
        Files of links; one of the shared tasks does not say how many pairs there are, but the other may.
    """
    sources = hold(gold), hold(found)
    pairs = max(len(read_alignments(source)) for source in sources)
    right, other = (read_alignments(source, pairs=pairs) for source in sources)
    return right, other


def tell_scores(gold: list[Any], found: list[Any], as_json: bool) -> None:
    """Print the scores of links.

    Parameters
    ----------
    gold, found : lists of links
        The right ones and others.
    as_json : bool
        Whether to print JSON.
    """
    scores = alignment_scores(gold, found)
    if as_json:
        print_json({"links": scores.as_dict()})
    else:
        console().print(f"links: {scores}")
