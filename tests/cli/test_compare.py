import json
import signal

import numpy as np
import pytest
from typer.testing import CliRunner

from m3n.cli.app import app
from m3n.cli.compare import load_data
from m3n.solvers import BY_NAME
from tests.cli.test_demo import plain
from tests.comparison.small_solvers import Accident, Blind, FrankWolfe

runner = CliRunner()
SHORT = ["--tol", "0.3", "--max-passes", "60", "--jobs", "1"]


@pytest.fixture
def contestants(monkeypatch):
    for name, kind in (("frank_wolfe", FrankWolfe), ("blind", Blind), ("accident", Accident)):
        monkeypatch.setitem(BY_NAME, name, kind)


@pytest.fixture
def sentences(tmp_path):
    """A column file with a rule that can be learnt."""
    random = np.random.default_rng(0)
    words = {"N": ["dog", "cat", "Tree"], "V": ["runs", "sees"], "D": ["the", "a"]}
    lines = []
    for _ in range(30):
        for label in ["D", "N", "V", "D", "N"][: random.integers(2, 6)]:
            lines.append(f"{random.choice(words[label])} {label}")
        lines.append("")
    path = tmp_path / "sentences.txt"
    path.write_text("\n".join(lines))
    return path


def invoke(*arguments):
    return runner.invoke(app, ["compare", *map(str, arguments)])


def test_digits_table_json_and_picture(contestants, tmp_path):
    document, picture = tmp_path / "race.json", tmp_path / "race.png"
    solvers = ["--solver", "excessive_gap", "--solver", "frank_wolfe", "--solver", "blind"]
    result = invoke(*solvers, *SHORT, "--json", document, "--plot", picture)
    assert result.exit_code == 0, result.output
    assert "400 sequences, 10 labels, 770 weights, lam = 0.01, M3N, 1 thread" in result.stdout
    for name in ("ExcessiveGap", "FrankWolfe", "Blind"):
        assert f" {name} " in result.stdout
    assert "Blind has no dual point of its own" in result.stdout
    assert "1/3 ExcessiveGap pass" in result.stderr
    assert "pass" not in result.stdout.splitlines()[0]
    read = json.loads(document.read_text())
    assert [solver["name"] for solver in read["solvers"]] == ["ExcessiveGap", "FrankWolfe", "Blind"]
    assert read["solvers"][0]["gap"] <= 0.3
    assert read["goal"] == {"tol": 0.3, "max_passes": 60, "max_seconds": 5}
    assert read["problem"]["data"] == "noisy digit strings (seed 0)"
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert picture.stat().st_size > 20_000


def test_all_solvers_that_fit_by_default(contestants, sentences):
    result = invoke(sentences, *SHORT, "--quiet")
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    for name in ("ExcessiveGap", "FrankWolfe", "Blind", "Accident"):
        assert name in result.stdout
    assert "Accident: failed: ZeroDivisionError" in result.stdout


def test_settings_and_seeds(contestants, sentences, tmp_path):
    document = tmp_path / "race.json"
    given = ["--solver", "excessive_gap:schedule=paper,memory=0", "--solver", "blind", "--solver", "blind:seed=5"]
    assert invoke(sentences, *given, *SHORT, "--seed", 3, "--lam", "1/n", "--json", document).exit_code == 0
    read = json.loads(document.read_text())
    paper, blind, other = read["solvers"]
    assert paper["name"] == "ExcessiveGap(schedule='paper', memory=0)"
    assert paper["settings"]["schedule"] == "paper"
    assert (blind["name"], blind["settings"]["seed"]) == ("Blind", 3)
    assert (other["name"], other["settings"]["seed"]) == ("Blind(seed=5)", 5)
    assert read["problem"]["lam"] == 1 / 30
    assert invoke(sentences, *given, *SHORT, "--lam", "5/n", "--json", document).exit_code == 0
    assert json.loads(document.read_text())["problem"]["lam"] == pytest.approx(5 / 30)
    assert read["goal"]["max_seconds"] == 30


def numbers(path):
    """All that does not depend on the clock."""
    document = json.loads(path.read_text())
    for solver in document["solvers"]:
        for part in (solver, *solver["trace"]):
            part.pop("seconds")
            part.pop("evaluation_seconds")
    return document


def test_same_seed_same_numbers(contestants, tmp_path):
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        given = ["--solver", "excessive_gap", "--solver", "frank_wolfe", "--max-seconds", 100]
        assert invoke(*given, *SHORT, "--seed", seed, "--json", tmp_path / name).exit_code == 0
    assert numbers(tmp_path / "a") == numbers(tmp_path / "b")
    assert numbers(tmp_path / "a") != numbers(tmp_path / "c")


