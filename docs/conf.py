"""Settings of the documentation; build it with ``make docs``."""

import re

import m3n

project = "m3n"
author = "The m3n developers"
copyright = "2026, The m3n developers"
version = release = m3n.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx-mathjax-offline"]
myst_enable_extensions = ["dollarmath", "amsmath", "colon_fence"]
myst_heading_anchors = 3
default_role = "literal"  # some docstrings put names between single backticks

html_theme = "furo"
html_static_path = ["static"]
html_css_files = ["formulas.css"]
html_title = f"m3n {release}"
html_copy_source = False
html_show_sourcelink = False

autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
autodoc_typehints = "none"  # the docstrings name the types
napoleon_google_docstring = False
napoleon_use_rtype = False

LITERAL = re.compile(r"(``.*?``)")
SEVERAL_NAMES = re.compile(r"^(\w+(?:, \w+)+) : (.*)$")


def adapt_docstring(app, what, name, obj, options, lines):
    """Our docstrings are plain text with mathematics; make reStructuredText of them."""
    lines[:] = [_escape(line) for line in _one_name_per_entry(lines)]
    if what == "property":
        lines[0] = lines[0].replace(": ", "; ", 1)  # napoleon would take what is before the colon for a type


def _escape(line):
    """Bars and stars are norms, sizes and products, not reStructuredText."""
    if line.lstrip().startswith((">>>", "...")):
        return line
    pieces = LITERAL.split(line)
    pieces[::2] = [re.sub(r"(?<!\\)([|*])", r"\\\1", piece) for piece in pieces[::2]]
    return "".join(pieces)


def _one_name_per_entry(lines):
    """``a, b : type`` among the attributes becomes two entries with the same description."""
    result, position = [], 0
    while position < len(lines):
        match = SEVERAL_NAMES.match(lines[position])
        end = position + 1
        while end < len(lines) and lines[end].startswith("    "):
            end += 1
        names = match[1].split(", ") if match else [None]
        for name in names:
            result += [f"{name} : {match[2]}" if match else lines[position], *lines[position + 1 : end]]
        position = end
    return result


def setup(app):
    # before napoleon, which writes reStructuredText of its own
    app.connect("autodoc-process-docstring", adapt_docstring, priority=100)


# "array (n, labels)" is a type to Sphinx, and several classes have an attribute of that name
suppress_warnings = ["ref.python"]
