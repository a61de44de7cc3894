"""``python -m benchmarks [suite ...]``: measure, print, and keep the numbers as JSON in ``benchmarks/out``."""

from __future__ import annotations

import argparse
import json
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

import m3n
from benchmarks import (
    alignment,
    command,
    contests,
    convergence,
    coverage,
    defaults,
    earlier,
    final,
    graphs,
    growth,
    ingest,
    kernels,
    labelling,
    oracle,
    parsing,
    report,
    rivals,
    roofline,
    scale,
    service,
    serving,
    start,
    threads,
    tune,
)
from benchmarks.contest import Options

SUITES = {
    "oracle": oracle.run,
    "convergence": convergence.run,
    "ingest": ingest.run,
    "start": start.run,
    "growth": growth.run,
    "roofline": roofline.run,
    "kernels": kernels.run,
    "graphs": graphs.run,
    "labelling": labelling.run,
    "coverage": coverage.run,
    "parsing": parsing.run,
    "alignment": alignment.run,
    "command": command.run,
    "serving": serving.run,
    "service": service.run,
    "defaults": defaults.run,
    "earlier": earlier.run,
    "threads": threads.run,
    "scale": scale.run,
    "final": final.run,
    "tune": tune.run,
    "rivals": rivals.run,
}


def main(arguments: list[str] | None = None) -> None:
    """Run the named suites, or all of them."""
    given = parser().parse_args(arguments)
    options = Options(given.repeats, given.limit, given.quick, given.stop, tuple(given.only))
    suites: dict[str, Any] = SUITES | {
        "rivals": partial(rivals.run, options, tuple(given.contest)),
        "earlier": partial(earlier.run, given.tree),
        "start": partial(start.run, given.tree, given.record),
        "defaults": partial(defaults.run, given.quick),
        "scale": partial(scale.run, given.quick),
        "final": partial(final.run, given.quick),
        "coverage": partial(coverage.run, given.quick),
        "tune": partial(tune.run, given.quick),
    }
    rivals.OUT.mkdir(exist_ok=True)
    for name in given.suites or SUITES:
        print(f"== {name}", flush=True)
        figures = {"date": date.today().isoformat(), "version": m3n.__version__, **suites[name]()}
        (rivals.OUT / f"{name}.json").write_text(json.dumps(figures, indent=2) + "\n")
        if name == "rivals":
            report.show(figures, given.clock)
        else:
            show(figures)


def parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("suites", nargs="*", metavar="suite", choices=[[], *SUITES], help=f"of {', '.join(SUITES)}")
    parser.add_argument("--tree", type=Path, help="earlier, start: the folder of an earlier checkout")
    parser.add_argument("--record", action="store_true", help="start: keep what was compiled in tasks.json")
    group = parser.add_argument_group("rivals")
    group.add_argument("--contest", action="append", default=[], choices=contests.BY_NAME, help="only this one")
    group.add_argument("--only", action="append", default=[], metavar="WORD", help="only runs with it in their name")
    group.add_argument("--quick", action="store_true", help="a smoke run on little data; defaults and tune, too")
    group.add_argument("--repeats", type=int, default=3, help="rounds, of which the minimum counts (3)")
    group.add_argument("--limit", type=int, help="take the first sequences only")
    group.add_argument("--stop", type=float, default=1e-4, help="relative distance to the best J (1e-4)")
    group.add_argument("--clock", default="seconds", choices=("seconds", "cpu"), help="which times the tables show")
    return parser


def show(figures: dict[str, Any], indent: str = "") -> None:
    """Print nested figures with four digits."""
    for key, value in figures.items():
        if isinstance(value, dict):
            print(f"{indent}{key}:")
            show(value, indent + "  ")
        else:
            print(f"{indent}{key}: {value:.4g}" if isinstance(value, float) else f"{indent}{key}: {value}")


if __name__ == "__main__":
    main()
