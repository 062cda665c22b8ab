"""Tokens and literals of rules over bytes: those of `language.tokens` that are usual.

`text` is the address of the bytes, and they are read by `byte_at`: Numba counts references to an array in every
function that takes one, which costs more than most tokens do.

A token is its type and where it begins and ends. Blanks are ASCII, names are ASCII or in backquotes; comments, names
outside of ASCII and whatever could be several things are odd.
"""

from __future__ import annotations

import numpy as np

from eligo.compile.codes import BOOLEAN_CUT, NUMBER_CUT, OBJECT, START_BOOLEAN, START_STRING, STRING_CUT, TIME_CUT
from eligo.compile.events import ordered_float
from eligo.compile.rule_text.layout import AFTER, BEFORE, DECIMAL, FORM, NAME_BYTES, NAMES, SPECIAL, TEXT_BYTES, TEXTS
from eligo.compile.strings import enter_string, find_bytes
from eligo.jit import bits_of, byte_at, inline

ODD = -1
END, OPEN, CLOSE, COMMA, NAME, QUOTED_NAME, NUMBER, TEXT, DATE, TIMESTAMP, COMPARISON, WORD = range(12)

# Comparisons, in place of where their token ends; NOT_EQUAL is the negation of EQUAL.
EQUAL, LESS, AT_MOST, MORE, AT_LEAST, IN, BETWEEN, LIKE, NULL, NOT_EQUAL = range(10)


def _word(text: str) -> int:
    """A word of up to eight letters as one number."""
    return int.from_bytes(text.encode(), "little")


W_AND, W_OR, W_NOT, W_IN, W_BETWEEN = _word("and"), _word("or"), _word("not"), _word("in"), _word("between")
W_LIKE, W_IS, W_NULL, W_CONTAINS, W_EXISTS = (
    _word("like"),
    _word("is"),
    _word("null"),
    _word("contains"),
    _word("exists"),
)
W_FORALL, W_TRUE, W_FALSE, W_DATE = _word("forall"), _word("true"), _word("false"), _word("date")
W_ANY, W_ALL, W_NONE, W_ESCAPE = _word("any"), _word("all"), _word("none"), _word("escape")
_TIMESTAMP = _word("timestam")  # and a p

_EXACT = 2**53
_TENS = np.array([10.0**n for n in range(23)])  # exact, each of them
_DAYS = np.array([31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31])


@inline
def is_blank(byte):
    return byte == 32 or 9 <= byte <= 13


@inline
def is_digit(byte):
    return 48 <= byte <= 57


@inline
def in_name(byte):
    """Whether a byte may stand in a name behind its beginning, dots apart."""
    return 97 <= byte <= 122 or 65 <= byte <= 90 or 48 <= byte <= 57 or byte == 95


@inline
def skip_blanks(text, i, stop):
    while i < stop and is_blank(byte_at(text, i)):
        i += 1
    return i


@inline
def lower_word(text, i, stop):
    """A name of up to eight letters, in small letters, as one number; 0 for a longer one."""
    word = np.int64(0)
    if stop - i > 8:
        return word
    for k in range(stop - i):
        word |= np.int64(byte_at(text, i + k) | 0x20) << np.int64(8 * k)
    return word


@inline
def next_token(text, i, stop):
    """The token at or behind i: type, beginning, end. The end of a number or string is found when its value is read.

    For a COMPARISON the beginning is the operator, for a WORD, which is a keyword, the word.
    """
    i = skip_blanks(text, i, stop)
    if i >= stop:
        return END, i, i
    byte = byte_at(text, i)
    if 97 <= byte <= 122 or 65 <= byte <= 90 or byte == 95:
        return name_token(text, i, stop)
    if byte == 40:
        return OPEN, i, i + 1
    if byte == 41:
        return CLOSE, i, i + 1
    if byte == 44:
        return COMMA, i, i + 1
    if is_digit(byte) or byte == 43 or byte == 45 or byte == 46:
        return NUMBER, i, i
    if byte == 39:
        return TEXT, i + 1, i + 1
    if byte == 96:
        end = i + 1
        while end < stop and byte_at(text, end) != 96:
            end += 1
        if end >= stop or end == i + 1 or (end + 1 < stop and byte_at(text, end + 1) == 96):
            return ODD, i, i
        return QUOTED_NAME, i + 1, end
    return comparison_token(text, i, stop)


