"""The attributes that templates make of tokens, numbered without a pass of NumPy per template and step.

``codes`` (tokens, forms) are those of the words and their forms. A template joins the codes that its macros point at
to one key per token, as ``m3n.features.joint_codes`` says, and the key's place in the sorted table of the template's
keys is the attribute. A table has a list of buckets: ``begins[b]`` is the place of the first key with key >> shift
>= b, so that a search stays among few keys, and needs no keys at all if shift is 0. What a plan's rows hold:

    templates   first macro, last macro + 1, table, what is added to places, and a mark: the first or the last token
    macros      whether the row is a distance, the row, the form, how many codes it has, the table before it or -1
    tables      where its keys and its buckets begin, shift
"""

import numpy as np

from m3n.compiled.jit import compiled, inner

FIRST, LAST = 1, 2  # marks


@compiled
def number(low, high, offsets, codes, beyond, templates, macros, tables, keys, begins, columns):
    """Fill in columns (tokens of sequences low..high-1, templates); -1 for what is not known.

    beyond (forms, 2 * reach): the codes of what stands before a sentence, from near to far, then behind it.
    """
    joint = np.empty(offsets[high] - offsets[low], np.int64)
    for j in range(templates.shape[0]):
        joint[:] = 0
        _mark(low, high, offsets, templates[j, 4], joint)
        for m in range(templates[j, 0], templates[j, 1]):
            if macros[m, 4] >= 0:
                _rank(tables[macros[m, 4]], keys, begins, joint)
            _join(low, high, offsets, codes, beyond, macros[m], joint)
        _rank(tables[templates[j, 2]], keys, begins, joint)
        for r in range(joint.shape[0]):
            columns[r, j] = joint[r] + templates[j, 3] if joint[r] >= 0 else -1


@inner
def _mark(low, high, offsets, mark, joint):
    """Leave the tokens where a mark stands."""
    if mark > 0:
        joint[:] = -1
        for i in range(low, high):
            joint[(offsets[i] if mark == FIRST else offsets[i + 1] - 1) - offsets[low]] = 0


@inner
def _join(low, high, offsets, codes, beyond, macro, joint):
    """Add the codes of a macro to the keys."""
    relative, row, form, size = macro[0], macro[1], macro[2], macro[3]
    reach, first = beyond.shape[1] // 2, offsets[low]
    for i in range(low, high):
        begin, end = offsets[i], offsets[i + 1]
        target = begin + row if relative > 0 or row >= 0 else end + row
        for r in range(begin - first, end - first):
            code = np.int64(-1)
            if begin <= target < end:
                code = np.int64(codes[target, form])
            elif reach > 0 and target < begin:
                code = beyond[form, min(begin - target, reach) - 1]
            elif reach > 0:
                code = beyond[form, min(target - end + 1, reach) - 1 + reach]
            joint[r] = (joint[r] * size + code) | (joint[r] >> 63) | (code >> 63)
            target += relative


@inner
def _rank(table, keys, begins, joint):
    """Keys become their places in a table."""
    if table[2] == 0:
        _rank_alone(table[1], begins, joint)
    else:
        _rank_among(table[0], table[1], table[2], keys, begins, joint)


@inner
def _rank_alone(bucket, begins, joint):
    """Every key has a bucket of its own."""
    for r in range(joint.shape[0]):
        at = bucket + max(joint[r], 0)
        low = np.int64(begins[at])
        joint[r] = low if joint[r] >= 0 and low < begins[at + 1] else -1


@inner
def _rank_among(first, bucket, shift, keys, begins, joint):
    """A binary search among the keys of a bucket."""
    for r in range(joint.shape[0]):
        key = joint[r]
        if key >= 0:
            at = bucket + (key >> shift)
            low, end = first + np.int64(begins[at]), first + np.int64(begins[at + 1])
            high = end
            while low < high:
                middle = (low + high) >> 1
                if keys[middle] < key:
                    low = middle + 1
                else:
                    high = middle
            joint[r] = low - first if low < end and keys[low] == key else -1
