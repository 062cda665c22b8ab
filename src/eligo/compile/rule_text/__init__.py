"""Many rules from text to `Compiled` arrays in one kernel, with no Python object for a rule.

    text ─ lexis.py ─▶ tokens, values ─ sets.py ─▶ predicates ─ nodes.py ─▶ normal form ─ grammar.py ─▶ trees
                                                                                  reader.py: the same for a whole column

What a rule means is said in `language/`: `parse`, `normalize`, and `compile.builder` behind them. Here the usual is
read as these would read it. Whatever is not usual, be it wrong or merely rare, makes a rule *odd*: nothing of it is
kept, and whoever asked reads it the readable way. So every message about a bad rule comes from one place.
"""
