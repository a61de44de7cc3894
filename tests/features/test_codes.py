import numpy as np
import pytest

from m3n.checks import check_adjoint
from m3n.compiled.maps.anchored import Places, Tokens
from m3n.features import AnchoredTemplates, Codes, Scaled, Stack
from m3n.features.anchored import hashed, text_hash
from m3n.losses import PartLoss
from m3n.packed import Threads
from m3n.problem import Problem
from m3n.run.loop import minimize
from m3n.structures import Arcs, ProjectiveTree


def some_codes(random, rows=9, dim=12):
    lists = [random.choice(dim, size=random.integers(0, 6), replace=False) for _ in range(rows)]
    return Codes(np.cumsum([0, *map(len, lists)]), np.concatenate(lists), dim), lists


def indicator(lists, dim):
    matrix = np.zeros((len(lists), dim))
    for row, codes in zip(matrix, lists, strict=True):
        row[codes] = 1.0
    return matrix


@pytest.mark.parametrize("threads", [Threads(1), Threads(3)])
def test_codes_are_a_matrix_of_ones(random, threads):
    features, lists = some_codes(random)
    matrix, w, parts = indicator(lists, 12), random.normal(size=12), random.normal(size=9)
    np.testing.assert_allclose(features.scores(w, (np.empty(9),), threads)[0], matrix @ w)
    np.testing.assert_allclose(features.adjoint((parts,), threads), parts @ matrix)
    np.testing.assert_allclose(features.norms()[0], np.linalg.norm(matrix, axis=1))
    check_adjoint(features)


def masked(random):
    """Rows of codes that score one to three parts each."""
    features, lists = some_codes(random, dim=16)
    widths = random.integers(1, 4, size=9)
    masks = random.integers(0, 16, size=widths.sum())
    row = np.repeat(np.arange(9), widths)
    shown = [lists[r] ^ mask for r, mask in zip(row, masks, strict=True)]
    return Codes(features.pointers, features.codes, 16, np.cumsum([0, *widths]), masks), shown


@pytest.mark.parametrize("threads", [Threads(1), Threads(3)])
def test_masks_make_other_weights_of_the_same_codes(random, threads):
    features, lists = masked(random)
    matrix, w, parts = indicator(lists, 16), random.normal(size=16), random.normal(size=len(lists))
    np.testing.assert_allclose(features.scores(w, (np.empty(len(lists)),), threads)[0], matrix @ w)
    np.testing.assert_allclose(features.adjoint((parts,), threads), parts @ matrix)
    np.testing.assert_allclose(features.norms()[0], np.linalg.norm(matrix, axis=1))
    check_adjoint(features)


def test_rows_and_selections_are_the_same_matrix(random):
    features, lists = masked(random)
    rows = features.rows()
    for p, codes in enumerate(lists):
        np.testing.assert_array_equal(rows.runs[rows.pointers[p] : rows.pointers[p + 1]], codes)
    own = np.concatenate([np.arange(*features.firsts[r : r + 2]) for r in (4, 0)])
    chosen, w = features.select((own,)), random.normal(size=16)
    whole = features.scores(w, (np.empty(len(lists)),))[0]
    np.testing.assert_allclose(chosen.scores(w, (np.empty(len(own)),))[0], whole[own])
    wide = int(np.flatnonzero(np.diff(features.firsts) > 1)[0])
    with pytest.raises(ValueError, match="chosen together"):
        features.select((np.array([features.firsts[wide]]),))


def test_masks_need_a_power_of_two(random):
    with pytest.raises(ValueError, match="a power of two, got 12"):
        Codes([0, 1], [3], 12, [0, 2], [0, 1])


def coded_problem(random, **settings):
    """Labelled trees whose arcs have codes, at scales of their own."""
    lists = [[(0, 1), (2, 1), (0, 2), (1, 2), (2, 3), (1, 3)], [(0, 1)], [(0, 1), (2, 1), (0, 2), (1, 2)]]
    arcs, heads = Arcs.of([3, 1, 2], lists, labels=3), [[2, 0, 2], [0], [0, 1]]
    plain, _ = some_codes(random, rows=len(arcs.head))
    codes = np.concatenate([random.choice(16, 4, replace=False) for _ in arcs.head])
    labels = Codes(np.arange(len(arcs.head) + 1) * 4, codes, 16, arcs.part_first, np.array([0, 5, 9])[arcs.part_label])
    trees = [[(head, k % 3) for k, head in enumerate(tree)] for tree in heads]
    return Problem(ProjectiveTree(arcs), Stack(Scaled(plain, 0.5), labels), trees, lam=0.1, **settings)


KINDS = {  # the solver of whole passes, and the objective
    "sequential_dual": ("bmrm", {"loss": PartLoss()}),
    "block_frank_wolfe": ("bmrm", {"loss": PartLoss()}),
    "dual_ascent": ("lbfgs", {"temperature": 1.0}),
    "sparse_dual_ascent": ("owl_qn", {"temperature": 1.0, "l1": 0.02}),
}


