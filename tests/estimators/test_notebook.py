"""HTML for notebooks: well formed, escaped, complete in itself, and true."""

from html.parser import HTMLParser

import numpy as np
import pytest

import m3n
from m3n.estimators.notebook import certificate_in_words
from m3n.features import Templates

NASTY = "<script>alert('x')</script>&\""


class Reader(HTMLParser):
    """Checks that tags are closed in order, and keeps texts and tags."""

    def __init__(self, page):
        super().__init__()
        self.open, self.tags, self.texts = [], set(), []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.tags.add(tag)
        assert {name for name, _ in attrs} <= {"class", "scope"}  # nothing is loaded, nothing is run

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open[-1:] != ["style"]:
            self.texts.append(data)

    @property
    def text(self):
        return " ".join(self.texts)


def model(word=NASTY, label="N"):
    templates = Templates([f"{word}=%x[0,0]"])
    return m3n.SequenceTagger(n_jobs=1, templates=templates).fit([[(word,), ("b",)], [("b",)]], [[label, "O"], ["O"]])


def test_a_fitted_model():
    fitted = model()
    read = Reader(fitted._repr_html_())
    assert "script" not in read.tags
    assert {"table", "details", "summary"} <= read.tags
    assert "SequenceTagger, fitted" in read.text
    assert f"{NASTY}={NASTY} +" in read.text  # a weight with its sign
    assert f"{NASTY}={NASTY} −" in read.text
    assert f"{fitted.certificate_.primal:.6g}" in read.text
    assert f"{fitted.certificate_.gap:.2g} away from the best" in read.text
    assert "n_jobs" in read.text
    assert "max_passes" not in read.text  # is at its default


def test_labels_are_escaped():
    read = Reader(model("a", NASTY)._repr_html_())
    assert NASTY in read.text


def test_before_a_fit():
    read = Reader(m3n.SequenceTagger(lam=0.25, objective="crf")._repr_html_())
    assert "SequenceTagger, not fitted" in read.text
    assert "0.25" in read.text
    assert "'crf'" in read.text
    assert "all parameters have their defaults" in Reader(m3n.GraphLabeler()._repr_html_()).text
    assert repr(m3n.SequenceTagger(lam=0.25)) == "SequenceTagger(lam=0.25)"


def test_many_labels_are_cut():
    labels = [f"L{k:02d}" for k in range(40)]
    fitted = m3n.SequenceTagger(n_jobs=1, max_passes=2, tol=1e9).fit([np.eye(40)], [labels])
    read = Reader(fitted._repr_html_())
    assert "40 labels" in read.text
    assert "L29, ..." in read.text
    assert "L30" not in read.text
    assert "and 10 further labels" in read.text


def test_an_explanation():
    explanation = model().explain([(NASTY,), ("b",)])
    read = Reader(explanation._repr_html_())
    assert "script" not in read.tags
    assert "All contributions" in read.text
    first = explanation.positions[0]
    assert f"0 {NASTY}" in read.text
    for reason in first.reasons(3):
        sign = "+" if reason.difference > 0 else "−"
        size = explanation.signed(abs(reason.difference)).lstrip("+")
        assert f"{reason.title} {sign}{size}" in read.text
    assert "with the next position" in read.text
    assert "-0" not in "".join(text for text in read.texts if text[:1] in "+-−")  # one kind of minus sign


@pytest.mark.parametrize("relaxed", [False, True])
def test_the_certificate_in_words(relaxed):
    facts = {"certificate": {"primal": 2.0, "dual": 1.5, "gap": 0.5, "relaxed": relaxed}, "status": "pass limit"}
    words = certificate_in_words(facts)
    assert ("relaxed objective" in words) == relaxed
    assert "is 2, and no weights can have one below 1.5: they are at most 0.5 away from the best." in words
    assert words.endswith("Training stopped: pass limit.")
