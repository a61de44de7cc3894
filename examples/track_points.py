"""Track points between two frames: learn how to match them.

Points drift, each with a colour that looks a little different in every frame. Some leave and others arrive, most of
them at the border. A frame is matched with the next one (``m3n.structures.Matching``): a point is linked with one of
the next frame, or with none. What a link, a point that leaves and a point that arrives are worth is learnt from frames
whose links are known; taking the nearest point of the next frame sees neither the colours nor the other points.

Run it with ``python examples/track_points.py``; it takes a few seconds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import m3n
from m3n.features import Dense, Stack
from m3n.losses import PartLoss
from m3n.structures import Matching

DRIFT, NOISE, FLICKER, NEW = 0.05, 0.02, 0.1, 2  # of a square of side 1; new points per frame


@dataclass(frozen=True)
class Pair:
    """Two frames: points (x, y, colour) of both, and which of them are the same."""

    before: np.ndarray
    after: np.ndarray
    links: list[tuple[int, int]]


def frames(random: np.random.Generator, count: int) -> list[Pair]:
    """Pairs of neighbouring frames of a film."""
    pairs, points = [], random.random((12, 3))
    for _ in range(count):
        moved = points + np.array([*DRIFT * random.normal(size=2), 0.0])  # the wind is the same for all
        moved[:, :2] += NOISE * random.normal(size=(len(points), 2))
        outside = ((moved[:, :2] < 0.0) | (moved[:, :2] > 1.0)).any(axis=1)
        stay = np.flatnonzero(~outside & (random.random(len(points)) > 0.03))
        after = np.concatenate([moved[stay], arrivals(random)])
        order = random.permutation(len(after))
        links = list(zip(stay.tolist(), np.argsort(order).tolist(), strict=False))
        pairs.append(Pair(seen(random, points), seen(random, after[order]), links))
        points = after[order]
    return pairs


def arrivals(random: np.random.Generator) -> np.ndarray:
    """New points, close to a side of the square."""
    points = random.random((random.poisson(NEW), 3))
    points[np.arange(len(points)), random.integers(2, size=len(points))] = random.choice([0.02, 0.98], size=len(points))
    return points


def seen(random: np.random.Generator, points: np.ndarray) -> np.ndarray:
    """The points with the colours that a camera sees."""
    return points + np.array([0.0, 0.0, FLICKER]) * random.normal(size=points.shape)


def link_features(pair: Pair) -> np.ndarray:
    """Of every link: a constant, how far it moves and how much the colour changes, and the squares of both."""
    change = pair.before[:, None] - pair.after[None]
    far = np.linalg.norm(change[..., :2], axis=-1).ravel() / DRIFT
    colour = np.abs(change[..., 2]).ravel() / FLICKER
    return np.stack([np.ones(len(far)), far, colour, np.minimum(far, 5.0) ** 2, np.minimum(colour, 5.0) ** 2], axis=1)


def point_features(points: np.ndarray) -> np.ndarray:
    """Of a point without a link: a constant, and whether it is at the border."""
    border = np.minimum(points[:, :2], 1.0 - points[:, :2]).min(axis=1)
    return np.stack([np.ones(len(points)), np.exp(-border / DRIFT)], axis=1)


def described(pairs: list[Pair]) -> tuple[Matching, Stack]:
    """Output spaces and features of some pairs."""
    structure = Matching([(len(pair.before), len(pair.after)) for pair in pairs])
    rows = (link_features, lambda pair: point_features(pair.before), lambda pair: point_features(pair.after))
    return structure, Stack(*(Dense(np.concatenate([row(pair) for pair in pairs]), 1) for row in rows))


def nearest(pair: Pair) -> list[tuple[int, int]]:
    """Every point with the nearest one of the next frame, unless that is far away."""
    far = np.linalg.norm(pair.before[:, None, :2] - pair.after[None, :, :2], axis=-1)
    return [(i, int(j)) for i, j in enumerate(far.argmin(axis=1)) if far[i, j] < 3.0 * DRIFT]


def right(pairs: list[Pair], answers: list[list[tuple[int, int]]]) -> float:
    """The harmonic mean of precision and recall of links."""
    hits = sum(len(set(pair.links) & set(links)) for pair, links in zip(pairs, answers, strict=True))
    return 2.0 * hits / sum(len(pair.links) + len(links) for pair, links in zip(pairs, answers, strict=True))


def main() -> None:
    random = np.random.default_rng(0)
    train, test = frames(random, 100), frames(random, 100)
    structure, features = described(train)
    loss = PartLoss(arrays=[0])  # of links: missed ones, and wrong ones
    problem = m3n.Problem(structure, features, [pair.links for pair in train], loss=loss, lam=0.01)
    result = m3n.minimize(problem, rtol=0.01)
    print(f"{result.status}: {result.certificate}")

    structure, features = described(test)
    _, best = structure.hard(features.scores(result.w, structure.empty()))
    print(f"nearest points: {right(test, [nearest(pair) for pair in test]):.1%} of the links are right")
    print(f"matching:       {right(test, structure.unpack(best)):.1%}")


if __name__ == "__main__":
    main()
