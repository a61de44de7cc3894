import threading
import time

import numpy as np
import pytest

from m3n.packed import Threads, together
from m3n.packed.threads import resolve


def test_lanes_cover_everything_once_and_evenly():
    offsets = np.concatenate([[0], np.cumsum([5, 1, 1, 1, 8, 2, 2])])
    for count in range(1, 10):
        lanes = Threads(count).lanes(offsets)
        assert [i for low, high in lanes for i in range(low, high)] == list(range(7))
    work = [offsets[high] - offsets[low] for low, high in Threads(2).lanes(offsets)]
    assert max(work) <= 16
    assert Threads(3).rows(2) == [(0, 1), (1, 2)]
    assert Threads(2).rows(0) == []


def test_results_come_in_lane_order():
    def slow_first(low, high):
        time.sleep(0.02 if low == 0 else 0.0)
        return low

    assert Threads(3).run(slow_first, [(0, 1), (1, 2), (2, 3)]) == [0, 1, 2]


def test_arguments_come_after_the_lane():
    threads = Threads(3)
    found = threads.run(lambda low, high, x, y: (low, high, x + y), threads.rows(6), 1, 2)
    assert found == [(0, 2, 3), (2, 4, 3), (4, 6, 3)]


def test_an_interrupt_waits_for_the_other_lanes():
    finished = threading.Event()

    def lane(low, high):
        if low == 0:
            raise KeyboardInterrupt
        time.sleep(0.05)
        finished.set()

    with pytest.raises(KeyboardInterrupt):
        Threads(2).run(lane, [(0, 1), (1, 2)])
    assert finished.is_set()


def test_n_jobs():
    cores = resolve(None)
    assert cores >= 1
    assert resolve(-1) == cores
    assert resolve(3) == 3
    assert resolve(-100) == 1
    with pytest.raises(ValueError, match="n_jobs=0"):
        resolve(0)


def test_calls_together_may_wait_for_one_another():
    gate = threading.Barrier(3, timeout=10)

    def call(k):
        gate.wait()
        return 10 * k

    assert together(call, [(0,), (1,), (2,)]) == [0, 10, 20]
    assert together(lambda k: k + 1, [(4,)]) == [5]


@pytest.mark.parametrize("place", [0, 1, 2])
def test_an_error_in_one_of_several_calls_is_raised(place):
    def call(k):
        if k == place:
            raise ValueError(f"call {k} failed")
        return k

    with pytest.raises(ValueError, match=f"call {place} failed"):
        together(call, [(0,), (1,), (2,)])
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("m3n_together")]
