"""Tag words in sentences where almost every word may be a noun or a verb, and only its neighbours tell which.

"The train guards paint plants": all but "the" may be nouns or verbs. Nouns and verbs agree in number, as in English.
Adjectives and adverbs are made of syllables, so that most of those in the test sentences are new, and only their
endings say what they are.

Run it with ``python examples/tag_words.py``; it takes a few seconds.
"""

from __future__ import annotations

import numpy as np

import m3n
from m3n.features import Templates, word_templates
from m3n.scores import confusion, token_scores

STEMS = ["cook", "guard", "train", "plant", "drill", "dance", "paint", "hammer", "doctor", "pilot"]
SYLLABLES = ["ba", "do", "gri", "lu", "mer", "no", "pa", "ti", "vo", "zen"]
Sentences = list[list[tuple[str]]]
Tags = list[list[str]]


def draw(count: int, seed: int) -> tuple[Sentences, Tags]:
    """Sentences, one tuple with the word per token, and their tags."""
    random = np.random.default_rng(seed)
    drawn = [_sentence(random) for _ in range(count)]
    return [[(word,) for word, _ in pairs] for pairs in drawn], [[tag for _, tag in pairs] for pairs in drawn]


def _sentence(random: np.random.Generator) -> list[tuple[str, str]]:
    several = bool(random.integers(2))
    sentence = [*_noun_phrase(random, several), (_inflected(random, not several), "VERB")]
    sentence += _noun_phrase(random, bool(random.integers(2))) if random.random() < 0.6 else []
    return [*sentence, (_invented(random, "ly"), "ADV")] if random.random() < 0.4 else sentence


def _noun_phrase(random: np.random.Generator, several: bool) -> list[tuple[str, str]]:
    article = [("the", "DET")] if random.random() < 0.4 else [] if several else [("a", "DET")]
    adjective = [(_invented(random, "ish"), "ADJ")] if random.random() < 0.4 else []
    before = [(_inflected(random, False), "NOUN")] if random.random() < 0.3 else []  # as in "train guards"
    return [*article, *adjective, *before, (_inflected(random, several), "NOUN")]


def _inflected(random: np.random.Generator, ending: bool) -> str:
    return str(random.choice(STEMS)) + ("s" if ending else "")


def _invented(random: np.random.Generator, ending: str) -> str:
    return "".join(random.choice(SYLLABLES, size=3)) + ending


def main() -> None:
    X, y = draw(300, seed=0)
    X_test, y_test = draw(300, seed=1)
    word = Templates(["w=%x[0,0]"])

    alone = m3n.SequenceTagger(templates=word, lam=0.003, rtol=0.02)
    alone.fit([[token] for sentence in X for token in sentence], [[tag] for tags in y for tag in tags])
    found = [[alone.predict([[token]])[0][0] for token in sentence] for sentence in X_test]
    print(f"every word on its own:      {token_scores(y_test, found).accuracy:.1%} right")

    chain = m3n.SequenceTagger(templates=word, lam=0.003, rtol=0.02).fit(X, y)
    print(f"whole sentences, words:     {chain.score(X_test, y_test):.1%} right")

    tagger = m3n.SequenceTagger(templates=word_templates(), lam=0.003, rtol=0.02).fit(X, y)
    found = tagger.predict(X_test)
    print(f"whole sentences, all forms: {token_scores(y_test, found).accuracy:.1%} right")
    print(f"{tagger.status_}: {tagger.certificate_}")

    table, labels = confusion(y_test, found)
    print("\nright tag (row), predicted tag (column):", *labels)
    for label, row in zip(labels, table, strict=True):
        print(f"{label:>6}", "".join(f"{number:6d}" for number in row))


if __name__ == "__main__":
    main()
