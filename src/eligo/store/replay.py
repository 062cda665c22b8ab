"""Replaying: the changes of a journal, made again on the snapshot that they follow.

Changes of one kind that come one after another are made together, which is many times faster than one by one and comes
to the same. A rule that is put where its id is takes that place, and an id that is not there need not be removed, so
that a change is never refused for another that was lost to the memory of the process that wrote it.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from operator import itemgetter
from pathlib import Path

import msgspec

from eligo.arguments import MOST
from eligo.engine import Engine
from eligo.errors import EligoError, JournalError
from eligo.rule_changes import CLEAR, PUT, REMOVE, read_put, read_remove
from eligo.store.journal import Record


def replay(engine: Engine, records: Iterable[Record], source: Path) -> None:
    """Makes the changes again. `source`, the journal, is for the messages."""
    loader, limits = engine.loader, engine.limits
    # These rules were accepted. As text one may be longer and deeper than it was in the form that it was given in.
    loader.limits = msgspec.structs.replace(limits, text=MOST, depth=2 * limits.depth + 2)
    try:
        for kind, some in groupby(records, itemgetter(0)):
            _make(engine, kind, [payload for _, payload in some], source)
    except (EligoError, msgspec.MsgspecError) as error:
        if isinstance(error, JournalError):
            raise
        raise JournalError(
            f"{source}: has a change that cannot be made again: {error}; open the rules with the eligo that wrote it, "
            "and save them, or remove the file to give up the changes in it"
        ) from error
    finally:
        loader.limits = limits


def _make(engine: Engine, kind: int, payloads: list[bytes], source: Path) -> None:
    loader = engine.loader
    if kind == PUT:
        puts = [read_put(payload) for payload in payloads]
        loader.add_many((rule for put in puts for rule in put.rules), collect=False, replace=True)
        loader.become_multi(frozenset(name for put in puts for name in put.multi))
    elif kind == REMOVE:
        ids = {rule for payload in payloads for rule in read_remove(payload)}
        loader.remove_many([rule for rule in ids if engine.rules.find(rule) is not None])
    elif kind == CLEAR:
        loader.clear()
    else:
        raise JournalError(f"{source}: has a change of kind {kind}, written by a newer eligo; upgrade this one")
