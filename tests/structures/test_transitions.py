from itertools import pairwise, product

import numpy as np
import pytest

from m3n.structures import Transitions

TYPES = ("X", "Y")


def chunkings(length):
    """Every way to cut some positions into chunks with a type: lists of (first, end, type)."""
    if length == 0:
        yield []
        return
    yield from chunkings(length - 1)  # the last position is outside
    for first, kind in product(range(length), TYPES):
        yield from ([*rest, (first, length, kind)] for rest in chunkings(first))


def iob(chunks, length):
    labels = ["O"] * length
    for first, end, kind in chunks:
        labels[first:end] = [f"B-{kind}"] + [f"I-{kind}"] * (end - first - 1)
    return labels


def iob1(chunks, length):
    labels = ["O"] * length
    for first, end, kind in chunks:
        touches = any(other[1] == first and other[2] == kind for other in chunks)
        labels[first:end] = [f"{'B' if touches else 'I'}-{kind}"] + [f"I-{kind}"] * (end - first - 1)
    return labels


def ioe2(chunks, length):
    """The mirror image of IOB2."""
    return mirrored(iob, chunks, length)


def ioe1(chunks, length):
    return mirrored(iob1, chunks, length)


def mirrored(write, chunks, length):
    backwards = write([(length - end, length - first, kind) for first, end, kind in chunks], length)
    return [label.replace("B-", "E-") for label in reversed(backwards)]


def bioes(chunks, length, letters="BIES"):
    begin, inside, last, single = letters
    labels = ["O"] * length
    for first, end, kind in chunks:
        middle = [f"{inside}-{kind}"] * (end - first - 2)
        long = [f"{begin}-{kind}", *middle, f"{last}-{kind}"]
        labels[first:end] = long if end - first > 1 else [f"{single}-{kind}"]
    return labels


@pytest.mark.parametrize(
    ("scheme", "letters", "write"),
    [
        (Transitions.iob, "BI", iob),
        (Transitions.iob1, "BI", iob1),
        (Transitions.ioe1, "IE", ioe1),
        (Transitions.ioe2, "IE", ioe2),
        (Transitions.bioes, "BIES", bioes),
        (Transitions.bioes, "BILU", lambda chunks, length: bioes(chunks, length, "BILU")),
        (Transitions.bioes, "BMEW", lambda chunks, length: bioes(chunks, length, "BMEW")),
        (Transitions.bioes, "BMES", lambda chunks, length: bioes(chunks, length, "BMES")),
        (Transitions.bilou, "BILU", lambda chunks, length: bioes(chunks, length, "BILU")),
        (Transitions.bmes, "BMES", lambda chunks, length: bioes(chunks, length, "BMES")),
        (Transitions.bmewo, "BMEW", lambda chunks, length: bioes(chunks, length, "BMEW")),
    ],
)
def test_a_scheme_allows_exactly_what_chunks_are_written_as(scheme, letters, write):
    labels = ["O", *(f"{letter}-{kind}" for letter in letters for kind in TYPES)]
    constraints = scheme(labels)
    for length in (1, 2, 3, 4):
        written = {tuple(write(chunks, length)) for chunks in chunkings(length)}
        assert {y for y in product(labels, repeat=length) if constraints.allows(y)} == written


def test_prefixes_without_a_type():
    constraints = Transitions.bioes(["B", "M", "E", "S"])  # words of a text without spaces
    assert constraints.allows("SBMESBE")
    assert not constraints.allows("SBM")
    assert not constraints.allows("BS")
    assert Transitions.iob(["B", "I", "O"]).allows("OBIIBO")
    assert not Transitions.iob(["B", "I", "O"]).allows("OI")


@pytest.mark.parametrize("label", ["<pad>", "E-X", "B-", "-X", "", "b-X", "B_X", 3])
def test_labels_of_no_scheme_are_named(label):
    with pytest.raises(
        ValueError, match=r"is not of the scheme IOB2, which has 'O', 'B-X', 'I-X'; leave it out"
    ) as error:
        Transitions.iob(["O", "B-X", label])
    assert repr(label) in str(error.value)


