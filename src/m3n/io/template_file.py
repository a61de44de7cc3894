"""Template files of CRF++.

Every line is a template: ``U01:%x[-1,0]/%x[0,0]`` makes attributes of one label, ``B01:%x[0,1]`` of a label and the one
before, a lone ``B`` asks for transitions alone. Empty lines and lines that begin with ``#`` do not count.
"""

from __future__ import annotations

import re

from m3n.io.files import DataFileError, Source, lines_of, name_of

MACRO = re.compile(r"%x\[\s*[+-]?\d+\s*,\s*\d+\s*(?::\s*\w+\s*)?\]")
TRIED = re.compile(r"%(?:\w*\[[^\]]*\]?|.?)")


def read_template(path: Source) -> str:
    """The text of a template file, after a look at its lines.

    Parameters
    ----------
    path : path
        The file; ``-`` is standard input.
    """
    lines, seen = list[str](), dict[str, int]()
    for number, text in lines_of(path):
        line = text.strip()
        lines.append(line)
        if not line or line.startswith("#"):
            continue
        _check(line, path, number)
        if line in seen:
            raise DataFileError.at(path, number, f"the template of line {seen[line]} comes again; remove one of them")
        seen[line] = number
    if not seen:
        raise DataFileError(f"{name_of(path)} is empty: there is no template in it")
    return "\n".join(lines) + "\n"


def _check(line: str, path: Source, number: int) -> None:
    if line[0] not in "UB":
        what = f"a template begins with U (one label) or B (a pair of labels), a comment with #; got {line!r:.60}"
        raise DataFileError.at(path, number, what)
    wrong = TRIED.search(MACRO.sub("", line))
    if wrong:
        what = f"unknown macro {wrong.group()!r}; write %x[row,column], such as %x[-1,0]"
        raise DataFileError.at(path, number, what)
