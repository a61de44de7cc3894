"""``m3n warmup``: compile beforehand."""

from __future__ import annotations

from typing import Any

from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from m3n.cli.options import console
from m3n.compiled.ahead import compile_all, listed, needs, waiting


def warm_up(task: str) -> int:
    """Compile what a task needs, with a progress bar; returns the exit code.

    Parameters
    ----------
    task : str
        Its name, or "all".
    """
    if task not in (tasks := [*listed()["tasks"], "all"]):
        raise ValueError(f"unknown task {task!r}; choose from {', '.join(tasks)}")
    out = console()
    wanted = [need for need in needs(task) if not need.ready]
    if not wanted:
        out.print(f"{task}: all {len(needs(task))} functions are compiled already")
        return 0
    total = sum(need.seconds for need in wanted)
    columns = TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn()
    with Progress(*columns, console=out) as bar:
        line = bar.add_task(waiting(wanted), total=total)

        def told(left: list[Any]) -> None:
            done = total - sum(need.seconds for need in left)
            bar.update(line, completed=done, description=waiting(left) if left else "compiled")

        failed = compile_all(task, told)
        told(failed)
    out.print(f"{task}: {len(wanted) - len(failed)} functions compiled")
    for need in failed:
        out.print(f"not compiled: {need.name}")
    return 1 if failed else 0
