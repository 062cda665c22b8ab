"""Replaying: the changes of a journal, made again on the snapshot that they follow.

    PUT a, PUT b, REMOVE a, PUT c, PUT b, REMOVE d     comes to     remove a, d; then add b, c

Changes are folded first, so that a rule that was added and removed costs nothing, and all others are compiled
together, many times faster than one by one. The rules, their order and the multi-valued attributes are the same.
Removing an id that is not there does nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

from eligo.arguments import MOST
from eligo.engine import Engine
from eligo.errors import EligoError, JournalError
from eligo.reading import read_rule
from eligo.rule import RuleId
from eligo.rule_changes import CLEAR, PUT, REMOVE, PutRule, read_put, read_remove
from eligo.store.journal import Record


def replay(engine: Engine, records: Iterable[Record], source: Path) -> None:
    """Makes the changes again. Raises JournalError, which names `source`, the journal, if one cannot be made."""
    loader, limits = engine.loader, engine.limits
    # These rules were accepted. As text one may be longer and deeper than it was in the form that it was given in.
    loader.limits = msgspec.structs.replace(limits, text=MOST, depth=2 * limits.depth + 2)
    refused, loader.refused = loader.refused, None  # the caller gives the documents that these rules ask about
    changes = _RuleChanges(engine)
    try:
        for kind, payload in records:
            if kind not in (PUT, REMOVE, CLEAR):
                raise JournalError(f"{source}: has a change of kind {kind}, written by a newer eligo; upgrade this one")
            changes.fold(kind, payload)
        changes.make()
    except (EligoError, msgspec.MsgspecError) as error:
        if isinstance(error, JournalError):
            raise
        raise JournalError(
            f"{source}: has a change that cannot be made again: {error}; open the rules with the eligo that wrote it, "
            "and save them, or remove the file to give up the changes in it"
        ) from error
    finally:
        loader.limits, loader.refused = limits, refused


class _RuleChanges:
    """The sum of the changes so far: perhaps a clear, then ids to be removed, then rules to be put."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._cleared = False
        self._removed: set[RuleId] = set()
        self._put: dict[RuleId, PutRule] = {}  # in the order of adding
        self._multi: set[str] = set()  # what rules that are gone made multi-valued

    def fold(self, kind: int, payload: bytes) -> None:
        """Adds a change to the sum."""
        if kind == PUT:
            change = read_put(payload)
            self._multi.update(change.multi)
            for rule in change.rules:
                self._leave(self._put.get(rule[0]))
                self._put[rule[0]] = rule
        elif kind == REMOVE:
            for one in read_remove(payload):
                self._leave(self._put.pop(one, None))
                self._removed.add(one)
        else:
            for rule in self._put.values():
                self._leave(rule)
            self._put.clear()
            self._removed.clear()
            self._cleared = True

    def _leave(self, rule: PutRule | None) -> None:
        """Notes the attributes that a rule uses with `contains`: they stay multi-valued when the rule is gone."""
        if rule is not None and "contains" in rule[1].lower():
            self._multi |= read_rule(rule[1], self._engine.loader.limits, None)[2]

    def make(self) -> None:
        """Makes the changes on the engine's rules."""
        loader, rules = self._engine.loader, self._engine.rules
        if self._cleared:
            loader.clear()
        loader.remove_many([rule for rule in self._removed if rules.find(rule) is not None])
        loader.add_many(self._put.values(), collect=False, replace=True)
        loader.become_multi(frozenset(self._multi))
