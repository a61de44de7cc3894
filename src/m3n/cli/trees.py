"""Trees for commands: CoNLL-U files for dependency trees, brackets or plain text for phrase structure."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np

from m3n.estimators.forms import ARCS, Form
from m3n.io import Data, Treebank, detect, read_brackets, read_conllu
from m3n.io.brackets import read_words
from m3n.io.files import Source, hold, name_of
from m3n.scores import AttachmentScores, BracketScores, attachment_rows, attachment_scores, bracket_rows, bracket_scores
from m3n.scores.table import Row, rows_text

TreeScores = AttachmentScores | BracketScores


def read_trees(path: Source, form: Form, format: str | None, single_root: bool = True, gold: bool = True) -> Data:
    """The sentences of a file, with their trees if these are wanted.

    Parameters
    ----------
    path : Path
        The file.
    form : Form
        Of trees.
    format : str or None
        Its format, if it was said.
    single_root : bool
        Whether a second root is refused.
    gold : bool
        Whether there must be trees.
    """
    wanted = "conllu" if form is ARCS else "brackets"
    if format == "text" and form is not ARCS and not gold:
        return Data(read_words(path), None, "text")
    if format not in (None, wanted):
        raise ValueError(f"{form.kind} come in the format {wanted}, not {format}")
    if form is ARCS:
        bank = read_conllu(path, trees=gold, single_root=single_root)
        return Data(bank, bank.trees if gold else None, wanted)
    source = hold(path)
    if not gold and format is None and detect(source, labelled=False) != "brackets":
        return Data(read_words(source), None, "text")
    if gold and format is None and detect(source, labelled=False) != "brackets":
        raise ValueError(f"{name_of(path)} has no trees in brackets, such as (S (NP (PRP it)) (VP (VBZ rains)))")
    trees: list[Any] = read_brackets(source)
    return Data([tree.words() for tree in trees], trees, wanted)


def scores_of(form: Form, gold: Any, found: Any, X: Any) -> dict[str, TreeScores]:
    """Scores of trees, by their names.

    Parameters
    ----------
    form : Form
        Of the trees.
    gold, found : lists of trees
        The right ones and the predicted ones.
    X : sentences
        Their words.
    """
    if form is not ARCS:
        return {"brackets": bracket_scores(gold, found)}
    scores: dict[str, TreeScores] = {"words": attachment_scores(gold, found)}
    tags = ARCS.tags(X)
    return scores if tags is None else scores | {"without punctuation": attachment_scores(gold, found, tags=tags)}


def rows_of(form: Form, gold: Any, found: Any) -> list[Row]:
    """Scores by label.

    Parameters
    ----------
    form, gold, found
        As in ``scores_of``.
    """
    return attachment_rows(gold, found) if form is ARCS else bracket_rows(gold, found)


def table_of(form: Form, gold: Any, found: Any) -> str:
    """The same as text.

    Parameters
    ----------
    form, gold, found
        As in ``scores_of``.
    """
    return rows_text(rows_of(form, gold, found))


def tree_texts(model: Any, data: Data, n_best: int, marginals: bool, as_json: bool) -> Iterator[str]:
    """What is written about the trees that a model finds: the file with new trees, or JSON lines.

    Parameters
    ----------
    model : estimator
        The parser.
    data : Data
        The sentences.
    n_best : int
        How many trees of every sentence.
    marginals : bool
        Whether to write probabilities of arcs, or of spans.
    as_json : bool
        Whether to write JSON lines.
    """
    if n_best > 1:
        ranked = model.predict_k_best(data.X, n_best)
        return _ranked_json(data, ranked) if as_json else _ranked_texts(data, ranked)
    found = model.predict(data.X)
    if as_json:
        return _json(model, data, found, marginals)
    if isinstance(data.X, Treebank):
        return data.X.with_trees(found).texts()
    return (f"{tree}\n" for tree in found)


def _ranked_texts(data: Data, ranked: list[list[tuple[Any, float]]]) -> Iterator[str]:
    """Every tree after a line with its rank and score."""
    for i, best in enumerate(ranked):
        for rank, (tree, score) in enumerate(best):
            yield f"# {rank} {score:.6f}\n"
            yield from data.X[i : i + 1].with_trees([tree]).texts() if isinstance(data.X, Treebank) else [f"{tree}\n"]


def _ranked_json(data: Data, ranked: list[list[tuple[Any, float]]]) -> Iterator[str]:
    for i, best in enumerate(ranked):
        listed = [{"tree": _plain(tree), "score": score} for tree, score in best]
        yield json.dumps({"words": _words(data, i), "n_best": listed}, ensure_ascii=False) + "\n"


def _words(data: Data, i: int) -> list[str]:
    return [word["form"] if isinstance(word, dict) else word for word in data.X[i]]


def _json(model: Any, data: Data, found: list[Any], marginals: bool) -> Iterator[str]:
    shares = model.predict_marginals(data.X) if marginals else []
    for i, tree in enumerate(found):
        entry: dict[str, Any] = {"words": _words(data, i), "tree": _plain(tree)}
        if marginals:
            entry["marginals"] = _plain_shares(shares[i])
        yield json.dumps(entry, ensure_ascii=False) + "\n"


def _plain(tree: Any) -> Any:
    """Heads, or heads and labels, as lists; phrases as brackets."""
    return tree if isinstance(tree, list) else str(tree)


def _plain_shares(shares: Any) -> Any:
    if isinstance(shares, np.ndarray):
        return np.round(shares, 6).tolist()
    return [[*key, round(float(p), 6)] for key, p in shares.items()]
