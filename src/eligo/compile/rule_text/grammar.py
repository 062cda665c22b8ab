"""The grammar of rules over bytes: what `language.text` reads, in one loop of the same shape."""

from __future__ import annotations

import numpy as np

from eligo.compile.compiled import mixed
from eligo.compile.json_words import is_utf8
from eligo.compile.rule_text.layout import (
    ABSORBED,
    ADDRESS,
    AND,
    CHILDREN,
    CONJUNCTIONS,
    DECIMAL,
    DEPTH,
    FORM,
    FRAME,
    IDENTITY,
    ITEMS,
    JOIN,
    LEAVES,
    MENTIONS,
    MOST_DEPTH,
    MOST_PREDICATES,
    MOST_RUNS,
    MOST_VALUES,
    MULTI,
    NAME_BYTES,
    NAMES,
    NODES,
    OPERANDS,
    OR,
    PREDICATES,
    ROOM,
    TEXT_BYTES,
    TEXTS,
    TREE,
)
from eligo.compile.rule_text.lexis import (
    AT_LEAST,
    AT_MOST,
    BETWEEN,
    CLOSE,
    COMMA,
    COMPARISON,
    END,
    EQUAL,
    IN,
    LESS,
    LIKE,
    MORE,
    NAME,
    NOT_EQUAL,
    NULL,
    ODD,
    OPEN,
    QUOTED_NAME,
    TEXT,
    W_ALL,
    W_AND,
    W_ANY,
    W_BETWEEN,
    W_CONTAINS,
    W_ESCAPE,
    W_FALSE,
    W_IN,
    W_IS,
    W_LIKE,
    W_NONE,
    W_NOT,
    W_NULL,
    W_OR,
    W_TRUE,
    WORD,
    intern_name,
    lower_word,
    next_token,
    put_boolean,
    read_value,
)
from eligo.compile.rule_text.nodes import join, push_predicate, write_tree
from eligo.compile.rule_text.sets import compare_predicate, move_run
from eligo.jit import byte_at, inline, kernel


@kernel
def read_rules(s, begin, end, wanted, first):
    """Read the rules data[begin[r]:end[r]] that are wanted, from the first on: `wanted` stays set where a rule was
    read. Returns the rule to go on with, before which the slots of names or strings have to grow.
    """
    text = s.state[ADDRESS]
    for r in range(first, len(begin)):
        if wanted[r]:
            size = end[r] - begin[r]
            if 2 * (s.state[NAMES] + size) > len(s.name_slots) or 2 * (s.state[TEXTS] + size) > len(s.text_slots):
                return r
            names, name_bytes = s.state[NAMES], s.state[NAME_BYTES]
            texts, text_bytes = s.state[TEXTS], s.state[TEXT_BYTES]
            predicates, conjunctions = s.state[PREDICATES], s.state[CONJUNCTIONS]
            items, tree = s.state[ITEMS], s.state[TREE]
            s.state[NODES] = s.state[CHILDREN] = s.state[OPERANDS] = s.state[LEAVES] = s.state[FORM] = 0
            s.state[IDENTITY] = s.state[ABSORBED] = 0
            s.state[MOST_RUNS] = s.run_offsets[predicates] + ROOM * size + 16
            s.state[MOST_PREDICATES] = predicates + ROOM * size + 16
            wanted[r] = is_text(text, begin[r], end[r]) and read_rule(s, text, begin[r], end[r])
            if wanted[r]:
                write_tree(s, s.stack[0])
                s.leaves[r] = s.state[LEAVES]
                if s.state[ABSORBED]:
                    mention(s, r, predicates, items)
            else:
                forget(s.name_slots, s.name_at, names, s.state[NAMES])
                forget(s.text_slots, s.text_at, texts, s.state[TEXTS])
                s.state[NAMES], s.state[NAME_BYTES] = names, name_bytes
                s.state[TEXTS], s.state[TEXT_BYTES] = texts, text_bytes
                s.state[PREDICATES], s.state[CONJUNCTIONS] = predicates, conjunctions
                s.state[ITEMS], s.state[TREE] = items, tree
        s.tree_offsets[r + 1] = s.state[TREE]
    return len(begin)


@inline
def mention(s, rule, predicates, items):
    """Note the attributes that a rule names and its normal form does not, unless they are multi-valued."""
    s.state[JOIN] += 1
    number = s.state[JOIN]
    for i in range(items, s.state[ITEMS]):
        s.mark[s.attribute[s.conjunction[i]]] = number
    for p in range(predicates, s.state[PREDICATES]):
        attribute = s.attribute[p]
        if s.mark[attribute] != number and attribute >= s.state[MULTI]:
            s.mark[attribute] = number
            s.mention_rule[s.state[MENTIONS]], s.mention_name[s.state[MENTIONS]] = rule, attribute
            s.state[MENTIONS] += 1


