"""Files for other programmes, read by CRFsuite's own wrappers and by our readers, and compared with expectations."""

import re

import numpy as np
import pytest

import m3n
from m3n.compat import ExportError, Tagger, convert, export
from m3n.compat.crfsuite import Weights, load_dump, parse_binary
from m3n.compat.crfsuite_writer import hashes, model_bytes, size_of
from m3n.compat.sklearn_crfsuite import CRF
from m3n.features import Templates
from tests.compat.sentences import sentences

pycrfsuite = pytest.importorskip("pycrfsuite")
original = pytest.importorskip("sklearn_crfsuite")


@pytest.fixture(scope="module")
def crf():
    return CRF(c2=0.2).fit(*sentences(np.random.default_rng(0), 30))


@pytest.fixture(scope="module")
def new():
    return sentences(np.random.default_rng(1), 20)[0]


@pytest.fixture(scope="module")
def columns():
    """Tokens in columns, and labels, drawn at random."""
    random = np.random.default_rng(0)
    drawn = [
        [(str(random.choice(["the", "dog", "a/b", "日本"])), str(random.choice(["D", "N"]))) for _ in range(n)]
        for n in random.integers(1, 6, size=30)
    ]
    return drawn, [[("B" if tag == "D" else "O") if k % 2 else "I" for k, (_, tag) in enumerate(s)] for s in drawn]


def test_theirs_reads_ours(crf, new, tmp_path):
    """python-crfsuite and sklearn-crfsuite predict what we predict, marginals and all."""
    path = tmp_path / "model.crfsuite"
    export(crf, path)
    tagger = pycrfsuite.Tagger()
    tagger.open(str(path))
    assert tagger.labels() == crf.classes_
    for xseq, labels, marginals in zip(new, crf.predict(new), crf.predict_marginals(new), strict=True):
        assert tagger.tag(xseq) == labels
        found = [{label: tagger.marginal(label, t) for label in tagger.labels()} for t in range(len(xseq))]
        for one, other in zip(found, marginals, strict=True):
            assert one == pytest.approx(other, abs=1e-9)
    theirs = original.CRF(model_filename=str(path))
    assert [list(labels) for labels in theirs.predict(new)] == crf.predict(new).tolist()
    assert theirs.state_features_ == pytest.approx(crf.state_features_, abs=1e-6)
    assert theirs.transition_features_ == pytest.approx(crf.transition_features_, abs=1e-6)
    assert theirs.size_ == crf.size_ == path.stat().st_size


@pytest.mark.parametrize("format", ["crfsuite", "dump"])
def test_there_and_back(format, crf, new, tmp_path):
    export(crf.model_, tmp_path / "model", format)
    again, accuracy = convert(tmp_path / "model"), 1e-12 if format == "crfsuite" else 1e-6
    assert again.predict(new) == crf.predict(new).tolist()
    np.testing.assert_allclose(again.transitions_, crf.model_.transitions_, atol=accuracy)
    assert Tagger(again).info().state_features == pytest.approx(crf.state_features_, abs=accuracy)


def test_a_file_of_theirs_comes_back_as_it_was(tmp_path):
    """Byte by byte: both place everything alike, down to the hash tables, with names of all lengths."""
    random = np.random.default_rng(0)
    trainer = pycrfsuite.Trainer(verbose=False)
    for k in range(40):
        names = [f"{'é' * (k % 5)}{'x' * int(n)}:{n}" for n in random.integers(40, size=6)]
        trainer.append([[name, str(k % 7)] for name in names], [str(n) for n in random.integers(9, size=6)])
    trainer.train(str(tmp_path / "model"))
    content = (tmp_path / "model").read_bytes()
    weights = parse_binary(content, "model")
    assert len(weights.attributes) > 50 and size_of(weights) == len(content)
    assert model_bytes(weights) == content


@pytest.mark.parametrize(
    ("text", "value"),
    [  # from the comments in lookup3.c, for one seed; the others by the definition below
        (b"", 0xDEADBEEF),
        (b"Four score and seven years ago", 0x17770551),
    ],
)
def test_the_definition_of_the_hash(text, value):
    assert lookup3(text) == value