def test_crf(contestants, sentences):
    result = invoke(sentences, "--objective", "crf", "--solver", "frank_wolfe", *SHORT)
    assert result.exit_code == 1  # nobody could run
    assert "CRF" in result.stdout
    assert "refused: FrankWolfe trains max-margin networks only" in plain(result.stdout)


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--solver", "sgd"], "unknown solver 'sgd'; choose from"),
        (["--solver", "excessive_gap:speed=1"], "excessive_gap has no setting 'speed'"),
        (["--lam", "0"], "must be positive and finite"),
        (["--loss", "zero_one"], "unknown loss 'zero_one'; choose from hamming, normalized_hamming"),
        (["--objective", "svm"], "unknown objective 'svm'; choose from margin, slack, crf, softmax_margin"),
        (["--folds", "x", "nowhere"], "folds are numbers and ranges"),
        (["--folds", "1-9"], "only letter.data has folds"),
        (["--jobs", "0"], "n_jobs=0 has no meaning"),
        (["nowhere.txt"], "there is no data file 'nowhere.txt'"),
        (["--json", "no/race.json"], "the folder 'no' does not exist"),
        (["--plot", "no/race.png"], "the folder 'no' does not exist"),
        (["--plot", "race.doc"], "unknown kind of picture '.doc'"),
        (["--plot", "race"], "unknown kind of picture ''"),
        (["--json", "."], "this is a folder"),
        (["--tol", "-1"], "--tol"),
    ],
)
def test_bad_input_is_refused_before_any_work(arguments, message, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("m3n.cli.compare.compare", lambda *given, **settings: pytest.fail("the race began"))
    result = invoke(*arguments)
    assert result.exit_code == 2
    assert message in plain(result.output)
    assert list(tmp_path.iterdir()) == []


def test_a_malformed_line_is_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # a long path would be broken in the middle
    (tmp_path / "broken.txt").write_text("the D\ndog\n")
    result = invoke("broken.txt")
    assert result.exit_code == 2
    assert "broken.txt, line 2: expected 2 columns" in plain(result.output)


def test_a_picture_needs_matplotlib(monkeypatch, tmp_path):
    monkeypatch.setattr("m3n.cli.compare.find_spec", lambda name: None)
    result = invoke("--plot", tmp_path / "race.png")
    assert result.exit_code == 2
    assert 'pip install "m3n[plot]"' in plain(result.output)


def test_control_c_keeps_what_is_there(contestants, sentences, tmp_path, monkeypatch):
    honest = FrankWolfe.step

    def step(self, problem, state):
        if state.k == 15:
            signal.raise_signal(signal.SIGINT)
        return honest(self, problem, state)

    monkeypatch.setattr(FrankWolfe, "step", step)
    document = tmp_path / "race.json"
    given = ["--solver", "excessive_gap", "--solver", "frank_wolfe", "--solver", "blind"]
    result = invoke(sentences, *given, "--tol", 0, "--max-passes", 40, "--json", document)
    assert result.exit_code == 130
    read = json.loads(document.read_text())
    assert [solver["outcome"] for solver in read["solvers"]] == ["pass limit", "interrupted"]


def test_column_files_become_chain_problems(sentences):
    data = load_data(sentences)
    problem = data.problem(None, None, "margin", 1)
    assert (problem.n, data.classes) == (30, 3)
    crf = data.problem(0.1, None, "crf", 1)
    assert (crf.temperature, crf.lam) == (1.0, 0.1)
    assert not crf.cost.table.any()  # a CRF has no loss
    assert data.problem(0.1, "hamming", "crf", 1).cost.table.any()  # softmax-margin has
    np.testing.assert_array_equal(data.problem(0.1, "hamming", "margin", 1).cost.weight, 1.0)
    shares = problem.cost.weight
    assert shares.sum() == pytest.approx(problem.n)


def test_letters_give_the_problem_of_the_benchmark(data_folder):
    from benchmarks.datasets import ocr_problem

    ours = load_data(data_folder / "ocr" / "letter.data.gz").problem(0.01, None, "margin", 1)
    theirs = ocr_problem(data_folder, sparse=True, n_jobs=1)
    assert (ours.n, ours.dim, ours.lam) == (theirs.n, theirs.dim, theirs.lam) == (6251, 4082, 0.01)
    w = np.random.default_rng(0).normal(size=ours.dim)
    for weights in (0 * w, w):
        one, two = ours.hard(weights), theirs.hard(weights)
        assert (one.value, one.loss) == (two.value, two.loss)
        np.testing.assert_array_equal(one.vector, two.vector)


def test_chosen_folds(data_folder):
    path = data_folder / "ocr" / "letter.data.gz"
    assert load_data(path, folds=[0]).problem(0.01, None, "margin", 1).n == 626
    assert load_data(path, folds=[0]).name == "letter.data.gz, folds 0"
    assert load_data(path, folds=[0, 1, 2]).name == "letter.data.gz, folds 0-2"


def test_first_sequences_only(sentences):
    whole, part = load_data(sentences), load_data(sentences).first(7)
    assert whole.first(None) is whole
    assert whole.first(1000) is whole
    problem, small = (data.problem(0.1, None, "margin", 1) for data in (whole, part))
    assert (small.n, small.dim) == (7, problem.dim)
    w = np.random.default_rng(0).normal(size=problem.dim)
    assert 7 * small.hard(w).value == pytest.approx(problem.n * problem.hard(w, slice(0, 7)).value)
    result = invoke(sentences, "--limit", 7, "--solver", "excessive_gap", "--max-passes", 5)
    assert "sentences.txt, first 7: 7 sequences" in result.stdout
