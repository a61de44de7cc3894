"""The whole page: its structure, and every kind of model on a tiny fit."""

import re
import subprocess
import sys
import warnings
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import m3n
from m3n import Certificate
from m3n.reports import Report
from m3n.reports.markup import number
from tests.reports.pages import Page, fixed

ROOT = Path(__file__).parents[2]
EVIL = "</td><script>window.pwned = 1</script><img src=x onerror='window.pwned = 1'>\" onclick=\"window.pwned = 1"
WORDS = [[["w=the"], ["w=dog"], ["w=barks"]], [["w=dogs"], ["w=bark"]], [["w=a"], ["w=cat"], ["w=sleeps"]]]
TAGS = [["B-NP", "I-NP", "B-VP"], ["B-NP", "B-VP"], ["B-NP", "I-NP", "B-VP"]]


def checked(page):
    """The structure that every page must have."""
    read = Page(page.html)
    names = [e["attributes"]["id"] for e in read.elements if "id" in e["attributes"]]
    assert len(names) == len(set(names))
    for link in read.all("a"):
        assert link["attributes"]["href"][1:] in names
    for section in read.all("section"):
        assert section["attributes"]["aria-labelledby"] in names
    for svg in read.all("svg"):
        assert svg["attributes"].get("aria-label") or svg["attributes"].get("aria-hidden") == "true"
    assert not read.all("img")
    assert not re.search(r"https?://", page.html)
    for element in ("header", "nav", "main", "footer", "h1", "title", "script", "style"):
        assert len(read.all(element)) == 1, element
    assert len(read.all("h2")) == len(read.all("section")) == 7
    assert not any(
        "style" in e["attributes"] or any(k.startswith("on") for k in e["attributes"]) for e in read.elements
    )
    levels = [int(e["tag"][1]) for e in read.elements if re.fullmatch("h[1-6]", e["tag"])]
    assert levels[0] == 1 and all(later - earlier <= 1 for earlier, later in pairwise(levels))
    return read


def test_a_tagger():
    model = m3n.SequenceTagger(n_jobs=1).fit(WORDS, TAGS)
    page = m3n.report(None, model, WORDS, TAGS, title="A <tagger>")
    read = checked(page)
    assert read.texts("h1") == ["A <tagger>"] == read.texts("title")
    assert f"certified gap of {number(model.certificate_.gap)}" in read.texts("p", "lead")[0]
    assert "Chunks by kind" in read.texts("h3")
    assert "w=the" in read.texts("code")
    assert "Right, but close calls" in read.texts("h3")
    assert repr(page).startswith("Report('A <tagger>', ")


def test_a_result_of_minimize_is_told_instead_of_the_fit():
    X = [np.eye(3)[[0, 1, 2]], np.eye(3)[[2, 1]]]
    y = [[0, 1, 2], [2, 1]]
    model = m3n.SequenceTagger(n_jobs=1, tol=0.5).fit(X, y)
    features = m3n.features.chain_features(m3n.features.Dense(np.concatenate(X), 3), 3)
    problem = m3n.Problem(m3n.structures.Chain([3, 2], 3), features, y, loss=m3n.losses.Hamming(), n_jobs=1)
    result = m3n.minimize(problem, m3n.solvers.ExcessiveGap(), tol=1e-4)
    read = checked(m3n.report(result, model, X, y))
    assert f"certified gap of {number(result.certificate.gap)}" in read.texts("p", "lead")[0]
    assert any("ExcessiveGap" in code for code in read.texts("code"))
    assert "have no names" in " ".join(read.texts("p", "note"))


def test_segments():
    segments = [[(0, 2, "NP"), (2, 3, "VP")], [(0, 1, "NP"), (1, 2, "VP")], [(0, 2, "NP"), (2, 3, "VP")]]
    model = m3n.SegmentTagger(n_jobs=1, lam=0.01).fit(WORDS, segments)
    both = [checked(m3n.report(None, model, WORDS, y)) for y in (segments, TAGS)]
    for read in both:
        assert read.texts("strong")[2:5] == both[0].texts("strong")[2:5]
        assert "Chunks by kind" in read.texts("h3")


def test_graphs_with_a_relaxed_certificate():
    picture = np.array([[0.0, 0.1, 0.9], [0.2, 0.0, 1.0], [0.1, 0.8, 0.9]])
    X, y = [m3n.grid_graph(picture)], [(picture > 0.5).astype(int)]
    model = m3n.GraphLabeler(lam=0.01, tol=0.1, n_jobs=1, inference="relaxed").fit(X, y)
    assert model.certificate_.relaxed
    read = checked(m3n.report(None, model, X, y))
    assert "lower the relaxed objective" in read.texts("p", "lead")[0]
    assert any("relaxed problem" in text for text in read.texts("p"))
    assert "of 9 nodes are right" in " ".join(read.texts("span"))
    assert len(read.all("table", "heat")) == 2  # confusion and pairs of labels


