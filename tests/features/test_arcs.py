"""Features of arcs, labels, siblings and grandchildren against a plain reading of their templates, word by word."""

import numpy as np
import pytest

from m3n.features import arcs as places
from m3n.features.arcs import ArcTemplates, arc_codes, extra_text, grandchild_codes, label_codes, sibling_codes
from m3n.features.words import WordTable
from m3n.structures import Arcs

BITS = 30  # so many weights that hardly two of the features here share one
LABELS = ("nsubj", "obj", "root")
FORMS = {"NOUN": ("Dogs", "dog", "housekeeping"), "VERB": ("sees", "Seen"), "DET": ("the",), "ADV": ("today",)}


def word(random):
    tag = str(random.choice(list(FORMS)))
    form, case = str(random.choice(FORMS[tag])), str(random.choice(["Nom", "Acc"]))
    feats = {"NOUN": f"Case={case}|Gender=Neut|Number=Sing", "VERB": "VerbForm=Fin"}.get(tag, "_")
    return {"form": form, "lemma": form.lower().rstrip("s"), "upos": tag, "xpos": tag[0] + form[-1], "feats": feats}


@pytest.fixture
def sentences(random):
    return [[word(random) for _ in range(length)] for length in (14, 1, 5, 1, 2, 12)]


def attribute(sentence, place, name):
    """What a word of a sentence is called by; place 0 is the root, and there is nothing to its left."""
    if not 0 <= place <= len(sentence):
        return "<edge>"
    if place == 0:
        return "<root>"
    token = sentence[place - 1]
    if name in ("prefix", "suffix"):
        return (token["form"][:5] if name == "prefix" else token["form"][-3:]).lower()
    if name in ("case", "number", "gender", "verbform"):
        named = {"case": "Case", "number": "Number", "gender": "Gender", "verbform": "VerbForm"}[name]
        pairs = dict(pair.split("=") for pair in token["feats"].split("|") if "=" in pair)
        return pairs.get(named, "_")
    return token[name]


def features(templates, sentence, anchors, known):
    """Every feature of a part: its template, the values that it sees and, where it asks for that, a tag between."""
    found = []
    for text in templates.templates:
        atoms = [atom for atom in text.split() if atom != "between"]
        seen = (text, *(value_of(atom, sentence, anchors, known) for atom in atoms))
        low, high = sorted((anchors["h"], anchors["d"]))
        tags = dict.fromkeys(token["upos"] for token in sentence[low : high - 1])
        found += [(*seen, tag) for tag in tags] if "between" in text.split() else [seen]
    return found


def value_of(atom, sentence, anchors, known):
    if atom in known:
        return known[atom]
    place, name = atom.split(".")
    anchor, distance = place[0], int(place[1:] or 0)
    return None if anchors[anchor] is None else attribute(sentence, anchors[anchor] + distance, name)


def side(head, dependent):
    return "from the root" if head == 0 else "to the right" if head < dependent else "to the left"


def length(one, other):
    apart = abs(one - other)
    return str(apart) if apart <= 5 else "6 to 10" if apart <= 10 else "more than 10"


def known_of(head, dependent):
    way = side(head, dependent) if head == 0 else f"{side(head, dependent)} {length(head, dependent)}"
    return {"way": way, "direction": side(head, dependent)}


def pairs_of(arcs):
    return list(zip(arcs.sentence.tolist(), arcs.head.tolist(), arcs.dependent.tolist(), strict=True))


def compare(codes, expected):
    """As many codes as features, and one code for every feature wherever it occurs."""
    code_of, feature_of = {}, {}
    rows = codes.rows()
    for p, row in enumerate(expected):
        found = rows.runs[rows.pointers[p] : rows.pointers[p + 1]].tolist()
        assert len(found) == len(row) == len(set(found))
        for code, feature in zip(found, row, strict=True):
            assert code_of.setdefault(feature, code) == code, feature
            feature_of.setdefault(code, feature)
    assert 0 <= min(feature_of) <= max(feature_of) < codes.dim
    assert sum(map(len, expected)) > 1.2 * len(code_of)  # the test of the test: features come again
    assert len(feature_of) >= len(code_of) - 3


