"""The hardest examples: those with the most errors, then those that were nearly wrong.

How near an example is to being wrong is its margin, the score of the prediction minus that of the second best answer,
where the model can tell (``predict_k_best``) and the data are few enough for that to be cheap.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np

from m3n.estimators.forms import OFF
from m3n.reports.markup import Markup, count, grouped, joined, number, tag
from m3n.reports.quality import Outcome, label_name

MOST = 20
CLOSE_CALLS = 5
CHEAP = 200_000  # positions for which a second best answer is asked for
LONG = 60  # positions that are shown without leaving any out
CONTEXT = 3  # right positions around wrong ones, in longer examples
LONGEST = 240  # positions of one example that are shown at all


@dataclass(frozen=True)
class Compared:
    """An example whose labels are compared with others: those predicted, or the second best ones."""

    number: int
    heading: str
    first: list[Any]
    second: list[Any]
    meaning: tuple[str, str] = ("right", "predicted")


def hardest(outcome: Outcome, model: Any, X: Any) -> Markup:
    """The examples with most errors, and the closest calls among the others if there is room.

    Parameters
    ----------
    outcome : Outcome
        Right and predicted labels.
    model : estimator
        A fitted one.
    X : inputs
        As its ``predict`` wants them.
    """
    errors = outcome.errors
    worst = [int(i) for i in np.argsort(-errors, kind="stable")[:MOST] if errors[i]]
    calls = _close_calls(outcome, model, X, min(CLOSE_CALLS, MOST - len(worst)))
    return joined(
        tag("p", _summary(outcome.example, errors, len(worst))),
        tag("h3", "Most errors") if worst else None,
        [_article(_wrong(outcome, i, int(errors[i])), outcome) for i in worst],
        (tag("h3", "Right, but close calls"), tag("p", CALLS)) if calls else None,
        [_article(call, outcome) for call in calls],
    )


def _summary(example: str, errors: np.ndarray, shown: int) -> str:
    wrong = int((errors > 0).sum())
    if not wrong:
        return f"Every {example} is right." if len(errors) else f"There are no {example}s."
    which = "all of them" if shown == wrong else f"the {shown} with most"
    return (
        f"{grouped(wrong)} of {count(len(errors), example)} have errors; here are {which}, counted from 0 as in "
        "Python. What is wrong is framed: the right label, and below it, marked ✗, the predicted one."
    )


CALLS = (
    "The smallest margins, that is score of the prediction minus score of the second best answer. Where that one "
    "differs, its label stands below, marked ≈."
)


def _wrong(outcome: Outcome, i: int, errors: int) -> Compared:
    gold, predicted = outcome.gold[i], outcome.predicted[i]
    heading = f"{outcome.example.capitalize()} {i}: {errors} of {count(len(gold), outcome.position)} wrong"
    return Compared(i, heading, gold, predicted)


def _close_calls(outcome: Outcome, model: Any, X: Any, most: int) -> list[Compared]:
    if not most or outcome.positions > CHEAP:
        return []
    found = []
    for i, answers in enumerate(outcome.form.runners_up(model, X)):
        if len(answers) == 2 and list(answers[0][0]) == list(outcome.gold[i]):
            found.append((answers[0][1] - answers[1][1], i, answers[1][0]))
    found.sort(key=lambda call: call[:2])
    what = outcome.example.capitalize()
    return [
        Compared(i, f"{what} {i}: margin {number(margin)}", outcome.gold[i], list(second), ("right", "second best"))
        for margin, i, second in found[:most]
    ]


def _article(example: Compared, outcome: Outcome) -> Markup:
    words, differ = outcome.words(example.number), [a != b for a, b in zip(example.first, example.second, strict=True)]
    kept = _kept(example, differ)
    items: list[Markup] = []
    for shown, places in _runs(kept):
        if shown:
            items += [_position(words[t], example, t) for t in places]
        elif OFF not in example.first:
            items.append(tag("li", f"… {len(places)} more …", class_="gap"))
    return tag("article", tag("h4", example.heading), tag("ol", items, class_="tokens"))


def _kept(example: Compared, differ: list[bool]) -> list[bool]:
    """Which positions are shown: all of a short example, those near a difference of a long one, labels that are on."""
    if OFF in example.first:
        return [not (a == b == OFF) for a, b in zip(example.first, example.second, strict=True)]
    if len(differ) <= LONG:
        return [True] * len(differ)
    near = np.convolve(differ, np.ones(2 * CONTEXT + 1), mode="same") > 0
    for shown, places in _runs(near.tolist()):
        near[places] |= not shown and len(places) <= CONTEXT  # leaving out so few would save no room
    return (near & (np.cumsum(near) <= LONGEST)).tolist()


def _runs(kept: list[bool]) -> list[tuple[bool, list[int]]]:
    """Stretches of positions that are shown, or left out."""
    return [(shown, [t for t, _ in run]) for shown, run in groupby(enumerate(kept), key=lambda entry: entry[1])]


def _position(word: str, example: Compared, t: int) -> Markup:
    """A token with its label, or with both labels where they differ."""
    first, second = label_name(example.first[t]), label_name(example.second[t])
    text = tag("span", word if len(word) <= 40 else word[:39] + "…", class_="word")
    if first == second:
        return tag("li", text, tag("span", first, class_="label"))
    above, below = example.meaning
    mark, kind = ("✗ ", "wrong") if below == "predicted" else ("≈ ", "close")
    return tag(
        "li",
        text,
        tag("span", _spoken(f"{above}: "), first, class_="label gold"),
        tag("span", mark, _spoken(f"{below}: "), second, class_="label other"),
        class_=kind,
    )


def _spoken(text: str) -> Markup:
    """Words that a screen reader says and that the layout shows otherwise."""
    return tag("span", text, class_="spoken")