def test_sets_of_labels():
    X, Y = np.eye(3)[[0, 1, 2, 0]], [{"x"}, {"y"}, {"x", "y"}, set()]
    model = m3n.MultilabelClassifier(n_jobs=1, lam=0.1).fit(X, Y)
    read = checked(m3n.report(None, model, X, Y))
    notes = " ".join(read.texts("p", "note"))
    assert "on or off" in notes and "no scores for pairs" in notes and "have no names" in notes
    predicted = model.predict_sets(X)
    share = np.mean([a == b for a, b in zip(predicted, Y, strict=True)])
    assert f"{100 * share:.1f}\u202f%of examples" in "".join(read.texts("ul", "tiles")).replace("% ", "%")


def test_a_model_that_was_saved_and_loaded(tmp_path):
    model = m3n.SequenceTagger(n_jobs=1).fit(WORDS, TAGS)
    model.save(tmp_path / "model.m3n")
    read = checked(m3n.report(None, m3n.load(tmp_path / "model.m3n"), WORDS, TAGS))
    assert "tolerance reached" in read.texts("td")


@pytest.mark.parametrize(
    "model",
    [
        fixed([["A"]], trace=[]),
        fixed([["A"]], certificate_=None),
        fixed([["A"]], certificate_=Certificate(np.inf, 0.0)),
        fixed([]),
        fixed([[]]),
    ],
)
def test_little_to_tell(model):
    checked(m3n.report(None, model, [["word"]] if model.answers == [["A"]] else model.answers, model.answers))


def test_huge_label_sets_make_a_page_of_bounded_size():
    labels = [f"L{k}" for k in range(800)]
    model = fixed([labels], transitions_=np.zeros((800, 800)))
    page = m3n.report(None, model, [labels], [labels[::-1]])
    assert len(page.html) < 600_000
    assert len(checked(page).all("table", "heat")[0]["text"]) < 5000


def test_every_text_is_escaped():
    model = fixed([[EVIL]], classes=[EVIL], transitions_=np.ones((1, 1)))
    page = m3n.report(None, model, [[(EVIL,)]], [["other " + EVIL]], title=EVIL)
    read = checked(page)
    assert len(read.all("script")) == 1
    assert read.texts("h1") == [EVIL]
    assert not any("onclick" in e["attributes"] for e in read.elements)
    frame = Page(page._repr_html_())
    assert [e["tag"] for e in frame.elements] == ["iframe"]
    assert frame.elements[0]["attributes"]["srcdoc"] == page.html


def test_save_is_atomic_and_refuses_what_cannot_be_written(tmp_path):
    page = Report("t", "<p>\N{SNOWMAN}</p>")
    page.save(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == page.html
    assert [file.name for file in tmp_path.iterdir()] == ["page.html"]
    with pytest.raises(FileNotFoundError, match="does not exist"):
        page.save(tmp_path / "missing" / "page.html")


def test_mistakes_are_named():
    model = fixed([["A"]])
    with pytest.raises(TypeError, match=r"write m3n.report\(None, model, X, y\)"):
        m3n.report(model, [["a"]], [["A"]], None)
    with pytest.raises(TypeError, match="that can predict, got str"):
        m3n.report(None, "model", [["a"]], [["A"]])


def test_the_page_comes_without_slow_imports():
    code = (
        "import sys, m3n; from tests.reports.pages import fixed\n"
        "m3n.report(None, fixed([['A', 'B']]), [['a', 'b']], [['A', 'A']])\n"
        "print([name for name in ('matplotlib', 'sklearn', 'rich', 'pandas') if name in sys.modules])"
    )
    assert (
        subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout
        == "[]\n"
    )


def test_real_chunks(data_folder):
    """The scores of a real report are those of the model."""
    train, test = (
        m3n.io.read_columns(data_folder / "conll2000" / f"{part}.txt.gz")[:300] for part in ("train", "test")
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = m3n.SequenceTagger(templates=m3n.features.CHUNKING, max_passes=3).fit(train, train.labels)
    page = m3n.report(None, model, test, test.labels)
    read = checked(page)
    assert read.texts("p", "lead")[0].startswith("Training stopped early, at the limit of passes")
    assert f"{100 * model.score(test, test.labels):.1f}\u202f%" in read.texts("strong")
    assert len(page.html) < 400_000