@pytest.mark.parametrize("kind", ["arcs", "filter"])
def test_features_of_arcs(sentences, kind):
    templates, table = getattr(ArcTemplates(BITS, BITS), kind), WordTable.of(sentences)
    arcs = Arcs.all(table.lengths)
    expected = [features(templates, sentences[i], {"h": h, "d": d}, known_of(h, d)) for i, h, d in pairs_of(arcs)]
    compare(arc_codes(templates, table, arcs), expected)


def test_the_way_of_an_arc_in_words(sentences):
    table = WordTable.of(sentences)
    arcs = Arcs.all(table.lengths)
    for (_, h, d), extras in zip(pairs_of(arcs), places.label_places(table, arcs).extras, strict=True):
        texts = {name: extra_text(name, value) for name, value in zip(("way", "direction"), extras, strict=True)}
        assert texts == known_of(h, d)


def test_features_of_labels(sentences):
    """Those of an arc, of which every label has its own."""
    templates, table = ArcTemplates(BITS).labels, WordTable.of(sentences)
    arcs = Arcs.all(table.lengths, labels=3)
    arcs = arcs.only((arcs.head + arcs.dependent) % 3 != 0)
    expected = []
    for i, h, d in pairs_of(arcs):
        own = features(templates, sentences[i], {"h": h, "d": d}, known_of(h, d))
        expected += [[(label, *feature) for feature in own] for label in LABELS]
    compare(label_codes(templates, table, arcs, LABELS), expected)


def test_labels_are_known_by_their_names(sentences):
    """The number of a label does not matter, so a file may list them in another order."""
    templates, table = ArcTemplates(20).labels, WordTable.of(sentences)
    arcs = Arcs.all(table.lengths, labels=3)
    one, other = (label_codes(templates, table, arcs, names).masks.reshape(-1, 3) for names in (LABELS, LABELS[::-1]))
    np.testing.assert_array_equal(one, other[:, ::-1])


def test_features_of_siblings(sentences):
    templates, table = ArcTemplates(BITS).siblings, WordTable.of(sentences)
    arcs = Arcs.all(table.lengths)
    expected, listed = [], pairs_of(arcs)
    extras = places.sibling_places(table, arcs).extras.tolist()
    for arc, inner, numbers in zip(*(array.tolist() for array in arcs.siblings()), extras, strict=True):
        i, h, d = listed[arc]
        s = None if inner < 0 else listed[inner][2]
        known = {"side": side(h, d), "gap": "" if s is None else length(s, d)}
        assert known == {name: extra_text(name, value) for name, value in zip(known, numbers, strict=True)}
        expected.append(features(templates, sentences[i], {"h": h, "d": d, "s": s}, known))
    compare(sibling_codes(templates, table, arcs), expected)


def test_features_of_grandchildren(sentences):
    templates, table = ArcTemplates(BITS).grandchildren, WordTable.of(sentences)
    arcs = Arcs.all(table.lengths)
    expected, listed = [], pairs_of(arcs)
    extras = places.grandchild_places(table, arcs).extras.tolist()
    for arc, upper, numbers in zip(*(array.tolist() for array in arcs.grandchildren()), extras, strict=True):
        (i, h, d), g = listed[arc], listed[upper][1]
        known = {"side": f"{side(g, h)} {side(h, d)}", "gap": length(g, d)}
        assert known == {name: extra_text(name, value) for name, value in zip(known, numbers, strict=True)}
        expected.append(features(templates, sentences[i], {"h": h, "d": d, "g": g}, known))
    compare(grandchild_codes(templates, table, arcs), expected)


def test_a_sentence_has_the_same_features_beside_others(sentences):
    templates = ArcTemplates(18).arcs
    together = WordTable.of(sentences)
    found = arc_codes(templates, together, Arcs.all(together.lengths)).codes
    alone = [WordTable.of([sentence]) for sentence in sentences]
    np.testing.assert_array_equal(
        found, np.concatenate([arc_codes(templates, table, Arcs.all(table.lengths)).codes for table in alone])
    )


def test_few_weights_are_enough_for_an_arc(sentences):
    """Every feature of an arc has a weight of its own as long as there are enough, however few that is."""
    table = WordTable.of(sentences)
    found = arc_codes(ArcTemplates(9).arcs, table, Arcs.all(table.lengths))
    assert 0 <= found.codes.min() <= found.codes.max() < 512
    for row in np.split(found.codes, found.pointers[1:-1]):
        assert len(np.unique(row)) == len(row)
