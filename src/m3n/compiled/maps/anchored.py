"""Codes of what templates see around the anchors of a part: numbers of weights, by a hash.

A part has up to three *anchors*, rows of a table of tokens (for an arc the head and the dependent). Every token has a
few attributes, each a number of 64 bits. An *atom* is one attribute of the token at some distance from an anchor; what
else is known about a part (its direction, its label) comes as further numbers. A template is a list of atoms, and its
code a hash of their values:

    h = seed of the template;   h = (h + value) M mod 2^64 for its atoms;   code = highest bits of (h xor h / 2^32) M

A code that the part has already becomes the next one that it has not, so that no code comes twice. Some templates see
the tokens *between* the first two anchors: they give one code for every different tag there.
"""

from typing import NamedTuple

import numpy as np

from m3n.compiled.jit import compiled, inner

MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)  # 2^64 divided by the golden ratio, odd
HALF = np.uint64(32)


class Plan(NamedTuple):
    """Templates as plain arrays."""

    atoms: np.ndarray  # (atoms, 3) anchor, distance, attribute; anchor -1: number ``attribute`` of what else is known
    templates: np.ndarray  # (templates, most) atoms, -1 where there are no more
    seeds: np.ndarray  # (templates,)
    between: np.ndarray  # (templates,) whether it also sees the tags between the anchors
    shift: int  # 64 minus the bits of a code


class Places(NamedTuple):
    """Where parts are."""

    anchors: np.ndarray  # (parts, anchors) rows of the table of tokens; -1: there is none
    extras: np.ndarray  # (parts, numbers) what else is known about a part
    first: np.ndarray  # (parts,) the first and
    last: np.ndarray  # (parts,) the last row between the anchors, exclusive


class Tokens(NamedTuple):
    """A table of tokens."""

    values: np.ndarray  # (rows, attributes) hashes of attributes
    tags: np.ndarray  # (rows,) small numbers for what templates see between anchors
    tag_values: np.ndarray  # (tags,) their hashes


@compiled
def count_codes(low, high, places, tags, kinds, plain, wide, counts):
    """How many codes parts low..high-1 have: ``plain``, and ``wide`` for every different tag between the anchors."""
    seen = np.full(kinds, -1, np.int64)
    for p in range(low, high):
        counts[p] = plain
        if wide > 0:
            for row in range(places.first[p], places.last[p]):
                if seen[tags[row]] != p:
                    seen[tags[row]] = p
                    counts[p] += wide


@compiled
def write_codes(low, high, plan, places, tokens, pointers, out):
    """The codes of parts low..high-1, from pointers[p] on."""
    atoms, templates, seeds, between, shift = plan
    anchors, extras, first, last = places
    table, tags, tag_values = tokens
    values, shift = np.empty(atoms.shape[0], np.uint64), np.uint64(shift)
    seen, stamp = np.full(tag_values.shape[0], -1, np.int64), 0
    slots = _slots(low, high, pointers)
    keys, owners, final = np.empty(slots, np.int64), np.full(slots, -1, np.int64), (1 << (64 - np.int64(shift))) - 1
    for p in range(low, high):
        _look(atoms, anchors, extras, table, p, values)
        at = pointers[p]
        for t in range(templates.shape[0]):
            h = seeds[t]
            for m in range(templates.shape[1]):
                if templates[t, m] < 0:
                    break
                h = (h + values[templates[t, m]]) * MULTIPLIER
            if between[t]:
                stamp += 1
                for row in range(first[p], last[p]):
                    tag = tags[row]
                    if seen[tag] != stamp:
                        seen[tag] = stamp
                        out[at] = _free(_top((h + tag_values[tag]) * MULTIPLIER, shift), final, p, keys, owners)
                        at += 1
            else:
                out[at] = _free(_top(h, shift), final, p, keys, owners)
                at += 1


@inner
def _slots(low, high, pointers):
    """Room to find codes again: a power of two, at least twice as much as any part needs."""
    most, slots = 0, 64
    for p in range(low, high):
        most = max(most, pointers[p + 1] - pointers[p])
    while slots < 2 * most:
        slots *= 2
    return slots


@inner
def _look(atoms, anchors, extras, table, p, values):
    """The values of all atoms; 0 where an anchor is missing."""
    for k in range(atoms.shape[0]):
        anchor = atoms[k, 0]
        if anchor < 0:
            values[k] = extras[p, atoms[k, 2]]
        elif anchors[p, anchor] < 0:
            values[k] = np.uint64(0)
        else:
            values[k] = table[anchors[p, anchor] + atoms[k, 1], atoms[k, 2]]


@inner
def _top(h, shift):
    """The highest bits of a hash."""
    return np.int64(((h ^ (h >> HALF)) * MULTIPLIER) >> shift)


@inner
def _free(code, last, p, keys, owners):
    """The code, or the next one that part p does not have yet; after the last one comes 0."""
    while True:
        slot = code & (keys.shape[0] - 1)
        while owners[slot] == p and keys[slot] != code:
            slot = (slot + 1) & (keys.shape[0] - 1)
        if owners[slot] != p:
            owners[slot], keys[slot] = p, code
            return code
        code = (code + 1) & last
