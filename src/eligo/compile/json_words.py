"""The words of a JSON text, read by kernels: strings, literals, and the blanks between them; numbers are in
json_numbers.py.

Every function gets the address of the bytes (an array that is passed on would be counted at each call), a place, and
the end of the text. What is not certainly the JSON of RFC 8259, or is a number that a decoder might refuse, is ODD:
whoever reads the text then has it decoded the long way, which finds the words for what is wrong. Nothing behind the end
is looked at, except by vectors, which stay within the bytes.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from eligo.jit import byte_at, inline, put_byte, string_stops, trailing_zeros

ODD: Final = -1  # in place of a place
QUOTE, BACKSLASH, COMMA, COLON, MINUS = (np.uint8(ord(c)) for c in '"\\,:-')
OPENS, CLOSES, BEGINS, ENDS = (np.uint8(ord(c)) for c in "{}[]")
BLANK: Final = np.uint8(32)


@inline
def after_blanks(data, at, end):
    """The first place from `at` on that holds no blank, or the end."""
    while at < end:
        byte = byte_at(data, at)
        if byte > BLANK or (byte != 32 and byte != 10 and byte != 13 and byte != 9):
            break
        at += 1
    return at


@inline
def plain_end(data, at, end, last):
    """The place of the quote that ends a string whose first character is at `at`, if the string is short and plain, as
    most are; else ODD, and `string_end` has to be asked. From `last` on there are no 32 bytes to be read at once.
    """
    if at < last:
        stops = string_stops(data, at)
        if stops != np.uint64(0):
            at += np.int64(trailing_zeros(stops))
            if at < end and byte_at(data, at) == QUOTE:
                return at
    return np.int64(ODD)


@inline
def string_end(data, at, end, last):
    """The same for any string, and whether it has escapes."""
    escaped = False
    while True:
        if at < last:
            stops = string_stops(data, at)
            if stops == np.uint64(0):
                at += 32
                continue
            at += np.int64(trailing_zeros(stops))
        else:
            while (
                at < end
                and 32 <= byte_at(data, at) < 128
                and byte_at(data, at) != QUOTE
                and byte_at(data, at) != BACKSLASH
            ):
                at += 1
        if at >= end:
            return np.int64(ODD), escaped
        byte = byte_at(data, at)
        if byte == QUOTE:
            return at, escaped
        if byte == BACKSLASH:
            escaped = True
            at = after_escape(data, at + 1, end)
            if at == ODD:
                return at, escaped
        elif byte < 128:
            return np.int64(ODD), escaped
        else:
            while at < end and byte_at(data, at) >= 128:
                at = after_character(data, at, end)
                if at == ODD:
                    return at, escaped


@inline
def after_character(data, at, end):
    """The place behind a character of two to four bytes; ODD if these are no UTF-8."""
    lead = np.int64(byte_at(data, at))
    low, high = np.int64(128), np.int64(191)  # of the second byte
    if lead < 194 or lead > 244:
        return np.int64(ODD)
    if lead < 224:
        size = np.int64(2)
    elif lead < 240:
        size = np.int64(3)
        if lead == 224:
            low = np.int64(160)
        elif lead == 237:  # surrogates
            high = np.int64(159)
    else:
        size = np.int64(4)
        if lead == 240:
            low = np.int64(144)
        elif lead == 244:
            high = np.int64(143)
    if at + size > end or not low <= np.int64(byte_at(data, at + 1)) <= high:
        return np.int64(ODD)
    for i in range(2, size):
        if not 128 <= byte_at(data, at + i) <= 191:
            return np.int64(ODD)
    return at + size


@inline
def is_utf8(data, at, end):
    """Whether bytes are valid UTF-8."""
    while at < end:
        at = at + 1 if byte_at(data, at) < 128 else after_character(data, at, end)
        if at == ODD:
            return False
    return True


@inline
def after_escape(data, at, end):
    """The place behind an escape, whose backslash stands before `at`; behind both halves of a surrogate pair."""
    if at >= end:
        return np.int64(ODD)
    byte = byte_at(data, at)
    if byte != 117:  # u
        if byte == 34 or byte == 92 or byte == 47 or byte == 98 or byte == 102 or byte == 110 or byte == 114:
            return at + 1
        return at + 1 if byte == 116 else np.int64(ODD)
    unit = hexadecimal(data, at + 1, end)
    at += 5
    if unit < 0 or 0xDC00 <= unit <= 0xDFFF:
        return np.int64(ODD)
    if 0xD800 <= unit <= 0xDBFF:
        if at + 2 > end or byte_at(data, at) != BACKSLASH or byte_at(data, at + 1) != 117:
            return np.int64(ODD)
        unit = hexadecimal(data, at + 2, end)
        if not 0xDC00 <= unit <= 0xDFFF:
            return np.int64(ODD)
        at += 6
    return at


@inline
def hexadecimal(data, at, end):
    """The number that four hexadecimal digits are, or -1."""
    if at + 4 > end:
        return np.int64(-1)
    number = np.int64(0)
    for i in range(4):
        digit = np.int64(byte_at(data, at + i))
        if 48 <= digit <= 57:
            digit -= 48
        elif 65 <= digit <= 70:
            digit -= 55
        elif 97 <= digit <= 102:
            digit -= 87
        else:
            return np.int64(-1)
        number = number * 16 + digit
    return number


@inline
def unescape(data, at, end, out, to):
    """Writes the characters of a string that `string_end` found good to `out`, from `to` on; there is room for as many
    bytes. Returns the place behind them.
    """
    while at < end:
        byte = byte_at(data, at)
        at += 1
        if byte != BACKSLASH:
            put_byte(out, to, byte)
            to += 1
            continue
        byte = byte_at(data, at)
        at += 1
        if byte != 117:
            if byte == 98:
                byte = np.uint8(8)
            elif byte == 102:
                byte = np.uint8(12)
            elif byte == 110:
                byte = np.uint8(10)
            elif byte == 114:
                byte = np.uint8(13)
            elif byte == 116:
                byte = np.uint8(9)
            put_byte(out, to, byte)
            to += 1
            continue
        point = hexadecimal(data, at, end)
        at += 4
        if 0xD800 <= point <= 0xDBFF:
            point = 0x10000 + ((point - 0xD800) << 10) + hexadecimal(data, at + 2, end) - 0xDC00
            at += 6
        if point < 0x80:
            put_byte(out, to, np.uint8(point))
            to += 1
            continue
        if point < 0x800:
            put_byte(out, to, np.uint8(0xC0 | point >> 6))
            to += 1
        else:
            if point < 0x10000:
                put_byte(out, to, np.uint8(0xE0 | point >> 12))
            else:
                put_byte(out, to, np.uint8(0xF0 | point >> 18))
                to += 1
                put_byte(out, to, np.uint8(0x80 | point >> 12 & 63))
            to += 1
            put_byte(out, to, np.uint8(0x80 | point >> 6 & 63))
            to += 1
        put_byte(out, to, np.uint8(0x80 | point & 63))
        to += 1
    return to


@inline
def literal_end(data, at, end):
    """The place behind `true`, `false` or `null`, and 1, 0 or -1."""
    first = byte_at(data, at)
    if first == 116:
        return letters_end(data, at, end, 116, 114, 117, 101), np.int64(1)
    if first == 102:
        return letters_end(data, at + 1, end, 97, 108, 115, 101), np.int64(0)
    return letters_end(data, at, end, 110, 117, 108, 108), np.int64(-1)


@inline
def letters_end(data, at, end, a, b, c, d):
    """The place behind these four letters."""
    if (
        at + 4 <= end
        and byte_at(data, at) == a
        and byte_at(data, at + 1) == b
        and byte_at(data, at + 2) == c
        and byte_at(data, at + 3) == d
    ):
        return at + 4
    return np.int64(ODD)
