"""PS-Tree, and the indexes on it: `pst-bloom` and `pst-hash` (the PS-Tree paper)."""

from eligo.index.ps_tree import pst_bloom as pst_bloom
from eligo.index.ps_tree import pst_hash as pst_hash
