"""The section about a search."""

import pytest

from m3n.reports.curves import BOTTOM, LEFT, RIGHT, TOP
from m3n.reports.tuning import Linear, lam_path
from m3n.tuning import Guarantee, Piece, Row, Tuning
from tests.reports.pages import Page

ROWS = (
    Row({"objective": "<b>"}, 1.0, (0.8, 0.82), 0.1, 3.0, 0.5),
    Row({"objective": "<b>"}, 0.1, (0.9, 0.92), 0.01, 4.0, 0.7),
    Row({"objective": "<b>"}, 0.01, (0.5,), 0.01, 4.0, 0.7, abandoned=True),
)
PROVEN = Guarantee((Piece(0.01, 0.2, 0.85, 0.97), Piece(0.2, 1.0, 0.7, 0.95)), 0.91, 5.0)


def section(rows=ROWS, best=1, proven=PROVEN):
    return Page(lam_path(Tuning(rows, rows[best], "accuracy", 2, None, proven, "", 1.0)))


def test_scores_stand_where_they_belong():
    page = section()
    scores, costs = [svg for svg in page.all("svg") if svg["attributes"].get("role") == "img"]
    assert "Best: 0.91 at 0.1" in scores["attributes"]["aria-label"]
    assert "1.9 s together" in costs["attributes"]["aria-label"]
    dots = page.all("circle", "point")
    assert len(dots) == 2  # the one that was given up has no mean of all folds
    middle = (LEFT + RIGHT) / 2
    assert [float(dot["attributes"]["cx"]) for dot in dots] == pytest.approx([RIGHT, middle], abs=0.1)
    (ring,) = page.all("circle", "chosen")
    assert ring["attributes"]["cx"] == dots[1]["attributes"]["cx"]
    assert float(dots[1]["attributes"]["cy"]) < float(dots[0]["attributes"]["cy"])  # better is higher
    bars = page.all("line", "spread")
    assert len(bars) == 2
    for bar, dot in zip(bars, dots, strict=True):
        low, high = float(bar["attributes"]["y1"]), float(bar["attributes"]["y2"])
        assert TOP <= high < float(dot["attributes"]["cy"]) < low <= BOTTOM


def test_the_band_is_what_is_proven():
    page = section()
    bands = page.all("polygon", "band")
    assert len(bands) == 2
    upper = [float(band["attributes"]["points"].split()[0].split(",")[1]) for band in bands]
    assert upper[0] < upper[1] < float(page.all("circle", "chosen")[0]["attributes"]["cy"])
    assert "Proven: no lam from 0.01 to 1 is better by more than 6.00 points (5 were asked for)." in page.texts("p")
    assert not section(proven=None).all("polygon", "band")


def test_the_table_has_all_settings():
    page = section()
    assert page.texts("td")[1] == "<b>"  # text, not an element
    assert "given up after 1 folds" in page.texts("td") and "chosen" in page.texts("td")
    one = section((Row({}, 1.0, (0.5,), 0.0, 1.0, 0.0),), 0, None)  # one lam, one fold, nothing to measure
    assert len(one.all("circle", "point")) == 1


def test_a_linear_axis():
    axis = Linear(0.5, 0.9)
    assert BOTTOM > axis.at(0.5) > axis.at(0.9) > TOP
    assert axis.at(0.7) == pytest.approx((BOTTOM + TOP) / 2, abs=0.1)
    assert axis.at(-1.0) == BOTTOM and axis.at(2.0) == TOP
    assert 3 <= len(axis.ticks()) <= 8 and all(axis.low <= tick <= axis.high for tick in axis.ticks())
    assert Linear(0.5, 0.5).high > 0.5
