"""Records: what readers get back of a rule, its id and text and tags, as they were given.

    records   … │ row, id bytes, text bytes, tags │ tags │ bytes of id and text, padded to words │ next record …

New records are appended. When more than half of the words belong to removed rules, the records in use slide down, some
at each update, so that no update waits for all of them:

    ├─ slid already ─┤ SLID_TO ├─ gap ─┤ SLIDING ├─ still to slide, and new ones ─┤ RECORDS
"""

from __future__ import annotations

import numpy as np

from eligo.compile.compiled import mixed
from eligo.compile.strings import hash_bytes
from eligo.jit import inline, kernel
from eligo.segments.living.pools import FREE_RECORDS, RECORDS, SLID_TO, SLIDING

HEAD = 4
_WORTH = 4096  # free words below which records are not moved


@inline
def record_words(id_bytes, text_bytes, tags):
    return HEAD + tags + (id_bytes + text_bytes + 3) // 4


@inline
def write_record(records, data, state, row, ids, id_from, id_to, texts, text_from, text_to, tag, tag_from, tag_to):
    """Appends a record, for which there must be room. Returns where it begins."""
    at = state[RECORDS]
    id_bytes, text_bytes, tags = id_to - id_from, text_to - text_from, tag_to - tag_from
    records[at], records[at + 1], records[at + 2], records[at + 3] = row, id_bytes, text_bytes, tags
    for i in range(tags):
        records[at + HEAD + i] = tag[tag_from + i]
    to = 4 * (at + HEAD + tags)
    for i in range(id_bytes):
        data[to + i] = ids[id_from + i]
    to += id_bytes
    for i in range(text_bytes):
        data[to + i] = texts[text_from + i]
    state[RECORDS] += record_words(id_bytes, text_bytes, tags)
    return at


@inline
def free_record(records, state, at):
    records[at] = -1
    state[FREE_RECORDS] += record_words(records[at + 1], records[at + 2], records[at + 3])


@kernel
def slide(p, effort):
    """Slides about `effort` words of records down, if sliding is under way or enough words are free to begin."""
    state = p.state
    if state[SLIDING] < 0:
        if state[FREE_RECORDS] < _WORTH or 2 * state[FREE_RECORDS] < state[RECORDS]:
            return
        state[SLIDING] = state[SLID_TO] = 0
    slide_on(p, effort)


@kernel
def slide_all(p):
    """Slides records down until no word is free."""
    state = p.state
    if state[SLIDING] >= 0:
        slide_on(p, state[RECORDS])
    if state[FREE_RECORDS] > 0:
        state[SLIDING] = state[SLID_TO] = 0
        slide_on(p, state[RECORDS])


@kernel
def slide_on(p, effort):
    """Continues to slide records down, by about `effort` words."""
    state, records, place = p.state, p.records, p.record
    at, to, end = state[SLIDING], state[SLID_TO], state[RECORDS]
    stop = min(end, at + effort)
    while at < stop:
        size = record_words(records[at + 1], records[at + 2], records[at + 3])
        if records[at] < 0:
            state[FREE_RECORDS] -= size
        else:
            if to != at:
                for i in range(size):
                    records[to + i] = records[at + i]
                place[records[to]] = to
            to += size
        at += size
    state[SLIDING], state[SLID_TO] = at, to
    if at >= end:
        state[RECORDS], state[SLIDING] = to, -1


# -- ids


@inline
def short_hash(h):
    return np.uint32(h >> np.uint64(32))


@inline
def integer_hash(rule):
    return short_hash(mixed(np.uint64(0x9E3779B97F4A7C15), np.int64(rule)))


@inline
def text_hash(data, start, stop):
    return short_hash(hash_bytes(data, start, stop))


@kernel
def find_integer(p, rule, one, other):
    """Returns the row with this id whose status is `one` or `other`, or -1."""
    slots, hashes, ids, status = p.id_slots, p.id_hash, p.ids, p.status
    mask = np.int64(len(slots) - 1)
    wanted = integer_hash(rule)
    at = np.int64(wanted) & mask
    while slots[at] != 0:
        row = slots[at] - 1
        if hashes[row] == wanted and ids[row] == rule and (status[row] == one or status[row] == other):
            return np.int64(row)
        at = (at + 1) & mask
    return np.int64(-1)


@kernel
def find_text(p, raw, one, other):
    slots, hashes, status, records, data, place = p.id_slots, p.id_hash, p.status, p.records, p.record_bytes, p.record
    mask = np.int64(len(slots) - 1)
    wanted = text_hash(raw, 0, len(raw))
    at = np.int64(wanted) & mask
    while slots[at] != 0:
        row = slots[at] - 1
        if hashes[row] == wanted and (status[row] == one or status[row] == other):
            here = place[row]
            same = records[here + 1] == len(raw)
            if same:
                start = 4 * (here + HEAD + records[here + 3])
                for i in range(len(raw)):
                    same = same and data[start + i] == raw[i]
            if same:
                return np.int64(row)
        at = (at + 1) & mask
    return np.int64(-1)


@kernel
def tag_of(p, rows, marked):
    """Returns for each row the first of its tags that is marked, or -1."""
    found = np.full(len(rows), -1, np.int32)
    for i in range(len(rows)):
        at = p.record[rows[i]]
        for j in range(at + HEAD, at + HEAD + p.records[at + 3]):
            if marked[p.records[j]]:
                found[i] = p.records[j]
                break
    return found


@kernel
def gather(p, rows, texts):
    """Returns the offsets and bytes of the ids of some rows or, if `texts`, of their texts."""
    records, data, place = p.records, p.record_bytes, p.record
    offsets = np.zeros(len(rows) + 1, np.int64)
    for i in range(len(rows)):
        at = place[rows[i]]
        offsets[i + 1] = offsets[i] + (records[at + 2] if texts else records[at + 1])
    out = np.empty(offsets[-1], np.uint8)
    for i in range(len(rows)):
        at = place[rows[i]]
        start = 4 * (at + HEAD + records[at + 3]) + (records[at + 1] if texts else 0)
        for k in range(offsets[i + 1] - offsets[i]):
            out[offsets[i] + k] = data[start + k]
    return offsets, out
