"""Template files of CRF++ and of Wapiti.

Every line is a template: ``U01:%x[-1,0]/%x[0,0]`` makes attributes of one label, ``B01:%x[0,1]`` of a label and the one
before, a lone ``B`` asks for transitions alone. Empty lines and lines that begin with ``#`` do not count. What Wapiti
adds to that is in ``m3n.io.template_syntax``.
"""

from __future__ import annotations

from m3n.io.files import DataFileError, Source, reading
from m3n.io.template_syntax import (
    BOTH,
    COLUMN_OFFSET,
    MACRO,
    TRIED,
    read_lines,
    templates_of,
    without_comment,
)


def read_template(path: Source) -> str:
    """The text of a template file, after a look at its lines.

    Parameters
    ----------
    path : path
        The file; ``-`` is standard input.
    """
    with reading(path) as lines:
        kept = [line.strip() for line in lines]
    counted, syntax = read_lines(kept, text=True)
    if not counted:
        raise DataFileError.empty(path, "template")
    seen = dict[str, int]()
    for number, written in enumerate(kept, start=1):
        line = written if syntax != "wapiti" else without_comment(written)
        if not line or line.startswith("#"):
            continue
        try:
            _check(line, syntax)
            if line in seen:
                raise ValueError(f"the template of line {seen[line]} comes again; remove one of them")
        except ValueError as error:
            raise DataFileError.at(path, number, str(error)) from None
        seen[line] = number
    return "\n".join(kept) + "\n"


def _check(line: str, syntax: str) -> None:
    if line[0] not in "UuBb" + BOTH:
        kinds = "a template begins with U (one label), B (a pair of labels) or * (both), a comment with #"
        raise ValueError(f"{kinds}; got {line!r:.60}")
    wrong = TRIED.search(MACRO.sub("", line))
    if wrong and COLUMN_OFFSET.match(wrong.group()):
        remedy = "write a line for every distance, such as %x[1,0]"
        raise ValueError(f"{wrong.group()!r} reads a distance from a column, which m3n does not; {remedy}")
    if wrong:
        raise ValueError(f"unknown macro {wrong.group()!r}; write %x[row,column], such as %x[-1,0]")
    list(templates_of(line, syntax))