@inline
def is_sign(byte):
    """Whether a byte is one of <=>!&|, of which a whole run is one token."""
    return 60 <= byte <= 62 or byte in (33, 38, 124)


@inline
def comparison_token(text, i, stop):
    end = i
    while end < stop and is_sign(byte_at(text, end)):
        end += 1
    first = byte_at(text, i)
    second = byte_at(text, i + 1) if end == i + 2 else 0
    if end == i + 1:
        if first == 61:
            return COMPARISON, EQUAL, end
        if first == 60:
            return COMPARISON, LESS, end
        if first == 62:
            return COMPARISON, MORE, end
    elif end == i + 2:
        if first == 61 and second == 61:
            return COMPARISON, EQUAL, end
        if (first == 33 and second == 61) or (first == 60 and second == 62):
            return COMPARISON, NOT_EQUAL, end
        if first == 60 and second == 61:
            return COMPARISON, AT_MOST, end
        if first == 62 and second == 61:
            return COMPARISON, AT_LEAST, end
    return ODD, i, i


@inline
def name_token(text, i, stop):
    """A keyword, the beginning of a date or timestamp (up to the quote), or a name."""
    end = i + 1
    while end < stop and in_name(byte_at(text, end)):
        end += 1
    if end < stop and byte_at(text, end) >= 0x80:
        return ODD, i, i
    if end < stop and byte_at(text, end) == 46:
        while end + 1 < stop and byte_at(text, end) == 46 and in_name(byte_at(text, end + 1)):
            end += 2
            while end < stop and in_name(byte_at(text, end)):
                end += 1
        if end < stop and (byte_at(text, end) == 46 or byte_at(text, end) >= 0x80):
            return ODD, i, i
        return NAME, i, end
    word = lower_word(text, i, end)
    if word == 0:
        if end - i == 9 and byte_at(text, end - 1) | 0x20 == 112 and lower_word(text, i, end - 1) == _TIMESTAMP:
            quote = skip_blanks(text, end, stop)
            if quote < stop and byte_at(text, quote) == 39:
                return TIMESTAMP, quote + 1, quote + 1
        return NAME, i, end
    if word == W_DATE:
        quote = skip_blanks(text, end, stop)
        if quote < stop and byte_at(text, quote) == 39:
            return DATE, quote + 1, quote + 1
    elif word in (
        W_AND, W_OR, W_NOT, W_IN, W_BETWEEN, W_LIKE, W_IS, W_NULL, W_CONTAINS, W_EXISTS, W_FORALL, W_TRUE, W_FALSE,
    ):  # fmt: skip
        return WORD, word, end
    return NAME, i, end


@inline
def intern_name(s, text, i, stop):
    """The number of the attribute whose name is there, a new one if it is new."""
    number = find_bytes(s.name_data, s.name_begin, s.name_end, s.name_slots, s.data, i, stop)
    if number >= 0:
        return np.int64(number)
    number, size = s.state[NAMES], s.state[NAME_BYTES]
    s.name_begin[number] = size
    for k in range(i, stop):
        s.name_data[size] = byte_at(text, k)
        size += 1
    s.name_end[number] = size
    s.name_at[number] = enter_string(s.name_data, s.name_begin[number], size, s.name_slots, number)
    s.state[NAMES], s.state[NAME_BYTES] = number + 1, size
    return number


@inline
def intern_text(s, size):
    """The number of the string that lies behind all others, and ends at `size`; it stays there if it is new."""
    first = s.state[TEXT_BYTES]
    known = find_bytes(s.text_data, s.text_begin, s.text_end, s.text_slots, s.text_data, first, size)
    if known >= 0:
        return np.int64(known)
    number = s.state[TEXTS]
    s.text_begin[number], s.text_end[number] = first, size
    s.text_at[number] = enter_string(s.text_data, first, size, s.text_slots, number)
    s.state[TEXTS], s.state[TEXT_BYTES] = number + 1, size
    return number


