"""Kernels that insert and remove rules. They write rows, leaves and entries (pools.py) while the gate is closed."""

from __future__ import annotations

import numpy as np

from eligo.index.rows.allocator import give_block, heap_class, heap_words, move_block, take_block
from eligo.index.rows.content import number_rows
from eligo.jit import inline, kernel
from eligo.segments.living.pools import (
    COMING,
    CONJUNCTIONS,
    DISORDERED,
    FREE,
    FREE_CONJUNCTION,
    FREE_ROW,
    HIDDEN,
    LAST,
    LIVING,
    ROWS,
    TREES,
    USED_CONJUNCTIONS,
    USED_ROWS,
    WIDEST,
)
from eligo.segments.living.records import free_record, integer_hash, text_hash, write_record
from eligo.segments.living.slots import drop_number, put_number

# -- conjunctions


@kernel
def candidates(p, hashes, behind):
    """Returns for each hash a conjunction that has it, or -1, and how many were found. If `behind` is a conjunction
    with the hash, and not -1, the search begins behind it.
    """
    slots, known = p.conjunction_slots, p.conjunction_hash
    mask = np.int64(len(slots) - 1)
    found, count = np.full(len(hashes), -1, np.int64), 0
    for i in range(len(hashes)):
        at = np.int64(hashes[i]) & mask
        if behind >= 0:
            while slots[at] != behind + 1:
                at = (at + 1) & mask
            at = (at + 1) & mask
        while slots[at] != 0:
            if known[slots[at] - 1] == hashes[i]:
                found[i] = slots[at] - 1
                count += 1
                break
            at = (at + 1) & mask
    return found, count


@kernel
def new_numbers(p, hashes, words, offsets):
    """Returns numbers for new conjunctions, after entering them under their hashes and writing them into the rows."""
    state, uses, known, owner, slots = p.state, p.uses, p.conjunction_hash, p.owner, p.conjunction_slots
    numbers = np.empty(len(hashes), np.int64)
    for i in range(len(hashes)):
        c = state[FREE_CONJUNCTION]
        if c >= 0:
            state[FREE_CONJUNCTION] = owner[c]
        else:
            c = state[CONJUNCTIONS]
            state[CONJUNCTIONS] += 1
        known[c], owner[c], uses[c] = hashes[i], -1, 0
        put_number(slots, known, c)
        numbers[i] = c
    state[USED_CONJUNCTIONS] += len(hashes)
    number_rows(words, offsets, numbers)
    return numbers


@kernel
def unused(p, numbers):
    """Returns those of some conjunctions that no rule uses."""
    found = np.empty(len(numbers), np.int64)
    k = 0
    for c in numbers:
        if p.uses[c] == 0:
            found[k] = c
            k += 1
    return found[:k]


@kernel
def drop_numbers(p, numbers):
    """Frees the numbers of conjunctions that no rule uses."""
    state, owner = p.state, p.owner
    for c in numbers:
        drop_number(p.conjunction_slots, p.conjunction_hash, c)
        owner[c] = state[FREE_CONJUNCTION]
        state[FREE_CONJUNCTION] = c
    state[USED_CONJUNCTIONS] -= len(numbers)


# -- entries


@inline
def add_entry(owner, blocks, heads, c, entry):
    """Adds an entry to a conjunction, unless it is there because several leaves of the rule are this conjunction."""
    v = np.int64(owner[c])
    if v == -1:
        owner[c] = entry
        return
    if v >= 0:
        if v != entry:
            at = take_block(blocks, heads, 4)
            blocks[at], blocks[at + 1], blocks[at + 2], blocks[at + 3] = 2, 4, v, entry
            owner[c] = -2 - (at >> 1)
        return
    at = (-2 - v) << 1
    n, room = np.int64(blocks[at]), np.int64(blocks[at + 1])
    # A rule's entries are added one after another, so its own and that of its tree are the last two.
    if blocks[at + n + 1] == entry or blocks[at + n] == entry:
        return
    if n + 2 == room:
        larger = heap_words(heap_class(2 * n + 2))
        at = move_block(blocks, heads, at, n + 2, room, larger)
        blocks[at + 1] = larger
        owner[c] = -2 - (at >> 1)
    blocks[at + n + 2] = entry
    blocks[at] = n + 1


