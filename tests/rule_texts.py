"""Texts of rules for what reads text: usual ones, odd ones, broken ones; few names and values, so that they meet."""

from __future__ import annotations

import random

NAMES = ("a", "b", "c.d", "_e9", "m", "n.o", "`f g`", "`or`", "Date", "näme")
VALUES = (
    "1", "2", "3", "-5", "+7", "0", "10", "2.5", "3.0", ".5", "1e3", "1.25e-2", "-0", "-0.0", "9007199254740993", "1.",
    "123456789012345678", "99999999999999999999", "0.1", "1e400", "'x'", "'y'", "'it''s'", "''", "'é'", "'x%'", "true",
    "FALSE", "date '2026-01-31'", "timestamp '2026-01-31 12:00:00.25+02:00'", "timestamp'2024-02-29T01:02Z'", "5x",
    "date '2026-02-30'", "'ab\0c'", "null", "timestamp '2026-01-31 12:00'", "'abc'", "'abd'",
)  # fmt: skip
PATTERNS = (
    "'ab%'",
    "'%'",
    "''",
    "'abc'",
    "'a_c%'",
    "'%b%'",
    "'x%%'",
    "'a\\%%'",
    "'é%'",
    "'10!%' escape '!'",
    "'\x7f%'",
)
COMPARISONS = ("=", "==", "!=", "<>", "<", "<=", ">", ">=", "=>")
ALPHABET = " ()'`,.=<>!-+%_\\0123eaxmAND\n\tOorné\0\x1c\u2028{\""


def drawn(draw: random.Random, depth: int = 0) -> str:
    """A rule's text; few attributes and values, so that predicates meet."""
    kind = draw.random()
    if depth < 4 and kind < 0.55:
        word = draw.choice((" and ", " or ", " AND ", " Or\n"))
        return word.join(drawn(draw, depth + 1) for _ in range(draw.choice((2, 2, 2, 3, 4))))
    if depth < 6 and kind < 0.7:
        return f"{draw.choice(('', '', 'not ', 'NOT not '))}({drawn(draw, depth + 1)})"
    return draw.choice(("", "", "", "", "not ")) + leaf(draw)


def leaf(draw: random.Random) -> str:
    name = draw.choice(NAMES[: draw.choice((2, 6, len(NAMES)))])
    some = VALUES[: draw.choice((3, 10, len(VALUES)))]
    value, other = draw.choice(some), draw.choice(some)
    no, blank = draw.choice(("", "", "not ")), draw.choice(("", " ", "  "))
    several = ", ".join(draw.choice(some) for _ in range(draw.choice((1, 2, 3, 6))))
    return draw.choice((
        f"{name}{blank}{draw.choice(COMPARISONS[:8])}{blank}{value}",
        f"{name}{blank}{draw.choice(COMPARISONS)}{blank}{value}",
        f"{value} {draw.choice(COMPARISONS)} {name}",
        f"{name} {no}in{blank}({several})",
        f"{name} {no}between {value} and {other}",
        f"{name} {no}LIKE {draw.choice(PATTERNS)}",
        f"{name} is {no}null",
        f"{draw.choice(('m', 'n.o', name))} {no}contains {draw.choice(('any', 'ALL', 'none'))} ({several})",
        f"{name}",
        draw.choice((name, "true", "false", "exists d (a < d.a)", "-- no\n a = 1")),
    ))  # fmt: skip


def mutated(draw: random.Random, text: str) -> str:
    for _ in range(draw.choice((0, 0, 1, 1, 2, 4))):
        place = draw.randrange(len(text) + 1)
        cut = draw.choice((0, 0, 1, 3))
        text = text[:place] + draw.choice(("", draw.choice(ALPHABET), draw.choice(ALPHABET))) + text[place + cut :]
    return text
