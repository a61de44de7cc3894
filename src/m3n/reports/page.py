"""The report: one HTML page that needs nothing else.

Style and script are part of the page, and a policy in its head forbids everything besides these two: no request leaves
the page, and no text of the data could be executed even if it became part of the page unescaped.
"""

from __future__ import annotations

import base64
import hashlib
import os
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np

from m3n.estimators.forms import ALIGNMENTS, form_of
from m3n.io.files import write_atomically
from m3n.reports import alignments
from m3n.reports.curves import convergence
from m3n.reports.examples import hardest
from m3n.reports.markup import Markup, count, joined, tag
from m3n.reports.quality import Outcome, confusions, predict, proven, scores, unseen
from m3n.reports.reliability import has_probabilities, probabilities
from m3n.reports.training import Training, explanation, settings, verdict, versions
from m3n.reports.trees import drawings
from m3n.reports.tuning import lam_path
from m3n.reports.weights import attributes, transitions
from m3n.run.loop import Result
from m3n.tuning import Tuning


@dataclass(frozen=True)
class Report:
    """A page about a trained model.

    Attributes
    ----------
    title : str
        Its title.
    html : str
        The whole page.
    """

    title: str
    html: str

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page to a file, in one step.

        Parameters
        ----------
        path : path
            Where to; any browser opens it, without a network.
        """
        write_atomically(path, self.html.encode())

    def __repr__(self) -> str:
        return f"Report({self.title!r}, {len(self.html.encode()) / 1024:.0f} KiB)"

    def _repr_html_(self) -> str:
        """The page within a notebook."""
        frame = 'sandbox="allow-scripts" width="100%" height="720" style="border: 1px solid #8888"'
        return f'<iframe title="{escape(self.title)}" srcdoc="{escape(self.html)}" {frame}></iframe>'


def report(
    result: Result | None,
    model: Any,
    X: Any,
    y: Any,
    *,
    title: str | None = None,
    scheme: str | None = None,
    tuning: Tuning | None = None,
) -> Report:
    """A page about a trained model, to look at and to send to others: one HTML file that opens without a network.

    It shows how training converged and what the certificate means, scores on the data that are given, which labels are
    taken for which, what the model has learnt, the hardest examples, and what is needed to make the same run again.
    What does not apply to a model is left out with a sentence.

    Parameters
    ----------
    result : Result or None
        The outcome of ``minimize``; None takes what the model has kept of its training.
    model : estimator
        A fitted one: a tagger, labeler, classifier, parser or aligner.
    X : inputs
        Examples as ``model.predict`` takes them, best such that were not in the training data.
    y : outputs
        The right labels, as ``model.fit`` takes them.
    title : str, optional
        Title of the page.
    scheme : {"conll", "iob1", "iob2", "bioes"}, optional
        How the labels write chunks, for the scores of chunks. By default, labels that look like chunks are counted as
        conlleval does.
    tuning : Tuning, optional
        The search that has chosen the model's settings (``m3n.tune``): scores along lam and what is proven about them.

    Returns
    -------
    Report
        ``html`` is the page, ``save(path)`` writes it; notebooks show it.

    Examples
    --------
    >>> import m3n
    >>> X = [[["word=the"], ["word=dog"]], [["word=dogs"], ["word=bark"]]]
    >>> y = [["D", "N"], ["N", "V"]]
    >>> page = m3n.report(None, m3n.SequenceTagger().fit(X, y), X, y, title="Parts of speech")
    >>> page.html.startswith("<!DOCTYPE html>")
    True
    """
    _check(result, model)
    training = Training.of(result, model)
    heading = title or f"{type(model).__name__}: report"
    about = _links(model, X, y) if form_of(model) is ALIGNMENTS else _labels(model, X, y, scheme)
    curves = joined([tag("p", words) for words in explanation(training)], convergence(training))
    sections = [
        Section("convergence", "Certificate and convergence", curves),
        *([] if tuning is None else [Section("lam", "Search for settings", lam_path(tuning))]),
        *about.sections,
        Section("settings", "Settings and versions", settings(result, model, training, about.amount)),
    ]
    return Report(heading, page(heading, verdict(training), sections))


def _check(result: Any, model: Any) -> None:
    """Refuse arguments in the wrong places."""
    if result is not None and not isinstance(result, Result):
        what = f"the first argument is the Result of m3n.minimize, or None, got {type(result).__name__}"
        raise TypeError(f"{what}; write m3n.report(None, model, X, y) for a model that was fitted")
    if not callable(getattr(model, "predict", None)):
        raise TypeError(f"a report needs a fitted model that can predict, got {type(model).__name__}")


@dataclass(frozen=True)
class Section:
    """A part of the page with a heading and a place in the list of contents."""

    name: str
    heading: str
    content: Markup


class About(NamedTuple):
    """What a report says about predictions, and how many data it speaks of."""

    amount: str
    sections: list[Section]


def _labels(model: Any, X: Any, y: Any, scheme: str | None) -> About:
    """Labels, and the trees above them."""
    outcome = predict(model, X, y)
    trees = [Section("trees", "Trees", drawings(model, X, y))] if form_of(model).trees else []
    true = probabilities(outcome, model, X) if has_probabilities(model) else None
    sections = [
        Section("scores", "Scores", joined(_given(outcome, model), scores(outcome, scheme), proven(model, X), true)),
        Section("confusion", "Confusion matrix", confusions(outcome)),
        Section("transitions", "Transitions between labels", transitions(model, outcome.gold)),
        Section("weights", "Weights of attributes", attributes(model, outcome.gold)),
        *trees,
        Section("examples", "Hardest examples", hardest(outcome, model, X)),
    ]
    return About(outcome.amount, sections)


def _links(model: Any, X: Any, y: Any) -> About:
    """Links between words."""
    if y is None:
        raise ValueError("y is missing: a report compares the right links with the predicted ones")
    found = model.predict(X)
    gold = ALIGNMENTS.given(y, len(found))
    weights = [Section("weights", "Weights of attributes", attributes(model, []))] if hasattr(model, "coef_") else []
    sections = [
        Section("scores", "Scores", joined(tag("p", _given_to(len(gold), "pair")), alignments.scores(gold, found))),
        *weights,
        Section("alignments", "Alignments", alignments.grids(model, X, gold, found)),
    ]
    return About(f"{count(len(gold), 'pair')}, {count(sum(len(a.links) for a in gold), 'link')}", sections)


def page(title: str, lead: str, sections: list[Section]) -> str:
    """The whole document.

    Parameters
    ----------
    title : str
        Heading of the page.
    lead : str
        The sentence below it.
    sections : list of Section
        Its parts.
    """
    style, script = _static("page.css"), _static("page.js")
    policy = f"default-src 'none'; img-src data:; style-src {_hash(style)}; script-src {_hash(script)}"
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("link", rel="icon", href="data:,"),
        tag("title", title),
        tag("style", Markup(style)),
    )
    made = f"Made by m3n {dict(versions())['m3n']} on {datetime.now(UTC):%Y-%m-%d %H:%M} UTC"
    links = [tag("li", tag("a", section.name.capitalize(), href=f"#{section.name}")) for section in sections]
    body = tag(
        "body",
        tag("a", "Skip to the report", href="#main", class_="skip"),
        tag("header", tag("p", "m3n report", class_="brand"), tag("h1", title), tag("p", lead, class_="lead")),
        tag("nav", tag("ul", links), aria_label="Contents"),
        tag("main", [_section(section) for section in sections], id="main"),
        tag("footer", tag("p", f"{made}. The page holds everything it needs and asks no server.")),
        tag("script", Markup(script)),
    )
    return f"<!DOCTYPE html>\n{tag('html', head, body, lang='en')}\n"


def _section(section: Section) -> Markup:
    name = f"{section.name}-heading"
    return tag("section", tag("h2", section.heading, id=name), section.content, id=section.name, aria_labelledby=name)


def _given(outcome: Outcome, model: Any) -> Markup:
    """Which data the scores speak of, as far as that is known."""
    strange = unseen(outcome, np.asarray(getattr(model, "classes_", [])).tolist())
    words = _given_to(len(outcome.gold), outcome.example)
    return joined(tag("p", words), tag("p", strange, class_="note") if strange else None)


def _given_to(many: int, example: str) -> str:
    words = f"On the {count(many, example)} given to this report"
    return words + ("; whether the model was trained on them is not known here." if many else ".")


def _static(name: str) -> str:
    return (files("m3n.reports") / "static" / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """How a page's policy names a style or a script that is part of it."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