@inline
def copy_text(s, text, i, stop):
    """Copy the string literal that begins at i behind all strings, quotes made single: where the literal ends, and the
    string. The first is ODD for one that is never closed or has a NUL.
    """
    own, to = s.text_data, s.state[TEXT_BYTES]
    while i < stop:
        byte = byte_at(text, i)
        if byte == 39:
            i += 1
            if i >= stop or byte_at(text, i) != 39:
                return i, to
        elif byte == 0:
            break
        own[to] = byte
        to += 1
        i += 1
    return ODD, to


@inline
def put_cut(s, cut, kind, key, key2, past):
    s.kind[cut] = kind
    s.key[2 * cut], s.key[2 * cut + 1] = key, key2
    s.past[cut] = past


@inline
def read_value(s, text, token, i, stop, run):
    """Write the cuts right before and after a literal as a run. Where the literal ends, or ODD."""
    s.state[DECIMAL] = 0
    if token == NUMBER:
        return read_number(s, text, i, stop, run)
    low, high = 2 * run, 2 * run + 1
    if token == TEXT:
        end, size = copy_text(s, text, i, stop)
        if end < 0:
            return ODD
        number = intern_text(s, size)
        if s.text_begin[number] == s.text_end[number]:
            s.state[FORM] |= SPECIAL
            put_cut(s, low, START_STRING, 0, 0, BEFORE)
        else:
            put_cut(s, low, STRING_CUT, 2 * number, 0, BEFORE)
        put_cut(s, high, STRING_CUT, 2 * number + 1, 0, AFTER)
        return end
    if token in (DATE, TIMESTAMP):
        end, micros = read_time(text, i, stop, token == TIMESTAMP)
        if end < 0:
            return ODD
        put_cut(s, low, TIME_CUT, micros, 0, BEFORE)
        put_cut(s, high, TIME_CUT, micros + 1, 0, AFTER)
        return end
    return ODD


@inline
def put_boolean(s, holds, run):
    """The same for a Boolean."""
    s.state[FORM] |= SPECIAL
    if holds:
        put_cut(s, 2 * run, BOOLEAN_CUT, 1, 0, BEFORE)
        put_cut(s, 2 * run + 1, BOOLEAN_CUT, OBJECT, 0, AFTER)
    else:
        put_cut(s, 2 * run, START_BOOLEAN, 0, 0, BEFORE)
        put_cut(s, 2 * run + 1, BOOLEAN_CUT, 1, 0, AFTER)


@inline
def read_number(s, text, i, stop, run):
    """An integer of up to 18 digits, or a decimal that a float multiplication or division reads exactly."""
    negative = byte_at(text, i) == 45
    if negative or byte_at(text, i) == 43:
        i += 1
    first, mantissa, digits, scale = i, np.int64(0), 0, 0
    while i < stop and is_digit(byte_at(text, i)):
        mantissa = 10 * mantissa + np.int64(byte_at(text, i) - 48)
        digits += mantissa != 0
        i += 1
        if digits > 18:
            return ODD
    whole, some = True, i - first
    if i < stop and byte_at(text, i) == 46:
        whole = False
        i += 1
        while i < stop and is_digit(byte_at(text, i)):
            mantissa = 10 * mantissa + np.int64(byte_at(text, i) - 48)
            digits += mantissa != 0
            scale -= 1
            some += 1
            i += 1
            if digits > 18:
                return ODD
    if some == 0:
        return ODD
    if i < stop and byte_at(text, i) | 0x20 == 101:
        whole = False
        i += 1
        down = i < stop and byte_at(text, i) == 45
        if i < stop and (down or byte_at(text, i) == 43):
            i += 1
        first, power = i, 0
        while i < stop and is_digit(byte_at(text, i)):
            power = 10 * power + np.int64(byte_at(text, i) - 48)
            i += 1
            if power > 1000:
                return ODD
        if i == first:
            return ODD
        scale += -power if down else power
    if i < stop and (in_name(byte_at(text, i)) or byte_at(text, i) == 46 or byte_at(text, i) >= 0x80):
        return ODD
    low, high = 2 * run, 2 * run + 1
    if whole:
        value = -mantissa if negative else mantissa
        if -_EXACT < value < _EXACT:
            bits = ordered_float(bits_of(np.float64(value)))
            put_cut(s, low, NUMBER_CUT, value, bits, BEFORE)
            put_cut(s, high, NUMBER_CUT, value + 1, bits + 1, AFTER)
            return i
        s.state[FORM] |= SPECIAL
        near = np.float64(value)
        bits, back = ordered_float(bits_of(near)), np.int64(near)
        put_cut(s, low, NUMBER_CUT, value, bits + np.int64(back < value), BEFORE)
        put_cut(s, high, NUMBER_CUT, value + 1, bits + np.int64(back <= value), AFTER)
        return i
    s.state[DECIMAL] = 1
    if mantissa >= _EXACT or scale < -22 or scale > 22:
        return ODD
    number = np.float64(mantissa)
    number = number / _TENS[-scale] if scale < 0 else number * _TENS[scale]
    if number >= np.float64(_EXACT):
        return ODD
    if negative and mantissa != 0:
        number = -number
    bits = ordered_float(bits_of(number))
    below = np.int64(np.floor(number))
    put_cut(s, low, NUMBER_CUT, below + np.int64(np.float64(below) != number), bits, BEFORE)
    put_cut(s, high, NUMBER_CUT, below + 1, bits + 1, AFTER)
    return i