@inline
def forget(slots, at, first, stop):
    """Free the slots of the newest entries. Others were entered before them, so none was pushed on by them."""
    for number in range(first, stop):
        slots[at[number]] = 0


@inline
def is_text(text, i, stop):
    """Whether bytes are UTF-8, as they should be."""
    every = np.uint8(0)
    for k in range(i, stop):
        every |= byte_at(text, k)
    return every < 0x80 or is_utf8(text, i, stop)


@inline
def read_rule(s, text, i, stop):
    """Read one rule; its root is then the only operand. False if it is odd."""
    frame = s.frame
    terms = factors = nots = depth = deepest = frames = 0
    positive = True
    token, a, b = next_token(text, i, stop)
    while True:
        # An operand begins here.
        if token == OPEN or (token == WORD and a == W_NOT):
            depth += 1
            deepest = max(deepest, depth)
            if depth >= DEPTH:
                return False
            if token == WORD:
                nots += 1
            else:
                at = FRAME * frames
                frame[at], frame[at + 1], frame[at + 2], frame[at + 3] = terms, factors, positive, nots
                frames += 1
                positive = positive == (nots & 1 == 0)
                terms = factors = nots = 0
            token, a, b = next_token(text, b, stop)
            continue
        negated = positive == (nots & 1 == 1)
        if token in (NAME, QUOTED_NAME):
            i = read_leaf(s, text, token, a, b, stop, negated)
        else:
            i = read_flipped(s, text, token, a, stop, negated)
        if i < 0:
            return False
        token, a, b = next_token(text, i, stop)

        # An operand is complete; what follows says how many levels end with it.
        while True:
            depth -= nots
            nots = 0
            factors += 1
            if token == WORD and a == W_AND:
                break
            if factors > 1 and not join(s, AND if positive else OR, factors):
                return False
            factors = 0
            terms += 1
            if token == WORD and a == W_OR:
                break
            if terms > 1 and not join(s, OR if positive else AND, terms):
                return False
            if token == END and frames == 0:
                return 2 * deepest + 4 <= s.state[MOST_DEPTH]
            if token != CLOSE or frames == 0:
                return False
            frames -= 1
            at = FRAME * frames
            terms, factors, positive, nots = frame[at], frame[at + 1], frame[at + 2] != 0, frame[at + 3]
            depth -= 1
            token, a, b = next_token(text, b, stop)
        token, a, b = next_token(text, b, stop)


@inline
def read_leaf(s, text, token, a, b, stop, negated):
    """Read a predicate whose attribute is the token, and put it among the operands. Where it ends, or ODD."""
    attribute = intern_name(s, text, a, b)
    i = b + np.int64(token == QUOTED_NAME)
    first = s.run_offsets[s.state[PREDICATES]]
    token, a, b = next_token(text, i, stop)
    if token == COMPARISON:
        operator = a
        token, a, b = next_token(text, b, stop)
        end = operand(s, text, token, a, b, stop, first)
        if end < 0:
            return ODD
        if operator == NOT_EQUAL:
            return end_leaf(s, attribute, EQUAL, 1, not negated, end)
        return end_leaf(s, attribute, operator, 1, negated, end)
    if token in (END, CLOSE) or (token == WORD and a in (W_AND, W_OR)):
        put_boolean(s, True, first)
        s.state[DECIMAL] = 0
        identify(s, WORD, first)
        return end_leaf(s, attribute, EQUAL, 1, negated, i)
    if token != WORD:
        return ODD
    inverse = a == W_NOT
    if inverse:
        token, a, b = next_token(text, b, stop)
        if token != WORD:
            return ODD
        negated = not negated
    if a == W_IN:
        end, values = read_list(s, text, b, stop, first)
        if end < 0:
            return ODD
        return end_leaf(s, attribute, IN, values, negated, end)
    if a == W_BETWEEN:
        token, a, b = next_token(text, b, stop)
        end = operand(s, text, token, a, b, stop, first)
        if end < 0:
            return ODD
        token, a, b = next_token(text, end, stop)
        if token != WORD or a != W_AND:
            return ODD
        token, a, b = next_token(text, b, stop)
        end = operand(s, text, token, a, b, stop, first + 1)
        if end < 0:
            return ODD
        return end_leaf(s, attribute, BETWEEN, 2, negated, end)
    if a == W_LIKE:
        token, a, b = next_token(text, b, stop)
        end = operand(s, text, token, a, b, stop, first) if token == TEXT else ODD
        if end < 0:
            return ODD
        token, a, b = next_token(text, end, stop)
        if token == NAME and lower_word(text, a, b) == W_ESCAPE:
            return ODD
        return end_leaf(s, attribute, LIKE, 1, negated, end)
    if a == W_IS and not inverse:
        token, a, b = next_token(text, b, stop)
        if token == WORD and a == W_NOT:
            negated = not negated
            token, a, b = next_token(text, b, stop)
        if token != WORD or a != W_NULL:
            return ODD
        return end_leaf(s, attribute, NULL, 0, negated, b)
    if a == W_CONTAINS:
        return read_contains(s, text, attribute, b, stop, negated)
    return ODD


