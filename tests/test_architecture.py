"""Imports go one way, and importing the package is quick because nothing heavy comes along."""

import ast
import importlib
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
    "grammars": 3,  # read from trees of io, for structures, with templates of features
    "alignment": 3,  # learnt from sentence pairs, for features of links
    "shards": 3,  # packed sequences, with the attributes of features
    "problem": 3,
    "checks": 4,
    "solvers": 4,
    "cluster": 5,  # where passes run
    "run": 6,
    "callbacks": 7,
    "checkpoint": 7,
    "comparison": 7,
    "estimators": 8,
    "tuning": 9,  # searches over settings of estimators
    "reports": 10,
    "compat": 11,  # other programmes' interfaces and models
    "cli": 12,
    "__main__": 13,
}


# the rooms of compiled code, from left to right
ROOMS = (
    "signatures",
    "progress",
    "linking",
    "store",
    "runtime",
    "ahead",
    "ship",
    "jit",
    "primitives",
    "maps",
    "oracles",
    "sweeps",
)


def modules():
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        if parts != ("__init__",):
            yield path, parts[0]


def imported_modules(path):
    """Every m3n module that a file imports, also inside functions, by its full name, but for type checking."""
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
            inner = [f"{node.module}.{alias.name}" for alias in node.names]
            names = [name if is_module(name) else node.module for name in inner]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        yield from (name for name in names if name.startswith("m3n."))


def is_module(name):
    place = SOURCE.joinpath(*name.split(".")[1:])
    return name.startswith("m3n.") and (place.is_dir() or place.with_suffix(".py").exists())


def imported(path):
    """The packages that a file imports from."""
    return (name.split(".")[1] for name in imported_modules(path))


def graph():
    """What every module imports; a package stands for its ``__init__``."""
    edges = {}
    for path in SOURCE.rglob("*.py"):
        parts = ("m3n", *path.relative_to(SOURCE).with_suffix("").parts)
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        edges[name] = set(imported_modules(path)) - {name}
    return edges


def test_no_module_needs_itself():
    """Neither among packages nor among siblings, lazy imports included: a circle has no place to begin reading."""
    edges, done = graph(), set()

    def walk(name, above):
        assert name not in above, f"a circle of imports: {[*above[above.index(name) :], name]}"
        if name not in done:
            for other in sorted(edges.get(name, ())):
                walk(other, [*above, name])
            done.add(name)

    for name in sorted(edges):
        walk(name, [])


def test_rooms_of_compiled_code_are_in_order():
    for path in (SOURCE / "compiled").rglob("*.py"):
        room = path.relative_to(SOURCE / "compiled").with_suffix("").parts[0]
        others = {name.split(".")[2] for name in imported_modules(path) if name.startswith("m3n.compiled.")}
        wrong = [other for other in others if room in ROOMS and ROOMS.index(other) > ROOMS.index(room)]
        assert not wrong, f"{path.relative_to(SOURCE)} imports from {wrong}"


def test_names_of_the_package_are_where_it_says():
    """``import m3n`` finds names when they are asked for: each in a module that defines or exports it."""
    for name, home in m3n._HOME.items():
        assert is_module(home), home
        assert getattr(importlib.import_module(home), name) is getattr(m3n, name)
    assert list(imported_modules(SOURCE / "__init__.py")) == []


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
