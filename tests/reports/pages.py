"""Reading pages back: a strict parser, and models without any training."""

from html.parser import HTMLParser

import numpy as np

from m3n import Certificate, Record, Status

VOID = {"br", "col", "input", "link", "meta"}


class Page(HTMLParser):
    """Elements of a page with their attributes and texts; end tags must fit."""

    def __init__(self, html):
        super().__init__(convert_charrefs=True)
        self.open, self.elements = [], []
        self.feed(html)
        self.close()
        assert self.open == [], f"not closed: {[element['tag'] for element in self.open]}"

    def handle_starttag(self, tag, attributes):
        assert len(attributes) == len(dict(attributes)), f"{tag} has an attribute twice"
        element = {"tag": tag, "attributes": dict(attributes), "text": "", "inside": [e["tag"] for e in self.open]}
        self.elements.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_endtag(self, tag):
        assert self.open and self.open[-1]["tag"] == tag, f"</{tag}> closes {self.open[-1:]}"
        self.open.pop()

    def handle_data(self, data):
        for element in self.open:
            element["text"] += data

    def all(self, tag, class_=None):
        found = [element for element in self.elements if element["tag"] == tag]
        return [e for e in found if class_ is None or class_ in (e["attributes"].get("class") or "").split()]

    def texts(self, tag, class_=None):
        return [element["text"] for element in self.all(tag, class_)]


def records(many=12, tol=1e-3):
    """A run whose gap is one over its passes."""
    return [Record(k, 0.1 * k, 0, 10 * k, 1.0 + 1 / k, 1.0 if k > 1 else 0.0, 1 / k) for k in range(1, many + 1)]


class Fixed:
    """A tagger that has learnt its answers by heart."""

    def __init__(self, answers=(), tol=0.2):
        self.answers = answers
        self.tol = tol

    def predict(self, X):
        return [list(labels) for labels in self.answers]

    def get_params(self, deep=True):
        return {"answers": self.answers, "tol": self.tol}


def fixed(answers, classes=None, trace=None, **more):
    """A model that gives these answers, with a certificate."""
    model = Fixed(answers)
    found = {label for labels in answers for label in labels} if classes is None else classes
    model.classes_ = np.array(sorted(found))
    model.trace_ = records() if trace is None else trace
    model.status_ = Status.TOLERANCE
    last = model.trace_[-1] if model.trace_ else Record(0, 0, 0, 0, 1.0, 0.9, 0.1)
    model.certificate_ = Certificate(last.primal, last.dual)
    for name, value in more.items():
        setattr(model, name, value)
    return model
