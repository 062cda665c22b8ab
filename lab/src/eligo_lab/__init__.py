"""The laboratory of eligo: workloads, benchmarks, contenders, and the indexes that exist to be compared with.

workload/     rules and events of many shapes, in memory and on Spark: `eligo generate`
bench/        experiments, the papers' among them, and what is made of their figures: `eligo bench`
rivals/       the indexes counting, k-index, op-index and gryphon
intervals/    intervals of one attribute: PS-Tree by itself, segment tree, interval tree
commands/     what the package adds to the command line

eligo finds all of it by the entry points in pyproject.toml, as it would find that of anybody else.
"""