@pytest.mark.parametrize("weights", [None, [2.0, 1.0, 0.5]])
@pytest.mark.parametrize("solver", KINDS)
def test_block_methods_find_what_whole_passes_find(random, solver, weights):
    """Visits read rows of codes by functions of their own; passes over all examples do not."""
    reference, settings = KINDS[solver]
    problem = coded_problem(random, sample_weight=weights, **settings)
    assert type(problem.blocks.rows).__name__ == "CodeRows"
    one, other = (minimize(problem, name, tol=2e-2, max_passes=2000) for name in (solver, reference))
    assert one.converged and other.converged
    assert max(one.certificate.dual, other.certificate.dual) <= min(one.certificate.primal, other.certificate.primal)
    np.testing.assert_allclose(one.w, other.w, atol=2 * np.sqrt(2 * 2e-2 / 0.1))


def test_codes_outside_of_the_weights_are_refused():
    with pytest.raises(ValueError, match=r"codes must be in 0\.\.3, got 1\.\.4"):
        Codes([0, 2], [1, 4], 4)


def places(anchors, extras=None, first=None, last=None):
    anchors = np.array(anchors, np.int64)
    nothing = np.zeros(len(anchors), np.int64)
    extras = np.zeros((len(anchors), 1)) if extras is None else np.array(extras)
    given = (nothing if bound is None else np.array(bound) for bound in (first, last))
    return Places(anchors, extras.astype(np.uint64), *given)


WORDS, TAGS = ["<", "a", "b", "a", ">"], [0, 1, 2, 1, 0]
TOKENS = Tokens(np.stack([hashed(WORDS), hashed(map(str, TAGS))], axis=1), np.array(TAGS, np.int32), hashed("012"))


def codes_of(texts, where, bits=20):
    templates = AnchoredTemplates(texts, ("h", "d"), ("word", "tag"), ("way",), bits)
    found = templates.codes(where, TOKENS)
    return np.split(found.codes, found.pointers[1:-1])


def test_equal_values_have_equal_codes_and_others_have_others():
    one, two, other = codes_of(["h.word d.word"], places([[1, 2], [3, 2], [2, 1]]))
    assert one == two != other
    left, right = codes_of(["d-1.word"], places([[0, 2], [0, 3]]))
    assert left != right
    assert codes_of(["d-1.word"], places([[0, 2]]))[0] == codes_of(["d-1.word"], places([[4, 2]]))[0]
    assert codes_of(["d.word"], places([[0, 2]]))[0] != codes_of(["h.word"], places([[2, 0]]))[0]  # each its own seed


def test_what_else_is_known_counts_where_it_is_named():
    where = places([[1, 2], [1, 2]], extras=[[5], [6]])
    plain, also = codes_of(["h.word"], where)
    assert plain == also
    plain, also = codes_of(["h.word way"], where)
    assert plain != also


def test_one_code_for_every_different_tag_between():
    found = codes_of(["h.word between", "d.word"], places([[0, 4], [0, 1]], first=[1, 1], last=[4, 1]))
    assert [len(row) for row in found] == [3, 1]  # tags 1, 2, 1 and one more code; nothing between
    assert found[0][-1] != found[1][-1]


def test_a_missing_anchor_is_a_value_of_its_own():
    with_it, without = codes_of(["h.word d.word"], places([[1, 2], [-1, 2]]))
    assert with_it != without


def test_no_code_comes_twice_even_among_few():
    texts = [f"{'d.word ' * k}way" for k in range(1, 9)]
    (found,) = codes_of(texts, places([[1, 2]]), bits=3)
    assert sorted(found) == list(range(8))
    with pytest.raises(ValueError, match="take more bits"):
        codes_of(texts, places([[1, 2]]), bits=2)


def test_threads_make_the_same_codes(random):
    templates = AnchoredTemplates(["h.word d.tag", "h.tag between"], ("h", "d"), ("word", "tag"), ("way",), 16)
    anchors = random.integers(0, 5, size=(40, 2))
    where = places(anchors, first=anchors.min(axis=1), last=anchors.max(axis=1))
    one, two = (templates.codes(where, TOKENS, threads) for threads in (Threads(1), Threads(3)))
    np.testing.assert_array_equal(one.codes, two.codes)
    np.testing.assert_array_equal(one.pointers, two.pointers)


def test_hashes_stay_what_they_are():
    """Model files rely on them: here is the formula, in whole numbers."""
    multiplier, size = 0x9E3779B97F4A7C15, 1 << 64
    assert text_hash("h.word way") == 0xD8299169F16C3524
    h = text_hash("h.word way")
    for value in (text_hash("a"), 3):
        h = (h + value) * multiplier % size
    expected = ((h ^ (h >> 32)) * multiplier % size) >> (64 - 20)
    assert codes_of(["h.word way"], places([[1, 2]], extras=[[3]]))[0].tolist() == [expected]


@pytest.mark.parametrize(
    ("text", "message"),
    [("x.word", "no anchor of"), ("h.size", "with an attribute of"), ("h+2.word", "further away"), ("h", "none of")],
)
def test_templates_that_name_what_there_is_not(text, message):
    with pytest.raises(ValueError, match=message):
        AnchoredTemplates([text], ("h", "d"), ("word", "tag"), (), 10)
