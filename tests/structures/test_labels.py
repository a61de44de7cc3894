"""Label structures that a user writes: only the max-oracle of one example, and the layout of labels."""

import numpy as np
import pytest

from m3n.packed import Threads
from m3n.structures import LabelStructure
from m3n.structures.labels import Words, cut_labels, join_labels


class Rows(LabelStructure):
    """Rows that choose their labels independently of one another, with ``best`` alone."""

    def __init__(self, lengths, labels):
        self.n, self.lengths = len(lengths), np.array(lengths)
        self.offsets = np.concatenate([[0], np.cumsum(lengths)])
        self.shapes = ((int(self.offsets[-1]), labels),)

    def spans(self):
        return (self.offsets,)

    def best(self, example, theta):
        rows, labels = theta[0].shape
        return (np.arange(rows) * labels + theta[0].argmax(axis=1))[::-1]

    def pack(self, outputs):
        return join_labels(outputs, self.lengths, self.shapes[0][1], Words())

    def unpack(self, labelling):
        return cut_labels(labelling, self.offsets)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_the_max_oracle_of_one_example_gives_labels(n_jobs, random):
    structure = Rows([3, 1, 5], 4)
    theta = (random.normal(size=(9, 4)),)
    values, labelling = structure.hard(theta, Threads(n_jobs))
    best = theta[0].argmax(axis=1)
    np.testing.assert_array_equal(labelling, best)
    np.testing.assert_allclose(values, np.add.reduceat(theta[0].max(axis=1), [0, 3, 4]))
    np.testing.assert_allclose(structure.score(theta, labelling), values)
    assert structure.unpack(labelling) == [best[:3].tolist(), best[3:4].tolist(), best[4:].tolist()]
