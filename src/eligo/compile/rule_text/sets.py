"""Predicates as sets of values, in the memory that `layout.py` draws: what `language.values` and `compile.builder` say.

The runs of the predicate that is being made lie behind those of all others; `add_predicate` makes them its own.
"""

from __future__ import annotations

import numpy as np

from eligo.compile.codes import (
    ABSENT_HOLDS,
    ALL_VALUES,
    END_CUT,
    NUMBER_CUT,
    RESIDUAL,
    RESIDUAL_NEGATED,
    START_NUMBER,
    START_STRING,
    STRING_CUT,
)
from eligo.compile.compiled import mixed
from eligo.compile.events import float_bits
from eligo.compile.rule_text.layout import (
    AFTER,
    BEFORE,
    CLASSICAL,
    FORM,
    IDENTITY,
    LEAVES,
    MOST_PREDICATES,
    MOST_RUNS,
    MULTI,
    ORDER,
    PREDICATES,
    PREFIX,
    SPECIAL,
    TEXT_BYTES,
    UNNAMED,
)
from eligo.compile.rule_text.lexis import (
    AT_LEAST,
    AT_MOST,
    BETWEEN,
    IN,
    LESS,
    LIKE,
    MORE,
    NULL,
    ODD,
    intern_text,
    put_cut,
)
from eligo.jit import inline

_PERCENT, _UNDERSCORE, _BACKSLASH = 37, 95, 92


@inline
def copy_cut(s, source, to):
    s.kind[to], s.past[to] = s.kind[source], s.past[source]
    s.key[2 * to], s.key[2 * to + 1] = s.key[2 * source], s.key[2 * source + 1]


@inline
def compare_texts(s, a, b):
    """-1, 0 or 1: the order of two strings, given by number."""
    i, j = s.text_begin[a], s.text_begin[b]
    end, stop = s.text_end[a], s.text_end[b]
    while i < end and j < stop:
        if s.text_data[i] != s.text_data[j]:
            return -1 if s.text_data[i] < s.text_data[j] else 1
        i += 1
        j += 1
    return -1 if j < stop else 1 if i < end else 0


@inline
def compare_cuts(s, a, b):
    """-1, 0 or 1: the order of two cuts. No string holds a NUL, so that right after one is before all longer ones."""
    if s.kind[a] != s.kind[b]:
        return -1 if s.kind[a] < s.kind[b] else 1
    x, y = s.key[2 * a], s.key[2 * b]
    if s.kind[a] == STRING_CUT and x >> 1 != y >> 1:
        return compare_texts(s, x >> 1, y >> 1)
    if x != y:
        return -1 if x < y else 1
    x, y = s.key[2 * a + 1], s.key[2 * b + 1]
    return -1 if x < y else 1 if x > y else 0


@inline
def move_run(s, source, to):
    copy_cut(s, 2 * source, 2 * to)
    copy_cut(s, 2 * source + 1, 2 * to + 1)


@inline
def sort_runs(s, first, stop):
    """By their low cuts, in place, with the run at `stop` as a place to hold one (Shell's sort)."""
    gap = 1
    while gap < (stop - first) // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(first + gap, stop):
            if compare_cuts(s, 2 * (i - gap), 2 * i) <= 0:
                continue
            move_run(s, i, stop)
            j = i
            while j >= first + gap and compare_cuts(s, 2 * (j - gap), 2 * stop) > 0:
                move_run(s, j - gap, j)
                j -= gap
            move_run(s, stop, j)
        gap //= 3


@inline
def unite_runs(s, first, stop):
    """Make one of runs, in order, that touch or overlap. Where they end then."""
    last = first
    for r in range(first + 1, stop):
        if compare_cuts(s, 2 * r, 2 * last + 1) <= 0:
            if compare_cuts(s, 2 * r + 1, 2 * last + 1) > 0:
                copy_cut(s, 2 * r + 1, 2 * last + 1)
        else:
            last += 1
            if last != r:
                move_run(s, r, last)
    return last + 1


