"""Measurements: `eligo bench run`, then `eligo bench report`. See docs/benchmarks.md.

experiments  every figure of the papers, one line each       campaign   their points, one after another, into a file
prepare      rules compiled and events encoded, once         harness    one comparison from beginning to end
contenders   whoever matches: our indexes, and others        verify     all say the same, and so does the reference
timing       everyone in turn, again and again               inserts    single additions
replacing    all rules of an index replaced, and back        mixing     updates among matches, through the matcher
stabbing     structures of one attribute: intervals, points  foundation figures of the matcher itself
results      the file                                        tables, changes, structures, verdicts, report, plots,
                                                             page   what is made of it
machine, progress
"""
