"""Which words of two sentences translate each other: an M3N or CRF over links, with a scikit-learn interface."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import scipy.sparse

from m3n.alignment.features import Evidence, link_features, word_features
from m3n.alignment.grid import Grid
from m3n.alignment.symmetrization import METHODS, symmetrize
from m3n.estimators.alignments import LinkPrices, Pair, PairReader, Pairs, link_prices, read_links
from m3n.estimators.chains import check_temperature
from m3n.estimators.declaration import learnt
from m3n.estimators.files import Content, check_shape
from m3n.estimators.forms import ALIGNMENTS
from m3n.estimators.hmm_aligner import HMMAligner
from m3n.estimators.kernel_scores import KernelSettings
from m3n.estimators.predictions import Predictions
from m3n.estimators.trained import TRAINING, Trained
from m3n.estimators.training import (
    Examples,
    Setup,
    read_weights,
    resolve_objective,
    resolve_strengths,
    split_weights,
    stacked,
)
from m3n.features import Dense, FeatureMap, Sparse, Stack, Table
from m3n.packed import Threads
from m3n.packed.ragged import batches
from m3n.scores import alignment_scores
from m3n.structures import AlignmentChain, Matching, OneToMany, Parts

GROUPS = ("links", "nulls", "jumps")
STRUCTURES = ("matching", "chain", "words")
ONE = np.array(["link"])  # the classes of a matching
BOTH = np.array(["forward", "backward"])  # of what every source word chooses, and every target word
AT_ONCE = 200_000  # links that are looked at together, so that memory does not grow with the number of pairs
MODELS: tuple[dict[str, Any], ...] = ({}, {"joint": False, "letters": 4})  # different ones know more together
TIE = 1e-6  # of a price: among training alignments that cost the same, the likeliest
Space = Matching | AlignmentChain | OneToMany


class WordAligner(Trained):
    """Links between the words of sentence pairs, trained on alignments made by hand to a certified optimum.

    An alignment scores the sum over its links of the weights of their features: probabilities of a model without labels
    (``HMMAligner``) in both directions, Dice coefficients, distance, spelling, frequencies, and those of neighbouring
    links; words without a link have features, too.

    Parameters
    ----------
    structure : {"matching", "chain", "words"}
        "matching": every word has at most ``fertility`` links. "chain": every source word chooses a target word or
        none, and scores how far it jumps from the last choice; and every target word chooses a source word. "words":
        the same without jumps. Of the two directions, ``symmetrize`` makes one alignment.
    fertility : int or (int, int)
        Of a matching: how many links a word may have at most; two numbers for source and target words.
    symmetrize : str
        Of chains and words: "intersection", "union", "grow-diag", "grow-diag-final" or "grow-diag-final-and".
    reach : int
        Of chains: longer jumps count as this long.
    missed, spurious, possible : float
        What a wrong alignment costs, with every objective but "crf": for every sure link that is missing, every link
        that is neither sure nor possible, and every possible link that is missing. With ``possible=0`` possible links
        are not learnt, nor held against an alignment.
    translations : HMMAligner, sequence of them, or None
        Fitted models without labels; None trains two in ``fit``, one that learns both directions in agreement, and one
        that learns each by itself, of the first letters of words.
    lam : float or None
        Weight of the regulariser lam/2 |w|^2 against the mean loss; None means 10/n. The sum of sample weights, if
        there are any, takes the place of n.
    rtol : float
        Stop when the duality gap is at most this part of the objective, if that comes before ``tol``. 0 leaves ``tol``
        alone to decide: there are few labelled pairs, and every link counts.

    Attributes
    ----------
    classes_ : array
        "link"; or "forward" and "backward" where there are two directions.
    coef_ : array (attributes, directions)
        Weights of the features of links.
    null_coef_ : array (attributes of words, sides)
        Weights of the features of words without a link.
    jumps_ : array (distances,)
        Of a chain: scores of jumps, from ``-reach`` to ``reach``.
    translations_ : list of HMMAligner
        The models without labels.

    Examples
    --------
    >>> import m3n
    >>> some, others = m3n.datasets.parallel_sentences(n_train=200, n_test=50, words=50)
    >>> aligner = m3n.WordAligner(n_jobs=1)
    >>> aligner = aligner.fit(others.pairs[:30], others.alignments[:30], unlabelled=some.pairs)
    >>> aligner.score(others.pairs[30:], others.alignments[30:]) > 0.9  # 1 - AER
    True
    """

    structure: str = "matching"
    fertility: int | tuple[int, int] = 2
    symmetrize: str = "grow-diag-final-and"
    reach: int = 5
    missed: float = 3.0
    spurious: float = 1.0
    possible: float = 0.0
    rtol: float | None = 0.0
    translations: HMMAligner | Sequence[HMMAligner] | None = None

    null_coef_: np.ndarray = learnt("word attributes", 2, weights=True)
    jumps_: np.ndarray = learnt("distances", weights=True)
    translations_: list[HMMAligner] = learnt()

    _parameters = (
        "structure", *(name for name in TRAINING if name != "loss"), "fertility", "symmetrize", "reach", "missed",
        "spurious", "possible", "translations", "C", "l1", "strengths", "warm_start", "checkpoint",
    )  # fmt: skip
    _reader = PairReader
    _form = ALIGNMENTS
    _groups = GROUPS
    _strength = 10.0

    def fit(self, X: Any, y: Any, sample_weight: Any = None, unlabelled: Any = None) -> WordAligner:
        """Train on sentence pairs with their alignments.

        Parameters
        ----------
        X : sequence of (source words, target words)
            Sentence pairs.
        y : sequence of Alignment or iterables of (int, int)
            For every pair its links (i, j), source word i and target word j, counted from 0; ``m3n.io.Alignment`` tells
            sure ones from possible ones.
        sample_weight : array (pairs,), optional
            How often every pair counts: 2 is the same as the pair twice, 0 leaves it out.
        unlabelled : sequence of (source words, target words), optional
            Other sentence pairs, for the models without labels, if these are not given as ``translations``: many
            thousands make the difference. Without any, these models learn from X, which they then know better than
            new text.

        Returns
        -------
        WordAligner
            The fitted estimator itself.
        """
        self._check_words()
        pairs = PairReader().read(X)
        weights = read_weights(sample_weight, len(pairs), ALIGNMENTS.example)
        counted = pairs if weights is None else [pair for pair, weight in zip(pairs, weights, strict=True) if weight]
        return self._fit((pairs, self._models_without_labels(counted, unlabelled)), y, sample_weight)

    def predict(self, X: Any) -> list[list[tuple[int, int]]]:
        """The alignment with the highest score of every pair, as a sorted list of links (i, j).

        Parameters
        ----------
        X : sequence of (source words, target words)
            Sentence pairs.
        """
        found: Predictions[list[tuple[int, int]]] = Predictions()
        for pairs, space, theta, threads in self._scored(X):
            links = space.unpack(space.hard(theta, threads)[1])
            found += links if self._matching else self._joined(links, len(pairs.X))
        return found

    def predict_marginals(self, X: Any, temperature: float = 1.0) -> list[np.ndarray]:
        """Probability of every link under exp(score / temperature), an array (source words, target words) per pair.

        For matchings these are the mean links of the smoothed maximum (``m3n.structures.Matching``); where there are
        two directions, the geometric mean of both.

        Parameters
        ----------
        X : sequence of (source words, target words)
            Sentence pairs.
        temperature : float
            Small values sharpen the distribution towards the prediction, large ones flatten it.
        """
        check_temperature(temperature)
        found: list[np.ndarray] = []
        for pairs, space, theta, threads in self._scored(X):
            links, count = space.soft(theta, temperature, threads)[1][0][:, 0], int(pairs.grid.first[-1])
            if not self._matching:
                other = np.empty(count)
                other[pairs.grid.turned()[1]] = links[count:]
                links = np.sqrt(links[:count] * other)
            found += pairs.grid.cut(links)
        return found

    def score(self, X: Any, y: Any) -> float:
        """1 - AER, the alignment error rate.

        Parameters
        ----------
        X : sequence of (source words, target words)
            Sentence pairs.
        y : sequence of Alignment or iterables of (int, int)
            The right links.
        """
        return 1.0 - alignment_scores(y, self.predict(X)).aer

    # training

    def _check_words(self) -> None:
        super()._check_words()
        if self.structure not in STRUCTURES:
            raise ValueError(f"structure must be one of {STRUCTURES}, got {self.structure!r}")
        if self._matching and resolve_objective(self.objective).temperature:
            raise ValueError(
                f"objective={self.objective!r} sums over all alignments, and nobody can sum over matchings quickly; "
                'take structure="chain" or "words", or objective="margin"'
            )
        if self.symmetrize not in METHODS:
            raise ValueError(f"symmetrize must be one of {tuple(METHODS)}, got {self.symmetrize!r}")
        for name in ("missed", "spurious", "possible"):
            if not 0.0 <= getattr(self, name) < np.inf:
                raise ValueError(f"{name} must be a finite price that is not negative, got {getattr(self, name)}")
        if not (isinstance(self.reach, int) and self.reach >= 1):
            raise ValueError(f"reach must be a whole number, at least 1, got {self.reach!r}")
        for model in self._given_models:
            if not isinstance(model, HMMAligner):
                raise TypeError(f"translations must be an HMMAligner, several, or None, got {model!r:.80}")

    @property
    def _given_models(self) -> list[Any]:
        given = self.translations
        return [] if given is None else list(given) if isinstance(given, Sequence) else [given]

    def _models_without_labels(self, pairs: list[Pair], unlabelled: Any) -> list[HMMAligner]:
        if self.translations is None:
            text = pairs if unlabelled is None else PairReader().read(unlabelled)
            models = (HMMAligner(n_jobs=self.n_jobs, verbose=self.verbose, **settings) for settings in MODELS)
            return [model.fit(text) for model in models]
        if unlabelled is not None:
            raise ValueError("unlabelled pairs are for new models without labels; leave out translations, or these")
        if not self._given_models:
            raise ValueError("translations is empty: give an HMMAligner, or None to train some")
        for model in self._given_models:
            model._check_fitted()
        return self._given_models

    def _read(self, reader: PairReader, X: Any, y: Any) -> Examples:
        given, translations = X
        pairs, reader.names, reader.word_names = _described(given, translations)
        reader.width = len(reader.names)
        outputs = read_links(y, pairs.grid.sizes)
        return Examples(pairs, ONE if self._matching else BOTH, outputs, learnt={"translations_": translations})

    def _attribute_map(self, kernel: KernelSettings | None, examples: Examples) -> tuple[Any, Any]:
        return None, None

    def _setup(self, examples: Examples, node: Any) -> Setup:
        pairs: Pairs = examples.inputs
        space, maps = self._space(pairs.grid), self._maps(pairs)
        prices = link_prices(pairs.grid, examples.outputs, self.missed, self.spurious, self.possible)
        gold = self._gold(space, pairs, prices)
        doubled = 1 if self._matching else 2
        weights = None if examples.weights is None else np.tile(examples.weights, doubled)
        return Setup(
            space, stacked(maps, resolve_strengths(self.strengths, GROUPS)), weights=weights, scale=float(doubled),
            outputs=gold, loss=LinkPrices(self._turned_too(pairs.grid, prices)[:, None]),
        )  # fmt: skip

    def _gold(self, space: Space, pairs: Pairs, prices: np.ndarray) -> list[Any]:
        """The alignments to learn: of those that the structure has, the cheapest; among these, the likeliest."""
        worth = np.where(prices < 0.0, -prices * (1.0 + TIE * pairs.likely), -np.inf)
        theta = tuple(np.zeros(shape) for shape in space.shapes)
        theta[0][:, 0] = self._turned_too(pairs.grid, worth)
        return space.unpack(space.hard(theta)[1])

    def _named_weights(self, features: Stack, w: np.ndarray) -> dict[str, Any]:
        links, *rest = split_weights(features, w)
        nulls = np.stack(rest[:2], axis=1) if self._matching else rest[0].reshape(2, -1).T
        jumps = rest[1] if self.structure == "chain" else np.zeros(0)
        return {"coef_": links.reshape(1 if self._matching else 2, -1).T, "null_coef_": nulls, "jumps_": jumps}

    def _packed(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        found = [model._packed() for model in self.translations_]
        tensors = {f"{k}.{name}": array for k, (_, own) in enumerate(found) for name, array in own.items()}
        return {"translations": [meta for meta, _ in found]}, tensors

    def _unpacked(self, content: Content) -> dict[str, Any]:
        fitted, models = content.fitted, []
        check_shape("null_coef_", fitted["null_coef_"], (len(fitted["reader_"].word_names), 2))
        check_shape("jumps_", fitted["jumps_"], (2 * self.reach + 1 if self.structure == "chain" else 0,))
        for k, meta in enumerate(content.meta["translations"]):
            own = {name.partition(".")[2]: a for name, a in content.tensors.items() if name.startswith(f"{k}.")}
            models.append(HMMAligner._restored(meta, own))
        return {"translations_": models}

    def _bound_loss(self, classes: np.ndarray) -> None:
        """Prices of links are made with the training alignments."""

    # what training and prediction share

    @property
    def _matching(self) -> bool:
        return self.structure == "matching"

    def _space(self, grid: Grid) -> Space:
        if self._matching:
            most = self.fertility
            return Matching(grid.sizes, (most, most) if isinstance(most, int) else most)
        sizes = np.concatenate([grid.sizes, grid.sizes[:, ::-1]])
        return AlignmentChain(sizes, reach=self.reach) if self.structure == "chain" else OneToMany(sizes)

    def _maps(self, pairs: Pairs) -> list[tuple[FeatureMap, str]]:
        """Features of all arrays of theta."""
        links = self._turned_too(pairs.grid, pairs.matrix)
        if self._matching:
            return [(Dense(links, 1), "links"), *((Dense(words, 1), "nulls") for words in pairs.words)]
        halves = np.split(links, 2)
        maps: list[tuple[FeatureMap, str]] = [(_two_blocks(*halves), "links"), (_two_blocks(*pairs.words), "nulls")]
        return [*maps, (Table(2 * self.reach + 1), "jumps")] if self.structure == "chain" else maps

    def _turned_too(self, grid: Grid, values: np.ndarray) -> np.ndarray:
        """Numbers of links, with those of the other direction below if there are two."""
        return values if self._matching else np.concatenate([values, values[grid.turned()[1]]])

    def _scored(self, X: Any) -> Iterator[tuple[Pairs, Space, Parts, Threads]]:
        """Alignments and scores of their parts, some pairs at a time."""
        self._check_fitted()
        given, threads = self.reader_.read(X), Threads(self.n_jobs)
        nulls = list(self.null_coef_.T) if self._matching else [self.null_coef_.T.ravel()]
        weights = [self.coef_.T.ravel(), *nulls, *([self.jumps_] if self.structure == "chain" else [])]
        for low, high in batches(Grid.of(given).sizes.prod(axis=1), AT_ONCE):
            pairs, *_ = _described(given[low:high], self.translations_)
            space = self._space(pairs.grid)
            maps = zip(self._maps(pairs), weights, space.shapes, strict=True)
            theta = tuple(m.scores(np.ascontiguousarray(w), (np.empty(s),), threads)[0] for (m, _), w, s in maps)
            yield pairs, space, theta, threads

    def _joined(self, links: list[Any], count: int) -> list[list[tuple[int, int]]]:
        """One alignment of both directions."""
        back = [[(i, j) for j, i in own] for own in links[count:]]
        return symmetrize(links[:count], back, self.symmetrize)


def _described(X: list[Pair], translations: Sequence[HMMAligner]) -> tuple[Pairs, list[str], list[str]]:
    """The features of sentence pairs, and their names."""
    grid = Grid.of(X)
    evidence = [_evidence(X, model) for model in translations]
    links = link_features(grid, evidence, X)
    words = [word_features(grid, evidence, side) for side in (0, 1)]
    likely = np.mean([own.both for own in evidence], axis=0)
    found = Pairs(X, grid, _matrix(links), (_matrix(words[0]), _matrix(words[1])), likely)
    return found, list(links), list(words[0])


def _evidence(X: list[Pair], model: HMMAligner) -> Evidence:
    backward, forward = zip(*model.directions(X), strict=True)  # of target words, of source words
    translation, reverse = zip(*model.translation(X), strict=True)
    source, target = zip(*model.ranks(X), strict=True)
    return Evidence(
        forward=_flat(forward), backward=_flat(backward), translation=_flat(translation), reverse=_flat(reverse),
        dice=_flat(model.dice(X)), ranks=(_flat(source), _flat(target)),
    )  # fmt: skip


def _flat(tables: Sequence[np.ndarray]) -> np.ndarray:
    return np.concatenate([table.ravel() for table in tables])


def _matrix(columns: dict[str, np.ndarray]) -> np.ndarray:
    return np.stack([np.asarray(column, dtype=np.float64) for column in columns.values()], axis=1)


def _two_blocks(one: np.ndarray, two: np.ndarray) -> Sparse:
    """Weights of their own for the rows of both."""
    return Sparse(scipy.sparse.block_diag([one, two], format="csr"), 1)
