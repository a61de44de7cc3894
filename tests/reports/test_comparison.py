import matplotlib
import numpy as np
import pytest

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from m3n import Record, Status
from m3n.comparison import Comparison, Entry
from m3n.reports import comparison_size, plot_comparison
from m3n.reports.pictures import NO_DUAL, _style
from tests.comparison.small_solvers import Blind, FrankWolfe


def entry(name, slope, solver=None, own_dual=True, records=12):
    """A run whose gap is passes^slope; a pass takes a tenth of a second, and so does its certificate."""
    trace = [Record(0.0, 0.1, 0, 0, 1.0, 0.0, 1.0, 0.1, 0)]
    for k in range(1, records):
        gap = float(k**slope)
        trace.append(Record(2 * k, 0.1 + 0.2 * k, 8 * k, 0, 1.0 + gap, 1.0, gap, 0.1 + 0.1 * k, 4 * k))
    return Entry(name, solver or FrankWolfe(), Status.PASS_LIMIT, "", tuple(trace), 4, 0.0, own_dual=own_dual)


@pytest.fixture
def figure():
    figure = plt.figure(layout="constrained")
    yield figure
    plt.close(figure)


def test_axes_are_the_solvers_own(figure):
    race = Comparison((entry("fast", -2.0), entry("slow", -1.0)), {}, {"tol": 0.05})
    plot_comparison(race, figure)
    left, right = figure.axes
    assert left.get_xscale() == left.get_yscale() == right.get_xscale() == right.get_yscale() == "log"
    fast, slow = left.lines[:2]
    assert fast.get_label() == "fast"
    np.testing.assert_allclose(fast.get_xdata(), np.arange(1, 12))  # half of the calls were certificates
    np.testing.assert_allclose(fast.get_ydata(), np.arange(1, 12) ** -2.0)
    np.testing.assert_allclose(slow.get_ydata(), np.arange(1, 12) ** -1.0)
    np.testing.assert_allclose(right.lines[0].get_xdata(), 0.1 * np.arange(1, 12))
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["fast", "slow"]
    assert left.lines[2].get_ydata()[0] == 0.05  # the tolerance


def test_without_a_dual_the_best_of_the_others_is_used_and_said(figure):
    race = Comparison((entry("ours", -2.0), entry("blind", -1.0, Blind(), own_dual=False)), {})
    plot_comparison(race, figure)
    line = figure.axes[0].lines[1]
    assert line.get_label() == "blind: primal minus the best dual of all"
    np.testing.assert_allclose(line.get_ydata(), np.arange(1, 12) ** -1.0)  # 1 + gap, minus the dual value 1 of "ours"
    assert line.is_dashed()
    assert not figure.axes[0].lines[0].is_dashed()


def test_twelve_solvers_are_told_apart_without_colours(figure):
    race = Comparison(tuple(entry(f"solver {k}", -k / 6) for k in range(1, 13)), {})
    plot_comparison(race, figure)
    lines = figure.axes[0].lines
    assert len({line.get_marker() for line in lines}) == 12
    styles = [_style(k, own_dual=True) for k in range(12)]
    assert len({(style["color"], str(style["linestyle"])) for style in styles}) == 12
    assert NO_DUAL not in [style["linestyle"] for style in styles]  # dashes of that kind have a meaning of their own
    assert len(figure.legends[0].get_texts()) == 12
    assert comparison_size(race)[1] > comparison_size(Comparison(race.entries[:2], {}))[1]


def test_nothing_to_draw_is_no_error(figure):
    refused = Entry("refused", Blind(), None, "refused: no", (), 4, 0.0)
    short = entry("short", -1.0, records=1)  # interrupted before its first step
    plot_comparison(Comparison((refused, short), {}), figure)
    assert figure.axes[0].lines[:] == []
    figure.canvas.draw()


def test_a_run_of_one_record(figure):
    plot_comparison(Comparison((entry("one", -1.0, records=2),), {}), figure)
    figure.canvas.draw()
    assert len(figure.axes[0].lines) == 1
