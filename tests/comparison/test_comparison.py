import json
import os
from io import StringIO

import numpy as np
import pytest
from rich.console import Console

from m3n import Record, Status, compare
from m3n.comparison import Comparison, Entry
from m3n.comparison.table import human_bytes, print_table
from m3n.solvers import ExcessiveGap
from tests.comparison.small_solvers import Accident, Blind, FrankWolfe, Plain
from tests.tiny import chain_problem


@pytest.fixture(scope="module")
def comparison():
    solvers = [ExcessiveGap(), ExcessiveGap(schedule="paper"), FrankWolfe(), Blind(), Accident(), Plain()]
    return compare(chain_problem(), solvers, tol=1e-3, max_passes=400)


def reject(literal):
    raise AssertionError(f"{literal} is not JSON")


def test_json_holds_everything(comparison):
    document = json.loads(comparison.to_json(), parse_constant=reject)
    assert document["format"] == "m3n comparison"
    assert document["problem"]["n"] == 4
    assert document["goal"] == {"tol": 1e-3, "max_passes": 400, "max_seconds": 60}
    assert document["best"] == {
        "primal": comparison.best.primal,
        "dual": comparison.best.dual,
        "gap": comparison.best.gap,
    }
    assert [solver["name"] for solver in document["solvers"]] == [entry.name for entry in comparison.entries]
    for solver, entry in zip(document["solvers"], comparison.entries, strict=True):
        assert solver["passes"] == entry.passes
        assert solver["seconds"] == entry.seconds
        assert solver["memory"] == entry.memory
        assert solver["gap"] == entry.gap
        assert len(solver["trace"]) == len(entry.trace)
    first = document["solvers"][1]
    assert first["settings"]["schedule"] == "paper"
    assert first["expected_exponent"] == -2
    assert first["native"]["name"] == "bound"
    assert document["solvers"][5]["error"].startswith("failed: TypeError")


def test_json_has_the_gaps_of_figure_1(comparison):
    document = json.loads(comparison.to_json())
    eg, blind = document["solvers"][0], document["solvers"][3]
    for record in eg["trace"]:
        assert record["gap"] == record["primal"] - record["dual"]
        assert record["primal_gap"] == record["primal"] - document["best"]["dual"] <= record["gap"]
        assert record["dual_gap"] == document["best"]["primal"] - record["dual"] <= record["gap"]
    assert eg["trace"][-1]["passes"] == eg["passes"]
    assert eg["trace"][-1]["seconds"] == eg["seconds"]
    assert (eg["trace"][-1]["hard_calls"], eg["trace"][-1]["soft_calls"]) == (eg["hard_calls"], eg["soft_calls"])
    assert all(record["dual"] is record["gap"] is record["dual_gap"] is None for record in blind["trace"])
    assert blind["gap"] is None
    assert blind["own_dual"] is False
    assert blind["trace"][-1]["primal_gap"] > 0


def test_infinite_numbers_and_objects_survive_as_json():
    class Odd(Blind):
        pass

    settings = {"a": np.float64(1.5), "b": np.inf, "c": [np.nan, np.int64(3), np.bool_(True)], "d": {1: object}}
    record = Record(1.0, 1.0, 4, 0, 1.0, 0.5, 0.5, metrics={"x": np.inf})
    comparison = Comparison((Entry("odd", Odd(), Status.STALLED, "", (record,), 4, 0.0),), settings, {"tol": np.inf})
    document = json.loads(comparison.to_json(), parse_constant=reject)
    assert document["problem"] == {"a": 1.5, "b": None, "c": [None, 3, True], "d": {"1": "<class 'object'>"}}
    assert document["solvers"][0]["trace"][0]["metrics"] == {"x": None}
    assert json.loads(Comparison((), {}).to_json(), parse_constant=reject)["best"]["gap"] is None


