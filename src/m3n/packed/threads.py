"""Threads over contiguous lanes of the data, with a fixed order of reduction.

Compiled code releases the interpreter lock, so plain threads run it side by side. The data are cut into as many lanes
as there are threads; results come back in lane order, so sums are the same, bit for bit, in every run with the same
number of threads.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import cache
from itertools import pairwise
from threading import Barrier, BrokenBarrierError, Thread
from typing import Any, TypeVar

import numpy as np
from threadpoolctl import ThreadpoolController

T = TypeVar("T")
Lane = tuple[int, int]


def resolve(n_jobs: int | None) -> int:
    """Translate scikit-learn's ``n_jobs`` into a number of threads."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if n_jobs is None:
        return cores
    if n_jobs == 0:
        raise ValueError("n_jobs=0 has no meaning; use None for all cores or a positive number of threads")
    return n_jobs if n_jobs > 0 else max(1, cores + 1 + n_jobs)


class Threads:
    """A fixed number of worker threads.

    Parameters
    ----------
    n_jobs : int or None
        Number of threads; None or -1 takes every core this process may use, -2 all but one, and so on.
    """

    def __init__(self, n_jobs: int | None = None):
        self.count = resolve(n_jobs)

    def lanes(self, offsets: np.ndarray) -> list[Lane]:
        """Cut examples into one lane per thread with about equal work; ``offsets`` is the running sum of work."""
        examples = len(offsets) - 1
        targets = offsets[0] + (offsets[-1] - offsets[0]) * np.arange(1, self.count) / self.count
        cuts = np.searchsorted(offsets, targets).clip(0, examples)
        edges = [0, *(int(c) for c in cuts), examples]
        return [(a, b) for a, b in pairwise(edges) if b > a]

    def rows(self, size: int) -> list[Lane]:
        """Cut ``size`` rows of equal work into one lane per thread."""
        edges = [size * k // self.count for k in range(self.count + 1)]
        return [(a, b) for a, b in pairwise(edges) if b > a]

    def run(self, function: Callable[..., T], lanes: list[Lane], *arguments: Any) -> list[T]:
        """Call ``function(low, high, *arguments)`` on every lane; the results in lane order."""
        if not lanes:
            return []
        others: list[Future[T]] = []
        try:
            for lane in lanes[1:]:
                others.append(_pool(self.count).submit(function, *lane, *arguments))
            return [function(*lanes[0], *arguments), *(future.result() for future in others)]
        finally:
            wait(others)  # after Ctrl-C too: nobody may still write into a buffer that is used again


def together(
    function: Callable[..., T], calls: Sequence[tuple[Any, ...]], release: Callable[[], None] = lambda: None
) -> list[T]:
    """Call ``function`` with each of the arguments, every call on a thread of its own; the results in order.

    The calls may wait for one another: none begins before there is a thread for each. (In a pool, which others use as
    well, one that is waited for might wait for a thread itself.) If one fails ``release`` must let the others go on.
    """
    if len(calls) == 1:
        return [function(*calls[0])]
    results: list[Any] = [None] * len(calls)
    errors: list[BaseException] = []
    gate = Barrier(len(calls))

    def call(k: int) -> None:
        try:
            gate.wait()
            results[k] = function(*calls[k])
        except BrokenBarrierError:
            pass  # not all threads could be started
        except BaseException as error:  # raised again where it can be seen
            errors.append(error)
            release()

    others = [Thread(target=call, args=(k,), name=f"m3n_together_{k}", daemon=True) for k in range(1, len(calls))]
    started: list[Thread] = []
    try:
        for thread in others:
            thread.start()
            started.append(thread)
        call(0)
    finally:
        if len(started) < len(others):
            gate.abort()
        for thread in started:
            thread.join()
    if errors:
        raise errors[0]
    return results


SERIAL = Threads(1)


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Keep BLAS from starting threads of its own inside our lanes."""
    with _controller().limit(limits=1, user_api="blas"):
        yield


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


@cache
def _pool_of(process: int, count: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(count, thread_name_prefix="m3n")


def _pool(count: int) -> ThreadPoolExecutor:
    return _pool_of(os.getpid(), count)  # a forked child must not use its parent's threads