def lookup3(text, seed=0):
    """Bob Jenkins's hashlittle, byte by byte."""
    mask = 0xFFFFFFFF
    a = b = c = (0xDEADBEEF + len(text) + seed) & mask
    if not text:
        return c

    def rot(x, k):
        return ((x << k) | (x >> (32 - k))) & mask

    blocks = [text[k : k + 12].ljust(12, b"\0") for k in range(0, len(text), 12)]
    for k, block in enumerate(blocks):
        a, b, c = ((x + int.from_bytes(block[4 * j : 4 * j + 4], "little")) & mask for j, x in enumerate((a, b, c)))
        if k < len(blocks) - 1:
            for shift in ((4, 6, 8), (16, 19, 4)):
                a, c = (a - c) & mask ^ rot(c, shift[0]), (c + b) & mask
                b, a = (b - a) & mask ^ rot(a, shift[1]), (a + c) & mask
                c, b = (c - b) & mask ^ rot(b, shift[2]), (b + a) & mask
    for name, by in zip("cabcabc", (14, 11, 25, 16, 4, 14, 24), strict=True):
        if name == "c":
            c = ((c ^ b) - rot(b, by)) & mask
        elif name == "a":
            a = ((a ^ c) - rot(c, by)) & mask
        else:
            b = ((b ^ a) - rot(a, by)) & mask
    return c


def test_hashes():
    random = np.random.default_rng(0)
    texts = [bytes(random.integers(256, size=n).tolist()) for n in [*range(1, 40), 100, 12, 24, 36]]
    assert hashes(texts).tolist() == [lookup3(text) for text in texts]


@pytest.mark.parametrize("labels", [1, 3])
def test_small_and_large_models(labels, tmp_path):
    """No weights, one label, thousands of names that share hash tables."""
    names = [f"w:{k}" for k in range(3000)] + ["日本", "x" * 500, "tab\there", "line\nend", ""]
    for attributes in ([], names):
        states = [(k, k % labels, 0.5 + k) for k in range(len(attributes))]
        weights = Weights([f"L{k}" for k in range(labels)], attributes, states, [(0, labels - 1, -1.0)])
        content = model_bytes(weights)
        assert len(content) == size_of(weights)
        assert parse_binary(content, "model") == weights
        (tmp_path / "model").write_bytes(content)
        tagger = pycrfsuite.Tagger()
        tagger.open(str(tmp_path / "model"))
        tokens = [[name] for name in names]
        assert tagger.labels() == weights.labels
        assert tagger.tag(tokens) == Tagger(weights.tagger()).tag(tokens)


def test_names_that_cannot_be_written():
    for name, message in (("a\0b", "has a character 0"), ("\ud800", "cannot be written as UTF-8")):
        with pytest.raises(ExportError, match=message):
            model_bytes(Weights(["N"], [name], [(0, 0, 1.0)], []))


def test_taggers_that_crfsuite_has_a_place_for(new, tmp_path):
    """A max-margin model of lists of strings, without scores for the ends."""
    X = [[["w=the"], ["w=dog", "s=og"]], [["w=dog"], ["w=the"]]]
    tagger = m3n.SequenceTagger(boundaries=False, tol=1e-3).fit(X, [["D", "N"], ["N", "D"]])
    export(tagger, tmp_path / "model.crfsuite")
    theirs = pycrfsuite.Tagger()
    theirs.open(str(tmp_path / "model.crfsuite"))
    assert [theirs.tag(xseq) for xseq in X] == tagger.predict(X)
    export(tagger, tmp_path / "model.txt")
    assert load_dump(tmp_path / "model.txt").predict(X) == tagger.predict(X)


X = [[{"w": "a"}, {"w": "b"}], [{"w": "b"}]]
Y = [["N", "V"], ["V"]]


@pytest.mark.parametrize(
    ("fit", "message"),
    [
        (lambda: m3n.SequenceTagger(tol=0.1).fit(X, Y), "scores of the first or last label .*boundaries=False"),
        (lambda: m3n.SequenceTagger(tol=0.1, boundaries=False).fit([np.eye(2)], [["N", "V"]]), "without names"),
        (lambda: m3n.SequenceTagger(tol=0.1, boundaries=False).fit(X, [[0, 1], [1]]), "labels that are no texts"),
        (lambda: m3n.SequenceTagger(tol=0.1, boundaries=False, constraints="observed").fit(X, Y), "constraints"),
        (lambda: m3n.SequenceTagger(tol=0.1, boundaries=False).fit([[{"a": "b", "a:b": 1.0}]], [["N"]]), "same text"),
        (lambda: m3n.MultilabelClassifier(tol=0.1).fit(np.eye(2), [[0, 1], [1, 0]]), "this is a MultilabelClassifier"),
        (lambda: "model.crfsuite", "this is a str"),
    ],
)
def test_models_without_a_place_are_refused(fit, message, tmp_path):
    with pytest.raises(ExportError, match=message):
        export(fit(), tmp_path / "model.crfsuite")
    assert not list(tmp_path.iterdir())


