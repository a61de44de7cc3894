import pytest

from m3n import Certificate, Record, Result, Status
from m3n.reports.training import Training, explanation, verdict
from m3n.solvers import LBFGS


def trained(primal=0.28, dual=0.2792, status=Status.TOLERANCE, relaxed=False):
    return Training(Certificate(primal, dual, relaxed), [], status, None, "", 1e-3)


def plain(text):
    return text.replace("\u202f", " ")


def test_the_verdict_in_plain_words():
    assert plain(verdict(trained())) == (
        "Trained to a certified gap of 0.0008: no weights at all could lower the objective by more than that, "
        "which is 0.3 % of it."
    )


@pytest.mark.parametrize("status", list(Status))
def test_every_reason_of_a_stop_has_its_words(status):
    words = verdict(trained(status=status))
    assert words.startswith("Training stopped early" if status is not Status.TOLERANCE else "Trained to")
    assert "certified gap of 0.0008" in words


def test_verdict_of_an_exact_optimum_and_of_an_objective_of_zero():
    assert verdict(trained(0.5, 0.5)) == "Trained to a certified gap of 0: no weights at all have a lower objective."
    assert verdict(trained(0.0, -0.1)).endswith("by more than that.")  # nothing to take a part of


def test_a_relaxed_certificate_says_what_it_means():
    assert "lower the relaxed objective" in verdict(trained(relaxed=True))
    assert "relaxed problem" in explanation(trained(relaxed=True))[1]
    assert len(explanation(trained())) == 1


@pytest.mark.parametrize("certificate", [None, Certificate(float("inf"), 0.0), Certificate(1.0, -float("inf"))])
def test_without_a_bound_nothing_is_claimed(certificate):
    unknown = Training(certificate, [], None, None, "", None)
    assert "has no certificate" in verdict(unknown)
    assert explanation(unknown) == []


def test_a_result_comes_before_what_the_model_has_kept():
    class Model:
        tol = 0.5
        certificate_ = Certificate(2.0, 1.0)
        trace_ = ()
        status_ = Status.STALLED

    result = Result(None, Certificate(1.0, 0.9), Status.TOLERANCE, [Record(1, 1, 1, 0, 1.0, 0.9, 0.1)], 1, 0, 1.0,
                    LBFGS(), "why", None)  # fmt: skip
    assert Training.of(result, Model()).certificate.primal == 1.0
    assert Training.of(result, Model()).reason == "why"
    kept = Training.of(None, Model())
    assert (kept.certificate.primal, kept.status, kept.tol, kept.solver) == (2.0, Status.STALLED, 0.5, None)
    assert Training.of(None, object()).certificate is None
