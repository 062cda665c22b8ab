"""Every error that eligo raises on purpose.

`EligoError` is the base of all; each kind is also the built-in that it resembles, so that code which knows nothing of
eligo still catches it. A message says what is wrong, where, the value, and the remedy.
"""

from __future__ import annotations


class EligoError(Exception):
    """Base of every error that eligo raises on purpose."""

    def __str__(self) -> str:
        # KeyError and SyntaxError print themselves in their own ways; a message is for people.
        return str(self.args[0]) if self.args else ""


class RuleSyntaxError(EligoError, SyntaxError, ValueError):
    """A rule that cannot be read. `line` and `column` count from 1, `position` from 0; -1 where there is no text."""

    def __init__(
        self,
        message: str,
        *,
        text: str = "",
        position: int = -1,
        hint: str = "",
    ) -> None:
        self.reason = message
        self.source = text
        self.position = position
        self.hint = hint
        self.line, self.column = locate(text, position) if position >= 0 else (-1, -1)
        super().__init__(self._picture())

    def _picture(self) -> str:
        lines = [self.reason]
        if self.position >= 0:
            lines[0] = f"line {self.line}, column {self.column}: {self.reason}"
            lines.extend(caret(self.source, self.position))
        if self.hint:
            lines.append(f"hint: {self.hint}")
        return "\n".join(lines)


class RuleTypeError(RuleSyntaxError, TypeError):
    """A rule that can be read but makes no sense: a value of a kind that its operator does not take."""


class LimitError(EligoError, ValueError):
    """A rule past one of the `Limits`. The message names the limit and the size."""

    position = -1


class EventError(EligoError, ValueError):
    """An event whose value cannot be used. The message names the attribute, the value and the remedy."""


class ColumnError(EventError):
    """A column of a table of events whose type no rule can use: no row of it is at fault."""


class DuplicateRuleError(EligoError, ValueError):
    """A rule id that is already there."""


class UnknownRuleError(EligoError, KeyError):
    """A rule id that is not there."""


class OptionError(EligoError, ValueError, TypeError):
    """A setting of the matcher, or of a call, that makes no sense."""


class SnapshotError(EligoError, OSError):
    """A snapshot that is missing, damaged, or written by a newer version."""


class JournalError(SnapshotError):
    """A journal of changes that cannot be written, is damaged, or is open for writing elsewhere."""


def locate(text: str, position: int) -> tuple[int, int]:
    """Returns line and column, from 1, of a character position."""
    before = text[:position]
    line = before.count("\n") + 1
    return line, position - (before.rfind("\n") + 1) + 1


def caret(text: str, position: int, width: int = 60) -> list[str]:
    """Returns the line of `text` at `position`, cut to a window, and a line with a caret under the place."""
    start = text.rfind("\n", 0, position) + 1
    end = text.find("\n", position)
    end = len(text) if end < 0 else end
    left = max(start, position - width)
    right = min(end, position + width)
    shown = ("…" if left > start else "") + text[left:right] + ("…" if right < end else "")
    column = position - left + (1 if left > start else 0)
    return ["  " + shown.replace("\t", " "), "  " + " " * column + "^"]
