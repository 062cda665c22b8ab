"""The indexes by name."""

from __future__ import annotations

from eligo.index.base import Index
from eligo.registry import Registry

INDEXES: Registry[Index] = Registry(
    "eligo.indexes",
    "index",
    {
        "be-tree": "eligo.index.be_tree.tree:BeTree",
        "be-tree-batch": "eligo.index.be_tree.tree:BeTreeBatch",
        "bitmap": "eligo.index.bitmap:Bitmap",
        "interval-tree": "eligo.index.stabbing.index:IntervalTree",
        "propagation": "eligo.index.propagation:Propagation",
        "pst-bloom": "eligo.index.ps_tree.pst_bloom:PstBloom",
        "pst-hash": "eligo.index.ps_tree.pst_hash:PstHash",
        "scan": "eligo.index.scan:Scan",
        "segment-tree": "eligo.index.stabbing.index:SegmentTree",
        "stab-cluster": "eligo.index.stabbing.index:StabCluster",
        "stab-hybrid": "eligo.index.stabbing.index:StabHybrid",
        "stab-interval": "eligo.index.stabbing.index:StabInterval",
    },
)


# What `auto` takes, and why. It does not look at the rules to choose an index for single events.
AUTO = "propagation"
AUTO_REASON = (
    "for single events a fixed choice: looks at few conjunctions where rules have a selective predicate, and builds "
    "fast; batches as bitmaps where it pays"
)


def choose(name: str, asked: str = "") -> type[Index]:
    """The index of that name. `auto`, or what was used where `auto` was asked for, goes another way with batches."""
    if name == "auto" or (asked == "auto" and name == AUTO):
        from eligo.index.bitmap import Auto

        return Auto
    return INDEXES.get(name, "auto")
