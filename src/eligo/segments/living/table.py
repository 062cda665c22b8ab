"""Ids, texts, weights and tags of the rules in pools, as `RuleTable` has them for rules that keep their rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa

from eligo.arrow import arrow_of
from eligo.compile.compiled import F64, I32, I64, U8, Arrays
from eligo.rule import Rule, RuleId
from eligo.segments.living.pools import GOING, INTEGERS, LIVING, Pools
from eligo.segments.living.records import HEAD, find_integer, find_text, gather
from eligo.segments.rule_table import JOINED, packed, rule_of, strings_of, unpacked

_FEW = 64  # names up to which unused ones are not looked for


class PooledTable:
    """Ids, texts, weights and tags of the rules in pools (pools.py), whose rows are reused."""

    def __init__(self, pools: Pools, tags: Tags) -> None:
        self._pools, self.tags = pools, tags

    @property
    def sequence(self) -> I64:
        return self._pools.sequence

    @property
    def weight(self) -> F64:
        return self._pools.weight

    @property
    def ids(self) -> I64:
        return self._pools.ids

    @property
    def _has_integers(self) -> bool:
        return bool(self._pools.state[INTEGERS])

    def row(self, rule: RuleId, one: int = LIVING, other: int = GOING) -> int:
        """Returns the row of a rule whose status is `one` or `other`, by default one that readers see, or -1."""
        if isinstance(rule, str) == self._has_integers:
            return -1
        if isinstance(rule, str):
            raw = np.frombuffer(bytearray(rule.encode()), np.uint8)
            return find_text(self._pools.handle, raw, one, other)  # type: ignore[no-any-return]
        return find_integer(self._pools.handle, rule, one, other)  # type: ignore[no-any-return]

    def texts_of(self, rows: I64) -> list[str]:
        return strings_of(*gather(self._pools.handle, rows.astype(np.int32), True))

    def rule(self, row: int, text: str | None = None) -> Rule:
        pools = self._pools
        at = int(pools.record[row])
        size, more, tags = pools.records[at + 1 : at + HEAD].tolist()
        start = 4 * (at + HEAD + tags)
        raw = pools.records.view(np.uint8)[start : start + size + more].tobytes()
        return rule_of(
            int(pools.ids[row]) if self._has_integers else raw[:size].decode(),
            text or raw[size:].decode(),
            float(pools.weight[row]),
            map(self.tags.name, pools.records[at + HEAD : at + HEAD + tags].tolist()),
        )

    def id_list(self, rows: I32) -> list[RuleId]:
        if self._has_integers:
            return self._pools.ids[rows].tolist()  # type: ignore[no-any-return]
        return strings_of(*gather(self._pools.handle, rows, False)) if len(rows) else []  # type: ignore[return-value]

    def id_column(self, rows: I32) -> pa.Array:
        if self._has_integers:
            return arrow_of(self._pools.ids[rows])
        buffers = map(pa.py_buffer, gather(self._pools.handle, rows, False))
        return pa.Array.from_buffers(pa.large_string(), len(rows), [None, *buffers])

    def tag_names(self) -> list[str]:
        return self.tags.names


class Tags:
    """Names of tags by number, and numbers by name. The pools' `tag_uses` counts the rules that have each. The number
    of a tag that no rule has any more is used again.
    """

    def __init__(self) -> None:
        self.names: list[str] = []
        self._numbers: dict[str, int] = {}
        self._free: list[int] = []
        self._joined: U8 = np.zeros(0, np.uint8)  # empty when a number got another name

    def __len__(self) -> int:
        """Returns one more than the highest number."""
        return len(self.names)

    def numbers(self, names: Sequence[str], uses: I64) -> I32:
        """Returns the numbers of some tags; new tags get a free one. `uses` counts the rules with each number."""
        if len(self.names) > _FEW and not self._free and not all(name in self._numbers for name in names):
            self.forget_unused(uses)
        found = []
        for name in names:
            number = self._numbers.get(name)
            if number is None:
                number = self._free.pop() if self._free else len(self.names)
                self.names[number : number + 1] = [name]
                self._joined = self._joined[:0]
                self._numbers[name] = number
            found.append(number)
        return np.array(found, np.int32)

    @property
    def joined(self) -> U8:
        """A byte for each tag, 1 for those that say what to ask of documents, and a 0 behind them."""
        if len(self._joined) != len(self.names) + 1:
            self._joined = np.array([*(name.startswith(JOINED) for name in self.names), False], np.uint8)
        return self._joined

    def wanted(self, names: Iterable[str]) -> U8:
        """Returns a byte for each tag, 1 for those in `names`, and a 0 behind them."""
        chosen = np.zeros(len(self.names) + 1, np.uint8)
        for name in names:
            number = self._numbers.get(name)
            if number is not None:
                chosen[number] = 1
        return chosen

    def name(self, number: int) -> str:
        return self.names[number]

    def unmarked(self, number: int) -> str:
        """Returns the name of a tag without its first character, which marks what it is for."""
        return self.names[number][1:]

    def arrays(self) -> Arrays:
        used = np.zeros(len(self.names), np.uint8)
        used[list(self._numbers.values())] = 1
        offsets, data = packed(self.names)
        return {"offsets": offsets, "data": data, "used": used}

    @classmethod
    def restored(cls, arrays: Arrays) -> Tags:
        """Returns the tags whose `arrays` are given."""
        tags = cls()
        tags.names = unpacked(arrays["offsets"], arrays["data"])
        used = arrays["used"].tolist()
        tags._numbers = {name: n for n, name in enumerate(tags.names) if used[n]}
        tags._free = [n for n in range(len(tags.names)) if not used[n]]
        return tags

    def forget_unused(self, uses: I64) -> None:
        """Frees the numbers that no rule uses."""
        for number in np.nonzero(uses[: len(self.names)] == 0)[0].tolist():
            if self._numbers.get(self.names[number]) == number:
                del self._numbers[self.names[number]]
                self.names[number] = ""
                self._free.append(number)
