"""Intervals of one attribute, and those of them that hold a point: classic structures, beside which PS-Tree stands.

heap           the binary search that both go down            segment_tree, interval_tree    the structures

They are no indexes of rules: intervals are closed, [low, high] of int64, and interval i has the number i. One whose low
is above its high holds nothing. Each is built at once and never changes.

    build(low, high)     of int64 arrays
    locate(points)       where each point ends in the structure: all that has to be found before answers can be read
    count(points)        how many intervals hold each point
    matches(points)      offsets and numbers: point i is held by numbers[offsets[i]:offsets[i + 1]], in any order
    bytes()              of all arrays
"""