@inline
def complement_runs(s, first, stop):
    """Turn runs into their complement, in place. Where they end then."""
    for cut in range(2 * stop - 1, 2 * first - 1, -1):
        copy_cut(s, cut, cut + 1)
    put_cut(s, 2 * first, START_NUMBER, 0, 0, UNNAMED)
    put_cut(s, 2 * stop + 1, END_CUT, 0, 0, UNNAMED)
    stop += 1
    if s.kind[2 * stop - 2] == END_CUT:  # the set went up to the end
        stop -= 1
    if stop > first and s.kind[2 * first + 1] == START_NUMBER:  # it began at the beginning
        for r in range(first + 1, stop):
            move_run(s, r, r - 1)
        stop -= 1
    return stop


@inline
def everything(s, run):
    put_cut(s, 2 * run, START_NUMBER, 0, 0, UNNAMED)
    put_cut(s, 2 * run + 1, END_CUT, 0, 0, UNNAMED)
    return run + 1


@inline
def is_everything(s, first, stop):
    return stop == first + 1 and s.kind[2 * first] == START_NUMBER and s.kind[2 * first + 1] == END_CUT


@inline
def range_of(s, operator, first, stop):
    """Turn the runs of operands into the set of a comparison by order. Where its runs end, or ODD."""
    low, high = 2 * first, 2 * first + 1
    s.state[FORM] |= ORDER
    kind = s.kind[high] >> 2  # of the value, since the cut after it is never the start of a kind
    if kind == 1 or s.kind[low] & 3 == 0:
        return ODD  # Booleans have no order; nothing is below the empty string
    if operator == LESS:
        copy_cut(s, low, high)
    if operator in (LESS, AT_MOST):
        put_cut(s, low, 4 * kind, 0, 0, UNNAMED)
    elif operator == MORE:
        copy_cut(s, high, low)
    if operator in (MORE, AT_LEAST):
        put_cut(s, high, 4 * kind + 4, 0, 0, UNNAMED)
    if operator == BETWEEN:
        if s.kind[high + 2] >> 2 != kind or s.kind[low + 2] & 3 == 0 or compare_cuts(s, low, low + 2) > 0:
            return ODD
        copy_cut(s, high + 2, high)
    return first + 1


@inline
def prefix_range(s, number, run):
    """Write the run of strings that match a pattern, or of a superset. Returns 0 if the run says all, 1 if the pattern
    has to be asked too, ODD for what is not usual.
    """
    begin, end = s.text_begin[number], s.text_end[number]
    wild = end
    for i in range(begin, end):
        byte = s.text_data[i]
        if byte == _BACKSLASH:
            return ODD
        if wild == end and byte in (_PERCENT, _UNDERSCORE):
            wild = i
    asked = 0
    for i in range(wild, end):
        if s.text_data[i] != _PERCENT:
            asked = 1
    if wild == begin:
        s.state[FORM] |= SPECIAL
        put_cut(s, 2 * run, START_STRING, 0, 0, BEFORE)
        if wild == end:
            put_cut(s, 2 * run + 1, STRING_CUT, 2 * number + 1, 0, AFTER)
        else:
            put_cut(s, 2 * run + 1, END_CUT, 0, 0, UNNAMED)
        return asked
    if wild == end:
        put_cut(s, 2 * run, STRING_CUT, 2 * number, 0, BEFORE)
        put_cut(s, 2 * run + 1, STRING_CUT, 2 * number + 1, 0, AFTER)
        return asked
    to = s.state[TEXT_BYTES]
    for i in range(begin, wild):
        s.text_data[to + i - begin] = s.text_data[i]
    put_cut(s, 2 * run, STRING_CUT, 2 * intern_text(s, to + wild - begin), 0, BEFORE)
    # The least string above: its last character is the next one, which is easy where the last byte can take it.
    to = s.state[TEXT_BYTES]
    for i in range(begin, wild):
        s.text_data[to + i - begin] = s.text_data[i]
    last = s.text_data[wild - 1]
    if last == 0x7F or last >= 0xBF:
        return ODD
    s.text_data[to + wild - begin - 1] = last + 1
    put_cut(s, 2 * run + 1, STRING_CUT, 2 * intern_text(s, to + wild - begin), 0, UNNAMED)
    s.state[FORM] |= PREFIX
    return asked


