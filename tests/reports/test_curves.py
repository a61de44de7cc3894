import json
import math

import pytest

from m3n import Record
from m3n.reports.curves import BOTTOM, LEFT, MOST, RIGHT, TOP, convergence, thinned
from m3n.reports.training import Training
from tests.reports.pages import Page, records


def chart(trace, tol=None):
    return Page(convergence(Training(None, trace, None, None, "", tol)))


def data(page):
    return json.loads(page.all("div", "chart")[0]["attributes"]["data-records"])


def points(page, name, which=0):
    lines = page.all("polyline", name)
    return [tuple(map(float, pair.split(","))) for pair in lines[which]["attributes"]["points"].split()]


def test_lines_run_through_the_records():
    """gap = 1 / passes is a straight line from corner to corner on logarithmic paper."""
    page = chart(records(10))
    gap = points(page, "gap")
    assert len(gap) == 10
    assert (gap[0][0], gap[-1][0]) == (LEFT, RIGHT)
    assert gap[0][1] < gap[-1][1]  # downwards in a picture
    slopes = [(b[1] - gap[0][1]) / (b[0] - gap[0][0]) for b in gap[1:]]
    assert slopes == pytest.approx([slopes[-1]] * 9, rel=0.02)
    assert gap[4][0] == pytest.approx(LEFT + (RIGHT - LEFT) * math.log(5) / math.log(10), abs=0.1)
    assert all(TOP <= up <= BOTTOM for _, up in gap)


def test_every_panel_is_there_for_passes_and_for_seconds_and_says_what_it_shows():
    page = chart(records())
    pictures = [svg for svg in page.all("svg") if svg["attributes"].get("role") == "img"]
    assert [figure["attributes"]["data-along"] for figure in page.all("figure")] == ["passes", "seconds"] * 2
    assert len(pictures) == 4
    assert "At the end: primal 1.08, dual 1." in pictures[0]["attributes"]["aria-label"]
    assert "At the end: gap 0.0833" in pictures[3]["attributes"]["aria-label"]


def test_the_script_gets_texts_and_places_of_all_records():
    found = data(chart(records(5)))
    assert found["texts"][1] == ["2", "0.2", "1.5", "1", "0.5"]
    assert found["x"]["passes"][0] == LEFT and found["x"]["seconds"][-1] == RIGHT
    assert found["y"]["dual"][0] is None  # a lower bound of 0 has no logarithm
    assert all(TOP <= up <= BOTTOM for name in ("primal", "gap") for up in found["y"][name])


def test_the_last_record_is_shown_and_all_are_in_the_table():
    page = chart(records(4))
    assert [dd["text"] for dd in page.all("dd")] == ["4", "0.4", "1.25", "1", "0.25"]
    assert page.texts("td", "number")[-5:] == ["4", "0.4", "1.25", "1", "0.25"]
    slider = next(e for e in page.all("input") if e["attributes"]["type"] == "range")
    assert (slider["attributes"]["min"], slider["attributes"]["max"], slider["attributes"]["value"]) == ("0", "3", "3")


def test_an_empty_trace_is_said_to_be_empty():
    for trace in ([], [Record(1, 0.1, 0, 1, math.inf, 0.0, math.inf)]):
        page = chart(trace)
        assert not page.all("svg")
        assert "no record" in page.texts("p")[0]


@pytest.mark.parametrize(
    "record",
    [
        Record(1, 0.1, 0, 1, 2.0, 1.0, 1.0),
        Record(0, 0.1, 0, 0, 2.0, 0.0, 2.0),  # known without a pass
        Record(1, 0.1, 0, 1, 0.5, 0.5, 0.0),  # no gap at all
        Record(1, 0.1, 0, 1, 0.0, -1.0, 1.0),
        Record(1, 0.1, 0, 1, 1.0, -math.inf, math.inf),
    ],
)
def test_a_single_record_of_any_kind(record):
    page = chart([record], tol=1e-3)
    assert len(data(page)["texts"]) == 1
    for circle in page.all("circle", "point"):
        assert LEFT <= float(circle["attributes"]["cx"]) <= RIGHT


def test_the_tolerance_is_drawn_where_it_lies_in_the_picture():
    assert "tolerance 0.1" in chart(records(12), tol=0.1).texts("text")
    assert not any("tolerance" in text for text in chart(records(12), tol=1e-9).texts("text"))


def test_long_traces_are_thinned():
    trace = records(50_000)
    kept = thinned(trace)
    assert len(kept) <= MOST
    assert kept[0] is trace[0] and kept[-1] is trace[-1]
    assert [record.passes for record in kept] == sorted({record.passes for record in kept})
    assert len(convergence(Training(None, trace, None, None, "", None))) < 500_000


def test_a_tiny_lower_bound_does_not_flatten_the_picture():
    first = Record(1, 0.1, 0, 1, 2.0, 1e-12, 2.0)
    page = chart([first, *records(10)[1:]])
    primal = points(page, "primal")
    assert primal[-1][1] - primal[0][1] > 0.05 * (BOTTOM - TOP)
    assert points(page, "dual")[0][1] == pytest.approx(BOTTOM, abs=0.06 * (BOTTOM - TOP))