@inline
def operand(s, text, token, a, b, stop, run):
    """Read a literal, and write its cuts as a run. Where it ends, or ODD."""
    if token == WORD and a in (W_TRUE, W_FALSE):
        put_boolean(s, a == W_TRUE, run)
        s.state[DECIMAL] = 0
        end = b
    else:
        end = read_value(s, text, token, a, stop, run)
        if end < 0:
            return ODD
    identify(s, token, run)
    return end


@inline
def identify(s, token, run):
    """Add an operand to the identity of the predicate that is being read: its type, and the cut after it."""
    cut = 2 * run + 1
    code = 2 * token + s.state[DECIMAL] + 31 * s.key[2 * cut] + 1021 * s.key[2 * cut + 1]
    s.state[IDENTITY] = np.int64(mixed(np.uint64(s.state[IDENTITY]) + np.uint64(1), code))


@inline
def end_leaf(s, attribute, operator, values, negated, end):
    """Put the predicate of these operands among the operands of the expression. The end, or ODD."""
    p = compare_predicate(s, attribute, operator, values, negated)
    if p < 0:
        return ODD
    push_predicate(s, p)
    return end


@inline
def read_list(s, text, i, stop, run):
    """Read values in parentheses, each as a run. Where the list ends, or ODD, and how many values it has."""
    first = run
    token, a, b = next_token(text, i, stop)
    if token != OPEN:
        return ODD, 0
    while True:
        token, a, b = next_token(text, b, stop)
        end = operand(s, text, token, a, b, stop, run)
        if end < 0:
            return ODD, 0
        run += 1
        token, a, b = next_token(text, end, stop)
        if token == CLOSE:
            return (b, run - first) if run - first <= s.state[MOST_VALUES] else (ODD, 0)
        if token != COMMA:
            return ODD, 0


@inline
def read_contains(s, text, attribute, i, stop, negated):
    """`contains any`, `all` or `none` of an attribute that is multi-valued already, in terms of `in` and `=`."""
    token, a, b = next_token(text, i, stop)
    if token != NAME or attribute >= s.state[MULTI]:
        return ODD
    word = lower_word(text, a, b)
    first = s.run_offsets[s.state[PREDICATES]]
    end, values = read_list(s, text, b, stop, first)
    if end < 0:
        return ODD
    if word in (W_ANY, W_NONE):
        return end_leaf(s, attribute, IN, values, negated == (word == W_ANY), end)
    if word != W_ALL:
        return ODD
    if values == 1:
        return end_leaf(s, attribute, EQUAL, 1, negated, end)
    return read_each(s, attribute, first, values, negated, end)


@inline
def read_each(s, attribute, first, values, negated, end):
    """One `=` for each value, joined. The end, or ODD."""
    if first + 4 * values + 4 > s.state[MOST_RUNS]:
        return ODD
    for i in range(values - 1, -1, -1):  # out of the way: negated, each takes two runs
        move_run(s, first + i, first + 3 * values + 2 + i)
    for i in range(values):
        run = s.run_offsets[s.state[PREDICATES]]
        move_run(s, first + 3 * values + 2 + i, run)
        s.state[IDENTITY] = 0
        if end_leaf(s, attribute, EQUAL, 1, negated, end) < 0:
            return ODD
    return end if join(s, OR if negated else AND, values) else ODD


@inline
def read_flipped(s, text, token, a, stop, negated):
    """Read a comparison with its value on the left, `18 <= age`. Where it ends, or ODD."""
    run = s.run_offsets[s.state[PREDICATES]]
    end = read_value(s, text, token, a, stop, run)
    if end < 0:
        return ODD
    identify(s, token, run)
    token, a, b = next_token(text, end, stop)
    if token != COMPARISON:
        return ODD
    operator = a
    token, a, b = next_token(text, b, stop)
    if token != NAME and token != QUOTED_NAME:
        return ODD
    attribute = intern_name(s, text, a, b)
    end = b + np.int64(token == QUOTED_NAME)
    token, a, b = next_token(text, end, stop)
    if token == COMPARISON or token < 0:
        return ODD
    if operator == NOT_EQUAL:
        return end_leaf(s, attribute, EQUAL, 1, not negated, end)
    if operator == LESS:
        operator = MORE
    elif operator == MORE:
        operator = LESS
    elif operator == AT_MOST:
        operator = AT_LEAST
    elif operator == AT_LEAST:
        operator = AT_MOST
    return end_leaf(s, attribute, operator, 1, negated, end)
