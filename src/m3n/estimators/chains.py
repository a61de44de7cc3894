"""Linear chains: the feature map of sequences, their output space, the weights that an estimator shows, and decoding.

From scores to labels there are several ways: the best, the k best, the likeliest, all under constraints and with some
labels given. A label that is given at a position makes every other label there score -inf, so the oracles of the
structure answer for the rest: max over, sum over, and probabilities of the outputs that agree with what is given.

Posterior decoding takes the labels with the least expected number of errors under p(y) ~ exp(score(y) / temperature):
max_y sum_t p_t(y_t) over the allowed outputs, which is Viterbi on the marginals p_t (minimum Bayes risk).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse

from m3n.estimators.going_on import Old
from m3n.estimators.inputs import Inputs
from m3n.estimators.matrices import Matrix, linear_map
from m3n.estimators.training import split_weights, stacked
from m3n.features import FeatureMap, NoFeatures, Observed, ObservedTable, Scaled, Stack, Table
from m3n.features.observed import observed_pairs, observed_transitions
from m3n.io.schemes import LabelError
from m3n.packed import Threads
from m3n.structures import Chain, Parts, Transitions

GROUPS = ("attributes", "transitions", "boundaries", "pairs")
MASKS = ("forbidden", "forbidden_start", "forbidden_end")  # of constraints
SCHEMES = {
    "iob": Transitions.iob, "iob1": Transitions.iob1, "ioe1": Transitions.ioe1, "ioe2": Transitions.ioe2,
    "bioes": Transitions.bioes, "bilou": Transitions.bilou, "bmes": Transitions.bmes, "bmewo": Transitions.bmewo,
}  # fmt: skip
ALSO = {"iob2": "iob"}  # another name
DECODINGS = ("viterbi", "posterior")
FREE = -1  # where no label is given


def chain_maps(
    inputs: Inputs, outputs: list[list[int]], labels: int, node: FeatureMap | None, old: Old | None = None
) -> tuple[FeatureMap, FeatureMap, FeatureMap]:
    """The maps of attributes, transitions and pairs of neighbours.

    Without a map for the attributes, only pairs of attribute and label and transitions that occur get a weight, or that
    have one in an earlier model.
    """
    lengths, pairs = inputs.lengths, inputs.pairs
    nothing = NoFeatures(int(lengths.sum()) - len(lengths), labels, labels)
    if node is not None:
        edge = nothing if pairs is None else linear_map(pairs, (labels, labels))
        return node, Table(labels, labels), edge
    gold = np.concatenate(outputs)
    node = Observed(inputs.matrix, _with_old(observed_pairs(inputs.matrix, gold, labels), old, "coef_"))
    mask = scipy.sparse.csr_array(observed_transitions(gold, lengths, labels))
    table = ObservedTable(_with_old(mask, old, "transitions_").toarray())
    return node, table, nothing if pairs is None else _observed_edges(pairs, gold, lengths, labels, old)


def _with_old(pairs: scipy.sparse.csr_array, old: Old | None, name: str) -> scipy.sparse.csr_array:
    """What occurs, and what has a weight in an earlier model."""
    known = None if old is None else old.nonzero(name)
    if known is None:
        return pairs
    known.resize(pairs.shape)
    return scipy.sparse.csr_array(pairs + known)


def chain_stack(
    maps: tuple[FeatureMap, FeatureMap, FeatureMap], factors: Mapping[str, float], *, boundaries: bool, edges: bool
) -> Stack:
    """The feature map of chains: attributes, transitions, starts, ends, and if asked for pairs of neighbours."""
    node, table, edge = maps
    labels = node.shapes[0][1]
    ends = [Table(labels) if boundaries else ObservedTable(np.zeros(labels, bool)) for _ in range(2)]
    names = ("attributes", "transitions", "boundaries", "boundaries", "pairs")
    return stacked(zip((node, table, *ends, edge)[: 4 + edges], names, strict=False), factors)


def _observed_edges(pairs: Matrix, gold: np.ndarray, lengths: np.ndarray, labels: int, old: Old | None) -> Observed:
    """Weights for attributes of pairs with the pairs of labels that occur."""
    inner = np.ones(len(gold), bool)
    inner[np.cumsum(lengths) - lengths] = False
    joint = gold[:-1][inner[1:]] * labels + gold[1:][inner[1:]]
    return Observed(
        pairs, _with_old(observed_pairs(pairs, joint, labels * labels), old, "edge_coef_"), (labels, labels)
    )


def chain_weights(features: Stack, w: np.ndarray) -> dict[str, Any]:
    """The weights of a tagger by the names of its attributes; those of a kernel's map as they are."""
    pieces = split_weights(features, w)
    labels, pairs = len(pieces[2]), None
    if len(pieces) > 4 and pieces[4].size:
        pairs = _shown(features.maps[4], pieces[4], (labels, labels))
    return {
        "coef_": _shown(features.maps[0], pieces[0], (labels,)),
        "transitions_": pieces[1].reshape(labels, labels),
        "start_": pieces[2],
        "end_": pieces[3],
        "edge_coef_": pairs,
    }


