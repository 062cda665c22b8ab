"""What a worker does with changes to a rule set: one task applies them all to the version that is there.

    rows of changes, sorted by id ──▶ the matcher of the parent version, changed as any matcher is
                                      its new segments (deltas), what is dead now, new strings ──▶ files of the job

The shards of the parent are mapped, and are left alone; what changes in them is which rows are dead. Deltas are merged
as a matcher merges its own small segments, so that there are few of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from eligo.compile.compiled import U8, Arrays
from eligo.compile.naming import attribute_counts
from eligo.errors import DuplicateRuleError, EligoError, LimitError, RuleTypeError
from eligo.reading import check_id, duplicate
from eligo.segments.joining import Joining, joining_of
from eligo.segments.segment import Segment
from eligo.spark.tasks import RejectTable, no_deliveries, part_of, rows_as, rows_of, tags_in
from eligo.store.arrays import ArrayFile, write_arrays
from eligo.store.opening import Opened, open_held
from eligo.store.tables import RULES_SCHEMA, TableWriter, locator_text
from eligo.store.versions import PATIENCE, Part, TableFile

KINDS = ("put", "add", "replace", "remove")
_WRITTEN = 16_384


class Changed(msgspec.Struct, frozen=True):
    """What the changes made of the parent version."""

    given: int
    rejected: int
    examples: tuple[tuple[str, str], ...]
    rejects: TableFile | None
    rules: int
    next_sequence: int
    multi: tuple[str, ...]
    attributes: tuple[str, ...]
    naming: dict[str, int] | None  # of the living rules
    joining: Joining
    id_type: str
    strings: ArrayFile | None  # None: those of the parent
    shards: tuple[Part, ...]
    deltas: tuple[Part, ...]
    dead: ArrayFile | None
    texts: TableFile | None  # of the new unit
    files: tuple[str, ...]  # made here


MOST_CHANGES = 1_000_000  # in one task, as objects of about a kilobyte


def apply_changes(path: str, version: int, folder: str, batches: Iterator[pa.RecordBatch]) -> Changed:
    """Apply all changes: columns id, expression, weight, tags (as JSON), owner, change, sorted by id."""
    rows: list[tuple[Any, ...]] = []
    for batch in batches:
        rows += ((rule, text, weight, tags_in(tags), *rest) for rule, text, weight, tags, *rest in rows_of(batch))
        if len(rows) > MOST_CHANGES:
            raise LimitError(
                f"more than {MOST_CHANGES:,} changes in one update: one task applies them all. Give them in several "
                "updates, or compile all rules again with compile_rules, which reads them in many tasks"
            )
    return apply_rows(path, version, folder, rows)


def apply_rows(path: str, version: int, folder: str, rows: Sequence[tuple[Any, ...]]) -> Changed:
    """Applies changes that are rows of these columns, with the tags decoded."""
    return _Changes(open_held(path, version, patience=PATIENCE), Path(folder)).apply(rows)


class _Changes:
    """One update under way."""

    def __init__(self, opened: Opened, folder: Path) -> None:
        self.content, self.engine, self.folder = opened.content, opened.engine, folder
        self.rules = rules = opened.rules
        self.old = list(zip(rules.segments, rules.alive, self.content.parts, strict=True))
        rules.settled = list(rules.segments[: len(self.content.shards)])
        rules.forgets = False  # versions share numbers
        opened.engine.loader.refused = no_deliveries
        self.strings_before = len(rules.recipe.strings)
        self.rejects = RejectTable(folder)

    def apply(self, rows: Sequence[tuple[Any, ...]]) -> Changed:
        removed, put = self._sorted_out(rows)
        loader = self.engine.loader
        if removed:
            loader.remove_many(removed)
        if put:
            for reject in loader.add_many([row[:-1] for row in put], True, True):
                rule, expression, *_ = put[reject.row]
                self.rejects.add(rule, expression, reject.message, reject.position)
        with self.rules.lock:  # a merge may be under way
            self.rules.seal()
        self.rules.wait()
        return self._written(len(rows))

    def _sorted_out(self, rows: Sequence[tuple[Any, ...]]) -> tuple[list[Any], list[tuple[Any, ...]]]:
        """The ids to remove and the rows to put; what cannot be done is rejected."""
        removed, put = [], []
        for _, same in groupby(rows, key=lambda row: row[0]):
            some = list(same)
            for row in some:
                try:
                    change = self._checked(row, len(some))
                except EligoError as error:
                    self.rejects.add(row[0], row[1], str(error), getattr(error, "position", -1))
                    continue
                if change == "remove":
                    removed.append(row[0])
                else:
                    put.append(row)
        return removed, put

    def _checked(self, row: tuple[Any, ...], of_this_id: int) -> str:
        rule, expression, *_, change = row
        check_id(rule, None)
        if of_this_id > 1:
            raise DuplicateRuleError(f"{of_this_id} changes have the id {rule!r}, and rows have no order: give one")
        kind = "put" if change is None else change
        if kind not in KINDS:
            raise RuleTypeError(f"change is one of {', '.join(KINDS)}, not {kind!r:.60}")
        known = self.rules.find(rule) is not None
        if kind == "add" and known:
            raise duplicate(rule)
        if kind in ("replace", "remove") and not known:
            raise self.engine.loader.unknown(rule)
        if kind != "remove" and expression is None:
            raise RuleTypeError("the rule has no expression (null)")
        if isinstance(expression, bytes):
            raise RuleTypeError(f"the expression is no valid UTF-8 text: {expression!r:.60}")
        return str(kind)

    # -- files

    def _written(self, given: int) -> Changed:
        content, rules = self.content, self.rules
        id_type = {int: "int", str: "str"}.get(self.engine.loader.id_type or object, content.id_type)
        files: list[str] = []
        strings = None
        if len(rules.recipe.strings) > self.strings_before:
            data, offsets = rules.recipe.strings.arrays()
            slots = rules.recipe.strings.slots
            strings = write_arrays(self.folder, "strings", {"data": data, "offsets": offsets, "slots": slots})
            files.append(strings.file)
        texts = TableWriter(self.folder, "rules", RULES_SCHEMA(id_type))
        parts: list[Part] = []
        dead: Arrays = {}
        for segment, mask in zip(rules.segments, rules.alive, strict=True):
            part = next((part for old, _, part in self.old if old is segment), None)
            if part is None:
                part = self._delta(segment, texts)
                files.append(part.segment.file)
            gone = np.nonzero(mask == 0)[0].astype(np.int32)
            if len(gone):
                dead[part.segment.file] = gone
            parts.append(msgspec.structs.replace(part, dead=len(gone)))
        dead_file = write_arrays(self.folder, "dead", dead) if dead else None
        unit, rejects = texts.close_if_any(), self.rejects.close()
        files += [file.file for file in (dead_file, unit, rejects) if file is not None]
        return Changed(
            given=given,
            rejected=self.rejects.count,
            examples=tuple(self.rejects.examples),
            rejects=rejects,
            rules=rules.count,
            next_sequence=rules.next_sequence,
            multi=tuple(sorted(rules.multi)),
            attributes=tuple(rules.recipe.attributes.names),
            naming=self._naming(),
            joining=self._joining(),
            id_type=id_type if rules.count else "",
            strings=strings,
            shards=tuple(parts[: len(rules.settled)]),  # never merged, so they stand where they stood
            deltas=tuple(parts[len(rules.settled) :]),
            dead=dead_file,
            texts=unit,
            files=tuple(files),
        )

    def _naming(self) -> dict[str, int] | None:
        """How many living rules look at each attribute: what it was, less what is gone, and what is new."""
        if self.content.naming is None:
            return None
        names, total = self.rules.recipe.attributes.names, Counter(self.content.naming)
        for segment, gone in self._gone():
            total.subtract(attribute_counts(segment.whole(), names, gone))
        for segment, new in self._new():
            total.update(attribute_counts(segment.whole(), names, new))
        return dict(sorted((+total).items()))

    def _joining(self) -> Joining:
        """The same of the rules that ask about documents."""
        total = self.content.joining
        if total.rules:
            for segment, gone in self._gone():
                total = total.plus(joining_of(segment.table, gone), -1)
        for segment, new in self._new():
            total = total.plus(joining_of(segment.table, new))
        return total

    def _gone(self) -> Iterator[tuple[Segment, NDArray[np.bool_]]]:
        """The segments of the parent with the rows that were removed now, if there are such."""
        now = list(zip(self.rules.segments, self.rules.alive, strict=True))
        for segment, before, _ in self.old:
            after = next((mask for other, mask in now if other is segment), np.zeros(len(segment), np.uint8))
            gone = as_mask(before, len(segment)) & ~as_mask(after, len(segment))
            if gone.any():
                yield segment, gone

    def _new(self) -> Iterator[tuple[Segment, NDArray[np.bool_]]]:
        """The segments that were made now, with their living rows."""
        for segment, mask in zip(self.rules.segments, self.rules.alive, strict=True):
            if not any(segment is old for old, _, _ in self.old):
                yield segment, as_mask(mask, len(segment))

    def _delta(self, segment: Segment, texts: TableWriter) -> Part:
        """Write a new segment, its texts into the new unit."""
        table, first = segment.table.written(), texts.rows
        for start in range(0, len(table), _WRITTEN):
            some = range(start, min(start + _WRITTEN, len(table)))
            rules = map(table.rule, some)
            rows = [(rule.id, rule.expression, rule.weight, list(rule.tags)) for rule in rules]
            texts.write(rows_as(rows, texts.schema))
        offsets, data = locator_text(
            np.full(len(table), self.content.next_unit), np.arange(first, first + len(table), dtype=np.int64)
        )
        table = replace(table, text_offsets=offsets, text_data=data)
        return part_of(self.folder, replace(segment, table=table))


def as_mask(alive: U8, rows: int) -> NDArray[np.bool_]:
    """Which rows are alive; a mask without bytes means that all are."""
    return alive.astype(np.bool_) if len(alive) else np.ones(rows, np.bool_)
