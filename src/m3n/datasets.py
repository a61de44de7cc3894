"""Data that we make ourselves: noisy strings of handwritten digits, and sentence pairs of two toy languages.

Reading digits is a task in which the neighbours help. The images are the 1797 digits (8 x 8 pixels) that scikit-learn
bundles. The strings behave like a worn counter: the next digit is usually one more than the last, sometimes the same,
now and then anything. Noise makes single images hard to read; training and test strings share no image.

Sentence pairs come from a dictionary of made-up words. Nouns follow their adjectives in the one language and stand
before them in the other; some words are translated by two, some by none, and particles come in; names are the same in
both languages, and most of them occur once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from m3n.io.alignments import Alignment, Link

ONE_MORE, SAME = 0.65, 0.25  # probabilities of the next digit; the rest is spread over all ten


@dataclass(frozen=True)
class DigitStrings:
    """Strings of digit images.

    Attributes
    ----------
    images : list of arrays (length, 64)
        Pixels, 0 to 1 before noise, and one string per entry.
    labels : list of lists of int
        The digits.
    """

    images: list[np.ndarray]
    labels: list[list[int]]

    @property
    def inputs(self) -> list[np.ndarray]:
        """The images with a constant column, ready for a tagger."""
        return [np.hstack([image, np.ones((len(image), 1))]) for image in self.images]


def digit_strings(
    n_train: int = 400, n_test: int = 300, noise: float = 0.5, seed: int = 0
) -> tuple[DigitStrings, DigitStrings]:
    """Make training and test strings of 3 to 12 digits.

    Parameters
    ----------
    n_train, n_test : int
        Number of strings.
    noise : float
        Standard deviation of the Gaussian noise on every pixel.
    seed : int
        Same seed, same strings.
    """
    from sklearn.datasets import load_digits

    pixels, digits = load_digits(return_X_y=True)
    pixels = pixels / 16.0
    random = np.random.default_rng(seed)
    order = random.permutation(len(digits))
    half = len(digits) // 2
    return (
        _draw(pixels, digits, order[:half], n_train, noise, random),
        _draw(pixels, digits, order[half:], n_test, noise, random),
    )


def _draw(
    pixels: np.ndarray, digits: np.ndarray, pool: np.ndarray, n: int, noise: float, random: np.random.Generator
) -> DigitStrings:
    by_digit = [pool[digits[pool] == digit] for digit in range(10)]
    images, labels = [], []
    for _ in range(n):
        string = _counter(int(random.integers(3, 13)), random)
        chosen = [random.choice(by_digit[digit]) for digit in string]
        images.append(pixels[chosen] + random.normal(scale=noise, size=(len(string), pixels.shape[1])))
        labels.append(string)
    return DigitStrings(images, labels)


def _counter(length: int, random: np.random.Generator) -> list[int]:
    string = [int(random.integers(10))]
    while len(string) < length:
        draw = random.random()
        if draw < ONE_MORE:
            string.append((string[-1] + 1) % 10)
        elif draw < ONE_MORE + SAME:
            string.append(string[-1])
        else:
            string.append(int(random.integers(10)))
    return string


SYLLABLES = [consonant + vowel for consonant in "bdfgklmnprstvz" for vowel in "aeiou"]
PARTICLES = ("del", "ek")  # words of the target language that translate nothing
NAME, ADJECTIVE, DOUBLE, DROPPED, PARTICLE = 0.05, 0.4, 0.1, 0.1, 0.15  # probabilities


@dataclass(frozen=True)
class ParallelSentences:
    """Sentence pairs with their word alignments.

    Attributes
    ----------
    pairs : list of (list of str, list of str)
        Source words and target words.
    alignments : list of Alignment
        Links between them: those of translations are sure, those of a particle to the word that it precedes possible.
    """

    pairs: list[tuple[list[str], list[str]]]
    alignments: list[Alignment]


def parallel_sentences(
    n_train: int = 1000, n_test: int = 100, seed: int = 0, words: int = 300
) -> tuple[ParallelSentences, ParallelSentences]:
    """Make sentence pairs of two toy languages, about 2 to 16 words each.

    Parameters
    ----------
    n_train, n_test : int
        Number of sentence pairs.
    seed : int
        Same seed, same languages and sentences.
    words : int
        Nouns, and as many adjectives.
    """
    random = np.random.default_rng(seed)
    nouns, adjectives = (_dictionary(words, random) for _ in range(2))
    train, test = ([_sentence_pair(nouns, adjectives, random) for _ in range(n)] for n in (n_train, n_test))
    return _collected(train), _collected(test)


Entry = tuple[str, list[str]]  # a word and its translation


def _dictionary(words: int, random: np.random.Generator) -> list[Entry]:
    return [(_word(random), [_word(random) for _ in range(1 + (random.random() < DOUBLE))]) for _ in range(words)]


def _word(random: np.random.Generator) -> str:
    return "".join(random.choice(SYLLABLES, size=random.integers(2, 4)))


def _sentence_pair(
    nouns: list[Entry], adjectives: list[Entry], random: np.random.Generator
) -> tuple[list[str], list[str], Alignment]:
    source, target = list[str](), list[str]()
    sure, possible = set[Link](), set[Link]()
    for _ in range(random.integers(2, 7)):
        noun = _name(random) if random.random() < NAME else _drawn(nouns, random)
        adjective = _drawn(adjectives, random) if random.random() < ADJECTIVE else None
        source += [word for word, _ in (adjective, noun)] if adjective else [noun[0]]
        if random.random() < PARTICLE:
            possible.add((len(source) - 1, len(target)))
            target.append(str(random.choice(PARTICLES)))
        sure |= _translated(noun, len(source) - 1, target)
        if adjective and random.random() >= DROPPED:
            sure |= _translated(adjective, len(source) - 2, target)
    return source, target, Alignment(frozenset(sure), frozenset(possible))


def _translated(entry: Entry, place: int, target: list[str]) -> set[Link]:
    """Add the translation of a word to the target; its links."""
    first, (_, words) = len(target), entry
    target += words
    return {(place, j) for j in range(first, len(target))}


def _drawn(entries: list[Entry], random: np.random.Generator) -> Entry:
    """Words at the beginning are more frequent, about as in texts."""
    return entries[int(len(entries) ** random.random()) - 1]


def _name(random: np.random.Generator) -> Entry:
    name = _word(random).capitalize()
    return name, [name]


def _collected(drawn: list[tuple[list[str], list[str], Alignment]]) -> ParallelSentences:
    return ParallelSentences(
        [(source, target) for source, target, _ in drawn], [alignment for _, _, alignment in drawn]
    )
