"""The competitors: one file each. To add one, write its file and its line here."""

from benchmarks.solvers.base import Clock, Entry, Outcome, Point, Task, Unsuitable
from benchmarks.solvers.chaine import Chaine
from benchmarks.solvers.crfpp import CRFpp
from benchmarks.solvers.crfs import Crfs
from benchmarks.solvers.dlib import Dlib
from benchmarks.solvers.ours import FirstFit, Ours
from benchmarks.solvers.pystruct import PyStruct
from benchmarks.solvers.python_crfsuite import PythonCRFsuite
from benchmarks.solvers.pytorch_crf import PyTorchCRF, TorchStruct
from benchmarks.solvers.sklearn_crfsuite import SklearnCRFsuite
from benchmarks.solvers.svm_hmm import SVMhmm
from benchmarks.solvers.vowpal_wabbit import VowpalWabbit
from benchmarks.solvers.wapiti import Wapiti

ENTRIES: tuple[type[Entry], ...] = (
    Ours, FirstFit, PythonCRFsuite, SklearnCRFsuite, Crfs, Chaine, VowpalWabbit, Dlib, PyTorchCRF, TorchStruct,
    Wapiti, CRFpp, SVMhmm, PyStruct,
)  # fmt: skip
BY_NAME: dict[str, Entry] = {kind.name: kind() for kind in ENTRIES}

__all__ = ["BY_NAME", "Clock", "Entry", "Outcome", "Point", "Task", "Unsuitable"]
