"""A stand-in for sklearn-crfsuite, with ``metrics``, ``scorers`` and ``utils``: change the import, keep the script."""

from m3n.compat.sklearn_crfsuite import metrics, utils
from m3n.compat.sklearn_crfsuite.estimator import CRF

__all__ = ["CRF", "metrics", "utils"]
