"""Rules and the conjunctions that they share, in flat arrays with free lists: what a living set is made of.

    row r           status[r]      FREE, LIVING, COMING (not to be seen yet), GOING (still to be seen)
                    sequence[r]    when the rule was added; one that replaces another takes its number
                    ids[r]         its id where ids are integers; id_hash[r]: by which `id_slots` knows the row
                    weight[r]
                    record[r]      where its record begins: id as text, text, tags
                    root[r]        conjunction c >= 0: the rule is that; -1: never true; -2 - b: its leaves are block b.
                                   Of a free row: the next free one
    record          row (-1: free), bytes of the id, bytes of the text, how many tags; tags; bytes, in `records`
    conjunction c   uses[c]        leaves of rules that are c; 0: the number is free
                    conjunction_hash[c]             by which `conjunction_slots` knows it
                    owner[c]       what it serves: one entry; -1: none; -2 - b: the entries in block b.
                                   Of a free number: the next free one
    entry           2 * row: c alone completes the rule;  2 * block + 1: c is a leaf of that tree and begins at 1
    block b         words 2b … of `blocks`, which the heap `heads` gives (rows/allocator.py), either
                        entries    how many, room for them + 2; the entries
                        leaves     row, leaf count M; then, ascending by begin, conjunction, begin - 1, end of each

Leaves that begin later have no entry: a complete tree has a satisfied leaf that begins at 1, so others are never looked
at. Labels are those of the evaluator `interval`.

Invariants (tests/invariants/living.py): every leaf of a row in use counts in `uses`, and a number with uses is in the
index; every entry belongs to a row in use; what is in no free list is in use; records lie without gaps but for one,
while they slide together (records.py).
"""

from __future__ import annotations

import numpy as np

from eligo.compile.compiled import F64, I32, I64, U8
from eligo.errors import LimitError
from eligo.index.rows.allocator import USED, no_blocks
from eligo.index.rows.growable import GrowingPools
from eligo.jit import handle
from eligo.segments.living.slots import LEAST, with_slots

FREE, LIVING, COMING, GOING = 0, 1, 2, 3  # odd: readers see it

# What `state` counts.
ROWS, FREE_ROW, USED_ROWS, CONJUNCTIONS, FREE_CONJUNCTION, USED_CONJUNCTIONS = 0, 1, 2, 3, 4, 5
RECORDS, FREE_RECORDS, SLID_TO, SLIDING = 6, 7, 8, 9  # words; the gap is SLID_TO … SLIDING, or none if SLIDING is -1
HIDDEN = 10  # rows in use that readers do not see
DISORDERED, LAST = 11, 12  # whether rows are out of the order of their sequence numbers; the highest number
TREES, WIDEST = 13, 14  # blocks of leaves; leaves of the widest tree so far
INTEGERS = 15  # ids are integers
_STATE = 16

_FIELDS = (
    "state", "status", "sequence", "ids", "id_hash", "weight", "record", "root", "id_slots", "uses",
    "conjunction_hash", "owner", "conjunction_slots", "blocks", "heads", "records", "record_bytes", "tag_uses",
)  # fmt: skip
_ROW_ARRAYS = {
    "status": np.uint8, "sequence": np.int64, "ids": np.int64, "id_hash": np.uint32, "weight": np.float64,
    "record": np.int64, "root": np.int32,
}  # fmt: skip
_CONJUNCTION_ARRAYS = {"uses": np.int32, "conjunction_hash": np.uint32, "owner": np.int32}
_MOST = 1 << 30  # rows and blocks: an entry names one in 31 bits


# The arrays as one argument of kernels.
make_pools_handle = handle("PoolsHandle", _FIELDS)


class Pools(GrowingPools):
    """The arrays drawn above, and the handle that kernels take."""

    kept = tuple(name for name in _FIELDS if name != "record_bytes")
    state: I64
    heads: I64
    status: U8
    sequence: I64
    ids: I64
    weight: F64
    record: I64
    records: I32
    root: I32
    uses: I32
    owner: I32
    tag_uses: I64
    id_slots: I32
    conjunction_slots: I32

    def __init__(self) -> None:
        self.state, self.heads = np.zeros(_STATE, np.int64), no_blocks()
        self.state[[FREE_ROW, FREE_CONJUNCTION, SLIDING, LAST]] = -1
        for name, kind in (_ROW_ARRAYS | _CONJUNCTION_ARRAYS).items():
            setattr(self, name, np.zeros(LEAST // 2, kind))
        for name in ("id_slots", "conjunction_slots", "blocks", "records"):
            setattr(self, name, np.zeros(LEAST, np.int32))
        self.tag_uses = np.zeros(16, np.int64)
        self.refresh()

    def used(self) -> dict[str, int]:
        """Returns how many items of each array are in use."""
        state = self.state
        used = dict.fromkeys(_ROW_ARRAYS, int(state[ROWS]))
        used |= dict.fromkeys(_CONJUNCTION_ARRAYS, int(state[CONJUNCTIONS]))
        return used | {"blocks": int(self.heads[USED]), "records": int(state[RECORDS])}

    def refresh(self) -> None:
        """Makes the handle anew, and computes for how much there is room. To be called when an array was replaced."""
        whole = {**vars(self), "record_bytes": self.records.view(np.uint8)}
        self._room = (
            min(len(self.root), len(self.id_slots) // 2, _MOST),
            min(len(self.owner), len(self.conjunction_slots) // 2),
            len(whole["blocks"]),
            len(self.records),
            len(self.tag_uses),
        )
        self.handle = make_pools_handle(*(whole[name] for name in _FIELDS))

    def make_room(self, rows: int, conjunctions: int, blocks: int, records: int, tags: int) -> None:
        """Makes room for so many more rows, conjunctions, words of blocks and words of records, and for all tags below
        the number `tags`. Raises LimitError if there would be too many.
        """
        state = self.state
        rows, conjunctions = int(state[ROWS]) + rows, int(state[CONJUNCTIONS]) + conjunctions
        blocks, records = int(self.heads[USED]) + blocks, int(state[RECORDS]) + records
        room = self._room
        if rows > room[0] or conjunctions > room[1] or blocks > room[2] or records > room[3] or tags > room[4]:
            self._grow(rows, conjunctions, blocks, records, tags)

    def _grow(self, rows: int, conjunctions: int, blocks: int, records: int, tags: int) -> None:
        if rows >= _MOST or self.heads[USED] >= _MOST:
            raise LimitError(
                f"{rows:,} rules, {self.heads[USED]:,} words for their trees: one matcher that changes in place has "
                "room for 2^30 of each; split the rules over several"
            )
        least = dict.fromkeys(_ROW_ARRAYS, rows) | dict.fromkeys(_CONJUNCTION_ARRAYS, conjunctions)
        self.grow((least | {"blocks": blocks, "records": records}).items())
        for slots, hashes, taken in (
            ("id_slots", "id_hash", rows),
            ("conjunction_slots", "conjunction_hash", conjunctions),
        ):
            if 2 * taken > len(known := getattr(self, slots)):
                setattr(self, slots, with_slots(known, getattr(self, hashes), 2 * taken))
        if tags > len(self.tag_uses):
            self.tag_uses = np.concatenate((self.tag_uses, np.zeros(2 * tags, np.int64)))
        self.refresh()
