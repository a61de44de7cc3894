"""What the terminal says while functions are compiled, and ``m3n warmup``, which compiles them beforehand."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from m3n.compiled.ahead import compile_all, listed, needs, progress, waiting


@contextmanager
def compilation_shown(console: Any) -> Iterator[None]:
    """Show what is being compiled: on a terminal a line that changes and goes away, else one line."""
    shown: list[Any] = []

    def tell(text: str) -> None:
        if text and shown:
            shown[0].update(text)
        elif text:
            shown.append(console.status(text))
            if console.is_terminal:
                shown[0].start()
            else:
                console.print(text)
        elif shown:
            shown[0].stop()

    progress.listeners.append(tell)
    try:
        yield
    finally:
        progress.listeners.remove(tell)
        if shown:
            shown[0].stop()


def tasks() -> list[str]:
    """What ``m3n warmup`` can be asked for."""
    return [*listed()["tasks"], "all"]


def warm_up(task: str, console: Any) -> int:
    """Compile what a task needs, with a progress bar; returns the exit code.

    Parameters
    ----------
    task : str
        One of ``tasks()``.
    console : rich.console.Console
        Where to draw.
    """
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    wanted = [need for need in needs(task) if not need.ready]
    if not wanted:
        console.print(f"{task}: all {len(needs(task))} functions are compiled already")
        return 0
    total = sum(need.seconds for need in wanted)
    columns = TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn()
    with Progress(*columns, console=console) as bar:
        line = bar.add_task(waiting(wanted), total=total)

        def told(left: list[Any]) -> None:
            done = total - sum(need.seconds for need in left)
            bar.update(line, completed=done, description=waiting(left) if left else "compiled")

        failed = compile_all(task, told)
        told(failed)
    console.print(f"{task}: {len(wanted) - len(failed)} functions compiled")
    for need in failed:
        console.print(f"not compiled: {need.name}")
    return 1 if failed else 0
