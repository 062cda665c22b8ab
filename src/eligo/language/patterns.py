r"""Patterns of `like`: `%` is any run of characters, `_` any one character, a backslash takes the next one literally.

    10\%%       strings that begin with "10%"
    a\_b        the string "a_b"
    C:\\%       strings that begin with "C:\"

Invariant: in a pattern that a tree holds, a backslash stands only before `%`, `_` or another backslash. So a string has
one way to be written as a pattern, and two patterns of plain characters are equal when they describe the same string.
"""

from __future__ import annotations

from collections.abc import Iterator

ESCAPE = "\\"
SPECIAL = "%_\\"


def pieces(pattern: str) -> Iterator[tuple[str, bool]]:
    """Each character that the pattern stands for, without its backslash, and whether it is a wildcard."""
    literal = False
    for character in pattern:
        if character == ESCAPE and not literal:
            literal = True
            continue
        yield character, not literal and character in "%_"
        literal = False


def like_prefix(pattern: str) -> tuple[str, str]:
    """The text before the first wildcard, without backslashes, and the rest of the pattern from there on."""
    prefix: list[str] = []
    place = 0
    for character, wild in pieces(pattern):
        if wild:
            return "".join(prefix), pattern[place:]
        prefix.append(character)
        place += 2 if pattern[place] == ESCAPE else 1
    return "".join(prefix), ""


def in_backslash_form(pattern: str, escape: str) -> tuple[str, int]:
    """The same pattern with a backslash as its escape character, and where it goes wrong: -1 if it does not.

    It is wrong where the escape character stands before anything but `%`, `_` and itself, or at the end: other
    languages disagree about what that would mean.
    """
    if escape == ESCAPE and ESCAPE not in pattern:
        return pattern, -1
    written: list[str] = []
    place = 0
    while place < len(pattern):
        character = pattern[place]
        if character == escape:
            place += 1
            character = pattern[place : place + 1]
            if character not in ("%", "_", escape):
                return "", place - 1
            written.append(ESCAPE + character if character in SPECIAL else character)
        else:
            written.append(ESCAPE + ESCAPE if character == ESCAPE else character)
        place += 1
    return "".join(written), -1
