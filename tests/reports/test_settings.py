from types import SimpleNamespace

import numba
import numpy as np
import scipy
import scipy.sparse

import m3n
from m3n.reports.quality import Outcome
from m3n.reports.training import LONGEST, Training, settings, versions
from tests.reports.pages import Page, fixed

OUTCOME = Outcome([["A", "B"], ["A"]], [["A", "B"], ["A"]], lambda i: [])


def table(model, result=None):
    page = Page(settings(result, model, Training.of(None, model), OUTCOME.amount))
    heads, cells = page.texts("th"), page.texts("td")
    return dict(zip(heads, cells, strict=True)), page


def test_everything_to_make_the_run_again():
    found, _ = table(fixed([["A"]], lam_=0.1 + 0.2, coef_=np.ones((3, 2)), start_=np.ones(2), reason_="because"))
    assert found["regularisation (lam)"] == "0.30000000000000004"
    assert found["why training stopped"] == "tolerance reached"
    assert (found["passes over the data"], found["seconds"]) == ("12", "1.2")
    assert (found["labels of the model"], found["weights"]) == ("1", "8")
    assert found["data given to this report"] == "2 sequences, 3 tokens"
    assert found["why this solver"] == "because"
    assert found["answers"] == "[['A']]"


def test_parameters_that_are_not_the_default_come_first():
    model = m3n.SequenceTagger(tol=0.5, loss="normalized_hamming")
    found, page = table(model)
    bold = page.texts("strong")
    assert bold == ["tol", "0.5", "loss", "'normalized_hamming'"]
    assert set(model.get_params()) <= set(found)
    assert page.texts("th")[page.texts("th").index("tol") + 2 :][0] == "objective"


def test_weights_are_those_of_the_result_or_those_that_are_kept():
    coef = scipy.sparse.csr_array(np.eye(4))
    assert table(fixed([["A"]], coef_=coef))[0]["weights"] == "4"
    assert table(fixed([["A"]], coef_=coef), SimpleNamespace(w=np.ones(7)))[0]["weights"] == "7"
    assert "weights" not in table(fixed([["A"]]))[0]


def test_huge_parameters_are_cut_and_models_without_parameters_are_fine():
    found, _ = table(fixed([["A"] * 10_000]))
    assert len(found["answers"]) == LONGEST + 2
    bare = SimpleNamespace(predict=None)
    assert "m3n" in table(bare)[0]


def test_versions():
    found = dict(versions())
    assert found["m3n"] == m3n.__version__
    assert (found["numpy"], found["scipy"], found["numba"]) == (np.__version__, scipy.__version__, numba.__version__)
