"""Text models of CRF++ against a small scorer of their own format, by enumeration of all labellings."""

import re
from itertools import pairwise, product

import numpy as np
import pytest

import m3n
from m3n.compat import ImportedModelError, convert
from m3n.compat.crfpp import load_text_model
from m3n.io import Sentences

LABELS = ["B-NP", "I-NP", "O"]
UNIGRAMS = ["U00:%x[-1,0]", "U01:%x[0,0]", "U02:%x[-2,0]/%x[0,0]/%x[1,1]", "U03:%x[0,0]%x[0,1]", "U04"]
UNIGRAMS += ["U:%x[0,1]", "U:%x[1,1]"]  # which share their attributes
WORDS = ["the", "dog", "1/2", "2", "1", "日本", "a:b", "2/1"]
TAGS = ["D", "N", "1/N"]


def spelled(pattern, sentence, t):
    """The attribute that a template makes of a token, as CRF++ spells it."""

    def value(match):
        row, column = t + int(match[1]), int(match[2])
        if row < 0:
            return f"_B{row}"
        return sentence[row][column] if row < len(sentence) else f"_B+{row - len(sentence) + 1}"

    return re.sub(r"%x\[(-?\d+),(\d+)\]", value, pattern)


def draw(random, n, length=3):
    return [
        [(str(random.choice(WORDS)), str(random.choice(TAGS))) for _ in range(random.integers(1, length + 1))]
        for _ in range(n)
    ]


class Model:
    """A model with random weights for the attributes of some sentences, and its scores."""

    def __init__(self, random, templates, sentences, factor=1.0, zeros=0.0):
        self.templates, self.factor = templates, factor
        found = sorted({spelled(p, s, t) for s in sentences for t in range(len(s)) for p in templates})
        sizes = [len(LABELS) ** (2 if text.startswith("B") else 1) for text in found]
        self.ids = dict(zip(found, np.cumsum([0, *sizes[:-1]]).tolist(), strict=True))
        self.weights = random.normal(size=sum(sizes)) * (random.random(sum(sizes)) >= zeros)

    def text(self):
        parts = [
            ["version: 100", f"cost-factor: {self.factor:g}", f"maxid: {len(self.weights)}", "xsize: 2"],
            LABELS,
            self.templates,
            [f"{begin} {text}" for text, begin in self.ids.items()],
            [f"{weight:.16f}" for weight in self.weights],
        ]
        return "\n".join("".join(f"{line}\n" for line in part) for part in parts)

    def score(self, sentence, labelling):
        """The sum of all weights that a labelling meets: id + y, and id + L y' + y for templates of pairs."""
        total, size = 0.0, len(LABELS)
        for pattern in self.templates:
            begins = [self.ids.get(spelled(pattern, sentence, t)) for t in range(len(sentence))]
            if pattern.startswith("U"):
                total += sum(self.weights[b + y] for b, y in zip(begins, labelling, strict=True) if b is not None)
            else:
                pairs = zip(begins[1:], pairwise(labelling), strict=True)
                total += sum(self.weights[b + size * before + y] for b, (before, y) in pairs if b is not None)
        return self.factor * total

    def marginals(self, sentence):
        """Best labelling and probabilities, from all labellings."""
        labellings = np.array(list(product(range(len(LABELS)), repeat=len(sentence))))
        scores = np.array([self.score(sentence, labelling) for labelling in labellings.tolist()])
        share = np.exp(scores - scores.max()) / np.exp(scores - scores.max()).sum()
        each = [[share[labellings[:, t] == y].sum() for y in range(len(LABELS))] for t in range(len(sentence))]
        return [LABELS[y] for y in labellings[np.argmax(scores)]], each


def check(ours, model, sentences):
    assert ours.classes_.tolist() == LABELS
    found = ours.predict(sentences), ours.predict_marginals(sentences)
    for sentence, labels, marginals in zip(sentences, *found, strict=True):
        best, expected = model.marginals(sentence)
        assert labels == best
        np.testing.assert_allclose(marginals, expected, atol=1e-9)


CASES = {
    "plain": {"templates": [*UNIGRAMS, "B"]},
    "no transitions": {"templates": UNIGRAMS},
    "cost factor": {"templates": ["U00:%x[0,0]", "B"], "factor": 0.5},
    "the same template twice": {"templates": ["U00:%x[0,0]", "U00:%x[0,0]", "B", "B01"]},
    "pairs": {"templates": [*UNIGRAMS, "B", "B01:%x[0,0]", "B02:%x[-1,1]/%x[0,0]", "B03:%x[1,0]"]},
    "pairs, no transitions": {"templates": ["U00:%x[0,0]", "B01:%x[0,0]", "B01:%x[0,0]", "B00x:"], "factor": 2.0},
    "pairs, mostly zeros": {"templates": ["U00:%x[0,0]", "B", "B01:%x[0,0]"], "zeros": 0.9},
    "pairs of any name": {"templates": ["U00:%x[0,0]", "B%x[0,0]", "Bx%x[-1,0]", "B-1:%x[0,1]", "Bias"]},
    "mostly zeros": {"templates": [*UNIGRAMS, "B"], "zeros": 0.9},
}


