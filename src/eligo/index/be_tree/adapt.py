"""Self-adjustment (the BE-Tree paper §5): a walk over all l-nodes, a few rows at a time, again and again.

Matching watches one event of sixteen: which attributes it has, and in each l-node how many predicate evaluations were
wasted on expressions that it does not satisfy. Each round of the walk then uses what was watched during the one before:

    recycling      an l-node's rank is its gain, the predicates that the way to it covers or subsumes, less its loss,
                   the evaluations wasted in it by an event. Below `theta` all its expressions are inserted anew
    reinsertion    an expression for which another attribute of the root would rank twice as well, now that more is
                   known than when it came, is inserted anew
    exploration    an attribute's rank is corrected by what its p-node turned out to cost, and ranks that are not known
                   well are taken for better than they are (rank.py)

The paper's window for a node is a tenth of the expressions below it; here it is a round, but never less than ENOUGH
events watched. All of it happens in small steps, so that nobody has to wait for it.
"""

from __future__ import annotations

import numpy as np

from eligo.index.be_tree.blocks import bits_of_cluster
from eligo.index.be_tree.compact import cut_off_end, is_sparse, sink_blocks
from eligo.index.be_tree.delete import delete_row, find_row
from eligo.index.be_tree.insert import insert_row
from eligo.index.be_tree.nodes import (
    AT_CLUSTER,
    BEGAN,
    BEGAN_BEFORE,
    BLOCK,
    CHOOSES,
    CHOSEN_AT,
    CHOSEN_SATISFIED,
    CLUSTERS,
    CREDIT,
    DEAD,
    EVENTS,
    KEY,
    LEAF,
    MAX_CAP,
    POLICIES,
    RECYCLED,
    REINSERTED,
    ROUNDS,
    ROWS,
    SATISFIED,
    SHAPE,
    THETA,
    UP,
    WATCHED,
    has_room,
)
from eligo.index.be_tree.place import best_partition
from eligo.index.be_tree.rank import directory_key, score_of
from eligo.index.rows.int_pair import lower, upper
from eligo.index.rows.packed_predicate import check_words, first_check, row_words
from eligo.jit import inline, kernel

RECYCLING, REINSERTION, EXPLORATION = 1, 2, 4  # bits of POLICIES
ENOUGH = 64  # events watched before they mean something
WINDOW = 1024  # events watched before older ones begin to count less
PART = 2048  # rows of an l-node that are looked at in one step
BETTER = 0.5  # times the present score: worth moving for
CAPACITIES = ((0.005, 200), (0.05, 400), (2.0, 800))  # below which match probability, what max_cap (as in Table 4)


@inline
def way_to(t, c):
    """The key of the root's p-node on the way to a c-node, -1: it is the root; and how many p-nodes there are."""
    cluster, partition = t.cluster, t.partition
    key, levels = np.int64(-1), np.int64(0)
    owner = lower(cluster[8 * c + UP])
    while owner >= 0:
        levels += 1
        key = upper(partition[4 * owner + KEY])
        owner = lower(cluster[8 * lower(partition[4 * owner + KEY]) + UP])
    return key, levels


@inline
def present_score(t, at, key):
    """What the key that a row lies below scores for it; 1 in the root's l-node, which every event looks at."""
    words = t.words
    score = 1.0
    if key >= 0:
        q, end = first_check(words, at), at + row_words(words, at)
        while q < end:
            if directory_key(words[q]) == key:
                score = min(score, score_of(t, words, q, key))
            q += check_words(words[q])
    return score


@kernel
def move_row(t, conjunction, carry):
    """Take the row of a conjunction out and insert it anew."""
    words = t.words
    at = find_row(t, conjunction)
    for i in range(row_words(words, at)):
        carry[i] = words[at + i]
    delete_row(t, conjunction)
    insert_row(t, carry, 0)


@kernel
def begin_cluster(t, c, key, levels):
    """What an l-node has cost since the walk was last here; whether to recycle it."""
    cluster, state = t.cluster, t.state
    events = state[BEGAN] - state[BEGAN_BEFORE]
    if events < ENOUGH:
        return False
    wasted = cluster[8 * c + SHAPE] >> 32
    cluster[8 * c + SHAPE] &= 0xFFFF_FFFF
    if key < 0:
        return False
    t.wasted[key] += wasted
    gain = upper(cluster[8 * c + LEAF]) * levels
    return state[POLICIES] & RECYCLING != 0 and 100 * (gain - wasted / events) < state[THETA]


