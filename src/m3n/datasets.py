"""Noisy strings of handwritten digits: a reading task in which the neighbours help.

The images are the 1797 digits (8 x 8 pixels) that scikit-learn bundles. The strings behave like a worn counter: the
next digit is usually one more than the last, sometimes the same, now and then anything. Noise makes single images hard
to read; training and test strings share no image.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

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
