"""Models and explanations as HTML for notebooks.

The pieces have no scripts and load nothing. Colours of text are the notebook's own, and shades are translucent, so that
light and dark themes both work; signs are written out, so that nothing depends on colours.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from typing import TYPE_CHECKING, Any

from m3n.estimators.model_summary import summary, top_weights

if TYPE_CHECKING:
    from m3n.estimators.explanation import Explanation, Position

SHOWN_LABELS = 30
SHOWN_WEIGHTS = 5  # of each sign
REASONS = 3
STYLE = """<style>
.m3n table {border-collapse: collapse; margin: .4em 0; color: inherit; font-size: inherit}
.m3n th, .m3n td {border-bottom: 1px solid rgba(128,128,128,.4); padding: .2em .6em; text-align: left;
  vertical-align: top; background: none; color: inherit}
.m3n .number {text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap}
.m3n .sum td {font-weight: bold}
.m3n .plus, .m3n .minus {border-radius: .2em; padding: 0 .25em; white-space: nowrap}
.m3n .plus {background: rgba(33,120,200,.2)}
.m3n .minus {background: rgba(220,100,0,.2)}
.m3n summary {cursor: pointer}
</style>"""


def estimator_page(model: Any) -> str:
    """An estimator: its parameters and, once fitted, what it is, its certificate and its largest weights.

    Parameters
    ----------
    model : estimator
        Fitted or not.
    """
    changed = {name: repr(value) for name, value in model._changed().items()}
    params = _facts(changed) if changed else "<p>all parameters have their defaults</p>"
    title = f"{type(model).__name__}, {'' if model._fitted else 'not '}fitted"
    if not (model._has_weights and model._fitted):
        return _page(title, params)
    facts = summary(model)
    pieces = [f"<p>{escape(certificate_in_words(facts))}</p>", _facts(_sizes(facts))]
    pieces.append(_details("Parameters that differ from the defaults", params))
    if model._holder._linear and model._holder._has_names:
        pieces.append(_details("Largest weights of every label", _weights(model)))
    return _page(title, *pieces)


def certificate_in_words(facts: Mapping[str, Any]) -> str:
    """What is known about the quality of a model's weights, in a sentence or two.

    Parameters
    ----------
    facts : mapping
        What ``summary`` returns.
    """
    certificate = facts["certificate"]
    if certificate is None:
        return "This model has no certificate: it was not trained by m3n."
    what = "relaxed objective" if certificate["relaxed"] else "objective"
    text = (
        f"The {what} of these weights is {certificate['primal']:.6g}, and no weights can have one below "
        f"{certificate['dual']:.6g}: they are at most {certificate['gap']:.2g} away from the best."
    )
    return f"{text} Training stopped: {facts['status']}." if facts["status"] else text


def explanation_page(explanation: Explanation) -> str:
    """An explanation: a row per position with its strongest reasons, and all contributions to open.

    Parameters
    ----------
    explanation : Explanation
        Of one sequence.
    """
    header = ("position", "label", "probability", "best other label", "would cost", "why")
    rows = [_position_row(explanation, position) for position in explanation.positions]
    verdict = "".join(f"<p>{escape(line)}</p>" for line in explanation.verdict())
    tables = "".join(_contributions(explanation, position) for position in explanation.positions)
    return _page("Explanation", verdict, _table(header, rows), _details("All contributions", tables))


def _position_row(explanation: Explanation, position: Position) -> list[str]:
    name = f"{position.number} {position.text}".strip()
    other = "none possible" if position.other is None else str(position.other)
    numbers = (f"{position.probability:.3g}", other, _minus(explanation.signed(position.margin).lstrip("+")))
    reasons = [(reason.title, reason.difference or 0.0) for reason in position.reasons(REASONS)]
    marked = " ".join(_marked(title, number, explanation.signed(number)) for title, number in reasons)
    return [*(escape(text) for text in (name, str(position.label), *numbers)), marked]


def _contributions(explanation: Explanation, position: Position) -> str:
    header = ["", str(position.label)]
    if position.other is not None:
        header += [str(position.other), "difference"]
    rows = [[escape(_minus(cell)) for cell in row[: len(header)]] for row in explanation.rows(position)]
    sums = {len(position.contributions), len(rows) - 1}
    return f"<p>{escape(explanation.heading(position))}</p>" + _table(header, rows, numbers=True, sums=sums)


def _sizes(facts: Mapping[str, Any]) -> dict[str, str]:
    labels = [str(label) for label in facts["labels"]]
    shown = ", ".join(labels[:SHOWN_LABELS]) + (", ..." if len(labels) > SHOWN_LABELS else "")
    what = "coefficients" if facts["support"] is not None else "weights"
    sizes = {
        f"{len(labels)} labels": shown,
        "attributes": f"{facts['attributes']:,}",
        what: f"{facts['weights']:,}, of which {facts['nonzero_weights']:,} are not zero; {_memory(facts['bytes'])}",
    }
    if facts["support"] is not None:
        sizes["support inputs"] = f"{facts['support']:,}"
    lam = f", lam {facts['lam']:.4g}" if facts["lam"] is not None else ""
    sizes["objective"] = f"{facts['objective']}{lam}"
    if facts["passes"] is not None:
        by = f" by {facts['solver']}" if facts["solver"] else ""
        sizes["training"] = f"{facts['passes']:.4g} passes over the data in {facts['seconds']:.3g} s{by}"
    return sizes


def _weights(model: Any) -> str:
    best = top_weights(model, SHOWN_WEIGHTS)
    rows = []
    for label, weights in list(best.items())[:SHOWN_LABELS]:
        positive = [_marked(name, weight) for name, weight in weights if weight > 0]
        negative = [_marked(name, weight) for name, weight in reversed(weights) if weight < 0]
        rows.append([escape(str(label)), " ".join(positive), " ".join(negative)])
    more = f"<p>and {len(best) - SHOWN_LABELS} further labels</p>" if len(best) > SHOWN_LABELS else ""
    return _table(("label", "speaks for it", "speaks against it"), rows) + more


def _marked(name: str, number: float, text: str = "") -> str:
    """A name with a number, on a shade that goes with the number's sign."""
    written = escape(f"{name} {_minus(text or f'{number:+.3g}')}")
    return f'<span class="{"plus" if number > 0 else "minus"}">{written}</span>'


