"""Coming from other programmes: a stand-in for sklearn-crfsuite, and models that CRFsuite and CRF++ have trained."""

from m3n.compat.conversion import convert
from m3n.compat.imported import ImportedModelError

__all__ = ["ImportedModelError", "convert"]