def _shown(part: FeatureMap, w: np.ndarray, labels: tuple[int, ...]) -> Any:
    plain = part.map if isinstance(part, Scaled) else part
    if isinstance(plain, Observed):
        return plain.coefficients(w)
    return w.reshape(-1, *labels) if plain.euclidean else w


def chain_of(lengths: np.ndarray, labels: int, constraints: Transitions | None, *, edges: bool = False) -> Chain:
    """Sequences of labels that obey the constraints, if there are any."""
    masks = {name: getattr(constraints, name) for name in MASKS} if constraints else {}
    return Chain(lengths, labels, edges=edges, **masks)


@dataclass
class Scored:
    """Sequences with their scores, ready to be decoded once.

    Attributes
    ----------
    structure : Chain
        The output space.
    theta : tuple of arrays
        Scores; decoding may write over them.
    classes : array (labels,)
        The labels.
    fixed : array of int (positions,) or None
        The number of the label that is given at a position, or FREE.
    threads : Threads
        Who works.
    numbers : array of int (sequences,)
        The numbers of the sequences among all, for messages.
    """

    structure: Chain
    theta: Parts
    classes: np.ndarray
    fixed: np.ndarray | None
    threads: Threads
    numbers: np.ndarray

    def __post_init__(self) -> None:
        self._pin(self.theta[0])

    def best(self) -> list[list[Any]]:
        """The labels with the highest score."""
        values, labelling = self.structure.hard(self.theta, self.threads)
        self._check(values)
        return self._names(labelling)

    def marginals(self, temperature: float) -> np.ndarray:
        """Probabilities (positions, labels)."""
        check_temperature(temperature)
        values, marginals = self.structure.soft(self.theta, temperature, self.threads)
        self._check(values)
        return marginals[0]

    def split_marginals(self, temperature: float) -> list[np.ndarray]:
        """The same, an array per sequence."""
        return np.split(self.marginals(temperature), self.structure.offsets[1:-1])

    def posterior(self, temperature: float) -> list[list[Any]]:
        """The allowed labels with the largest sum of probabilities."""
        node = self.marginals(temperature)
        self._pin(node)
        zeros = tuple(np.zeros(shape) for shape in self.structure.shapes[1:])
        return self._names(self.structure.hard((node, *zeros), self.threads)[1])

    def k_best(self, k: int, temperature: float | None) -> list[list[tuple[Any, ...]]]:
        """Labels, score and, at a temperature, probability of the k best outputs of every sequence."""
        scores, labellings = self.structure.k_best(self.theta, k, self.threads)
        self._check(scores[:, 0])
        columns = [scores]
        if temperature is not None:
            values = self.structure.soft(self.theta, temperature, self.threads)[0]
            columns.append(np.exp((scores - values[:, None]) / temperature))
        numbers = np.stack(columns, axis=2).tolist()  # (sequences, k, 1 or 2)
        outputs = [self._names(labelling) for labelling in labellings]
        counts = np.isfinite(scores).sum(axis=1).tolist()
        return [[(outputs[r][i], *numbers[i][r]) for r in range(count)] for i, count in enumerate(counts)]

    def alone(self, i: int) -> Scored:
        """One of the sequences."""
        chosen = np.array([i])
        rows = self.structure.rows_of(chosen)
        theta = tuple(array if own is None else array[own] for array, own in zip(self.theta, rows, strict=True))
        low, high = self.structure.offsets[i : i + 2]
        fixed = None if self.fixed is None else self.fixed[low:high]
        structure = self.structure._alike(self.structure.lengths[chosen])
        return replace(self, structure=structure, theta=theta, fixed=fixed, numbers=self.numbers[chosen])

    def _pin(self, node: np.ndarray) -> None:
        """Only the given labels may score."""
        if self.fixed is None:
            return
        rows = np.flatnonzero(self.fixed != FREE)
        kept = node[rows, self.fixed[rows]]
        node[rows] = -np.inf
        node[rows, self.fixed[rows]] = kept

    def _names(self, labelling: np.ndarray) -> list[list[Any]]:
        names = np.array(self.classes.tolist(), dtype=object)  # plain strings and numbers, looked up all at once
        return self.structure.unpack(names[labelling])

    def _check(self, values: np.ndarray) -> None:
        """Say where the first sequence without any allowed output fails."""
        impossible = np.flatnonzero(np.isneginf(values))
        if impossible.size:
            i = int(impossible[0])
            low, high = self.structure.offsets[i : i + 2]
            fixed = np.full(high - low, FREE) if self.fixed is None else self.fixed[low:high]
            raise ValueError(
                f"sequence {self.numbers[i]}, {_obstacle(self.structure.masks, fixed, self.classes.tolist())}"
            )


