"""Test scores, the same for every entry."""

from __future__ import annotations

from collections.abc import Iterator

Labels = list[list[str]]


def chunk_f1(gold: Labels, found: Labels) -> float:
    """F1 of whole chunks (type and both ends right) in per cent, as the shared tasks count them."""
    right = truly = said = 0
    for a, b in zip(gold, found, strict=True):
        expected, answer = set(chunks(a)), set(chunks(b))
        right, truly, said = right + len(expected & answer), truly + len(expected), said + len(answer)
    return 200.0 * right / max(1, truly + said)


def chunks(labels: list[str]) -> Iterator[tuple[int, int, str]]:
    """First position, end and type of every chunk of IOB2 labels; an I- after another type begins a chunk as well."""
    start, kind = 0, ""
    for t, label in enumerate([*labels, "O"]):
        prefix, _, new = label.partition("-")
        if kind and (prefix != "I" or new != kind):
            yield start, t, kind
            kind = ""
        if new and not kind:
            start, kind = t, new


def error_rate(gold: Labels, found: Labels) -> float:
    """Wrong labels in per cent."""
    pairs = [pair for a, b in zip(gold, found, strict=True) for pair in zip(a, b, strict=True)]
    return 100.0 * sum(a != b for a, b in pairs) / max(1, len(pairs))
