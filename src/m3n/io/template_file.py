"""Template files of CRF++.

Every line is a template: ``U01:%x[-1,0]/%x[0,0]`` makes attributes of one label, ``B01:%x[0,1]`` of a label and the one
before, a lone ``B`` asks for transitions alone. Empty lines and lines that begin with ``#`` do not count.
"""

from __future__ import annotations

import re

from m3n.io.files import DataFileError, Source, reading

MACRO = re.compile(r"%x\[\s*([+-]?\d+)\s*,\s*(\d+)\s*(?::\s*(\w+)\s*)?\]")  # row, column, form of the value
TRIED = re.compile(r"%(?:\w*\[[^\]]*\]?|.?)")


def read_template(path: Source) -> str:
    """The text of a template file, after a look at its lines.

    Parameters
    ----------
    path : path
        The file; ``-`` is standard input.
    """
    kept, seen = list[str](), dict[str, int]()
    with reading(path) as lines:
        for line in map(str.strip, lines):
            kept.append(line)
            if line and not line.startswith("#"):
                _check(line)
                if line in seen:
                    raise ValueError(f"the template of line {seen[line]} comes again; remove one of them")
                seen[line] = len(kept)
    if not seen:
        raise DataFileError.empty(path, "template")
    return "\n".join(kept) + "\n"


def _check(line: str) -> None:
    if line[0] not in "UB":
        kinds = "a template begins with U (one label) or B (a pair of labels), a comment with #"
        raise ValueError(f"{kinds}; got {line!r:.60}")
    wrong = TRIED.search(MACRO.sub("", line))
    if wrong:
        raise ValueError(f"unknown macro {wrong.group()!r}; write %x[row,column], such as %x[-1,0]")
