r"""SQL's LIKE over UTF-8: `%` is any run of characters, `_` one character, a backslash takes the next one literally.

Both ways below work on bytes. That is enough, because a literal of the pattern is whole characters and so begins with a
byte that begins a character, and `_` asks for such a byte itself. So no match begins or ends inside of a character.

    like             Lets each `%` stand for as little as possible, and for one byte more when what follows does not
                     fit; only the last `%` met is ever tried again. That is quick on the usual text, but `%aaab%` on a
                     text of `a` reads each byte once for every byte of the pattern. So it counts the bytes that it
                     reads again, and when they are several times the text it leaves the rest to like_automaton.
    like_automaton   Reads each byte once, and keeps every way that the pattern may go on as one bit of a state.
"""

from __future__ import annotations

import numpy as np

from eligo.jit import inline

PERCENT, UNDERSCORE, BACKSLASH = 37, 95, 92


@inline
def like(data, at, stop, text, i, end):
    """Whether all of text[i:end] fits the pattern data[at:stop]."""
    last, resume = np.int64(-1), np.int64(0)  # the last `%` met, and where in the text it ends so far
    patience = 2 * (end - i) + 8 * (stop - at) + 256
    while i < end:
        if at < stop:
            byte = data[at]
            if byte == PERCENT:
                last, resume = at, i
                at += 1
                continue
            if byte == UNDERSCORE:
                if text[i] & 0xC0 != 0x80:  # not in the middle of a character
                    i += 1
                    while i < end and text[i] & 0xC0 == 0x80:
                        i += 1
                    at += 1
                    continue
            else:
                after = at + 1
                if byte == BACKSLASH and after < stop:
                    byte = data[after]
                    after += 1
                if byte == text[i]:
                    i += 1
                    at = after
                    continue
        if last < 0:
            return False
        patience -= i - resume
        if patience < 0:
            return like_automaton(data, last, stop, text, resume, end)
        resume += 1
        i = resume
        at = last + 1
    while at < stop and data[at] == PERCENT:
        at += 1
    return at == stop


@inline
def like_automaton(data, at, stop, text, i, end):
    """The same in one pass over the text (Shift-And), in time of the text's bytes × 64ths of the pattern's.

    A step of the pattern is a literal byte or `_`. Bit s of the state, in word s >> 6, says that the first s steps fit
    the text so far. The next byte moves the bits of steps that it fits by one; a bit stays where it is before a `%`,
    and behind a `_` for the other bytes of the character that the `_` has taken.

    Words below `low` are forgotten: they stand before a `%` that has been reached, and from there everything that they
    could still lead to can be reached as well. Words above `high` are 0.
    """
    steps = np.int64(0)
    p = at
    while p < stop:
        if data[p] == BACKSLASH and p + 1 < stop:
            p += 1
            steps += 1
        elif data[p] != PERCENT:
            steps += 1
        p += 1
    if steps > end - i:
        return False  # each step takes a byte at least
    words = (steps >> 6) + 1
    fits = np.zeros((256, words), np.uint64)  # by byte: the steps that are this literal
    fits_any = np.zeros((2, words), np.uint64)  # [0]: the steps that are `_`, for bytes that begin a character
    stays = np.zeros((2, words), np.uint64)  # [0]: states before a `%`; [1]: those, and states behind a `_`
    one = np.uint64(1)
    s = np.int64(0)
    p = at
    while p < stop:
        byte = data[p]
        word, bit = s >> 6, one << np.uint64(s & 63)
        if byte == PERCENT:
            stays[0, word] |= bit
            stays[1, word] |= bit
        elif byte == UNDERSCORE:
            fits_any[0, word] |= bit
            s += 1
            stays[1, s >> 6] |= one << np.uint64(s & 63)
        else:
            if byte == BACKSLASH and p + 1 < stop:
                p += 1
                byte = data[p]
            fits[byte, word] |= bit
            s += 1
        p += 1
    final = one << np.uint64(steps & 63)
    open_end = stays[0, words - 1] & final != 0
    state = np.zeros(words, np.uint64)
    state[0] = one
    low = high = np.int64(0)
    ahead = next_word(stays, low)  # of the next `%`: they are reached one after the other, and then stay reached
    while i < end:
        byte = text[i]
        inside = np.int64(byte & 0xC0 == 0x80)
        carry = np.uint64(0)
        for w in range(low, high + 1):
            now = state[w]
            moved = now & (fits[byte, w] | fits_any[inside, w])
            state[w] = moved << one | carry | now & stays[inside, w]
            carry = moved >> np.uint64(63)
        if carry != 0:
            high += 1
            state[high] = carry
        while ahead <= high and state[ahead] & stays[0, ahead] != 0:
            low = ahead
            ahead = next_word(stays, low)
        while high > low and state[high] == 0:
            high -= 1
        if state[high] == 0:
            return False
        if open_end and high == words - 1 and state[high] & final != 0:
            return True
        i += 1
    return high == words - 1 and state[high] & final != 0


@inline
def next_word(stays, word):
    """The first word behind this one with a state before a `%`; the number of words if there is none."""
    word += 1
    while word < stays.shape[1] and stays[0, word] == 0:
        word += 1
    return word
