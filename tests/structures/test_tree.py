import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from m3n.checks import check_structure
from m3n.packed import Threads
from m3n.structures import Chain, Factors, Graph, Tree
from tests.structures.template import StructureTemplate

MOST = {1: 5, 2: 5, 3: 3}


def random_forest(random, nodes, sparse=0.2):
    """Each variable hangs on an earlier one, or on none; numbers and orientations are shuffled."""
    names = random.permutation(nodes)
    edges = [[names[v], names[random.integers(v)]] for v in range(1, nodes) if random.random() > sparse]
    edges = [edge[:: random.choice([1, -1])] for edge in edges]
    return np.array(edges, dtype=np.int64).reshape(-1, 2)[random.permutation(len(edges))]


@st.composite
def trees(draw, tables):
    labels = draw(st.integers(1, 3))
    nodes = draw(st.lists(st.integers(1, MOST[labels]), min_size=1, max_size=3))
    random = np.random.default_rng(draw(st.integers(0, 10_000)))
    root = draw(st.sampled_from([None, [number - 1 for number in nodes]]))
    return Tree(nodes, labels, [random_forest(random, number) for number in nodes], tables=tables, root=root)


class TestTree(StructureTemplate):
    instances = trees(tables=False)


class TestTreeWithTables(StructureTemplate):
    instances = trees(tables=True)


def path(nodes):
    return np.stack([np.arange(nodes - 1), np.arange(1, nodes)], axis=1)


def star(nodes):
    return np.stack([np.zeros(nodes - 1, int), np.arange(1, nodes)], axis=1)


def caterpillar(nodes):
    """A path along the even numbers, each with the next odd number as a leg."""
    return np.array([[v, v - 1 if v % 2 else v - 2] for v in range(1, nodes)])


def theta_for(structure, random, scale=1.0, holes=0.0):
    theta = tuple(scale * random.normal(size=shape) for shape in structure.shapes)
    for array in theta:
        array[random.random(array.shape) < holes] = -np.inf
    return theta


def copies(theta):
    return tuple(array.copy() for array in theta)


def compare(one, two, accuracy):
    """Values, and those marginals that both have."""
    np.testing.assert_allclose(one[0], two[0], rtol=1e-12)
    for a, b in zip(one[1], two[1], strict=False):
        np.testing.assert_allclose(a, b, atol=accuracy)


@pytest.mark.parametrize("labels", [1, 3, 5, 26])
@pytest.mark.parametrize("tables", [False, True])
@pytest.mark.parametrize("holes", [0.0, 0.1])
def test_a_path_is_a_chain(labels, tables, holes, random):
    """Values, labels and marginals; where -inf leaves an example no output, both say so."""
    lengths = [1, 7, 2, 12, 5]
    tree = Tree(lengths, labels, [path(n) for n in lengths], tables=tables)
    chain = Chain(lengths, labels, edges=tables)
    for mu in (1e-3, 1.0):
        node, transition, *edge = theta_for(tree, random, holes=holes)
        ends = np.zeros(labels), np.zeros(labels)
        theta = node, transition, *ends, *edge
        expected = chain.hard(theta)
        values, labelling = tree.hard((node, transition, *edge))
        np.testing.assert_allclose(values, expected[0], rtol=1e-13)
        possible = np.repeat(np.isfinite(values), lengths)
        np.testing.assert_array_equal(labelling[possible], expected[1][possible])
        value, marginals = chain.soft(copies(theta), mu)
        found = tree.soft(copies((node, transition, *edge)), mu)
        compare(found, (value, (*marginals[:2], *marginals[4:])), 1e-10)


@pytest.mark.parametrize("make", [path, star, caterpillar])
@pytest.mark.parametrize("scale", [1.0, 30.0, 1000.0])
def test_both_recursions_agree_on_large_trees(make, scale, random):
    """Without tables the scaled recursion runs as long as it is safe, with tables (all zero) the log domain."""
    nodes = [40, 3, 17]
    edges = [make(n)[:, :: random.choice([1, -1])] for n in nodes]
    plain, full = Tree(nodes, 6, edges), Tree(nodes, 6, edges, tables=True)
    assert plain._forests.plain.all()
    assert not full._forests.plain.any()
    theta = theta_for(plain, random, scale)
    zeros = np.zeros(full.shapes[2])
    compare(plain.soft(copies(theta), 1.0), full.soft((*copies(theta), zeros.copy()), 1.0), 1e-9)
    np.testing.assert_allclose(plain.hard(theta)[0], full.hard((*theta, zeros))[0], rtol=1e-13)
    np.testing.assert_array_equal(plain.hard(theta)[1], full.hard((*theta, zeros))[1])


def test_both_recursions_agree_where_underflow_begins(random):
    """Scores between 50 and 5000 temperatures: one example stays scaled, the next one must not."""
    for _ in range(100):
        nodes, labels = random.integers(1, 9, size=10), int(random.integers(2, 6))
        edges = [random_forest(random, int(n)) for n in nodes]
        plain, full = Tree(nodes, labels, edges), Tree(nodes, labels, edges, tables=True)
        theta = theta_for(plain, random, np.exp(random.uniform(4, 7.5)))
        found = plain.soft(copies(theta), 1.0)
        compare(found, full.soft((*copies(theta), np.zeros(full.shapes[2])), 1.0), 1e-9)
        np.testing.assert_allclose(found[1][0].sum(axis=1), 1.0, rtol=1e-12)