def _obstacle(masks: Parts, fixed: np.ndarray, names: list[Any]) -> str:
    """Where and why no output agrees with the given labels, found by following all allowed ones."""
    pair, first, last = masks
    final = len(fixed) - 1
    reached = ~first
    for t, given in enumerate(fixed.tolist()):
        if t > 0:
            reached = np.any(~pair[reached], axis=0)
        if given != FREE:
            reached = reached & (np.arange(len(names)) == given)
        if t == final:
            reached = reached & ~last
        if not reached.any():
            break
    if (fixed == FREE).all():
        return f"position {t}: the constraints allow no labels for a sequence of length {final + 1}"
    before = f" after {names[fixed[t - 1]]!r}" if t > 0 and fixed[t - 1] != FREE else ""
    what = "any label" if given == FREE else f"the fixed label {names[given]!r}"
    return f"position {t}: the constraints do not allow {what} here{before}; change or free a fixed label"


def check_temperature(temperature: float) -> None:
    """Refuse what is not a positive number."""
    if not temperature > 0:
        raise ValueError(f"temperature must be positive, got {temperature}")


def check_decoding(decoding: str) -> None:
    """Refuse unknown ways to decode."""
    if decoding not in DECODINGS:
        raise ValueError(f"unknown decoding {decoding!r}; choose one of {DECODINGS}")


def check_constraints(constraints: Any) -> None:
    """Refuse what cannot be a constraint, whatever the data."""
    if isinstance(constraints, str) and constraints not in (*SCHEMES, *ALSO, "observed"):
        raise ValueError(f"unknown constraints {constraints!r}; choose one of {(*SCHEMES, 'observed')}")
    if not (constraints is None or isinstance(constraints, (str, Transitions))):
        raise TypeError(f"constraints must be None, a name or m3n.structures.Transitions, got {constraints!r:.60}")


def learn_constraints(
    constraints: str | Transitions | None,
    classes: np.ndarray,
    labels: list[list[int]],
    earlier: Transitions | None = None,
) -> Transitions | None:
    """The constraints for the labels of the training data, after checking that the data obey them.

    Where those that were observed are the constraints, what an earlier model allowed stays allowed.
    """
    names = classes.tolist()
    if constraints is None:
        return None
    if isinstance(constraints, str) and constraints == "observed":
        found = Transitions.observed([names[k] for k in sequence] for sequence in labels)
        return (found if earlier is None else _either(found, earlier)).align(names)

    def place_of(k: int) -> tuple[int, int]:
        places = ((i, sequence.index(k)) for i, sequence in enumerate(labels) if k in sequence)
        if (place := next(places, None)) is None:
            raise ValueError(f"the label {names[k]!r} of the earlier model is none that {constraints!r} knows")
        return place

    rules = named_constraints(constraints, names, place_of)
    offsets = np.cumsum([0, *map(len, labels)])
    flat = np.array([k for given in labels for k in given], dtype=np.int64)
    wrong = rules.violations(flat, offsets)
    if wrong.size:
        i = int(np.searchsorted(offsets, wrong[0], side="right")) - 1
        t = int(wrong[0] - offsets[i])
        before = labels[i][t - 1] if t > 0 and rules.forbidden[labels[i][t - 1], labels[i][t]] else None
        first = t == 0 and bool(rules.forbidden_start[labels[i][0]])
        raise broken_rule(constraints, names, (i, t), (before, labels[i][t], first))
    return rules


def _either(one: Transitions, other: Transitions) -> Transitions:
    """What one of the two allows."""
    rules, allowed = (one, other), list[set[Any]]()
    for name in MASKS:
        found = ((rule.labels, np.argwhere(~getattr(rule, name)).tolist()) for rule in rules)
        allowed.append({tuple(labels[k] for k in place) for labels, places in found for place in places})
    labels = sorted({*one.labels, *other.labels})
    return Transitions.allow(labels, allowed[0], {y for (y,) in allowed[1]}, {y for (y,) in allowed[2]})


