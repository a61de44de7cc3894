"""scikit-learn's scores of labels, over all positions of all sequences."""

from __future__ import annotations

from typing import Any

from m3n.compat.sklearn_crfsuite.utils import flatten

__all__ = [
    "flat_accuracy_score", "flat_classification_report", "flat_f1_score", "flat_fbeta_score", "flat_precision_score",
    "flat_recall_score", "sequence_accuracy_score",
]  # fmt: skip


def flat_accuracy_score(y_true: Any, y_pred: Any, **settings: Any) -> float:
    """Share of positions that are labelled correctly.

    Parameters
    ----------
    y_true, y_pred : sequences of labels
        The right labels, and those of a model.
    **settings
        Of ``sklearn.metrics.accuracy_score``.
    """
    return _flat("accuracy_score", y_true, y_pred, settings)


def flat_precision_score(y_true: Any, y_pred: Any, **settings: Any) -> Any:
    """Precision over all positions.

    Parameters
    ----------
    y_true, y_pred : sequences of labels
        The right labels, and those of a model.
    **settings
        Of ``sklearn.metrics.precision_score``.
    """
    return _flat("precision_score", y_true, y_pred, settings)


def flat_recall_score(y_true: Any, y_pred: Any, **settings: Any) -> Any:
    """Recall over all positions.

    Parameters
    ----------
    y_true, y_pred : sequences of labels
        The right labels, and those of a model.
    **settings
        Of ``sklearn.metrics.recall_score``.
    """
    return _flat("recall_score", y_true, y_pred, settings)


def flat_f1_score(y_true: Any, y_pred: Any, **settings: Any) -> Any:
    """F1 over all positions.

    Parameters
    ----------
    y_true, y_pred : sequences of labels
        The right labels, and those of a model.
    **settings
        Of ``sklearn.metrics.f1_score``.
    """
    return _flat("f1_score", y_true, y_pred, settings)


def flat_fbeta_score(y_true: Any, y_pred: Any, beta: float, **settings: Any) -> Any:
    """F-beta over all positions.

    Parameters
    ----------
    y_true, y_pred : sequences of labels
        The right labels, and those of a model.
    beta : float
        How much more recall counts than precision.
    **settings
        Of ``sklearn.metrics.fbeta_score``.
    """
    return _flat("fbeta_score", y_true, y_pred, {"beta": beta} | settings)


def flat_classification_report(y_true: Any, y_pred: Any, labels: Any = None, **settings: Any) -> Any:
    """Precision, recall and F1 of every label over all positions, as text.

    Parameters
    ----------
    y_true, y_pred : sequences of labels
        The right labels, and those of a model.
    labels : sequence of labels, optional
        Which, in which order.
    **settings
        Of ``sklearn.metrics.classification_report``.
    """
    return _flat("classification_report", y_true, y_pred, {"labels": labels} | settings)


def sequence_accuracy_score(y_true: Any, y_pred: Any) -> float:
    """Share of sequences of which all labels are right; 0 if there are none.

    Parameters
    ----------
    y_true, y_pred : sequences of labels
        The right labels, and those of a model.
    """
    pairs = list(zip(y_true, y_pred, strict=True))
    return sum(list(right) == list(found) for right, found in pairs) / max(len(pairs), 1)


def _flat(name: str, y_true: Any, y_pred: Any, settings: dict[str, Any]) -> Any:
    from sklearn import metrics

    return getattr(metrics, name)(flatten(y_true), flatten(y_pred), **settings)