def test_json_files_are_written_in_one_step(comparison, tmp_path, monkeypatch):
    path = tmp_path / "comparison.json"
    comparison.save_json(path)
    assert path.read_text() == comparison.to_json()

    def crash(*args):
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", crash)
    with pytest.raises(OSError, match="disk full"):
        Comparison((), {}).save_json(path)
    assert path.read_text() == comparison.to_json()  # the old file is whole
    assert os.listdir(tmp_path) == ["comparison.json"]
    with pytest.raises(FileNotFoundError, match=r"the folder .* does not exist"):
        comparison.save_json(tmp_path / "no" / "comparison.json")


def cells(text, name):
    row = next(line for line in text.splitlines() if line.strip().startswith(name + "  "))
    return [cell.strip() for cell in row.split("   ") if cell.strip()]


def test_the_table_shows_what_was_measured(comparison):
    text = str(comparison)
    eg = comparison["ExcessiveGap"]
    _, passes, hard, soft, seconds, memory, primal, dual, gap, stopped, *rates = cells(text, "ExcessiveGap")
    assert float(passes) == pytest.approx(eg.passes, abs=0.5)
    assert (hard, int(soft.replace(",", ""))) == ("0", eg.soft_calls)
    assert float(seconds) == pytest.approx(eg.seconds, rel=0.01)
    assert memory == human_bytes(eg.memory)
    assert (float(primal), float(dual)) == (pytest.approx(eg.primal, rel=1e-5), pytest.approx(eg.dual, rel=1e-5))
    assert float(gap) == pytest.approx(eg.gap, rel=0.1)
    assert stopped == "tolerance reached"
    assert rates[-2:] == ["-2", "sqrt(log|Y| / (lam eps))"]
    assert float(rates[0]) == pytest.approx(eg.exponent, abs=0.01)


def test_the_table_shows_no_made_up_gap(comparison):
    text = str(comparison)
    blind = cells(text, "Blind")
    assert float(blind[6]) == pytest.approx(comparison["Blind"].primal, rel=1e-5)
    assert blind[7:9] == ["-", "-"]
    assert blind[10] == "-"
    assert "Blind has no dual point of its own, hence no gap" in text
    assert cells(text, "Plain")[1:] == ["-"] * 8 + ["failed", "-", "-", "-"]
    assert "Plain: failed: TypeError: Plain does not define init" in text


def shown(comparison, width, terminal):
    file = StringIO()
    print_table(comparison, Console(file=file, width=width, force_terminal=terminal, color_system=None))
    return file.getvalue()


def test_the_table_fits_narrow_terminals(comparison):
    narrow = shown(comparison, 80, terminal=True)
    table = narrow[: narrow.index("Blind has no")]
    assert all(len(line) <= 80 for line in table.splitlines())
    assert table.count("solver") == 3
    for title in ("passes", "max-oracle", "exp-oracle", "seconds", "memory", "primal", "dual", "gap", "exponent"):
        assert title in table
    assert shown(comparison, 250, terminal=True).count("solver ") == 1
    in_a_file = shown(comparison, 80, terminal=False)  # nobody's window: one line per solver
    assert cells(in_a_file, "ExcessiveGap") == cells(str(comparison), "ExcessiveGap")


def test_brackets_in_names_are_no_markup():
    entry = Entry("[red]x[/red]", Blind(), None, "failed: [bold]", (), 1, 0.0)
    text = str(Comparison((entry,), {}))
    assert "[red]x[/red]" in text
    assert "failed: [bold]" in text


def test_parts_of_the_table(comparison):
    assert [column.header for column in comparison.table("value").columns] == [
        "solver",
        "primal",
        "dual",
        "gap",
        "stopped by",
    ]
    with pytest.raises(ValueError, match="unknown part"):
        comparison.table("nonsense")


def test_sizes():
    assert [human_bytes(size) for size in (0, 7, 999, 1000, 43_400, 2.5e6, 7e9)] == [
        "0 B", "7 B", "999 B", "1 kB", "43.4 kB", "2.5 MB", "7 GB",
    ]  # fmt: skip