def test_types_may_contain_dashes():
    constraints = Transitions.iob(["B-X-1", "I-X-1", "I-X-2", "O"])
    assert constraints.allows(["B-X-1", "I-X-1"])
    assert not constraints.allows(["B-X-1", "I-X-2"])


def test_labels_that_no_sequence_can_use_are_no_error():
    constraints = Transitions.iob(["I-X", "O"])
    assert [y for y in product(["I-X", "O"], repeat=2) if constraints.allows(y)] == [("O", "O")]
    with pytest.raises(ValueError, match=r"no sequence of the labels \['I-X'\] is allowed by the constraints"):
        Transitions.iob(["I-X"])
    with pytest.raises(ValueError, match="no sequence of the labels"):
        Transitions.bioes(["B-X", "I-X"])
    with pytest.raises(ValueError, match="no sequence of the labels"):  # start and end are there, but no way between
        Transitions.forbid("abc", [("a", "b"), ("c", "b"), ("b", "b")], start="bc", end="ac")
    assert Transitions.forbid("abc", [("a", "c")], start="bc", end="ab").allows("abc")


def test_observed_is_what_occurs():
    sequences = [["a", "b", "a"], ["c"], ["a", "a"]]
    constraints = Transitions.observed(sequences)
    assert constraints.labels == ("a", "b", "c")
    pairs = {pair for y in sequences for pair in pairwise(y)}
    for y in product("abc", repeat=3):
        assert constraints.allows(y) == (set(pairwise(y)) <= pairs and y[0] in "ac" and y[-1] in "ac")
    assert Transitions.observed([[3, 1], [1]]).labels == (1, 3)
    assert Transitions.observed([["a"], []]) == Transitions.observed([["a"]])


def test_forbidding_and_allowing_are_opposites():
    pairs = [("a", "b"), ("b", "b")]
    rest = [pair for pair in product("ab", repeat=2) if pair not in pairs]
    assert Transitions.forbid("ab", pairs, start="b", end=()) == Transitions.allow("ab", rest, start="a", end=None)
    assert Transitions.forbid("ab", pairs) != Transitions.forbid("ab", pairs, start="b")
    assert Transitions.forbid("ab", pairs) != Transitions.forbid("ba", pairs)
    assert Transitions.forbid("ab", pairs) != "ab"
    assert len({Transitions.forbid("ab", pairs), Transitions.forbid("ab", reversed(pairs))}) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("ab", [("a", "c")]), "pairs: 'c' is not among the labels"),
        (("ab", [], "c"), "start: 'c' is not among"),
        (("ab", [], (), "d"), "end: 'd' is not among"),
        (("aa", []), "labels must be at least one and all different"),
        (("", []), "labels must be at least one"),
    ],
)
def test_unknown_and_repeated_labels_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        Transitions.forbid(*arguments)


def test_masks_of_the_wrong_shape():
    with pytest.raises(ValueError, match=r"forbidden_end must have shape \(2,\), got \(3,\)"):
        Transitions(("a", "b"), np.zeros((2, 2)), np.zeros(2), np.zeros(3))


def test_alignment_keeps_the_meaning():
    constraints = Transitions.forbid("abc", [("a", "b"), ("c", "c")], start="b", end="c")
    aligned = constraints.align(np.array(["c", "a"]))
    assert aligned.labels == ("c", "a")
    for length in (1, 2, 3):
        for y in product("ac", repeat=length):
            assert aligned.allows(y) == constraints.allows(y)
    assert constraints.align("cab").align("abc") == constraints
    with pytest.raises(ValueError, match=r"the constraints do not know these labels: \['d', 'e'\]; they are about"):
        constraints.align("dace")


def test_violations_of_a_batch_are_found_where_they_are():
    constraints = Transitions.forbid("abc", [("a", "b")], start="b", end="a")
    labelling, offsets = np.array([0, 1, 1, 0, 0, 2, 0]), np.array([0, 2, 4, 6, 7])  # ab | ba | ac | a
    assert constraints.violations(labelling, offsets).tolist() == [1, 2, 3, 6]


def test_constraints_cannot_be_changed():
    constraints = Transitions.iob(["B-X", "O"])
    with pytest.raises(ValueError, match="read-only"):
        constraints.forbidden[0, 0] = True
    with pytest.raises(AttributeError):
        constraints.labels = ()