def test_paths_that_underflow_would_lose():
    """The only good labelling looks hopeless variable by variable."""
    tree = Tree([4], 2, [star(4)])
    node = np.array([[0.0, -900.0]] * 4)
    transition = np.array([[-np.inf, -np.inf], [-np.inf, 0.0]])
    value, marginals = tree.soft((node, transition), 1.0)
    assert value[0] == pytest.approx(-3600.0)
    np.testing.assert_allclose(marginals[0], [[0, 1]] * 4)
    np.testing.assert_allclose(marginals[1], [[0, 0], [0, 3]])


@given(st.integers(0, 10_000))
def test_graph_of_a_tree_is_the_tree(seed):
    random = np.random.default_rng(seed)
    nodes, labels = random.integers(1, 7, size=3), int(random.integers(1, 4))
    edges = [random_forest(random, int(n)) for n in nodes]
    tree, graph = Tree(nodes, labels, edges, tables=True), Graph(nodes, labels, [Factors(edges, True), Factors(edges)])
    assert tree.shapes == graph.shapes
    assert tree.width == min(2, 1 + max(map(len, edges)))
    theta = theta_for(tree, random)
    np.testing.assert_array_equal(tree.hard(theta)[1], graph.hard(theta)[1])
    compare(tree.soft(copies(theta), 0.5), graph.soft(copies(theta), 0.5), 0.0)


@pytest.mark.parametrize("make", [path, star, caterpillar])
@pytest.mark.parametrize("tables", [False, True])
def test_rooting_does_not_matter(make, tables, random):
    edges = [make(6), make(4)]
    trees = [Tree([6, 4], 3, edges, tables=tables, root=root) for root in (None, [0, 3], [5, 0], [3, -1])]
    theta = theta_for(trees[0], random)
    for other in trees[1:]:
        np.testing.assert_allclose(other.hard(theta)[0], trees[0].hard(theta)[0], rtol=1e-13)
        np.testing.assert_array_equal(other.hard(theta)[1], trees[0].hard(theta)[1])
        compare(other.soft(copies(theta), 0.5), trees[0].soft(copies(theta), 0.5), 1e-13)


def test_orientation_turns_the_tables(random):
    edges = [random_forest(random, n) for n in (7, 3)]
    one, two = Tree([7, 3], 4, edges), Tree([7, 3], 4, [e[:, ::-1] for e in edges])
    node, transition = theta_for(one, random)
    turned = np.ascontiguousarray(transition.T)
    np.testing.assert_array_equal(one.hard((node, transition))[1], two.hard((node, turned))[1])
    a, b = one.soft((node.copy(), transition.copy()), 0.5), two.soft((node.copy(), turned), 0.5)
    np.testing.assert_allclose(a[1][0], b[1][0], atol=1e-13)
    np.testing.assert_allclose(a[1][1], b[1][1].T, atol=1e-13)


@pytest.mark.parametrize("labels", [2, 5, 9])
def test_several_shared_tables(labels, random):
    """Two kinds of edges with a table each, in one forest: four matrices."""
    first, second = np.array([[0, 1], [3, 2]]), np.array([[1, 2], [4, 2], [5, 0]])
    graph = Graph([6, 6], labels, [Factors([first, second[:1]], True), Factors([second, first], True)])
    assert graph._forests.plain.all()
    for mu in (0.01, 1.0):
        theta = theta_for(graph, random)
        both = Graph([6, 6], labels, [Factors([first, second[:1]]), Factors([second, first])])
        tables = theta[0], np.repeat(theta[1][None], 3, axis=0), np.repeat(theta[2][None], 5, axis=0)
        found, (node, a, b) = graph.soft(copies(theta), mu)
        value, expected = both.soft(tables, mu)
        np.testing.assert_allclose(found, value, rtol=1e-12)
        for x, y in zip((node, a, b), (expected[0], expected[1].sum(axis=0), expected[2].sum(axis=0)), strict=True):
            np.testing.assert_allclose(x, y, atol=1e-11)


def test_threads_share_tables_in_a_fixed_order(random):
    nodes = random.integers(1, 20, size=50)
    tree = Tree(nodes, 4, [random_forest(random, int(n)) for n in nodes])
    theta = theta_for(tree, random)
    one, two, again = (tree.soft(copies(theta), 0.5, Threads(count)) for count in (1, 2, 2))
    np.testing.assert_array_equal(one[0], two[0])
    np.testing.assert_array_equal(two[1][1], again[1][1])
    np.testing.assert_allclose(one[1][1], two[1][1], rtol=1e-12)
    np.testing.assert_array_equal(one[1][0], two[1][0])


def test_huge_range_of_transitions():
    tree = Tree([4], 3, [star(4)])
    transition = np.array([[0.0, -2000.0, -3000.0], [-1000.0, 0.0, 5.0], [-40.0, -700.0, 0.0]])
    check_structure(tree, (np.array([[0.0, 1500.0, 2.0]] * 4), transition), 1.0)


def test_cycles_are_refused():
    with pytest.raises(ValueError, match=r"example 1: edge 2, \(2, 0\), closes a cycle; leave it out, or use Graph"):
        Tree([3, 3], 2, [[[0, 1]], [[0, 1], [1, 2], [2, 0]]])
    with pytest.raises(ValueError, match=r"example 0: edge 1, \(1, 0\), closes a cycle"):
        Tree([2], 2, [[[0, 1], [1, 0]]])
    with pytest.raises(ValueError, match=r"example 0, row 0: scope \[0, 4\]"):
        Tree([3], 2, [[[0, 4]]])
    with pytest.raises(ValueError, match=r"example 0: edges must be an array \(count, 2\)"):
        Tree([3], 2, [[[0, 1, 2]]])
    with pytest.raises(ValueError, match="root"):
        Tree([3], 2, [[[0, 1]]], root=[3])
