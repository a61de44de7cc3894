from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from typer.testing import CliRunner

import m3n
from m3n.cli.app import app
from m3n.datasets import digit_strings

runner = CliRunner()


def plain(output):
    """Without the frame and the line breaks that depend on the width of the terminal."""
    return " ".join(output.replace("│", " ").split())


def test_demo_shows_both_errors_and_writes_the_picture(tmp_path):
    picture = tmp_path / "out.png"
    result = runner.invoke(app, ["demo", "--output", str(picture), "--tol", "0.1"])
    assert result.exit_code == 0, result.output
    assert "independent classifier" in result.output
    assert "chain M3N" in result.output
    assert "no weights at all can get below" in plain(result.output)
    row = next(line for line in result.output.splitlines() if "wrong digits" in line)
    alone, chain = (float(cell.strip(" %")) for cell in row.replace("│", "|").split("|")[2:4])
    assert chain < 0.75 * alone  # context helps, clearly
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert picture.stat().st_size > 20_000


def test_demo_without_matplotlib(tmp_path, monkeypatch):
    monkeypatch.setattr("m3n.cli.demo.find_spec", lambda name: None)
    result = runner.invoke(app, ["demo", "--output", str(tmp_path / "x.png"), "--tol", "0.3"])
    assert result.exit_code == 0, result.output
    assert 'pip install "m3n[plot]"' in plain(result.output)
    assert not (tmp_path / "x.png").exists()


def test_demo_refuses_a_missing_folder(tmp_path):
    result = runner.invoke(app, ["demo", "--output", str(tmp_path / "no" / "x.png")])
    assert result.exit_code == 2
    assert "does not exist" in plain(result.output)


def test_version_and_help():
    assert runner.invoke(app, ["--version"]).output == f"m3n {m3n.__version__}\n"
    assert "demo" in runner.invoke(app, ["--help"]).output


def test_digit_strings_are_reproducible_and_disjoint():
    one, two = digit_strings(5, 4, seed=3), digit_strings(5, 4, seed=3)
    for a, b in zip(one, two, strict=True):
        assert a.labels == b.labels
        np.testing.assert_array_equal(np.concatenate(a.images), np.concatenate(b.images))
    assert digit_strings(5, 4, seed=4)[0].labels != one[0].labels
    train, test = digit_strings(50, 50, noise=0.0)
    shared = {image.tobytes() for image in np.concatenate(train.images)} & {
        image.tobytes() for image in np.concatenate(test.images)
    }
    assert not shared
    assert all(3 <= len(s) <= 12 for s in train.labels)
    assert train.inputs[0].shape == (len(train.labels[0]), 65)


def test_strings_have_strong_transitions():
    train, _ = digit_strings()
    steps = [(b - a) % 10 for s in train.labels for a, b in pairwise(s)]
    assert 0.6 < np.mean(np.array(steps) == 1) < 0.72
    with pytest.raises(AttributeError):
        train.labels = []
    assert replace(train, labels=[]).labels == []
