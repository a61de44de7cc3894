"""Coming from other programmes and going back: stand-ins for python-crfsuite and sklearn-crfsuite, and model files."""

from m3n.compat.conversion import convert
from m3n.compat.exports import export
from m3n.compat.imported import ExportError, ImportedModelError
from m3n.compat.items import ItemSequence
from m3n.compat.tagger import Tagger
from m3n.compat.trainer import BaseTrainer, Trainer

from m3n.compat import sklearn_crfsuite  # isort: skip  (it needs the others)

__all__ = [
    "BaseTrainer", "ExportError", "ImportedModelError", "ItemSequence", "Tagger", "Trainer", "convert", "export",
    "sklearn_crfsuite",
]  # fmt: skip
