"""Labelling the nodes of graphs: pairwise models on trees, on graphs of low treewidth and, relaxed, on all others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from m3n.estimators.chains import check_temperature
from m3n.estimators.declaration import learnt
from m3n.estimators.edges import ANTISYMMETRIC, common_table, edge_kinds, edge_map, edge_weights, settled_direction
from m3n.estimators.files import Content
from m3n.estimators.final import FinalPredictions, distance, final_by_changes, input_squares
from m3n.estimators.forms import GRAPHS
from m3n.estimators.going_on import GoesOn, Old
from m3n.estimators.graph_inputs import GraphReader, Graphs
from m3n.estimators.graph_outputs import labels_like, node_labels, node_mask, pair_mask, rows_like
from m3n.estimators.inputs import read_labels, share_right
from m3n.estimators.matrices import linear_scores
from m3n.estimators.predictions import Predictions
from m3n.estimators.trained import KERNEL, TRAINING, Trained
from m3n.estimators.training import Examples, Setup
from m3n.features import Copies, NoFeatures, Stack, graph_features
from m3n.packed import Threads
from m3n.packed.threads import single_threaded_blas
from m3n.structures import Factors, Graph, LoopyGraph, TooExpensive, Tree, relaxed_map, relaxed_marginals

INFERENCE = ("auto", "exact", "relaxed")


@dataclass(frozen=True)
class Labelled:
    """Labels of graphs, and how good they are at most.

    Attributes
    ----------
    labels : list
        The labels of every graph, in the form that ``predict`` gives them.
    values : array (n,)
        Score of these labels.
    bounds : array (n,)
        No labels have a higher score; equal to ``values`` where these are proved to be the best.
    """

    labels: list[Any]
    values: np.ndarray
    bounds: np.ndarray


class GraphLabeler(Trained, GoesOn):
    """Labels for every node of a graph, trained to a certified optimum.

    The score of a labelling is the sum over nodes of x W[:, label], over edges of a table of pairs of labels, and, if
    edges have features z, of z V[:, label, label']. Where edges have a direction, rows of tables are labels of their
    first node; where they have none, the tables are symmetric.

    On forests and on graphs of low treewidth everything is exact. Other graphs, such as pictures, are trained on a
    relaxation to forests (``m3n.structures.LoopyGraph``): the certificate then speaks of the relaxed objective, which
    is an upper bound of the exact one.

    Parameters
    ----------
    objective : {"margin", "crf", "softmax_margin", "slack"}
        Training objective, as in ``SequenceTagger``.
    lam : float or None
        Weight of the regulariser lam/2 |w|^2 against the mean loss of a graph; None means 1/n.
    loss : {"hamming", "normalized_hamming"} or Loss
        Label loss of every objective but "crf".
    inference : {"auto", "exact", "relaxed"}
        Exact where the ``budget`` allows it, always exact or refused, or always relaxed where there are cycles.
    budget : float
        Table entries that exact inference may take for one graph.
    agreement : float
        For relaxed training: how strongly the multipliers that make copies of a node agree are regularised, relative
        to ``lam``. Smaller numbers come closer to the linear programming relaxation and take more passes.
    directed : bool or None
        Whether edges have a direction. None: as the graphs say. A networkx ``DiGraph`` has one, and so have a tuple
        with edge features and a ``grid_graph`` that tells directions apart; a networkx ``Graph``, a tuple without edge
        features and other grids have none.
    common_pairs : bool
        Whether all edges share a table of scores, beside those of edge features; False needs edge features.
    symmetric_edge_features : sequence of int or None
        Numbers of edge features that have no direction, though edges have one: V[f] is a symmetric matrix. Without a
        direction of edges all features are symmetric.
    antisymmetric_edge_features : sequence of int or None
        Numbers of edge features whose scores change their sign with the direction: V[f] is antisymmetric.

    Attributes
    ----------
    coef_ : array (attributes, labels)
        Weights of node features. Not there with a kernel.
    pairs_ : array (labels, labels)
        Scores of pairs of labels along an edge; zeros without ``common_pairs``.
    edge_coef_ : array (edge attributes, labels, labels) or None
        Weights of edge features.
    directed_ : bool
        Whether edges have a direction.
    relaxed_ : bool
        Whether training was relaxed.
    multipliers_ : array (rows, labels) or None
        After relaxed training: what copies of nodes of the training graphs were given to agree, in the order of
        ``m3n.features.Copies``. Prediction does not need them, and files do not hold them; with them the certificate
        can be computed anew.
    certificate_ : Certificate
        primal, dual and gap of the training objective, or of its relaxation.
    n_features_in_ : int
        Number of node attributes.

    Examples
    --------
    >>> import numpy as np
    >>> import m3n
    >>> picture = np.array([[0.0, 0.1, 0.9], [0.2, 0.0, 1.0], [0.1, 0.8, 0.9]])
    >>> X, y = [m3n.grid_graph(picture)], [(picture > 0.5).astype(int)]
    >>> labeler = m3n.GraphLabeler(lam=0.01).fit(X, y)
    >>> labeler.predict(X)
    [array([[0, 0, 1],
           [0, 0, 1],
           [0, 1, 1]])]
    """

    inference: str = "auto"
    budget: float = 1e5
    agreement: float = 0.01
    directed: bool | None = None
    common_pairs: bool = True
    symmetric_edge_features: Sequence[int] | None = None
    antisymmetric_edge_features: Sequence[int] | None = None

    pairs_: np.ndarray = learnt("labels", "labels", weights=True)
    edge_coef_: np.ndarray | None = learnt("pairs", "labels", "labels", weights=True)
    directed_: bool = learnt()
    relaxed_: bool = learnt()
    multipliers_: np.ndarray | None = learnt()

    _parameters = (
        *TRAINING, "inference", "budget", "agreement", "C", *KERNEL, "class_weight", "directed", "common_pairs",
        "symmetric_edge_features", "antisymmetric_edge_features", "warm_start", "prior", "validation", "patience",
        "stop",
    )  # fmt: skip
    _reader = GraphReader
    _form = GRAPHS

    def fit(self, X: Sequence[Any], y: Sequence[Any], sample_weight: Any = None) -> GraphLabeler:
        """Train on labelled graphs.

        Parameters
        ----------
        X : sequence of graphs
            Each a tuple (node features, edges) or (node features, edges, edge features), or a networkx graph with
            "features" at its nodes and, if at all, at its edges. ``m3n.grid_graph`` makes one of a picture.
        y : sequence of labels
            For every graph one label per node, in their order; arrays of the picture's shape and, for networkx,
            dictionaries by node will do.
        sample_weight : array (graphs,), optional
            How often every graph counts; 0 leaves it out.

        Returns
        -------
        GraphLabeler
            The fitted estimator itself.
        """
        return self._fit(X, y, sample_weight)

    def predict(self, X: Sequence[Any], *, fixed: Any = None, allowed: Any = None, forbidden: Any = None) -> list[Any]:
        """The best labels of every graph, or where that is out of reach the best that were found.

        Parameters
        ----------
        X : sequence of graphs
            As in ``fit``.
        fixed : sequence, optional
            Labels that are known already, in the form of ``y`` with None where a label is to be predicted: a list, an
            array in the picture's shape (of objects, or masked), or a dictionary of the known ones by node. None
            instead: nothing is known about this graph.
        allowed : sequence, optional
            Of every graph which labels its nodes may have: in the same forms, but with a collection of labels for a
            node, or None for all labels.
        forbidden : collection of pairs of labels, optional
            Labels that must not stand at the first and the second node of any edge; in either order where edges have
            no direction.

        Returns
        -------
        list
            Per graph its labels: in the order of the nodes as a list, for a picture of ``grid_graph`` as an array in
            its shape, for a networkx graph as a dictionary by node.
        """
        found = self.predict_with_bounds(X, fixed=fixed, allowed=allowed, forbidden=forbidden)
        return Predictions(found.labels)

    def predict_with_bounds(
        self, X: Sequence[Any], *, fixed: Any = None, allowed: Any = None, forbidden: Any = None
    ) -> Labelled:
        """Labels with their score and a bound on the best score; where the two are equal the labels are the best.

        Parameters
        ----------
        X : sequence of graphs
            As in ``fit``.
        fixed, allowed, forbidden : optional
            What is known already, as in ``predict``.
        """
        self._check_fitted()
        if len(X) == 0:
            return Labelled([], np.empty(0), np.empty(0))
        graphs = self.reader_.read(X)
        theta = self._scores(graphs, self._masks(X, graphs, fixed, allowed, forbidden))
        numbers, values, bounds = self._best(graphs, theta)
        impossible = np.flatnonzero(np.isneginf(values))
        if impossible.size:
            raise ValueError(
                f"graph {impossible[0]}: no labels were found that agree with fixed, allowed and forbidden; "
                "allow more labels, or forbid fewer pairs"
            )
        flat = np.split(self.classes_[numbers], np.cumsum(graphs.counts)[:-1])
        return Labelled([labels_like(x, labels) for x, labels in zip(X, flat, strict=True)], values, bounds)

    def predict_marginals(
        self,
        X: Sequence[Any],
        temperature: float = 1.0,
        *,
        relaxed: bool = False,
        fixed: Any = None,
        allowed: Any = None,
        forbidden: Any = None,
    ) -> list[Any]:
        """Probability of every label at every node under exp(score / temperature).

        Parameters
        ----------
        X : sequence of graphs
            As in ``fit``.
        temperature : float
            Small values sharpen the distribution towards the prediction, large ones flatten it.
        relaxed : bool
            What to do where exact inference is out of reach: refuse, or return the marginals of a relaxation, see
            ``m3n.structures.relaxed_marginals``. Those agree along every edge and are exact on forests, but with cycles
            they are not the probabilities themselves.
        fixed, allowed, forbidden : optional
            What is known already, as in ``predict``: probabilities given that.

        Returns
        -------
        list
            Per graph an array (nodes, labels), columns in the order of ``classes_``; for a picture of ``grid_graph`` an
            array (height, width, labels), for a networkx graph a dictionary of arrays (labels,) by node.
        """
        check_temperature(temperature)
        self._check_fitted()
        if len(X) == 0:
            return []
        graphs = self.reader_.read(X)
        masks = self._masks(X, graphs, fixed, allowed, forbidden)
        return [
            rows_like(x, rows) for x, rows in zip(X, self._marginals(graphs, temperature, relaxed, masks), strict=True)
        ]

    def certify(self, X: Sequence[Any], radius: float | None = None) -> FinalPredictions:
        """Which predictions are proven to be those of the exact optimum, see ``SequenceTagger.certify``.

        For linear scores and exact inference, in training and on these graphs.

        Parameters
        ----------
        X : sequence of graphs
            As in ``fit``.
        radius : float, optional
            How far the weights in question are from those of the model, in the norm of the regulariser; the default is
            ``radius_``, for the optimum.

        Returns
        -------
        FinalPredictions
            The labels of every graph as ``predict`` gives them, and for every node whether its label is final.
        """
        self._check_fitted()
        radius = distance(self, radius)
        if self.relaxed_ or not self._linear:
            what = "of a relaxation" if self.relaxed_ else "with a kernel"
            raise ValueError(f"nothing can be proven {what}: GraphLabeler certifies linear scores with exact inference")
        if len(X) == 0:
            return FinalPredictions([], [], radius, self._form.example)
        graphs = self.reader_.read(X)
        theta = self._scores(graphs)
        structure = self._structure(graphs, len(self.classes_), tables=len(theta) > 2)
        if structure.relaxed:
            raise ValueError("exact inference on these graphs would take too long; raise budget, or certify others")
        offsets, changes = graphs.cuts()[0], radius * self._changes(graphs)
        labelling, final = final_by_changes(structure, theta, offsets, changes, Threads(self.n_jobs))
        flat = np.split(self.classes_[labelling], offsets[1:-1])
        labels = [labels_like(x, own) for x, own in zip(X, flat, strict=True)]
        return FinalPredictions(labels, np.split(final, offsets[1:-1]), radius, self._form.example)

    def _changes(self, graphs: Graphs) -> np.ndarray:
        """By what norm features change, at most, for every node whose label does: its own and those of its edges."""
        labels, directed = len(self.classes_), self.directed_
        kinds = self._edge_kinds(None if graphs.pairs is None else graphs.pairs.shape[1], directed)
        edge, common = edge_map(graphs.pairs, labels, kinds), common_table(labels, directed, self.common_pairs)
        ends = np.concatenate([own + low for own, low in zip(graphs.edges, graphs.cuts()[0], strict=False)])
        along = np.full(len(ends), common.norms()[0].max())
        for norms in () if edge is None else edge.norms():
            along += norms
        around = np.zeros(int(graphs.counts.sum()))
        for side in ends.T:
            np.add.at(around, side, along)
        return np.sqrt(2.0 * (input_squares(None, graphs.matrix) + around**2))

    def score(self, X: Sequence[Any], y: Sequence[Any]) -> float:
        """Share of nodes that are labelled correctly.

        Parameters
        ----------
        X : sequence of graphs
            As in ``fit``.
        y : sequence of labels
            The right labels.
        """
        return share_right(node_labels(y, X), node_labels(self.predict(X), X))

    def _check_words(self) -> None:
        super()._check_words()
        if self.inference not in INFERENCE:
            raise ValueError(f"unknown inference {self.inference!r}; choose one of {INFERENCE}")
        if not self.budget > 0:
            raise ValueError(f"budget must be positive, got {self.budget}")

    def _read(self, reader: GraphReader, X: Any, y: Any) -> Examples:
        graphs = reader.fit(X)
        directed = settled_direction(X, self.directed)
        kinds = self._edge_kinds(reader.pair_width, directed)
        reader.orient(X, directed or bool((kinds == ANTISYMMETRIC).any()))
        if graphs.pairs is None and not self.common_pairs:
            raise ValueError("common_pairs=False leaves edges without scores, as they have no features; leave it out")
        if self.prior is not None and self.prior.directed_ != directed:
            raise ValueError("of prior and the graphs of X only one has directed edges: directed= makes them alike")
        classes, outputs = read_labels(node_labels(y, X), graphs.counts, self._known_labels)
        old = Old.of(self.prior, reader, classes)
        return Examples(graphs, classes, outputs, learnt={"directed_": directed}, old=old)

    def _edge_kinds(self, width: int | None, directed: bool) -> np.ndarray:
        return edge_kinds(width, directed, self.symmetric_edge_features, self.antisymmetric_edge_features)

    def _setup(self, examples: Examples, node: Any) -> Setup:
        graphs, labels, weights = examples.inputs, len(examples.classes), examples.weights
        directed = examples.learnt["directed_"]
        kinds = self._edge_kinds(None if graphs.pairs is None else graphs.pairs.shape[1], directed)
        loss = self._bound_loss(examples.classes)
        edge, common = edge_map(graphs.pairs, labels, kinds), common_table(labels, directed, self.common_pairs)
        if edge is None and loss is not None and loss.needs_edges:
            edge = NoFeatures(sum(map(len, graphs.edges)), labels, labels)
        structure = self._structure(graphs, labels, tables=edge is not None, both_ways=bool(kinds.any()))
        features = graph_features(structure, node, edge, agreement=self.agreement, common=common)
        learnt = {"relaxed_": structure.relaxed}
        if not isinstance(structure, LoopyGraph):
            return Setup(structure, features, learnt)
        parts = np.ones(structure.n) if weights is None else weights[structure.graph_of]
        scale = float(parts.sum()) / examples.count  # its examples are paths, of which a graph has many
        return Setup(structure, features, learnt, None if weights is None else parts, scale)

    def _named_weights(self, features: Stack, w: np.ndarray) -> dict[str, Any]:
        own, node, multipliers = features.split(w)[0], features.maps[0], None
        pairs, edges = edge_weights(features, w)
        if isinstance(node, Copies):
            own, multipliers = node.split(own)
        return {"coef_": own, "pairs_": pairs, "edge_coef_": edges, "multipliers_": multipliers}

    def _placed_weights(self, features: Stack, w: np.ndarray) -> dict[str, Any]:
        named = self._named_weights(features, w)
        if named["edge_coef_"] is not None:  # symmetric tables are among their own least weights
            named["edge_coef_"] = features.split(w)[2].reshape(named["edge_coef_"].shape)
        return named

    def _packed(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        return {"relaxed": self.relaxed_, "directed": self.directed_}, {}

    def _unpacked(self, content: Content) -> dict[str, Any]:
        directed = content.meta.get("directed", True)  # as all edges were once
        return {"relaxed_": content.meta["relaxed"], "directed_": directed, "multipliers_": None}

    def _answers(
        self, X: Any, marginals: bool, temperature: float | None = None
    ) -> tuple[list[list[Any]], list[np.ndarray]]:
        labels, warmth = node_labels(self.predict(X), X), 1.0 if temperature is None else temperature
        return labels, self._marginals(self.reader_.read(X), warmth, False, (None, None)) if marginals else []

    def _structure(self, graphs: Graphs, labels: int, *, tables: bool, both_ways: bool = False) -> Graph:
        """The output spaces: forests, graphs within the budget, or relaxed ones."""
        try:
            return Tree(graphs.counts, labels, graphs.edges, tables=tables, both_ways=both_ways)
        except ValueError:  # cycles; edges have been checked by the reader
            pass
        if self.inference != "relaxed":
            common = Factors(graphs.edges, shared=True)
            factors = [common, *(common.tables(both_ways) if tables else ())]
            try:
                return Graph(graphs.counts, labels, factors, budget=self.budget)
            except TooExpensive:
                if self.inference == "exact":
                    raise
        return LoopyGraph(graphs.counts, labels, graphs.edges, tables=tables, both_ways=both_ways)

    def _masks(
        self, X: Sequence[Any], graphs: Graphs, fixed: Any, allowed: Any, forbidden: Any
    ) -> tuple[np.ndarray | None, np.ndarray | None]:
        """Which labels of nodes and which pairs along edges are possible; None: all."""
        nodes = node_mask(fixed, allowed, X, graphs.counts, self.classes_)
        return nodes, pair_mask(forbidden, self.classes_, self.directed_)

    def _scores(
        self, graphs: Graphs, masks: tuple[np.ndarray | None, np.ndarray | None] = (None, None)
    ) -> tuple[np.ndarray, ...]:
        """The scores of nodes, of the common table and of edges; -inf where masks do not allow a label or a pair."""
        threads = Threads(self.n_jobs)
        with single_threaded_blas():
            node = self._attribute_scores(graphs.matrix, threads)
            edge: tuple[np.ndarray, ...] = ()
            if self.edge_coef_ is not None:
                edge = (linear_scores(graphs.pairs, self.edge_coef_, threads),)
        table = self.pairs_.copy()
        for scores, mask in zip((node, table), masks, strict=True):
            if mask is not None:
                scores[~mask] = -np.inf
        return (node, table, *edge)

    def _best(self, graphs: Graphs, theta: tuple[np.ndarray, ...]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Numbers of labels, their scores, and bounds on the best scores."""
        structure, threads = self._structure(graphs, len(self.classes_), tables=len(theta) > 2), Threads(self.n_jobs)
        if not structure.relaxed:
            values, numbers = structure.hard(theta, threads)
            return numbers, values, values
        nodes, edges = graphs.cuts()
        found = relaxed_map(*_pairwise(graphs, theta), offsets=nodes, edge_offsets=edges, threads=threads)
        return found.labels, found.values, found.bounds

    def _marginals(
        self, graphs: Graphs, temperature: float, relaxed: bool, masks: tuple[np.ndarray | None, np.ndarray | None]
    ) -> list[np.ndarray]:
        """The marginals of the nodes of every graph."""
        theta = self._scores(graphs, masks)
        structure = self._structure(graphs, len(self.classes_), tables=len(theta) > 2)
        if not structure.relaxed:
            _, (node, *_) = structure.soft(theta, temperature, Threads(self.n_jobs))
        elif relaxed:
            nodes, edges = graphs.cuts()
            arrays = _pairwise(graphs, theta)
            node = relaxed_marginals(*arrays, offsets=nodes, edge_offsets=edges, temperature=temperature).node
        else:
            raise ValueError(
                "marginals of these graphs are out of reach: exact inference would take more than "
                f"budget={self.budget:g} table entries; raise the budget, ask for those of a relaxation with "
                "relaxed=True, or for labels with predict"
            )
        return np.split(node, np.cumsum(graphs.counts)[:-1])


def _pairwise(graphs: Graphs, theta: tuple[np.ndarray, ...]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scores of nodes, edges, and scores of pairs of labels along them."""
    return theta[0], np.concatenate(graphs.edges), theta[1] if len(theta) == 2 else theta[1] + theta[2]
