"""The memory in which rules are read, as one argument of the kernels.

    input       data                              UTF-8 of all texts of the chunk
    names       name_data, name_begin, name_end   attribute names met, numbered from 0; those below state[MULTI] are
                name_slots, name_at               the multi-valued ones, entered beforehand. Slots as in strings.py;
                                                  name_at[i] is the slot of name i, so that an odd rule's can be freed
    strings     text_data, …, text_at             the same for strings
    predicates  attribute flags pattern           as in compiled.py; predicates that were merged into others stay
                form hash run_offsets             form: what merging has to know (SPECIAL, ORDER, PREFIX)
                identity                          a hash of the predicate as written; 0 where merging made it
    cuts        kind key past                     run r goes from cut 2r to cut 2r + 1; cut c has the kind kind[c] and
                                                  the keys key[2c], key[2c + 1] of codes.py. past[c]: BEFORE or AFTER
                                                  an operand of a rule, or UNNAMED
    nodes       node_kind node_first node_count   of the rule at hand: PREDICATE, SEVERAL: node_first is the predicate;
                node_hash child                   AND, OR: children child[node_first … + node_count], predicates first
                stack frame                       operands that are not joined yet; what open parentheses interrupt
                mark                              by attribute: the number of the join that met it last
    output      conjunction_offsets conjunction tree_offsets tree leaves     as in compiled.py
                mention_rule mention_name         attributes that a rule names and its normal form does not

Invariants: a node is in normal form as soon as it is made, with two children or more (an AND may have one that is
SEVERAL). A predicate with the mark SEVERAL stands for two or more on one attribute of an AND that no one says alone.
Equal nodes have equal hashes; nodes of equal hashes are taken for equal, and where that would matter the rule is odd.
"""

from __future__ import annotations

from eligo.jit import handle

ARRAYS = (
    "data",
    "name_data", "name_begin", "name_end", "name_slots", "name_at",
    "text_data", "text_begin", "text_end", "text_slots", "text_at",
    "attribute", "flags", "pattern", "form", "hash", "identity", "run_offsets",
    "kind", "key", "past",
    "node_kind", "node_first", "node_count", "node_hash", "child", "stack", "frame", "mark",
    "conjunction_offsets", "conjunction", "tree_offsets", "tree", "leaves", "mention_rule", "mention_name",
    "state",
)  # fmt: skip

make_rule_text = handle("RuleText", ARRAYS)

# Places of `state`: how much there is of everything,
NAMES, NAME_BYTES, TEXTS, TEXT_BYTES = 0, 1, 2, 3
PREDICATES, NODES, CHILDREN, OPERANDS, CONJUNCTIONS, ITEMS, TREE = 4, 5, 6, 7, 8, 9, 10
# how rules are to be read,
MULTI, CLASSICAL, MOST_DEPTH, MOST_VALUES = 11, 12, 13, 14
# and what is known of the rule at hand: how many runs and predicates there may be, leaves so far, the form of operands,
# a hash of them as they are written, whether a number has a fraction or exponent, the number of the join, whether
# something was absorbed. MENTIONS: how many there are.
MOST_RUNS, MOST_PREDICATES, LEAVES, FORM = 15, 16, 17, 18
IDENTITY, DECIMAL, JOIN, ABSORBED, MENTIONS = 19, 20, 21, 22, 23
ADDRESS = 24  # of `data`
STATE = 25

# Kinds of nodes.
PREDICATE, SEVERAL, AND, OR = 0, 1, 2, 3

# Where a cut lies, as far as merged predicates could say it.
BEFORE, AFTER, UNNAMED = 0, 1, 2

# Forms of predicates: an operand that merging treats in a way of its own (a Boolean, the empty string, a number of more
# than 53 bits), a comparison by order, a pattern that is a range of strings.
SPECIAL, ORDER, PREFIX = 1, 2, 4

# What an open parenthesis interrupts: terms, factors, polarity, NOTs before it.
FRAME = 4
DEPTH = 128  # parentheses and NOTs that may be open
ROOM = 4  # runs and predicates for each byte of a rule, those that merging makes among them
