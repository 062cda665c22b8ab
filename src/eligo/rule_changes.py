"""Changes of rules as records of a journal: kinds of records, and what stands in them.

    PUT       rules as they were given (id, text, weight, tags, owner), and attributes that became multi-valued besides
    REMOVE    ids
    CLEAR     nothing: all rules go

The payloads are MessagePack. Rules of one PUT come together or not at all. A rule whose id is there takes its place.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Final, Protocol

import msgspec

from eligo.rule import RuleId

PUT: Final = 1
REMOVE: Final = 2
CLEAR: Final = 3

PutRule = tuple[RuleId, str, float, tuple[str, ...], str | None]  # id, text, weight, tags, owner


class Put(msgspec.Struct, frozen=True, array_like=True):
    """The payload of PUT."""

    rules: tuple[PutRule, ...]
    multi: tuple[str, ...] = ()


class ChangeJournal(Protocol):
    """What keeps changes on disk before they are made: a `Journal` (store/journal.py)."""

    @property
    def waits(self) -> bool:
        """Whether an entry waits for the disk."""

    def entry(self, kind: int, payload: bytes) -> AbstractContextManager[None]:
        """Keeps a record before the block begins, and takes it back if the block fails."""

    def close(self) -> None:
        """Ends writing: from now on each entry is refused."""


_encode = msgspec.msgpack.Encoder().encode
_decode_put = msgspec.msgpack.Decoder(Put).decode
_decode_ids = msgspec.msgpack.Decoder(list[RuleId]).decode


def put_payload(rules: Sequence[PutRule], multi: Iterable[str] = ()) -> bytes:
    return _encode((rules, sorted(multi)) if multi else (rules,))


def read_put(payload: bytes) -> Put:
    return _decode_put(payload)


def remove_payload(ids: Sequence[RuleId]) -> bytes:
    return _encode(ids)


def read_remove(payload: bytes) -> list[RuleId]:
    return _decode_ids(payload)