@pytest.mark.parametrize("case", CASES)
def test_predicts_what_crfpp_predicts(case, random, tmp_path):
    path = tmp_path / "model.txt"
    model = Model(random, sentences=draw(random, 12), **CASES[case])
    path.write_text(model.text(), encoding="utf-8")
    new = draw(random, 8)
    ours = convert(path)
    check(ours, model, new)
    ours.save(tmp_path / "model.m3n")
    again = m3n.load(tmp_path / "model.m3n")
    check(again, model, new)
    assert again.certificate_ is None
    assert again.predict(Sentences.of(new)) == ours.predict(new)


def test_zeros_make_a_sparse_model(random, tmp_path):
    for zeros, sparse in ((0.0, False), (0.9, True)):
        path = tmp_path / "model.txt"
        path.write_text(Model(random, ["U00:%x[0,0]", "B"], draw(random, 20), zeros=zeros).text(), encoding="utf-8")
        assert load_text_model(path).observed_only is sparse


def test_texts_that_can_be_read_in_two_ways(tmp_path):
    """ "1/2/1" is 1 before 2/1, and 1/2 before 1; CRF++ does not tell them apart."""
    model = Model(np.random.default_rng(0), ["U00:%x[-1,0]/%x[0,0]"], [[("1", "D"), ("2/1", "N")]])
    (tmp_path / "model.txt").write_text(model.text())
    new = [[("1", "D"), ("2/1", "N")], [("1/2", "D"), ("1", "N")]]
    ours = load_text_model(tmp_path / "model.txt")
    check(ours, model, new)
    first, second = ours.predict_marginals(new)
    np.testing.assert_allclose(first[1], second[1])
    assert abs(first[1] - 1 / 3).max() > 0.01


TEXT = """version: 100
cost-factor: 1
maxid: 8
xsize: 1

N
V

U00:%x[0,0]
B

0 B
4 U00:dog
6 U00:barks

0.1
0.2
0.3
0.4
0.5
0.6
0.7
0.8
"""


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("cost-factor: 1", "cost: 1", r"line 2: expected 'cost-factor: number', found 'cost: 1'"),
        ("maxid: 8", "maxid: many", r"line 3: expected 'maxid: number'"),
        ("maxid: 8", "maxid: 9", r"line 23: there are 8 weights, not 9"),
        ("4 U00:dog", "four U00:dog", r"line 13: expected 'number attribute', found 'four U00:dog'"),
        ("4 U00:dog", "7 U00:dog", r"line 13: 'U00:dog' has no weights"),
        ("xsize: 1", "xsize: inf", r"line 4: expected 'xsize: number', found 'xsize: inf'"),
        ("N\nV", "N\nN", r"line 6: a label comes twice"),
        ("0.7\n", "heavy\n", r"line 22: expected a weight, found 'heavy'"),
        ("0.7\n", "nan\n", r"line 22: expected a weight, found 'nan'"),
        ("0.8\n", "0.8", r"line 23: the file ends in the part with the weights"),
        (TEXT[TEXT.index("4 U00:dog") :], "", r"line 13: the file ends in the part with the attributes"),
        ("U00:%x[0,0]", "U00:%y[0,0]", r"line 9: template 'U00:%y\[0,0\]' has a macro that is not"),
        ("U00:%x[0,0]\n", "", r"line 9: there must be at least one template"),
    ],
)
def test_errors_name_file_and_line(before, after, message, tmp_path):
    (tmp_path / "model.txt").write_text(TEXT)
    assert convert(tmp_path / "model.txt").predict([[("dog",), ("barks",)]]) == [["V", "V"]]
    (tmp_path / "model.txt").write_text(TEXT.replace(before, after))
    with pytest.raises(ImportedModelError, match=f"model.txt, {message}"):
        convert(tmp_path / "model.txt")


def test_other_files(tmp_path):
    (tmp_path / "model").write_bytes(b"\x64\x00\x00\x00")
    with pytest.raises(ImportedModelError, match=r"model is not a model that can be converted; .*crf_learn -t"):
        convert(tmp_path / "model")
    with pytest.raises(FileNotFoundError, match="there is no model file"):
        convert(tmp_path / "missing")
