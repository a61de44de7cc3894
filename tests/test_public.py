"""The public surface: names, docstrings, the README's code."""

import inspect
import re
import runpy
import textwrap
from pathlib import Path

import pytest
from numpydoc.docscrape import NumpyDocString

import m3n
import m3n.checkpoint
import m3n.comparison
import m3n.compat.crfpp
import m3n.compat.crfsuite
import m3n.compat.sklearn_crfsuite

ROOT = Path(__file__).parent.parent

NAMES = {
    "Answer", "BrokenOracle", "Certificate", "Comparison", "ConstituencyParser", "DependencyParser",
    "EngineLost", "GraphLabeler", "Guarantee", "HMMAligner", "Local", "MissingOracle", "MultilabelClassifier",
    "Path", "PathPoint", "Problem", "Ray", "Record", "Result", "SaddlePoint", "SaddleRecord", "SaddleResult",
    "SaddleStatus", "SegmentTagger", "SequenceTagger", "ShardError", "Shards", "Snapshot", "Status", "Tuning",
    "WordAligner", "WrongObjective",
    "alignment", "callbacks", "checks", "compare", "compat", "datasets", "excessive_gap", "features", "grammars",
    "grid_graph", "io", "load", "losses", "minimize", "pack", "path", "report", "reports", "scores", "solvers",
    "structures", "tune",
}  # fmt: skip


def test_exported_names():
    assert set(m3n.__all__) == NAMES
    assert len(m3n.__all__) == len(NAMES)
    assert set(dir(m3n)) >= NAMES
    for name in NAMES:
        assert getattr(m3n, name) is not None
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        _ = m3n.nonsense


def test_names_stay_what_they_are_after_submodules_are_imported():
    import m3n.comparison.run
    import m3n.run.loop
    import m3n.run.paths
    import m3n.solvers.excessive_gap

    assert callable(m3n.minimize)
    assert callable(m3n.compare)
    assert callable(m3n.path)
    assert callable(m3n.excessive_gap)
    assert m3n.solvers.ExcessiveGap().schedule == "adaptive"


def test_version_is_that_of_the_package():
    from importlib.metadata import version

    assert m3n.__version__ == version("m3n")


def public_objects():
    """Every public function, class and method of the package."""
    modules = [
        m3n.callbacks,
        m3n.checks,
        m3n.compat,
        m3n.compat.crfpp,
        m3n.compat.crfsuite,
        m3n.compat.sklearn_crfsuite,
        m3n.datasets,
        m3n.features,
        m3n.io,
        m3n.losses,
        m3n.comparison,
        m3n.reports,
        m3n.scores,
        m3n.checkpoint,
        m3n.solvers,
        m3n.structures,
    ]
    objects = [getattr(m3n, name) for name in NAMES if not inspect.ismodule(getattr(m3n, name))]
    for module in modules:
        names = getattr(module, "__all__", None) or [n for n in vars(module) if not n.startswith("_")]
        objects += [getattr(module, name) for name in names]
    seen = {}
    for obj in objects:
        if (inspect.isfunction(obj) or inspect.isclass(obj)) and obj.__module__.startswith("m3n"):
            seen[f"{obj.__module__}.{obj.__qualname__}"] = obj
            if inspect.isclass(obj):
                for name, member in vars(obj).items():
                    if inspect.isfunction(member) and not name.startswith("_"):
                        seen[f"{obj.__module__}.{obj.__qualname__}.{name}"] = member
    return seen


OBJECTS = public_objects()


def parameters(obj):
    target = obj.__init__ if inspect.isclass(obj) else obj
    return [
        ("*" if p.kind is p.VAR_POSITIONAL else "") + name
        for name, p in inspect.signature(target).parameters.items()
        if name != "self"
    ]


@pytest.mark.parametrize("name", sorted(OBJECTS))
def test_docstring_parameters_are_those_of_the_signature(name):
    obj = OBJECTS[name]
    if inspect.isfunction(obj) and obj.__doc__ is None:
        owner = OBJECTS[name.rsplit(".", 1)[0]]
        documented = [vars(base).get(obj.__name__) for base in owner.__mro__[1:]]
        assert any(base is not None and base.__doc__ for base in documented), f"{name} has no docstring"
        return
    assert obj.__doc__, f"{name} has no docstring"
    parsed = NumpyDocString(inspect.cleandoc(obj.__doc__))
    if not parsed["Parameters"]:
        return
    found = [part.strip() for entry in parsed["Parameters"] for part in entry.name.split(",")]
    assert found == parameters(obj)


def test_settings_and_entry_points_document_every_parameter():
    """Where a user chooses settings, a missing "Parameters" section is a defect."""
    entry_points = [m3n.SequenceTagger, m3n.SequenceTagger.fit, m3n.Problem, m3n.minimize, m3n.excessive_gap, m3n.load]
    entry_points += [m3n.compare, m3n.path, m3n.pack, m3n.Shards, m3n.tune]
    solvers = [kind for kind in m3n.solvers.BY_NAME.values() if inspect.signature(kind).parameters]
    settings = [m3n.structures.Chain, m3n.structures.Transitions, m3n.SaddlePoint, m3n.datasets.digit_strings]
    for obj in entry_points + solvers + settings:
        assert NumpyDocString(inspect.cleandoc(obj.__doc__))["Parameters"], obj


def blocks(path):
    """The Python code of a Markdown file; blocks inside of lists are indented."""
    found = re.findall(r"^( *)```python\n(.*?)^ *```", path.read_text(), flags=re.DOTALL | re.MULTILINE)
    return [textwrap.dedent(code) for _, code in found]


@pytest.mark.parametrize(
    "name",
    [
        "README.md",
        "CONTRIBUTING.md",
        "docs/index.md",
        "docs/choosing.md",
        "docs/parsing.md",
        "docs/alignment.md",
        "docs/comparing.md",
        "docs/coverage.md",
        "docs/decoding.md",
        "docs/extending.md",
        "docs/formats.md",
        "docs/going_on.md",
        "docs/graphs.md",
        "docs/inspecting.md",
        "docs/kernels.md",
        "docs/losses.md",
        "docs/migration.md",
        "docs/objectives.md",
        "docs/scale.md",
        "docs/shards.md",
        "docs/slack.md",
        "docs/start.md",
        "docs/regularisation.md",
        "docs/scikit_learn.md",
        "docs/theory.md",
        "docs/tuning.md",
        "docs/tutorial_chunks.md",
        "docs/tutorial_ocr.md",
        "docs/tutorial_tagging.md",
    ],
)
def test_code_in_the_documentation_runs(name, tmp_path, monkeypatch):
    """All Python blocks of a page, one after another, as a reader would type them."""
    found = blocks(ROOT / name)
    assert found
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": "__main__"}
    for code in found:
        exec(compile(code, name, "exec"), namespace)


EXAMPLES = ["binary_svm", "find_names", "matrix_game", "read_digits", "tag_words", "track_points", "track_runs"]


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_run(name, capsys):
    runpy.run_path(str(ROOT / "examples" / f"{name}.py"), run_name="__main__")
    shown = capsys.readouterr().out
    assert "tolerance reached" in shown