@kernel
def end_round(t):
    """Correct the ranks of attributes by what they cost, let old events count less, and choose max_cap."""
    state, seen, trust, expected, wasted = t.state, t.seen, t.trust, t.expected, t.wasted
    events = state[BEGAN] - state[BEGAN_BEFORE]
    for key in range(len(trust)):
        if state[POLICIES] & EXPLORATION and events >= ENOUGH and expected[key] * events >= ENOUGH:
            off = min(max(wasted[key] / (expected[key] * events), 0.25), 4.0)
            trust[key] = min(max(np.sqrt(off) * trust[key], 1.0 / 16), 16.0)
        expected[key], wasted[key] = 0.0, 0
    while state[EVENTS] > WINDOW:
        state[EVENTS] >>= 1
        for key in range(len(seen)):
            seen[key] >>= 1
    watched = state[WATCHED] - state[CHOSEN_AT]
    if state[CHOOSES] and watched >= ENOUGH and state[ROWS] > 0:
        chance = (state[SATISFIED] - state[CHOSEN_SATISFIED]) / (watched * state[ROWS])
        for limit, capacity in CAPACITIES:
            if chance < limit:
                state[MAX_CAP] = capacity
                break
        state[CHOSEN_AT], state[CHOSEN_SATISFIED] = state[WATCHED], state[SATISFIED]
    if state[WATCHED] - state[BEGAN] >= ENOUGH or events >= ENOUGH:
        state[BEGAN_BEFORE], state[BEGAN] = state[BEGAN], state[WATCHED]
    state[ROUNDS] += 1


@kernel
def choose_rows(t, c, chosen):
    """The conjunctions of an l-node that should be inserted anew, as far as there is room for them; how many.

    Of a large l-node a part, another one each round; and few of them, because to find one takes long.
    """
    cluster, state, words = t.cluster, t.state, t.words
    key, levels = way_to(t, c)
    recycle = begin_cluster(t, c, key, levels)
    rows = upper(cluster[8 * c + LEAF])
    first = state[ROUNDS] * PART % rows if rows > PART else 0
    most = max(1, min(len(chosen), 16 * PART // rows))
    at = cluster[8 * c + BLOCK]
    n = 0
    for i in range(min(rows, first + PART)):
        if i >= first:
            score = present_score(t, at, key)
            _, _, _, wish = best_partition(t, words, at, 0)
            moves = recycle or (state[POLICIES] & REINSERTION != 0 and wish < BETTER * score)
            if moves and n < most:
                chosen[n] = words[at] >> 32
                n += 1
            elif key >= 0:
                t.expected[key] += score * max(1.0, rows / PART)
        at += row_words(words, at)
    state[RECYCLED] += recycle
    state[REINSERTED] += 0 if recycle else n
    return n


@kernel
def adjust_tree(t, effort, chosen, carry):
    """Go on with the walk for about so many rows, as long as there is room; whether a round was finished.

    An l-node is gone through whole, and what that is more than the effort is made up for the next times.
    """
    cluster, state, heads = t.cluster, t.state, t.heads
    state[CREDIT] = min(state[CREDIT] + effort, 2 * effort)
    while state[CREDIT] > 0 and has_room(t, 4 * len(carry)):
        c = state[AT_CLUSTER]
        if c >= state[CLUSTERS]:
            end_round(t)
            if is_sparse(heads):
                cut_off_end(t)
            state[AT_CLUSTER] = 0
            return True
        state[AT_CLUSTER] += 1
        state[CREDIT] -= 1
        rows = upper(cluster[8 * c + LEAF])
        if bits_of_cluster(cluster[8 * c + SHAPE]) == DEAD:
            continue
        if is_sparse(heads):
            sink_blocks(t, c)
        if rows == 0:
            continue
        n = choose_rows(t, c, chosen)
        state[CREDIT] -= min(rows, PART) + (8 + rows // 64) * n
        for i in range(n):
            if not has_room(t, 4 * len(carry)):
                break
            move_row(t, chosen[i], carry)
    return False
