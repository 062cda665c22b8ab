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


# What `auto` takes, and why. A fixed rule: it does not look at the rules.
AUTO = "propagation"
AUTO_REASON = "a fixed choice: looks at few conjunctions where rules have a selective predicate, and builds fast"


def choose(name: str) -> type[Index]:
    """The index of that name; `auto` is a fixed choice among those registered."""
    return INDEXES.get(AUTO if name == "auto" else name, "auto")
