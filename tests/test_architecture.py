"""Imports go one way, and importing the package is quick because nothing heavy comes along."""

import ast
import subprocess
import sys
from pathlib import Path

import m3n

SOURCE = Path(m3n.__file__).parent

# what a module may import: itself, its own rank within a package, and lower ranks
RANKS = {
    "compiled": 0,
    "packed": 0,
    "io": 1,  # files and what is in them, nothing else
    "structures": 1,
    "features": 2,  # theta has the structure's layout
    "losses": 2,
    "datasets": 2,
    "scores": 2,  # of labels; chunks are read by io
    "problem": 3,
    "checks": 4,
    "solvers": 4,
    "run": 5,
    "callbacks": 6,
    "checkpoint": 6,
    "comparison": 6,
    "estimators": 7,
    "reports": 8,
    "compat": 9,  # other programmes' interfaces and models
    "cli": 10,
    "__main__": 11,
}


def modules():
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        if parts != ("__init__",):
            yield path, parts[0]


def imported(path):
    """Every m3n module that a file imports, also inside functions; type-checking blocks do not count."""
    tree = ast.parse(path.read_text())
    skipped = {
        id(node)
        for branch in ast.walk(tree)
        if isinstance(branch, ast.If) and getattr(branch.test, "id", "") == "TYPE_CHECKING"
        for node in ast.walk(branch)
    }
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.ImportFrom) and node.module:
            assert node.level == 0, f"{path}: relative import"
            names = [f"m3n.{alias.name}" for alias in node.names] if node.module == "m3n" else [node.module]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        yield from (name.split(".")[1] for name in names if name.startswith("m3n."))


def test_every_module_has_a_rank():
    assert {package for _, package in modules()} == set(RANKS)


def test_imports_go_only_to_the_left():
    wrong = [
        f"{path.relative_to(SOURCE)} imports m3n.{other}"
        for path, package in modules()
        for other in imported(path)
        if other != package and RANKS[other] >= RANKS[package]
    ]
    assert wrong == []


def test_solvers_name_no_structure():
    for path in (SOURCE / "solvers").glob("*.py"):
        assert not {"structures", "features", "losses"} & set(imported(path)), path


def test_import_is_lazy():
    code = (
        "import sys, m3n; print([m for m in ('numpy', 'numba', 'sklearn', 'scipy', 'matplotlib') if m in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_training_loads_nothing_that_is_slow_to_load():
    """Plots, scikit-learn (as long as everything else together), the terminal's tools."""
    code = (
        "import sys, m3n; m3n.minimize\n"
        "m3n.SequenceTagger(n_jobs=1).fit([[['a'], ['b']]], [['X', 'Y']]).predict([[['a']]])\n"
        "slow = ('matplotlib', 'sklearn', 'rich', 'typer', 'scipy.stats', 'scipy.optimize')\n"
        "print([name for name in slow if name in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