def named_constraints(
    constraints: str | Transitions, names: list[Any], place_of: Callable[[int], tuple[int, int]]
) -> Transitions:
    """Constraints that do not depend on data, for these labels.

    Parameters
    ----------
    constraints : str or Transitions
        A scheme, or the constraints themselves.
    names : list
        The labels.
    place_of : callable
        Sequence and position at which the label of a number stands, for errors.
    """
    learnt = constraints if isinstance(constraints, Transitions) else _of_scheme(constraints, names, place_of)
    return learnt.align(names)


def broken_rule(
    constraints: str | Transitions, names: list[Any], place: tuple[int, int], labels: tuple[int | None, int, bool]
) -> LabelError:
    """What is wrong with a label that constraints forbid.

    Parameters
    ----------
    constraints : str or Transitions
        The constraints.
    names : list
        The labels.
    place : pair of int
        Its sequence and position.
    labels : tuple
        The number of the label before it, if the two may not follow one another, its own, and whether it may not be
        the first one; else it may not be the last one.
    """
    before, label, first = labels
    stands = "first" if first else "last"
    what = f"{names[label]!r} " + (f"stands {stands}" if before is None else f"follows {names[before]!r}")
    named = f"constraints={constraints!r}" if isinstance(constraints, str) else "constraints"
    return LabelError(*place, f"{what}, which {named} forbid", _remedy(constraints))


def scheme_of(constraints: str) -> str:
    """The scheme of ``m3n.io.schemes`` that constraints of this name are about.

    Parameters
    ----------
    constraints : str
        Their name.
    """
    if constraints not in (*SCHEMES, *ALSO):
        raise ValueError(f"labels can be mended for a scheme ({', '.join(SCHEMES)}), not for {constraints!r}")
    return "iob2" if constraints == "iob" else constraints


def _of_scheme(name: str, names: list[Any], place_of: Callable[[int], tuple[int, int]]) -> Transitions:
    """The constraints of a scheme for these labels and O; one that is of another scheme is named with its place."""
    scheme = SCHEMES[ALSO.get(name, name)]
    for k, label in enumerate(names):
        try:
            scheme(["O", label] if label != "O" else ["O"])
        except ValueError as error:
            what, _, _ = str(error).partition(";")
            raise LabelError(*place_of(k), what, _remedy(ALSO.get(name, name))) from None
    return scheme([*names, "O"] if "O" not in names else names)


def _remedy(constraints: str | Transitions) -> str:
    if not isinstance(constraints, str):
        return "correct the labels or the constraints"
    mended = f'mend them by m3n.io.schemes.repair(y, "{scheme_of(constraints)}")'
    others = " or ".join(repr(name) for name in (*SCHEMES, "observed") if name != constraints)
    return f"correct the labels, {mended}, or choose another scheme ({others}) or constraints=None"


def read_fixed(fixed: Any, lengths: np.ndarray, classes: np.ndarray) -> np.ndarray | None:
    """The numbers of the given labels, one sequence after another; FREE where there is None."""
    if fixed is None:
        return None
    if isinstance(fixed, str) or not isinstance(fixed, Iterable):
        raise TypeError(f"fixed must be a list with a list of labels or None per sequence, got {fixed!r:.60}")
    sequences = list(fixed)
    if len(sequences) != len(lengths):
        raise ValueError(f"X has {len(lengths)} sequences but fixed has {len(sequences)}")
    numbers = {label: k for k, label in enumerate(classes.tolist())} | {None: FREE}
    rows = [_fixed_row(given, i, int(lengths[i]), numbers) for i, given in enumerate(sequences)]
    return np.array([number for row in rows for number in row], dtype=np.int64)


def _fixed_row(given: Any, i: int, length: int, numbers: dict[Any, int]) -> list[int]:
    if given is None:
        return [FREE] * length
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise TypeError(f"sequence {i}: fixed must be a list with a label or None per position, got {given!r:.60}")
    given = given.tolist() if isinstance(given, np.ndarray) else list(given)
    if len(given) != length:
        raise ValueError(f"sequence {i} has {length} positions in X but {len(given)} in fixed")
    for t, label in enumerate(given):
        if not isinstance(label, (str, int, float, np.generic, type(None))) or label not in numbers:
            known = [name for name in numbers if name is not None]
            remedy = f"choose from {known!r:.300}, or None to leave a position free"
            raise ValueError(f"sequence {i}, position {t}: the model does not know the fixed label {label!r}; {remedy}")
    return [numbers[label] for label in given]
