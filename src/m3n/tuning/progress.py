"""How far a search is, on the terminal."""

from __future__ import annotations


class Bar:
    """A line on standard error: how many models of the search are trained.

    Parameters
    ----------
    size : int
        How many there will be, if none are given up.
    """

    def __init__(self, size: int):
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        columns = TextColumn("{task.description}", markup=False), BarColumn(bar_width=20), MofNCompleteColumn()
        self.progress = Progress(*columns, TimeElapsedColumn(), console=Console(stderr=True))
        self.task = self.progress.add_task("reading", total=size)

    def __enter__(self) -> Bar:
        self.progress.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.progress.stop()

    def tell(self, text: str) -> None:
        """Show what is being done, or, with a lam, that it is done.

        Parameters
        ----------
        text : str
            In words.
        """
        self.progress.update(self.task, description=text, advance=1 if " lam " in f" {text}" else 0)
