"""Words and signs of SQL, Python and other languages that mean nothing in a rule, and the remedy for each."""

from __future__ import annotations

NO_REGEX = "there are no regular expressions: like has % for any run of characters and _ for one"
NO_PARAMETERS = "rules have no parameters: write the value itself, such as 5 or 'US'"
NO_ARITHMETIC = "there is no arithmetic: work the value out first"
NO_CAST = "there are no casts: a value is of the kind that it is written as, 5 or '5' or date '2026-01-31'"
COMMENT = "a comment begins with --"
MOMENT = "work out the moment and write timestamp '2026-01-31 12:00:00Z'"
DATE = "a date is written date '2026-01-31', a moment timestamp '2026-01-31 12:00:00Z'"
NESTED = "a nested attribute is written with a dot: user.city; a name with other signs goes in backquotes"
BOTH_BOUNDS = "write: price between 10 and 30"
ALONE = "a rule is the condition alone, what stands after WHERE in SQL"

# Signs from other languages, and what they are called here.
SIGNS_OF_OTHERS = {
    "&&": "and",
    "&": "and",
    "||": "or",
    "|": "or",
    "!": "not",
    "===": "=",
    "!==": "!=",
    "=>": ">=",
    "=<": "<=",
    "=!": "!=",
    "><": "!=",
    "≥": ">=",
    "≤": "<=",
    "≠": "!=",
    "^": "not",
    ":": "=",
    "−": "-",
}

# Words that other languages have for operators, and the remedy.
WORDS_OF_OTHERS = {
    "ilike": "there is no ilike, and like minds upper and lower case: give the event a lower-case copy to ask",
    **dict.fromkeys(("regexp", "rlike", "regex", "matches", "match", "similar", "glob"), NO_REGEX),
    **dict.fromkeys(("startswith", "starts", "begins"), "write: title like 'Sun%'"),
    **dict.fromkeys(("endswith", "ends"), "write: title like '%day'"),
    **dict.fromkeys(("has", "includes", "include", "any", "all"), "write: interests contains any ('NFL', 'NBA')"),
    **dict.fromkeys(("eq", "equals", "equal"), "write '='"),
    **dict.fromkeys(("ne", "neq"), "write '!='"),
    **dict.fromkeys(("gt", "greater"), "write '>'"),
    **dict.fromkeys(("ge", "gte"), "write '>='"),
    **dict.fromkeys(("lt", "less"), "write '<'"),
    **dict.fromkeys(("le", "lte"), "write '<='"),
    "isnull": "write: is null",
    "notnull": "write: is not null",
    **dict.fromkeys(("xor", "nor", "nand", "unless", "implies"), "there are and, or and not"),
    **dict.fromkeys(("mod", "div"), NO_ARITHMETIC),
}

CLAUSES = frozenset(["where", "select", "if", "when", "case", "filter", "having", "from", "distinct"])
LATER_CLAUSES = frozenset(["limit", "order", "group", "having", "then", "else", "end", "from", "where", "as"])
NULLS = frozenset(["none", "nil", "undefined", "na"])
CLOCKS = frozenset(
    ["now", "today", "current_date", "current_time", "current_timestamp", "getdate", "sysdate", "localtime"]
)
TIMES = frozenset(["date", "timestamp", "datetime", "time", "interval", "to_date", "to_timestamp"])
