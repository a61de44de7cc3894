"""``python -m benchmarks [suite ...]``: measure, print, and keep the numbers as JSON."""

from __future__ import annotations

import json
import sys
from datetime import date
from pathlib import Path
from typing import Any

import m3n
from benchmarks import convergence, growth, ingest, oracle, roofline, start

SUITES = {
    "oracle": oracle.run,
    "convergence": convergence.run,
    "ingest": ingest.run,
    "start": start.run,
    "growth": growth.run,
    "roofline": roofline.run,
}
OUT = Path(__file__).parent / "out"


def main(names: list[str]) -> None:
    """Run the named suites, or all of them."""
    unknown = set(names) - set(SUITES)
    if unknown:
        sys.exit(f"unknown benchmark {sorted(unknown)}; choose from {sorted(SUITES)}")
    OUT.mkdir(exist_ok=True)
    for name in names or SUITES:
        print(f"== {name}", flush=True)
        figures = {"date": date.today().isoformat(), "version": m3n.__version__, **SUITES[name]()}
        (OUT / f"{name}.json").write_text(json.dumps(figures, indent=2) + "\n")
        show(figures)


def show(figures: dict[str, Any], indent: str = "") -> None:
    """Print nested figures with four digits."""
    for key, value in figures.items():
        if isinstance(value, dict):
            print(f"{indent}{key}:")
            show(value, indent + "  ")
        else:
            print(f"{indent}{key}: {value:.4g}" if isinstance(value, float) else f"{indent}{key}: {value}")


if __name__ == "__main__":
    main(sys.argv[1:])