@inline
def compare_predicate(s, attribute, operator, values, negated):
    """A predicate on an attribute of the event; the runs of so many operands lie behind all others. Its number, or ODD.

    The operator is a positive one; a pattern is the one operand, as a string.
    """
    first = s.run_offsets[s.state[PREDICATES]]
    stop = first + values
    several, flags, pattern = attribute < s.state[MULTI], 0, np.int64(-1)
    s.state[LEAVES] += 1
    if operator == NULL:
        stop = everything(s, first) if negated else first
        flags = 0 if negated else ABSENT_HOLDS
    else:
        if operator == IN:
            sort_runs(s, first, stop)
            stop = unite_runs(s, first, stop)
        elif operator == LIKE:
            if s.kind[2 * first + 1] != STRING_CUT:
                return np.int64(ODD)
            number = s.key[2 * (2 * first + 1)] >> 1
            asked = prefix_range(s, number, first)
            if asked < 0:
                return np.int64(ODD)
            if asked:
                flags, pattern = RESIDUAL, number
        elif LESS <= operator <= AT_LEAST or operator == BETWEEN:
            stop = range_of(s, operator, first, stop)
            if stop < 0:
                return np.int64(ODD)
        if negated:
            if flags:
                flags |= RESIDUAL_NEGATED
                stop = everything(s, first)
            else:
                stop = complement_runs(s, first, stop)
            flags |= ABSENT_HOLDS if s.state[CLASSICAL] else 0
    if negated and several:
        flags |= ALL_VALUES
    form, s.state[FORM] = s.state[FORM], 0
    identity = np.uint64(s.state[IDENTITY])
    s.state[IDENTITY] = 0
    if identity != 0 or values == 0:
        identity = mixed(mixed(identity, attribute), 2 * operator + np.int64(negated) + 1)
    p = add_predicate(s, attribute, flags, pattern, form, stop)
    if p >= 0:
        s.identity[p] = identity
    return p


@inline
def add_predicate(s, attribute, flags, pattern, form, stop):
    """Make the runs behind all others, up to `stop`, a predicate's own. Its number, or ODD if there is no more room."""
    p = s.state[PREDICATES]
    if stop > s.state[MOST_RUNS] or p >= s.state[MOST_PREDICATES]:
        return np.int64(ODD)
    s.attribute[p], s.flags[p], s.pattern[p], s.form[p] = attribute, flags, pattern, form
    s.run_offsets[p + 1] = stop
    h = mixed(np.uint64(attribute) + np.uint64(flags) * np.uint64(0x100000000), pattern)
    for cut in range(2 * s.run_offsets[p], 2 * stop):
        h = mixed(h, s.kind[cut] + 31 * s.key[2 * cut] + 1021 * s.key[2 * cut + 1])
    s.hash[p], s.identity[p] = h, 0
    s.state[PREDICATES] = p + 1
    return p


@inline
def same_predicate(s, p, q):
    """1 if two predicates are equal as they are written, 0 if they are not, ODD if that is not known of some."""
    if s.hash[p] != s.hash[q]:
        return 0
    if s.identity[p] == 0 or s.identity[q] == 0:
        return ODD
    shift = 2 * (s.run_offsets[q] - s.run_offsets[p])
    if s.identity[p] != s.identity[q] or s.run_offsets[q + 1] - s.run_offsets[p + 1] != shift // 2:
        return 0
    for cut in range(2 * s.run_offsets[p], 2 * s.run_offsets[p + 1]):
        if compare_cuts(s, cut, cut + shift) != 0:
            return 0
    return 1 if s.pattern[p] == s.pattern[q] and s.flags[p] == s.flags[q] else 0


@inline
def same_place(s, a, b):
    """Whether two cuts that are equal are also said in one way."""
    return s.past[a] == s.past[b]


