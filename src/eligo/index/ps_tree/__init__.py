"""PS-Tree, and the indexes on it: `pst-bloom` and `pst-hash` (the PS-Tree paper)."""
