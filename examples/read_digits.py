"""Read noisy strings of handwritten digits: one by one, as strings, and as strings with a kernel.

The strings behave like a worn counter (``m3n.datasets.digit_strings``): the next digit is usually one more than the
last. A chain learns that from the data and reads images that are too noisy on their own; a cubic kernel also sees which
pixels occur together.

Run it with ``python examples/read_digits.py``; it takes a few seconds.
"""

from __future__ import annotations

from typing import Any

import m3n


def single(strings: list[Any]) -> list[Any]:
    """Strings of length one."""
    return [string[t : t + 1] for string in strings for t in range(len(string))]


def main() -> None:
    train, test = m3n.datasets.digit_strings(n_train=100, n_test=200)
    settings: dict[str, Any] = {"loss": "normalized_hamming", "lam": 0.01, "tol": 0.01}

    alone = m3n.SequenceTagger(**settings).fit(single(train.inputs), single(train.labels))
    print(f"image by image: {alone.score(single(test.inputs), single(test.labels)):.1%} of the digits are right")

    chain = m3n.SequenceTagger(**settings).fit(train.inputs, train.labels)
    print(f"strings:        {chain.score(test.inputs, test.labels):.1%}")

    cubic = m3n.SequenceTagger(kernel="poly", degree=3, **settings).fit(train.inputs, train.labels)
    print(f"cubic kernel:   {cubic.score(test.inputs, test.labels):.1%}")
    print(f"{cubic.status_}: {cubic.certificate_}")
    print(cubic.kernel_model_)

    after = chain.transitions_.argmax(axis=1)
    print("the likeliest digit after 0 to 9:", *(chain.classes_[after].tolist()))


if __name__ == "__main__":
    main()
