"""The tests that every structure inherits. A subclass fills one hook: ``instances``."""

from itertools import islice

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from m3n.checks import brute_force, check_gradient, check_structure, total_score
from m3n.packed import Threads
from m3n.structures import Structure
from tests.structures.support import check_support

MU = st.sampled_from([1e-8, 1e-3, 0.05, 1.0, 30.0])
SCALE = st.sampled_from([1e-3, 1.0, 1e4])


def draw_theta(draw, structure, forbid=True):
    """Scores with ties (small integers), generic values, and some -inf that leave every example an output."""
    seed = draw(st.integers(0, 2**32 - 1))
    random = np.random.default_rng(seed)
    if draw(st.booleans()):
        theta = tuple(random.integers(-2, 3, size=shape).astype(float) for shape in structure.shapes)
    else:
        theta = tuple(random.normal(size=shape) for shape in structure.shapes)
    if forbid and draw(st.booleans()):
        for array in theta:
            holes = random.random(array.shape) < 0.25
            kept = np.where(holes, -np.inf, array)
            trial = tuple(kept if a is array else a for a in theta)
            if np.isfinite(brute_force(structure, trial, 0.0)[0]).all():
                array[holes] = -np.inf
    return theta


def has_choice(structure):
    """Whether an example has several outputs."""
    return any(sum(1 for _ in islice(structure.enumerate(i), 2)) > 1 for i in range(structure.n))


class StructureTemplate:
    """Inherit, and set ``instances`` to a Hypothesis strategy of tiny structures."""

    instances: st.SearchStrategy

    def for_all(self, check):
        """Call ``check(structure, draw)`` on many instances; ``draw`` draws more from any strategy."""

        @given(st.data())
        def run(data):
            check(data.draw(self.instances), data.draw)

        run()

    def test_oracles_agree_with_enumeration(self):
        def check(structure, draw):
            scale = draw(SCALE)
            theta = tuple(scale * a for a in draw_theta(draw, structure))
            check_structure(structure, theta, draw(MU) * scale)

        self.for_all(check)

    def test_marginals_are_the_gradient(self):
        def check(structure, draw):
            if has_choice(structure):  # with one output the value is linear and has no curvature to fit
                check_gradient(structure, draw_theta(draw, structure, forbid=False), 0.7)

        self.for_all(check)

    def test_cold_limit_is_the_max_oracle(self):
        def check(structure, draw):
            theta = draw_theta(draw, structure)
            best = structure.hard(theta)[0]
            mu = 1e-6
            value = structure.soft(tuple(a.copy() for a in theta), mu)[0]
            assert np.all(value >= best - 1e-9)
            assert np.all(value <= best + mu * structure.diameter() + 1e-9)

        self.for_all(check)

    def test_encode_and_decode_round_trip(self):
        def check(structure, draw):
            outputs = [draw(st.sampled_from(list(structure.enumerate(i)))) for i in range(structure.n)]
            labelling = np.concatenate(outputs)
            unpacked = structure.unpack(labelling)
            assert len(unpacked) == structure.n
            assert np.array_equal(structure.pack(unpacked), labelling)
            parts = structure.encode(labelling)
            assert tuple(a.shape for a in parts) == structure.shapes
            assert all(a.min(initial=0.0) >= 0 for a in parts)

        self.for_all(check)

    def test_scores_and_parts_of_a_labelling(self):
        """``score`` and ``subtract``, own or inherited, against ``encode``."""

        def check(structure, draw):
            theta = draw_theta(draw, structure)
            outputs = [draw(st.sampled_from(list(structure.enumerate(i)))) for i in range(structure.n)]
            labelling = np.concatenate(outputs)
            for method in (type(structure).score, Structure.score):
                scores = method(structure, theta, labelling)
                for i in range(structure.n):
                    alone, rows = structure.select(np.array([i]))
                    mine = tuple(a if row is None else a[row] for a, row in zip(theta, rows, strict=True))
                    expected = total_score(mine, alone.encode(outputs[i]))
                    np.testing.assert_allclose(scores[i], expected, rtol=1e-12, atol=1e-12)
            for method in (type(structure).subtract, Structure.subtract):
                parts = tuple(np.full(shape, 2.0) for shape in structure.shapes)
                method(structure, labelling, parts, Threads(2))
                for a, b in zip(parts, structure.encode(labelling), strict=True):
                    np.testing.assert_array_equal(a, 2.0 - b)

        self.for_all(check)

    def test_threads_do_not_change_the_answer(self):
        def check(structure, draw):
            theta = draw_theta(draw, structure)
            for threads in (Threads(2), Threads(3)):
                one = structure.soft(tuple(a.copy() for a in theta), 0.5)
                two = structure.soft(tuple(a.copy() for a in theta), 0.5, threads)
                again = structure.soft(tuple(a.copy() for a in theta), 0.5, threads)
                np.testing.assert_array_equal(one[0], two[0])
                for a, b, c in zip(one[1], two[1], again[1], strict=True):
                    np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)
                    np.testing.assert_array_equal(b, c)
                np.testing.assert_array_equal(structure.hard(theta)[1], structure.hard(theta, threads)[1])

        self.for_all(check)

    def test_factored_dual_agrees_with_enumeration(self):
        def check(structure, draw):
            theta = draw_theta(draw, structure, forbid=False)
            if "support" in structure.oracles:
                check_support(structure, theta, np.random.default_rng(draw(st.integers(0, 1000))))

        self.for_all(check)

    def test_branches_divide_the_outputs(self):
        """For slack rescaling: every output is in one branch, and two different ones are not in the same."""

        def check(structure, draw):
            alone, _ = structure.select(np.array([draw(st.integers(0, structure.n - 1))]))
            outputs = list(alone.enumerate(0))
            encoded = [alone.encode(y) for y in outputs]
            for y, parts in zip(outputs, encoded, strict=True) if alone.one_label_per_row else ():
                np.testing.assert_array_equal(parts[0], np.eye(parts[0].shape[1])[alone.labels_of(y)])
            one, other = (draw(st.integers(0, len(outputs) - 1)) for _ in range(2))
            masks = alone.branches(outputs[one], outputs[other])
            assert bool(masks) == (one != other)
            if masks:
                inside = np.array(
                    [[bool(parts[k][mask].any()) == must for parts in encoded] for k, mask, must in masks]
                )
                np.testing.assert_array_equal(inside.sum(axis=0), 1)
                assert inside[0, other]
                assert inside[1, one]

        self.for_all(check)

    def test_selection_is_the_same_problem(self):
        def check(structure, draw):
            theta = draw_theta(draw, structure)
            chosen = np.array(draw(st.lists(st.integers(0, structure.n - 1), min_size=1, max_size=4)))
            part, rows = structure.select(chosen)
            mine = tuple(a if row is None else a[row] for a, row in zip(theta, rows, strict=True))
            np.testing.assert_array_equal(part.hard(mine)[0], structure.hard(theta)[0][chosen])

        self.for_all(check)

    def test_the_max_oracle_leaves_the_scores_alone(self):
        def check(structure, draw):
            theta = draw_theta(draw, structure)
            copy = tuple(a.copy() for a in theta)
            structure.hard(theta)
            for a, b in zip(theta, copy, strict=True):
                np.testing.assert_array_equal(a, b)

        self.for_all(check)
