"""Versions made without Spark: the state of a matcher, published."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import eligo
from eligo.segments.segment import Segment
from eligo.store.arrays import ArrayFile, write_arrays
from eligo.store.publish import Staging, publish
from eligo.store.tables import RULES_SCHEMA, TableWriter, locator_text
from eligo.store.versions import Content, Part, TableFile


class Maker:
    """Publishes what a matcher holds, one version after another; segments that were published are not written again."""

    def __init__(self, path: Path, matcher: eligo.Matcher | None = None) -> None:
        self.path = path
        self.matcher = eligo.Matcher("propagation") if matcher is None else matcher
        self.lineage = ""
        self._known: list[tuple[Segment, ArrayFile, int]] = []  # and its unit
        self._texts: dict[int, TableFile] = {}
        self._units = 0

    def publish(self, expect_parent: int | None = None) -> Content:
        with Staging.begin(self.path) as staging:
            return publish(staging, *self.prepare(staging), expect_parent=expect_parent)

    def prepare(self, staging: Staging) -> tuple[list[str], Any]:
        """Write the files of a version; what `publish` wants."""
        rules: Any = self.matcher.engine.rules
        with rules.lock:
            rules.seal()
            rules.wait()
            self._known = [self._write(staging, segment) for segment in rules.segments]
            parts = [
                Part(file, len(segment), dead, int(segment.facts.counts[0]))
                for (segment, file, _), dead in zip(self._known, rules.dead, strict=True)
            ]
            dead = {
                file.file: np.nonzero(mask == 0)[0].astype(np.int32)
                for (_, file, _), mask in zip(self._known, rules.alive, strict=True)
                if len(mask) and not mask.all()
            }
            data, offsets = rules.recipe.strings.arrays()
            arrays = {"data": data, "offsets": offsets, "slots": rules.recipe.strings.slots}
            self.lineage = self.lineage or staging.job
            facts: dict[str, Any] = {
                "lineage": self.lineage,
                "index": self.matcher.index,
                "evaluator": self.matcher.evaluator,
                "absent": self.matcher.absent,
                "multi": tuple(sorted(rules.multi)),
                "limits": self.matcher.limits,
                "options": {},
                "id_type": "" if not rules.count else self.matcher.engine.loader.id_type.__name__,
                "rules": rules.count,
                "next_sequence": rules.next_sequence,
                "next_unit": self._units,
                "attributes": tuple(rules.recipe.attributes.names),
                "strings": write_arrays(staging.folder, "strings", arrays),
                "shards": tuple(parts[:1]),
                "deltas": tuple(parts[1:]),
                "dead": write_arrays(staging.folder, "dead", dead) if dead else None,
                "texts": {unit: self._texts[unit] for _, _, unit in self._known},
                "rejects": (),
                "rejected": 0,
            }
        files = [file.name for file in staging.folder.iterdir() if file.suffix in (".bin", ".parquet")]
        return files, Content(**facts)

    def _write(self, staging: Staging, segment: Segment) -> tuple[Segment, ArrayFile, int]:
        for known in self._known:
            if known[0] is segment:
                return known
        table, unit = segment.table, self._units
        self._units += 1
        kind = "str" if table.has_text_ids else "int"
        writer = TableWriter(staging.folder, "rules", RULES_SCHEMA(kind))
        rows = {
            "id": [table.id(row) for row in range(len(table))],
            "expression": [table.text(row) for row in range(len(table))],
            "weight": table.weight,
            "tags": [list(table.rule(row).tags) for row in range(len(table))],
        }
        writer.write(pa.table(rows, schema=RULES_SCHEMA(kind)))
        self._texts[unit] = writer.close()
        offsets, data = locator_text(np.full(len(table), unit), np.arange(len(table)))
        arrays = {**segment.arrays(), "rules/text_offsets": offsets, "rules/text_data": data}
        return segment, write_arrays(staging.folder, "segment", arrays), unit
