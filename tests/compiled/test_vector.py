import math

import numpy as np
import pytest

from m3n.compiled.jit import compiled
from m3n.compiled.primitives import groups, padded, vector

SIGNS = np.array([5, 0, -1, 3, ~0], np.int32)


@compiled
def apply(x, y, z, out):
    """Every operation on the four numbers of x, y and z, one row of ``out`` each."""
    a, b, c = vector.load(x, 0), vector.load(y, 0), vector.load(z, 0)
    vector.store(out, 0, vector.add(a, b))
    vector.store(out, 4, vector.subtract(a, b))
    vector.store(out, 8, vector.multiply(a, b))
    vector.store(out, 12, vector.multiply_add(a, b, c))
    vector.store(out, 16, vector.maximum(a, b))
    vector.store(out, 20, vector.minimum(a, b))
    vector.store(out, 24, vector.ratio(a, b))
    vector.store(out, 28, vector.splat(x[2]))
    vector.store(out, 32, vector.broadcast(x, 3))
    vector.store(out, 36, vector.exponential(a))
    vector.store(out, 40, vector.kept(SIGNS, 1, a))
    vector.prefetch(x, 1)
    return vector.total(a), vector.highest(a), vector.lowest(a)


def test_operations_against_numpy(random):
    x, y, z = random.normal(size=(3, 4))
    y[1] = 0.0
    out = np.full((11, 4), np.nan)
    total, highest, lowest = apply(x, y, z, out)
    quotient = np.divide(x, y, out=np.zeros(4), where=y != 0.0)
    rows = [x + y, x - y, x * y, x * y + z, np.maximum(x, y), np.minimum(x, y), quotient, [x[2]] * 4, [x[3]] * 4]
    np.testing.assert_allclose(out[:9], rows, rtol=1e-15, atol=1e-15)
    np.testing.assert_allclose(out[9], np.exp(x), rtol=4e-16)
    np.testing.assert_array_equal(out[10], np.where(SIGNS[1:] >= 0, x, 0.0))
    assert (total, highest, lowest) == ((x[0] + x[1]) + (x[2] + x[3]), x.max(), x.min())


def test_exponential_at_the_ends_of_its_range():
    x = np.array([-np.inf, -708.5, -707.9, 700.0])
    out = np.empty((11, 4))
    apply(x, x, x, out)
    assert out[9, :2].tolist() == [0.0, 0.0]
    np.testing.assert_allclose(out[9, 2:], [math.exp(-707.9), math.exp(700.0)], rtol=1e-15)


@compiled
def apply_to_groups(x, y, signs, end, out):
    """Operations on 24 numbers of x, where vectors that would begin beyond ``end`` overlap, and on eight of y."""
    many, few = groups.six(2.0), groups.two(0.5)
    offsets, next_ones = groups.within(many, end), groups.neighbours(few)
    a, b = groups.loads(x, 0, offsets), groups.loads(y, 1, next_ones)
    groups.stores(out, 0, offsets, vector.multiply_add(vector.splat(3.0), a, many))
    groups.stores(out, 24, next_ones, vector.add(b, few))
    groups.stores(out, 32, offsets, groups.kept_each(signs, 0, offsets, a))
    return len(a), len(b)


@pytest.mark.parametrize("width", [24, 22, 4])
def test_groups_of_vectors(width, random):
    x, y, signs = random.normal(size=24), random.normal(size=9), random.integers(-1, 1, size=24).astype(np.int32)
    out = np.full(56, np.nan)
    assert apply_to_groups(x, y, signs, width - 4, out) == (6, 2)
    np.testing.assert_allclose(out[:width], 3.0 * x[:width] + 2.0)
    np.testing.assert_array_equal(out[24:32], y[1:] + 0.5)
    np.testing.assert_array_equal(out[32 : 32 + width], np.where(signs[:width] >= 0, x[:width], 0.0))
    assert np.isnan(out[width:24]).all()
    assert np.isnan(out[32 + width :]).all()


@pytest.mark.parametrize("labels", [1, 2, 3, 4, 5, 8, 9, 17, 22, 24, 25, 26, 33, 50, 56])
def test_products_of_padded_rows(labels, random):
    """Every split of a row into groups of 24 and of 8 columns; nothing is read or written beyond the row."""
    width, length = vector.padded(labels), 5
    assert width % 8 == 0
    assert labels <= width < labels + 8
    matrix = np.zeros((width, width))
    matrix[:labels, :labels] = random.normal(size=(labels, labels))
    left, right = random.normal(size=(2, length, width))
    out = np.full((3, width), np.nan)
    padded.product(left, 2 * width, labels, matrix, out, width)
    np.testing.assert_allclose(out[1], left[2, :labels] @ matrix[:labels], rtol=1e-12, atol=1e-12)
    both = np.full((6, width), np.nan)
    padded.products(left, width, width, labels, matrix, both, width, width)
    for k in range(4):
        padded.product(left, (k + 1) * width, labels, matrix, out, width)
        np.testing.assert_array_equal(both[k + 1], out[1])
    assert np.isnan(both[[0, 5]]).all()
    padded.maxima(left, 3 * width, labels, matrix, out, width)
    np.testing.assert_array_equal(out[1], (left[3, :labels, None] + matrix[:labels]).max(axis=0))
    chosen = np.flatnonzero(random.random(labels) < 0.5)
    chosen = chosen if len(chosen) else np.array([labels - 1])
    padded.maxima_of(left, 3 * width, chosen, len(chosen), matrix, out, width)
    np.testing.assert_array_equal(out[1], (left[3, chosen, None] + matrix[chosen]).max(axis=0))
    assert np.isnan(out[[0, 2]]).all()
    sums = np.zeros((width, width))
    padded.add_products(left, right, length, labels, sums)
    np.testing.assert_allclose(sums[:labels], (left[:-1].T @ right[1:])[:labels], rtol=1e-12, atol=1e-12)
    assert not sums[labels + labels % 2 :].any()


@pytest.mark.parametrize("count", [1, 3, 4, 6, 9, 24, 26])
def test_rows_without_padding(count, random):
    rows, scratch = random.normal(size=(3, count)), np.full(vector.padded(count), np.nan)
    padded.copy(rows.ravel(), count, count, scratch, 0)
    np.testing.assert_array_equal(scratch[:count], rows[1])
    assert np.isnan(scratch[count:]).all()
    target = np.zeros((3, count))
    padded.copy(scratch, 0, count, target.ravel(), count)
    np.testing.assert_array_equal(target, [np.zeros(count), rows[1], np.zeros(count)])
