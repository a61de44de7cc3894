from collections import deque
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse

from m3n.comparison import measured_exponent, memory_of
from m3n.comparison.measures import buffers

PASSES = np.geomspace(1.0, 1000.0, 40)


@pytest.mark.parametrize("slope", [-0.5, -1.0, -2.0])
def test_the_exponent_of_a_power_law(slope):
    assert measured_exponent(PASSES, 7.0 * PASSES**slope) == pytest.approx(slope, abs=1e-9)


def test_the_exponent_forgets_the_beginning():
    plateau = np.minimum(1.0, 400.0 / PASSES**2)  # the trivial certificate holds up to pass 20
    assert measured_exponent(PASSES, plateau) == pytest.approx(-2.0, abs=1e-9)
    early = np.where(
        PASSES < 10, PASSES**-3.0, 1e-2 / PASSES
    )  # fast at first, then as 1/k: the rate is that of the end
    assert measured_exponent(PASSES, early) == pytest.approx(-1.0, abs=1e-9)


def test_the_exponent_does_not_depend_on_how_often_was_looked():
    def curve(k):  # bends, so that uneven weights would show
        return 1.0 / (k + k**2 / 100)

    every_pass = np.arange(1.0, 1001.0)
    assert measured_exponent(every_pass, curve(every_pass)) == pytest.approx(
        measured_exponent(PASSES, curve(PASSES)), abs=0.01
    )


def test_the_exponent_of_a_ragged_trace():
    """Best-so-far values fall in steps; the line goes through them."""
    noise = np.exp(np.random.default_rng(0).normal(scale=0.3, size=len(PASSES)))
    best = np.minimum.accumulate(PASSES**-2.0 * noise)
    assert measured_exponent(PASSES, best) == pytest.approx(-2.0, abs=0.2)


def test_equal_passes_and_rounding_do_no_harm():
    passes, gaps = np.repeat(PASSES, 2), np.repeat(PASSES**-2.0, 2)
    assert measured_exponent(passes, gaps) == pytest.approx(-2.0, abs=1e-9)
    gaps = np.where(PASSES > 500, 1e-17, PASSES**-2.0)  # the end is rounding
    assert measured_exponent(PASSES, gaps) == pytest.approx(-2.0, abs=1e-9)
    gaps[-1] = 0.0
    assert measured_exponent(PASSES, gaps) == pytest.approx(-2.0, abs=1e-9)


def test_the_first_record_may_be_that_of_no_passes():
    assert measured_exponent([0.0, *PASSES], [1.0, *PASSES**-2.0]) == pytest.approx(-2.0, abs=1e-9)


@pytest.mark.parametrize(
    "passes, gaps",
    [
        ([], []),
        ([0.0], [1.0]),
        ([1.0, 10.0, 100.0], [1.0, 0.1, 0.01]),  # too few
        (np.linspace(1.0, 1000.0, 9), np.r_[np.ones(5), 0.1, 0.09, 0.08, 0.07]),  # four of them
        (PASSES, np.ones(len(PASSES))),  # nothing but the trivial certificate
        (np.linspace(100, 120, 40), np.linspace(100, 120, 40) ** -9.0),  # less than a factor of two
        (PASSES, np.full(len(PASSES), np.inf)),
    ],
)
def test_too_little_to_measure(passes, gaps):
    assert measured_exponent(passes, gaps) is None


class Slotted:
    __slots__ = ("array", "unset")

    def __init__(self, array):
        self.array = array


@dataclass(frozen=True)
class State:
    w: np.ndarray
    more: object


def test_memory_of_known_arrays():
    w = np.zeros(100)  # 800 bytes
    assert memory_of(State(w, None)) == 800
    assert memory_of(State(w, [np.zeros(10), (np.zeros(5),), {"a": np.zeros(3, dtype=np.int32)}])) == 800 + 80 + 40 + 12
    assert memory_of(State(w, Slotted(SimpleNamespace(deep=deque([np.zeros(7)]))))) == 800 + 56
    assert memory_of(State(w, np.array([np.zeros(4), None], dtype=object))) == 800 + 16 + 32
    matrix = scipy.sparse.csr_array((np.ones(3), np.array([0, 1, 2]), np.array([0, 3])), shape=(1, 3))
    parts = matrix.data.nbytes + matrix.indices.nbytes + matrix.indptr.nbytes
    assert memory_of(State(w, matrix)) == 800 + parts
    assert memory_of(State(w, [3, "text", np.float64(1.0), print, np, State])) == 800


def test_a_buffer_counts_once_and_as_a_whole():
    w = np.zeros(100)
    assert memory_of(State(w, [w, w[:10], w.reshape(10, 10), w[:0]])) == 800
    assert memory_of(State(w[:1], None)) == 800  # the view keeps all of it alive
    raw = bytes(80)
    assert memory_of([np.frombuffer(raw), np.frombuffer(raw, count=2)]) == 80


def test_what_belongs_to_the_problem_is_not_the_solvers():
    data = np.zeros(1000)
    problem = SimpleNamespace(X=data)
    state = State(np.zeros(100), data[::2])
    assert memory_of(state) == 8800
    assert memory_of(state, buffers(problem)) == 800


def test_circles_and_depth_do_no_harm():
    chain = None
    for _ in range(5000):  # deeper than Python recurses
        chain = [np.zeros(1), chain]
    assert memory_of(chain) == 40_000
    circle = [np.zeros(2)]
    circle.append(circle)
    assert memory_of(circle) == 16
