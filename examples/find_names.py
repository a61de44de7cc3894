"""Find names of people, places and firms in generated sentences: column files, a template file, valid chunks, a report.

The same words make names of all three kinds ("Paris Hill" is a person, "Hill" a place, "Paris Hill Bank" a firm), so
the neighbours decide. Labels are written as IOB2: B-PER begins a name, I-PER goes on with it, O is none.

Run it with ``python examples/find_names.py [FOLDER]``; the files go to the folder, or to one that is removed again.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np

import m3n

NAMES = ["Paris", "Hill", "Austin", "Lincoln", "Jordan", "Sydney", "Chester", "Florence", "Victoria", "Berg"]
SENTENCES = [
    "PER met PER in LOC",
    "PER works for FRM in LOC",
    "FRM moved from LOC to LOC",
    "yesterday PER left FRM",
    "PER PER and PER live in LOC",
    "FRM sued FRM",
    "the people of LOC trust PER",
]
TEMPLATE = """\
# the word, its neighbours, pairs of them
U00:%x[-1,0]
U01:%x[0,0]
U02:%x[1,0]
U03:%x[-1,0]/%x[0,0]
U04:%x[0,0]/%x[1,0]
# forms of words: the last letters, capital letters
U10:%x[0,0:suffix2]
U11:%x[-1,0:brief]/%x[0,0:brief]/%x[1,0:brief]
# transitions
B
"""


def write(path: Path, count: int, seed: int) -> None:
    """A column file with a word and a label per line, and an empty line after every sentence."""
    random = np.random.default_rng(seed)
    with path.open("w", encoding="utf-8") as file:
        for _ in range(count):
            for word in str(random.choice(SENTENCES)).split():
                file.writelines(f"{token} {label}\n" for token, label in _tokens(word, random))
            file.write("\n")


def _tokens(word: str, random: np.random.Generator) -> list[tuple[str, str]]:
    """A word as it is, or a name of its kind."""
    if word not in ("PER", "LOC", "FRM"):
        return [(word, "O")]
    tokens = [str(name) for name in random.choice(NAMES, size=1 if word == "LOC" else random.integers(1, 3))]
    if word == "FRM" and random.random() < 0.7:
        tokens.append(str(random.choice(["Bank", "Motors", "Press"])))
    return [(token, f"{'I' if k else 'B'}-{word}") for k, token in enumerate(tokens)]


def run(folder: Path) -> None:
    write(folder / "train.txt", 300, seed=0)
    write(folder / "test.txt", 100, seed=1)
    (folder / "template.txt").write_text(TEMPLATE)

    train, test = (m3n.io.read_columns(folder / f"{name}.txt") for name in ("train", "test"))
    templates = m3n.features.Templates(m3n.io.read_template(folder / "template.txt"))
    for constraints in (None, "iob"):
        tagger = m3n.SequenceTagger(templates=templates, constraints=constraints, lam=0.003, rtol=0.05, tol=0.0)
        tagger.fit(train, train.labels)
        scores = m3n.scores.chunk_scores(test.labels, tagger.predict(test))
        print(f"constraints={constraints!r}: chunk F1 {scores.f1:.1%}, {tagger.status_}, {tagger.certificate_}")
    print(scores)

    tagger.save(folder / "names.m3n")
    m3n.report(None, tagger, test, test.labels, title="Names").save(folder / "report.html")


def main() -> None:
    if len(sys.argv) > 1 and Path(sys.argv[1]).is_dir():
        run(Path(sys.argv[1]))
        return
    with tempfile.TemporaryDirectory() as folder:
        run(Path(folder))


if __name__ == "__main__":
    main()
