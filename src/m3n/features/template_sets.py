"""Templates that are good to begin with."""

from __future__ import annotations

from m3n.features.templates import Templates

COLUMN = {"w": 0, "pos": 1}  # of a file for chunking: word, part of speech, label
WINDOW = range(-2, 3)


def _named(*places: tuple[str, int]) -> str:
    """A template such as ``w[-1]|w[0]=%x[-1,0]|%x[0,0]``."""
    names = "|".join(f"{name}[{row}]" for name, row in places)
    macros = "|".join(f"%x[{row},{COLUMN[name]}]" for name, row in places)
    return f"{names}={macros}"


CHUNKING = Templates(
    [
        *(_named(("w", row)) for row in range(-2, 3)),
        *(_named(("w", row), ("w", row + 1)) for row in (-1, 0)),
        *(_named(("pos", row)) for row in range(-2, 3)),
        *(_named(("pos", row), ("pos", row + 1)) for row in range(-2, 2)),
        *(_named(("pos", row), ("pos", row + 1), ("pos", row + 2)) for row in range(-2, 1)),
    ],
    padding="marks",
)


def word_templates(columns: int = 1) -> Templates:
    """For tokens whose first column is the word, whatever the task: words, their forms and their neighbours.

    Of the word: itself and its four neighbours, pairs of neighbours, lower case, shapes, prefixes and suffixes of up to
    four letters. Of every other column: the same window, pairs, and the three in the middle.

    Parameters
    ----------
    columns : int
        How many columns there are besides the label.
    """
    patterns = ["bias", *(f"w[{r}]=%x[{r},0]" for r in WINDOW)]
    patterns += [f"w[{r}]|w[{r + 1}]=%x[{r},0]|%x[{r + 1},0]" for r in (-1, 0)]
    patterns += [f"lower[{r}]=%x[{r},0:lower]" for r in (-1, 0, 1)]
    patterns += [f"brief[{r}]=%x[{r},0:brief]" for r in (-1, 0, 1)]
    patterns += ["brief[-1]|brief[0]|brief[1]=%x[-1,0:brief]|%x[0,0:brief]|%x[1,0:brief]"]
    patterns += [f"{side}{k}=%x[0,0:{side}{k}]" for side in ("prefix", "suffix") for k in range(1, 5)]
    for c in range(1, columns):
        patterns += [f"c{c}[{r}]=%x[{r},{c}]" for r in WINDOW]
        patterns += [f"c{c}[{r}]|c{c}[{r + 1}]=%x[{r},{c}]|%x[{r + 1},{c}]" for r in range(-2, 2)]
        patterns += [f"c{c}[-1]|c{c}[0]|c{c}[1]=%x[-1,{c}]|%x[0,{c}]|%x[1,{c}]"]
    return Templates(patterns, padding="marks")