@inline
def row_of(blocks, entry):
    """Returns the row that an entry belongs to."""
    return np.int64(blocks[entry - 1]) if entry & 1 else np.int64(entry) >> 1


@inline
def drop_entries(owner, blocks, heads, status, c):
    """Removes the entries of rows that are FREE from a conjunction. Returns whether it still has a list of entries. Its
    room is negative then, which says that it need not be gone through again.
    """
    v = np.int64(owner[c])
    if v >= -1:
        if v >= 0 and status[row_of(blocks, v)] == FREE:
            owner[c] = -1
        return False
    at = (-2 - v) << 1
    room, end = np.int64(blocks[at + 1]), at + 2 + np.int64(blocks[at])
    if room < 0:
        return False
    n = np.int64(0)
    for i in range(at + 2, end):
        entry = blocks[i]
        if status[row_of(blocks, entry)] != FREE:
            blocks[at + 2 + n] = entry
            n += 1
    if n < 2:
        owner[c] = blocks[at + 2] if n else -1
        give_block(blocks, heads, at, room)
        return False
    if 3 * (n + 2) < room:
        smaller = heap_words(heap_class(n + 2))
        at = move_block(blocks, heads, at, n + 2, room, smaller)
        room = smaller
        owner[c] = -2 - (at >> 1)
    blocks[at], blocks[at + 1] = n, -room
    return True


# -- rules


@kernel
def take_rules(
    p, first, stop, status, sequence, ids, id_offsets, id_data, text_offsets, text_data, weight, tag_offsets, tag,
    leaf_start, leaf, begin, end, numbers,
):  # fmt: skip
    """Inserts rules first … stop-1 of some that were compiled together. There must be room. Returns their rows."""
    state, owner, blocks, heads, uses = p.state, p.owner, p.blocks, p.heads, p.uses
    records, data, hashes, slots, tag_uses = p.records, p.record_bytes, p.id_hash, p.id_slots, p.tag_uses
    rows = np.empty(stop - first, np.int32)
    for n in range(first, stop):
        r = state[FREE_ROW]
        if r >= 0:
            state[FREE_ROW] = p.root[r]
            state[DISORDERED] = 1
        else:
            r = state[ROWS]
            state[ROWS] += 1
            if sequence[n] <= state[LAST]:
                state[DISORDERED] = 1
            state[LAST] = max(state[LAST], sequence[n])
        rows[n - first] = r
        p.status[r], p.sequence[r], p.weight[r] = status, sequence[n], weight[n]
        if len(ids):
            p.ids[r] = ids[n]
            hashes[r] = integer_hash(ids[n])
        else:
            hashes[r] = text_hash(id_data, id_offsets[n], id_offsets[n + 1])
        put_number(slots, hashes, r)
        id_from, id_to = (np.int64(0), np.int64(0)) if len(ids) else (id_offsets[n], id_offsets[n + 1])
        p.record[r] = write_record(
            records, data, state, r, id_data, id_from, id_to, text_data, text_offsets[n], text_offsets[n + 1],
            tag, tag_offsets[n], tag_offsets[n + 1],
        )  # fmt: skip
        for i in range(tag_offsets[n], tag_offsets[n + 1]):
            tag_uses[tag[i]] += 1
        start, leaves = leaf_start[n], np.int64(leaf_start[n + 1]) - leaf_start[n]
        p.root[r] = numbers[leaf[start]] if leaves == 1 else -1
        at = np.int64(-1)
        if leaves > 1:
            at = take_block(blocks, heads, 2 + 3 * leaves)
            blocks[at], blocks[at + 1] = r, leaves
            p.root[r] = -2 - (at >> 1)
            state[TREES] += 1
            state[WIDEST] = max(state[WIDEST], leaves)
        for i in range(start, start + leaves):
            c = np.int64(numbers[leaf[i]])
            uses[c] += 1
            if leaves > 1:
                q = at + 2 + 3 * (i - start)
                blocks[q], blocks[q + 1], blocks[q + 2] = c, begin[i] - 1, end[i]
            if begin[i] == 1:
                add_entry(owner, blocks, heads, c, 2 * r if end[i] == leaves else at + 1)
    state[USED_ROWS] += stop - first
    state[HIDDEN] += stop - first if status == COMING else 0
    return rows


