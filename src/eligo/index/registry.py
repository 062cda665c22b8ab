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
        "bitmap": "eligo.index.propagation:Bitmap",
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


def every_index() -> dict[str, type[Index]]:
    """All indexes by name, `auto` first."""
    return {"auto": choose("auto"), **INDEXES.all()}


def choose(name: str) -> type[Index]:
    """The index of that name."""
    if name == "auto":
        from eligo.index.auto import Auto

        return Auto
    return INDEXES.get(name, "auto")
