"""One search structure an attribute, sets of conjunctions as bit vectors: `stab-cluster`, `stab-interval`,
`stab-hybrid`, `segment-tree`, `interval-tree` (the report on profile matching §4.1).
"""