@kernel
def forget_rules(p, rows):
    """Removes rules. Returns the numbers of the conjunctions that no rule uses any more; they are not freed here."""
    state, owner, blocks, heads, uses, root = p.state, p.owner, p.blocks, p.heads, p.uses, p.root
    records, hashes, slots, status, tag_uses, place = p.records, p.id_hash, p.id_slots, p.status, p.tag_uses, p.record
    most = 0
    for r in rows:
        most += 1 if root[r] >= -1 else blocks[((-2 - root[r]) << 1) + 1]
        drop_number(slots, hashes, r)
        at = place[r]
        for i in range(records[at + 3]):
            tag_uses[records[at + 4 + i]] -= 1
        free_record(records, state, at)
        state[HIDDEN] -= status[r] & 1 == 0
        status[r] = FREE
    # All rows are FREE before entries go: many rules may be one conjunction, and its list is gone through once.
    gone, left = np.empty(most, np.int64), np.empty(most, np.int64)
    k = lists = 0
    for r in rows:
        b, leaves = np.int64(-2 - root[r]) << 1, np.int64(root[r] >= 0)
        if root[r] < -1:
            leaves = np.int64(blocks[b + 1])
        for i in range(leaves):
            c = np.int64(root[r])
            begins = True
            if root[r] < -1:
                c, begins = np.int64(blocks[b + 2 + 3 * i]), blocks[b + 3 + 3 * i] == 0
            if begins and drop_entries(owner, blocks, heads, status, c):
                left[lists] = c
                lists += 1
            uses[c] -= 1
            if uses[c] == 0:
                gone[k] = c
                k += 1
    for i in range(lists):
        blocks[((-2 - owner[left[i]]) << 1) + 1] *= -1
    for r in rows:
        if root[r] < -1:
            b = np.int64(-2 - root[r]) << 1
            give_block(blocks, heads, b, 2 + 3 * np.int64(blocks[b + 1]))
            state[TREES] -= 1
        root[r] = state[FREE_ROW]
        state[FREE_ROW] = r
    state[USED_ROWS] -= len(rows)
    return gone[:k]


@kernel
def rows_naming(p, looking, tags):
    """Returns the LIVING and COMING rows that have a conjunction c with looking[c], or one of the tags."""
    state, status, root, blocks, record, records = p.state, p.status, p.root, p.blocks, p.record, p.records
    found = np.empty(state[USED_ROWS], np.int32)
    k = 0
    for r in range(state[ROWS]):
        if status[r] != LIVING and status[r] != COMING:
            continue
        named = root[r] >= 0 and looking[root[r]]
        if root[r] < -1:
            b = np.int64(-2 - root[r]) << 1
            for q in range(b + 2, b + 2 + 3 * np.int64(blocks[b + 1]), 3):
                named = named or looking[blocks[q]]
        at = record[r]
        for i in range(at + 4, at + 4 + records[at + 3]):
            named = named or (records[i] < len(tags) and tags[records[i]] != 0)
        if named:
            found[k] = r
            k += 1
    return found[:k]


@kernel
def turn(p, rows, to_coming, to_going):
    """Gives rows that are COMING the status `to_coming`, and rows that readers see the status `to_going`."""
    state, status = p.state, p.status
    for r in rows:
        before = status[r]
        if before == COMING:
            status[r] = to_coming
        elif before & 1:
            status[r] = to_going
        state[HIDDEN] += np.int64(status[r] & 1 == 0) - np.int64(before & 1 == 0)
