"""The best labels of plain inputs without a detour: no matrix, no scores of all tokens at once; scores of small ones.

This is what a service does all day, a sentence at a time. Everything that does not depend on the input is prepared
once (``features.lookup`` for dicts and lists of strings, ``features.template_lookup`` for tokens in columns), small
inputs start no threads, and whatever is not plain is left to the general way, which can say what is wrong with it.
"""

from __future__ import annotations

from itertools import chain, pairwise
from typing import Any

import numpy as np
import scipy.sparse

from m3n.compiled.oracles.chain_labels import label, label_observed, score, score_observed
from m3n.features import AttributeVectorizer, Templates
from m3n.features.lookup import FoundSequences
from m3n.features.template_lookup import TemplateSequences
from m3n.io import Sentences
from m3n.packed import Threads
from m3n.packed.ragged import running_sum
from m3n.structures import Transitions

SMALL = 4096  # positions; fewer are labelled before threads have begun


def direct_labels(tagger: Any, X: Any) -> list[list[Any]] | None:
    """The labels that score best, or None if the general way must find them."""
    found = _read(tagger, X)
    if found is None:
        return None
    offsets = found.offsets
    values, labelling = np.empty(len(offsets) - 1), np.empty(int(offsets[-1]), np.int64)
    _label(tagger, found, (_tables(tagger, tagger.constraints_), values, labelling))
    if tagger.constraints_ is not None and values.min() == -np.inf:  # they leave nothing
        return None
    return _named(tagger.classes_, labelling, offsets)


def direct_scores(tagger: Any, X: Any) -> tuple[np.ndarray, np.ndarray] | None:
    """The lengths of a few sequences and the scores of labels at all positions; None for the general way."""
    found = _read(tagger, X)
    if found is None or found.offsets[-1] >= SMALL:
        return None
    coef, labels = tagger.coef_, len(tagger.classes_)
    scores = np.empty((int(found.offsets[-1]), labels))
    for _, _, first, offsets, *given in found.pieces(0, len(found.offsets) - 1):
        own = scores[first:].reshape(-1)
        if scipy.sparse.issparse(coef):
            score_observed(int(offsets[-1]), *given, coef.indptr, coef.indices, coef.data, labels, own)
        else:
            score(int(offsets[-1]), *given, np.ascontiguousarray(coef), own)
    return np.diff(found.offsets), scores


def _read(tagger: Any, X: Any) -> FoundSequences | TemplateSequences | None:
    """The attributes of plain inputs of a plain model; None for all others."""
    vectorizer = tagger.reader_.vectorizer
    if not tagger._linear or tagger.edge_coef_ is not None:
        return None
    if isinstance(vectorizer, Templates):
        if isinstance(X, Sentences) and X.offsets[-1] >= SMALL:
            return None  # a pass over many tokens that are numbers already is quicker per template
        return vectorizer.lookup().read(X, tagger.reader_.columns)
    plain = isinstance(vectorizer, AttributeVectorizer) and type(X) in (list, tuple) and X
    if not plain or not set(map(type, X)) <= {list, tuple} or not all(X):
        return None
    found = vectorizer.find(list(chain.from_iterable(X)))
    return None if found is None else FoundSequences(running_sum(X), found)


def _label(tagger: Any, found: FoundSequences | TemplateSequences, asked: tuple[np.ndarray, ...]) -> None:
    """Fill in the labels, on threads if that is worth it."""
    coef, (tables, values, labelling) = tagger.coef_, asked
    observed = scipy.sparse.issparse(coef)
    weights = (coef.indptr, coef.indices, coef.data) if observed else (np.ascontiguousarray(coef),)
    function = label_observed if observed else label

    def lane(low: int, high: int) -> None:
        for begin, end, first, *given in found.pieces(low, high):
            function(0, end - begin, *given, *weights, tables, values[begin:end], labelling[first:])

    if found.offsets[-1] < SMALL:
        lane(0, len(found.offsets) - 1)
    else:
        threads = Threads(tagger.n_jobs)
        threads.run(lane, threads.lanes(found.offsets))


def _tables(tagger: Any, constraints: Transitions | None) -> np.ndarray:
    """Scores of transitions, starts and ends in one array."""
    tables = np.concatenate((tagger.transitions_, tagger.start_[None], tagger.end_[None]))
    if constraints is not None:
        rules = constraints.forbidden, constraints.forbidden_start[None], constraints.forbidden_end[None]
        tables[np.concatenate(rules)] = -np.inf
    return tables


def _named(classes: np.ndarray, labelling: np.ndarray, offsets: np.ndarray) -> list[list[Any]]:
    names = classes.tolist()
    labels = [names[k] for k in labelling.tolist()]
    return [labels[low:high] for low, high in pairwise(offsets.tolist())]
