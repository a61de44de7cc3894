"""The best labels of dicts and lists of strings without a detour: no matrix, no scores of all tokens at once.

This is what a service does all day, a sentence at a time. Everything that does not depend on the input is prepared
once (``features.lookup``), small inputs start no threads, and whatever is not plain is left to the general way, which
can say what is wrong with it.
"""

from __future__ import annotations

from itertools import chain, pairwise
from typing import Any

import numpy as np
import scipy.sparse

from m3n.compiled.oracles.chain_labels import label, label_observed
from m3n.features import AttributeVectorizer
from m3n.packed import Threads
from m3n.packed.ragged import running_sum
from m3n.structures import Transitions

SMALL = 4096  # positions; fewer are labelled before threads have begun
ONES = np.empty(0)  # stands for weights of tokens that are all 1


def direct_labels(tagger: Any, X: Any) -> list[list[Any]] | None:
    """The labels that score best, or None if the general way must find them."""
    vectorizer = tagger.reader_.vectorizer
    plain = isinstance(vectorizer, AttributeVectorizer) and tagger._linear and tagger.edge_coef_ is None
    if not plain or type(X) not in (list, tuple) or not X or not set(map(type, X)) <= {list, tuple} or not all(X):
        return None
    tokens = list(chain.from_iterable(X))
    found = vectorizer.find(tokens)
    if found is None:
        return None
    columns, weights, pointers = found
    offsets = running_sum(X)
    values, labelling = np.empty(len(X)), np.empty(len(tokens), np.int64)
    given = offsets, pointers, columns, ONES if weights is None else weights
    _label(tagger, given, (_tables(tagger, tagger.constraints_), values, labelling))
    if tagger.constraints_ is not None and values.min() == -np.inf:  # they leave nothing
        return None
    return _named(tagger.classes_, labelling, offsets)


def _label(tagger: Any, given: tuple[np.ndarray, ...], asked: tuple[np.ndarray, ...]) -> None:
    """Fill in the labels, on threads if that is worth it."""
    offsets, coef = given[0], tagger.coef_
    observed = scipy.sparse.issparse(coef)
    weights = (coef.indptr, coef.indices, coef.data) if observed else (np.ascontiguousarray(coef),)
    function = label_observed if observed else label
    if offsets[-1] < SMALL:
        function(0, len(offsets) - 1, *given, *weights, *asked)
    else:
        threads = Threads(tagger.n_jobs)
        threads.run(function, threads.lanes(offsets), *given, *weights, *asked)


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