@inline
def combine(s, p, q, both):
    """The predicate that holds where both of two on one attribute hold, or one of them. Its number, or ODD."""
    i, i_stop, j, j_stop = s.run_offsets[p], s.run_offsets[p + 1], s.run_offsets[q], s.run_offsets[q + 1]
    first = to = s.run_offsets[s.state[PREDICATES]]
    if to + (i_stop - i) + (j_stop - j) + 1 > s.state[MOST_RUNS]:
        return np.int64(ODD)
    if both:
        while i < i_stop and j < j_stop:
            low, high = compare_cuts(s, 2 * i, 2 * j), compare_cuts(s, 2 * i + 1, 2 * j + 1)
            if (low == 0 and not same_place(s, 2 * i, 2 * j)) or (
                high == 0 and not same_place(s, 2 * i + 1, 2 * j + 1)
            ):
                return np.int64(ODD)
            copy_cut(s, 2 * i if low >= 0 else 2 * j, 2 * to)
            copy_cut(s, 2 * i + 1 if high <= 0 else 2 * j + 1, 2 * to + 1)
            if compare_cuts(s, 2 * to, 2 * to + 1) < 0:
                to += 1
            if high < 0:
                i += 1
            else:
                j += 1
        flags = s.flags[p] & s.flags[q] & ABSENT_HOLDS
    else:
        while i < i_stop or j < j_stop:
            if j >= j_stop or (i < i_stop and compare_cuts(s, 2 * i, 2 * j) <= 0):
                move_run(s, i, to)
                i += 1
            else:
                move_run(s, j, to)
                j += 1
            if to > first and compare_cuts(s, 2 * to, 2 * to - 1) <= 0:
                order = compare_cuts(s, 2 * to + 1, 2 * to - 1)
                if order == 0 and not same_place(s, 2 * to + 1, 2 * to - 1):
                    return np.int64(ODD)
                if order > 0:
                    copy_cut(s, 2 * to + 1, 2 * to - 1)
            else:
                to += 1
        flags = (s.flags[p] | s.flags[q]) & ABSENT_HOLDS
    return add_predicate(s, s.attribute[p], flags, np.int64(-1), s.form[p] | s.form[q], to)


@inline
def is_point(s, low, high):
    """Whether the second cut is the one after the value that the first is before."""
    kind = s.kind[low]
    if kind & 3 == 0 or kind != s.kind[high] or s.past[low] != BEFORE:
        return False
    whole = np.int64(1)
    if kind == NUMBER_CUT:
        if s.key[2 * high + 1] != s.key[2 * low + 1] + 1:
            return False
        whole = np.int64(np.float64(s.key[2 * low]) == float_bits(s.key[2 * low + 1]))
    return s.key[2 * high] == s.key[2 * low] + whole


@inline
def words_for(s, first, stop):
    """How many predicates it takes to say a set (`_say` of language/normalize.py): 1, 2, or 0 if none say it."""
    points = True
    for r in range(first, stop):
        if not is_point(s, 2 * r, 2 * r + 1):
            points = False
            break
    if points:
        return 1
    if stop > first + 1:
        return 0
    low, high = 2 * first, 2 * first + 1
    low_kind, high_kind = s.kind[low] >> 2, s.kind[high] >> 2
    at_start, at_end = s.kind[low] & 3 == 0, s.kind[high] & 3 == 0
    if low_kind == 1 or (at_start and at_end):
        return 0
    if at_start:
        return 1 if s.past[high] != UNNAMED and high_kind == low_kind else 0
    if s.past[low] == UNNAMED:
        return 0
    if at_end:
        return 1 if high_kind == low_kind + 1 else 0
    if s.past[high] == UNNAMED or high_kind != low_kind:
        return 0
    return 1 if s.past[low] == BEFORE and s.past[high] == AFTER else 2


@inline
def is_said_by_one(s, p):
    """Whether one predicate can say what a merged one does, as `_merged` of language/normalize.py finds. ODD
    where it is always true or never.
    """
    first, stop = s.run_offsets[p], s.run_offsets[p + 1]
    absent = s.flags[p] != 0
    if stop == first:
        return 1 if absent else ODD
    if is_everything(s, first, stop):
        return ODD if absent else 1
    said = 0 if absent else words_for(s, first, stop)
    if said == 0 and absent == (s.state[CLASSICAL] != 0):
        if 2 * stop - first + 1 > s.state[MOST_RUNS]:
            return ODD
        for r in range(first, stop):
            move_run(s, r, r - first + stop)
        end = complement_runs(s, stop, 2 * stop - first)
        said = 1 if words_for(s, stop, end) == 1 else 0
    return 1 if said == 1 else 0


@inline
def mergeable(form):
    """Whether merging may look at cuts alone: the operands are nothing special, and no bound of a comparison can be the
    end of a pattern's range.
    """
    return form & SPECIAL == 0 and form & (ORDER | PREFIX) != ORDER | PREFIX
