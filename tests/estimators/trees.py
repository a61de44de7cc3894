"""Made-up sentences with dependency trees, for tests of parsers."""

import numpy as np

NOUNS, VERBS, ADJECTIVES = ("dog", "cat", "house", "idea"), ("sees", "likes", "eats"), ("old", "big", "green")


def phrase(random, label, tree):
    """A noun with an article and perhaps an adjective; returns its place, its head is filled in later."""
    words = [("the", "DET")] + [(str(random.choice(ADJECTIVES)), "ADJ")] * int(random.random() < 0.4)
    noun = len(tree) + len(words) + 1
    tree += [(*word, noun, "det" if word[1] == "DET" else "amod") for word in words]
    tree.append((str(random.choice(NOUNS)), "NOUN", None, label))
    return noun


def sentences(seed, count, crossing=False):
    """Sentences "the old dog sees the cat today", with trees; crossing arcs on wish: an adjective of the first noun at
    the end of the sentence."""
    random = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(count):
        tree = []
        subject = phrase(random, "nsubj", tree)
        tree.append((str(random.choice(VERBS)), "VERB", 0, "root"))
        verb = len(tree)
        heads = {subject: verb}
        if random.random() < 0.7:
            heads[phrase(random, "obj", tree)] = verb
        if random.random() < 0.5:
            tree.append(("today", "ADV", verb, "advmod"))
        if crossing and random.random() < 0.5:
            tree.append((str(random.choice(ADJECTIVES)), "ADJ", subject, "amod"))
        X.append([(form, tag) for form, tag, _, _ in tree])
        y.append([(heads.get(t) if head is None else head, label) for t, (_, _, head, label) in enumerate(tree, 1)])
    return X, y


def heads_of(trees):
    return [[head for head, _ in tree] for tree in trees]
