"""Bipartite matching: a structure with a max-oracle alone, whose outputs are not one label per row."""

import itertools

import numpy as np
from scipy.optimize import linear_sum_assignment

from m3n.structures import Structure


class Matching(Structure):
    """Which words of two sentences belong together: every word is in one link at most. theta: (pairs of words,)."""

    def __init__(self, sizes):
        self.sizes = [(int(rows), int(columns)) for rows, columns in sizes]
        self.n = len(self.sizes)
        self.first = np.cumsum([0, *(rows * columns for rows, columns in self.sizes)])
        self.shapes = ((int(self.first[-1]),),)

    def spans(self):
        return (self.first,)

    def most_parts(self):
        return np.array([min(size) for size in self.sizes])

    def parts_of(self, output, example):
        rows, columns = self.sizes[example]
        links = np.array(sorted(output), dtype=int).reshape(-1, 2)
        if len(links) and not ((links >= 0).all() and (links < (rows, columns)).all()):
            raise ValueError(f"example {example}: links must be in 0..{rows - 1} and 0..{columns - 1}, got {output}")
        if any(len(set(words)) < len(links) for words in links.T.tolist()):
            raise ValueError(f"example {example}: a word is in two links: {output}")
        return links[:, 0] * columns + links[:, 1]

    def output_of(self, parts, example):
        columns = self.sizes[example][1]
        return [(int(part) // columns, int(part) % columns) for part in parts]

    def best(self, example, theta):
        scores = np.maximum(theta[0].reshape(self.sizes[example]), 0.0)  # a link that scores less is left out
        rows, columns = linear_sum_assignment(scores, maximize=True)
        used = scores[rows, columns] > 0.0
        return rows[used] * scores.shape[1] + columns[used]

    def enumerate(self, example):
        rows, columns = self.sizes[example]
        most = min(rows, columns)
        for count in range(most + 1):
            for chosen in itertools.combinations(range(rows), count):
                for order in itertools.permutations(range(columns), count):
                    parts = np.sort([r * columns + c for r, c in zip(chosen, order, strict=True)]).astype(int)
                    yield np.concatenate([parts, np.full(most - count, -1)])