def _memory(count: int) -> str:
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count} bytes"


def _minus(text: str) -> str:
    """A number's hyphen as a proper sign, which is as wide as a plus; only where a digit follows."""
    return f"−{text[1:]}" if text[:1] == "-" and text[1:2].isdigit() else text


def _facts(facts: Mapping[str, str]) -> str:
    rows = [f'<tr><th scope="row">{escape(name)}</th><td>{escape(text)}</td></tr>' for name, text in facts.items()]
    return f"<table>{''.join(rows)}</table>"


def _table(header: Iterable[str], rows: Iterable[list[str]], *, numbers: bool = False, sums: Iterable[int] = ()) -> str:
    """A table of cells that are HTML already; with ``numbers``, all columns but the first hold numbers."""
    total = set(sums)

    def kind(k: int) -> str:
        return ' class="number"' if numbers and k else ""

    head = "".join(f'<th scope="col"{kind(k)}>{escape(name)}</th>' for k, name in enumerate(header))
    bold = ' class="sum"'
    lines = ["".join(f"<td{kind(k)}>{cell}</td>" for k, cell in enumerate(row)) for row in rows]
    body = "".join(f"<tr{bold if i in total else ''}>{line}</tr>" for i, line in enumerate(lines))
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _details(title: str, content: str) -> str:
    return f"<details><summary>{escape(title)}</summary>{content}</details>"


def _page(title: str, *pieces: str) -> str:
    return f'{STYLE}<div class="m3n"><p><b>{escape(title)}</b></p>{"".join(pieces)}</div>'