def test_other_mistakes(crf, tmp_path):
    with pytest.raises(ValueError, match="unknown format 'xml'; choose one of"):
        export(crf, tmp_path / "model.txt", "xml")
    with pytest.raises(ValueError, match=r"model.bin' does not say which format"):
        export(crf, tmp_path / "model.bin")
    with pytest.raises(ExportError, match="this is a CRF"):
        export(CRF(), tmp_path / "model.crfsuite")
    with pytest.raises(ValueError, match="not fitted"):
        export(m3n.SequenceTagger(), tmp_path / "model.crfsuite")
    with pytest.raises(ExportError, match=r"no templates, for which CRF\+\+ has no place"):
        export(crf, tmp_path / "model", "crfpp")


UNIGRAMS = ["U00:%x[-1,0]", "U01:%x[0,0]/%x[1,1]"]


@pytest.mark.parametrize("boundaries", [False, True])
@pytest.mark.parametrize("observed", [False, True])
@pytest.mark.parametrize("bigrams", [[], ["B", "B01:%x[0,0]"]], ids=["no pairs", "pairs"])
def test_text_models_of_crfpp(bigrams, observed, boundaries, columns, tmp_path):
    templates = Templates("\n".join([*UNIGRAMS, *bigrams]))
    tagger = m3n.SequenceTagger(
        objective="crf", tol=0.05, templates=templates, boundaries=boundaries, observed_only=observed
    )
    tagger.fit(*columns)
    export(tagger, tmp_path / "model.txt")
    again = convert(tmp_path / "model.txt")
    others = [[("the", "N"), ("cat", "D"), ("dog", "D")], [("dog", "N")]]
    assert again.predict(columns[0] + others) == tagger.predict(columns[0] + others)
    for one, other in zip(again.predict_marginals(others), tagger.predict_marginals(others), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-9)


def test_what_stands_in_a_text_model(tmp_path):
    """Worked out by hand from CRF++'s description of the format: id + y, and id + L y' + y."""
    tagger = m3n.SequenceTagger(templates=Templates("U:%x[0,0]"), boundaries=False, tol=0.1)
    tagger.fit([[("the",), ("dog",)]], [["D", "N"]])
    tagger.coef_[:] = [[1.0, 2.0], [3.0, 4.0]]
    tagger.transitions_[:] = [[0.1, 0.2], [0.3, 0.4]]
    export(tagger, tmp_path / "model.txt")
    words = [name.removeprefix("U:") for name in tagger.reader_.vectorizer.names]
    assert sorted(words) == ["dog", "the"]
    assert (tmp_path / "model.txt").read_text().split("\n\n") == [
        "version: 100\ncost-factor: 1\nmaxid: 8\nxsize: 1",
        "D\nN",
        "U:%x[0,0]\nB",
        f"0 B\n4 U:{words[0]}\n6 U:{words[1]}",
        "0.1\n0.2\n0.3\n0.4\n1.0\n2.0\n3.0\n4.0\n",
    ]


@pytest.mark.parametrize(
    ("template", "tokens", "labels", "message"),
    [
        ("U:%x[0,0:suffix3]", [("a",), ("b",)], ["N", "V"], "asks for the form 'suffix3' of column 0; CRF++"),
        ("U:%x[0,0]", [("a b",), ("b",)], ["N", "V"], "is empty or has a space"),
        ("U:%x[0,0]", [("a",), ("b",)], ["N P", "V"], "the label 'N P' is empty or has a space"),
        ("U:%x[0,0]\nU:%x[-1,0]", [("a",), ("a",), ("b",)], ["N", "V", "V"], "two attributes with different weights"),
    ],
)
def test_templates_without_a_place_are_refused(template, tokens, labels, message, tmp_path):
    tagger = m3n.SequenceTagger(templates=Templates(template), boundaries=False, tol=0.1).fit([tokens], [labels])
    with pytest.raises(ExportError, match=re.escape(message)):
        export(tagger, tmp_path / "model.txt")
