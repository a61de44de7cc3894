"""Passes and solvers beside an earlier state of the source: ``python -m benchmarks earlier --tree FOLDER``.

The folder is a checkout of an earlier commit. Both states run the same script, each in processes of its own, in turn;
the minimum of CPU seconds counts, on one thread. Compiling is done before anything is measured.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
ROUNDS = 3


def run(tree: Path | None = None, rounds: int = ROUNDS) -> dict[str, Any]:
    """CPU seconds of both, and earlier / now: above 1 where it has become faster."""
    if tree is None:
        return {"missing": "name the folder of an earlier checkout: --tree FOLDER"}
    best: dict[str, dict[str, float]] = {"earlier": {}, "now": {}}
    for _ in range(rounds):
        for name, folder in (("earlier", tree), ("now", ROOT)):
            for row, seconds in _measure(folder).items():
                best[name][row] = min(seconds, best[name].get(row, seconds))
    return {"seconds": best, "earlier / now": {row: best["earlier"][row] / best["now"][row] for row in best["now"]}}


def _measure(folder: Path) -> dict[str, float]:
    environment = os.environ | {"PYTHONPATH": str(folder.resolve() / "src")}
    script = [sys.executable, str(Path(__file__).resolve())]
    done = subprocess.run(script, env=environment, stdout=subprocess.PIPE, text=True, check=True, cwd=folder)
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    """Measure the m3n that this interpreter finds; names that both states have are all that may be used here."""
    import numpy as np
    from scipy.sparse import csr_array

    import m3n
    from m3n.features import CHUNKING, Sparse, chain_features
    from m3n.solvers import LBFGS, BlockFrankWolfe, DualAscent, ExcessiveGap, SequentialDual
    from m3n.structures import Chain

    def words() -> tuple[Any, list[Any], int]:
        stored = np.load(Path(os.environ["M3N_DATA"]) / "ocr" / "letters.npz")
        kept = np.flatnonzero(stored["folds"] > 0)
        cuts = [np.arange(stored["offsets"][i], stored["offsets"][i + 1]) for i in kept]
        return csr_array(stored["pixels"][np.concatenate(cuts)].astype(float)), [stored["labels"][c] for c in cuts], 26

    def chunks() -> tuple[Any, list[Any], int]:
        sentences = m3n.io.read_columns(Path(os.environ["M3N_DATA"]) / "conll2000" / "train.txt.gz")
        names = sorted({label for labels in sentences.labels for label in labels})
        number = {name: k for k, name in enumerate(names)}
        return CHUNKING.fit_transform(sentences), [[number[x] for x in y] for y in sentences.labels], len(names)

    def least(task: Callable[[], Any], repeats: int) -> float:
        task()
        found = []
        for _ in range(repeats):
            begin = time.process_time()
            task()
            found.append(time.process_time() - begin)
        return min(found)

    seconds = {}
    for data, load in (("OCR", words), ("CoNLL-2000", chunks)):
        X, y, labels = load()
        structure, features = Chain([len(labels) for labels in y], labels), chain_features(Sparse(X, labels), labels)

        def problem(temperature: float, structure: Any = structure, features: Any = features, y: Any = y) -> Any:
            loss = None if temperature else m3n.losses.NormalizedHamming()
            return m3n.Problem(structure, features, y, loss=loss, temperature=temperature, n_jobs=1)

        margin, w = problem(0.0), 0.1 * np.random.default_rng(0).normal(size=features.dim)
        for name, ask in (
            ("max-oracle", lambda p=margin, w=w: p.hard(w)),
            ("exp-oracle", lambda p=margin, w=w: p.soft(w, 0.5)),
            ("J", lambda p=margin, w=w: p.primal(w)),
        ):
            seconds[f"{data}, {name}"] = least(ask, 30)
        for solver, temperature, passes in (
            (SequentialDual(), 0.0, 10),
            (BlockFrankWolfe(), 0.0, 5),
            (ExcessiveGap(), 0.0, 12),
            (DualAscent(), 1.0, 4),
            (LBFGS(), 1.0, 12),
        ):

            def train(s: Any = solver, t: float = temperature, k: int = passes, problem: Any = problem) -> None:
                m3n.minimize(problem(t), s, tol=0.0, max_passes=k)

            seconds[f"{data}, {type(solver).__name__}, {passes} passes"] = least(train, 2)
    print(json.dumps(seconds))


if __name__ == "__main__":
    main()
