"""Labelling the nodes of graphs: pairwise models on trees, on graphs of low treewidth and, relaxed, on all others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from m3n.estimators.chains import check_temperature
from m3n.estimators.declaration import learnt
from m3n.estimators.files import Content
from m3n.estimators.forms import GRAPHS
from m3n.estimators.graph_inputs import GraphReader, Graphs, node_labels
from m3n.estimators.inputs import read_labels, share_right
from m3n.estimators.matrices import linear_map, linear_scores
from m3n.estimators.predictions import Predictions
from m3n.estimators.trained import KERNEL, TRAINING, Trained
from m3n.estimators.training import Examples, Setup
from m3n.features import Copies, Stack, graph_features
from m3n.packed import Threads
from m3n.packed.threads import single_threaded_blas
from m3n.structures import Factors, Graph, LoopyGraph, TooExpensive, Tree, relaxed_map

INFERENCE = ("auto", "exact", "relaxed")


@dataclass(frozen=True)
class Labelled:
    """Labels of graphs, and how good they are at most.

    Attributes
    ----------
    labels : list of lists
        One list of labels per graph.
    values : array (n,)
        Score of these labels.
    bounds : array (n,)
        No labels have a higher score; equal to ``values`` where these are proved to be the best.
    """

    labels: list[list[Any]]
    values: np.ndarray
    bounds: np.ndarray


class GraphLabeler(Trained):
    """Labels for every node of a graph, trained to a certified optimum.

    The score of a labelling is the sum over nodes of x W[:, label], over edges of a table of pairs of labels, and, if
    edges have features z, of z V[:, label, label']. Edges have a direction: the table's rows are labels of their first
    node.

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

    Attributes
    ----------
    coef_ : array (attributes, labels)
        Weights of node features. Not there with a kernel.
    pairs_ : array (labels, labels)
        Scores of pairs of labels along an edge.
    edge_coef_ : array (edge attributes, labels, labels) or None
        Weights of edge features.
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
    [[0, 0, 1, 0, 0, 1, 0, 1, 1]]
    """

    inference: str = "auto"
    budget: float = 1e5
    agreement: float = 0.01

    pairs_: np.ndarray = learnt("labels", "labels", weights=True)
    edge_coef_: np.ndarray | None = learnt("pairs", "labels", "labels", weights=True)
    relaxed_: bool = learnt()
    multipliers_: np.ndarray | None = learnt()

    _parameters = (*TRAINING, "inference", "budget", "agreement", "C", *KERNEL, "class_weight")
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

    def predict(self, X: Sequence[Any]) -> list[list[Any]]:
        """The best labels of every graph, or where that is out of reach the best that were found.

        Parameters
        ----------
        X : sequence of graphs
            As in ``fit``.

        Returns
        -------
        list of lists
            One list of labels per graph, in the order of its nodes.
        """
        return Predictions(self.predict_with_bounds(X).labels)

    def predict_with_bounds(self, X: Sequence[Any]) -> Labelled:
        """Labels with their score and a bound on the best score; where the two are equal the labels are the best.

        Parameters
        ----------
        X : sequence of graphs
            As in ``fit``.
        """
        self._check_fitted()
        if len(X) == 0:
            return Labelled([], np.empty(0), np.empty(0))
        graphs = self.reader_.read(X)
        threads, theta = Threads(self.n_jobs), self._scores(graphs)
        structure = self._structure(graphs, len(self.classes_))
        names = np.array(self.classes_.tolist(), dtype=object)
        cuts = np.concatenate([[0], np.cumsum(graphs.counts)])
        if structure.relaxed:
            edge_cuts = np.concatenate([[0], np.cumsum([len(e) for e in graphs.edges])])
            pair = theta[1] if len(theta) == 2 else theta[1] + theta[2]
            found = relaxed_map(
                theta[0], np.concatenate(graphs.edges), pair, offsets=cuts, edge_offsets=edge_cuts, threads=threads
            )
            numbers, values, bounds = found.labels, found.values, found.bounds
        else:
            values, numbers = structure.hard(theta, threads)
            bounds = values
        labels = [part.tolist() for part in np.split(names[numbers], cuts[1:-1])]
        return Labelled(labels, values, bounds)

    def predict_marginals(self, X: Sequence[Any], temperature: float = 1.0) -> list[np.ndarray]:
        """Probability of every label at every node under exp(score / temperature), where inference is exact.

        Parameters
        ----------
        X : sequence of graphs
            As in ``fit``.
        temperature : float
            Small values sharpen the distribution towards the prediction, large ones flatten it.

        Returns
        -------
        list of arrays (nodes, labels)
            Columns in the order of ``classes_``.
        """
        check_temperature(temperature)
        self._check_fitted()
        if len(X) == 0:
            return []
        graphs = self.reader_.read(X)
        structure = self._structure(graphs, len(self.classes_))
        if structure.relaxed:
            raise ValueError(
                "marginals of these graphs are out of reach: exact inference would take more than "
                f"budget={self.budget:g} table entries; raise the budget, or ask for labels with predict"
            )
        _, marginals = structure.soft(self._scores(graphs), temperature, Threads(self.n_jobs))
        return np.split(marginals[0], np.cumsum(graphs.counts)[:-1])

    def score(self, X: Sequence[Any], y: Sequence[Any]) -> float:
        """Share of nodes that are labelled correctly.

        Parameters
        ----------
        X : sequence of graphs
            As in ``fit``.
        y : sequence of labels
            The right labels.
        """
        return share_right(node_labels(y, X), self.predict(X))

    def _check_words(self) -> None:
        super()._check_words()
        if self.inference not in INFERENCE:
            raise ValueError(f"unknown inference {self.inference!r}; choose one of {INFERENCE}")
        if not self.budget > 0:
            raise ValueError(f"budget must be positive, got {self.budget}")

    def _read(self, reader: GraphReader, X: Any, y: Any) -> Examples:
        graphs = reader.fit(X)
        return Examples(graphs, *read_labels(node_labels(y, X), graphs.counts))

    def _setup(self, examples: Examples, node: Any) -> Setup:
        graphs, labels, weights = examples.inputs, len(examples.classes), examples.weights
        structure = self._structure(graphs, labels)
        edge = None if graphs.pairs is None else linear_map(graphs.pairs, (labels, labels))
        features = graph_features(structure, node, edge, agreement=self.agreement)
        learnt = {"relaxed_": structure.relaxed}
        if not isinstance(structure, LoopyGraph):
            return Setup(structure, features, learnt)
        parts = np.ones(structure.n) if weights is None else weights[structure.graph_of]
        scale = float(parts.sum()) / examples.count  # its examples are paths, of which a graph has many
        return Setup(structure, features, learnt, None if weights is None else parts, scale)

    def _named_weights(self, features: Stack, w: np.ndarray) -> dict[str, Any]:
        own, pairs, *edge = features.split(w)
        labels, node, multipliers = int(np.sqrt(pairs.size)), features.maps[0], None
        if isinstance(node, Copies):
            own, multipliers = node.split(own)
        edges = edge[0].reshape(-1, labels, labels) if edge else None
        return {"coef_": own, "pairs_": pairs.reshape(labels, labels), "edge_coef_": edges, "multipliers_": multipliers}

    def _packed(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        return {"relaxed": self.relaxed_}, {}

    def _unpacked(self, content: Content) -> dict[str, Any]:
        return {"relaxed_": content.meta["relaxed"], "multipliers_": None}

    def _structure(self, graphs: Graphs, labels: int) -> Graph:
        """The output spaces: forests, graphs within the budget, or relaxed ones."""
        tables = graphs.pairs is not None
        try:
            return Tree(graphs.counts, labels, graphs.edges, tables=tables)
        except ValueError:  # cycles; edges have been checked by the reader
            pass
        if self.inference != "relaxed":
            factors = [Factors(graphs.edges, shared=True), *([Factors(graphs.edges)] if tables else [])]
            try:
                return Graph(graphs.counts, labels, factors, budget=self.budget)
            except TooExpensive:
                if self.inference == "exact":
                    raise
        return LoopyGraph(graphs.counts, labels, graphs.edges, tables=tables)

    def _scores(self, graphs: Graphs) -> tuple[np.ndarray, ...]:
        threads = Threads(self.n_jobs)
        with single_threaded_blas():
            node = self._attribute_scores(graphs.matrix, threads)
            edge: tuple[np.ndarray, ...] = ()
            if self.edge_coef_ is not None:
                edge = (linear_scores(graphs.pairs, self.edge_coef_, threads),)
        return (node, self.pairs_.copy(), *edge)