@inline
def read_digits(text, i, stop, count):
    """The number that so many digits at i are, or ODD."""
    if i + count > stop:
        return np.int64(ODD)
    number = np.int64(0)
    for k in range(i, i + count):
        if not is_digit(byte_at(text, k)):
            return np.int64(ODD)
        number = 10 * number + np.int64(byte_at(text, k) - 48)
    return number


@inline
def read_time(text, i, stop, with_time):
    """Where a date or timestamp whose quote is behind it ends, and its microseconds since 1970."""
    end = i
    while end < stop and byte_at(text, end) != 39:
        end += 1
    if end >= stop:
        return np.int64(ODD), np.int64(0)
    i, last = skip_blanks(text, i, end), end
    while last > i and is_blank(byte_at(text, last - 1)):
        last -= 1
    odd = np.int64(ODD), np.int64(0)
    year, month, day = (
        read_digits(text, i, last, 4),
        read_digits(text, i + 5, last, 2),
        read_digits(text, i + 8, last, 2),
    )
    if year < 2 or year > 9998 or month < 1 or month > 12 or day < 1:
        return odd
    if byte_at(text, i + 4) != 45 or byte_at(text, i + 7) != 45:
        return odd
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    if day > _DAYS[month - 1] + np.int64(leap and month == 2):
        return odd
    # Days since 1970-01-01, counted in years that begin in March.
    early = year - np.int64(month <= 2)
    century, rest = early // 400, early % 400
    of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    days = century * 146097 + rest * 365 + rest // 4 - rest // 100 + of_year - 719468
    micros = days * 86_400_000_000
    i += 10
    if not with_time:
        return (np.int64(end + 1), micros) if i == last else odd
    hour, minute = read_digits(text, i + 1, last, 2), read_digits(text, i + 4, last, 2)
    if hour < 0 or hour > 23 or minute < 0 or minute > 59:
        return odd
    if byte_at(text, i) not in (32, 84) or byte_at(text, i + 3) != 58:
        return odd
    i += 6
    micros += (hour * 60 + minute) * 60_000_000
    if i < last and byte_at(text, i) == 58:
        second = read_digits(text, i + 1, last, 2)
        if second < 0 or second > 59:
            return odd
        i += 3
        micros += second * 1_000_000
        if i < last and byte_at(text, i) == 46:
            i += 1
            unit, first = 100_000, i
            while i < last and is_digit(byte_at(text, i)) and unit > 0:
                micros += np.int64(byte_at(text, i) - 48) * unit
                unit //= 10
                i += 1
            if i == first:
                return odd
    i = skip_blanks(text, i, last)
    if i < last and (byte_at(text, i) == 43 or byte_at(text, i) == 45):
        hours = read_digits(text, i + 1, last, 2)
        colon = np.int64(i + 3 < last and byte_at(text, i + 3) == 58)
        minutes = read_digits(text, i + 3 + colon, last, 2)
        if hours < 0 or hours > 23 or minutes < 0 or minutes > 59:
            return odd
        offset = (hours * 60 + minutes) * 60_000_000
        micros += -offset if byte_at(text, i) == 43 else offset
        i += 5 + colon
    elif i < last and byte_at(text, i) | 0x20 == 122:
        i += 1
    return (np.int64(end + 1), micros) if i == last else odd
