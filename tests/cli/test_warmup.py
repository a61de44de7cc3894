"""Compiling beforehand, and what the terminal says while something is compiled."""

import io

import pytest
from rich.console import Console
from typer.testing import CliRunner

from m3n.cli import options
from m3n.cli.app import app
from m3n.compiled import ahead, store
from m3n.compiled.ahead import Need
from m3n.compiled.progress import progress

runner = CliRunner()


@pytest.fixture
def few(tmp_path, monkeypatch):
    """A task of two short functions, and a folder of its own."""
    known = sorted(ahead.needs("all"), key=lambda need: need.seconds)[:2]
    functions = {str(k): [need.name, need.types, need.seconds] for k, need in enumerate(known)}
    listed = {"functions": functions, "tasks": {"few": list(functions)}, "runs": {}}
    monkeypatch.setenv("M3N_KERNEL_CACHE", str(tmp_path))
    monkeypatch.setenv("M3N_COMPILE_PROCESSES", "2")
    monkeypatch.setattr("m3n.cli.warmup.listed", lambda: listed)
    monkeypatch.setattr(ahead, "listed", lambda: listed)
    monkeypatch.setattr(progress, "expected", set())  # other tests in this process may have left some
    store.folder.cache_clear()
    yield tmp_path
    store.folder.cache_clear()


def test_a_task_is_compiled_once(few):
    first = runner.invoke(app, ["warmup", "--task", "few"])
    assert first.exit_code == 0, first.output
    assert "few: 2 functions compiled" in first.output
    assert len(list(few.rglob("*.code"))) == 2
    assert "all 2 functions are compiled already" in runner.invoke(app, ["warmup", "--task", "few"]).output


def test_an_unknown_task_names_those_that_exist(few):
    result = runner.invoke(app, ["warmup", "--task", "nothing"])
    assert result.exit_code == 2
    assert "choose from few, all" in " ".join(result.output.replace("│", " ").split())


def test_what_cannot_be_compiled_is_named(few, monkeypatch):
    wrong = {"functions": {"0": ["m3n.compiled.maps.costs:gone", "[]", 1.0]}, "tasks": {"few": ["0"]}, "runs": {}}
    monkeypatch.setattr("m3n.cli.warmup.listed", lambda: wrong)
    monkeypatch.setattr(ahead, "listed", lambda: wrong)
    result = runner.invoke(app, ["warmup", "--task", "few"])
    assert result.exit_code == 1
    assert "not compiled: m3n.compiled.maps.costs:gone" in result.output


@pytest.mark.parametrize("wanted", [True, False])
def test_the_terminal_says_what_is_compiled(few, monkeypatch, wanted):
    shown = io.StringIO()
    monkeypatch.setattr(options, "console", lambda errors=False: Console(file=shown, width=100))
    with options.compilation_shown(wanted):
        for name in ("at_all", "else"):
            with progress.compiling(Need(f"m3n.nothing:{name}", "[]", 30.0)):
                pass
    told = "compiling 1 function, about 15 s, only once\n"
    assert shown.getvalue() == (told if wanted else "")
    assert not progress.listeners
