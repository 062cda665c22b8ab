"""What the pipeline costs on Spark: compiling, updating, matching, joins written by hand, memory, streams.

    match     the same events through `match_files`, a DataFrame and the engine alone, as shares of engine × cores
    joins     10,000 rules: eligo against two joins as one would write them, verified on a sample, scaled by its share
    compile   text rules to a rule set; an update of it; one shard, or several
    memory    what a worker has of its own beyond its libraries, after matching
    stream    micro-batches over many rules: how long they take

Every figure is of one session in this process on `cores` cores. Comparisons are within one run; of several runs of the
same thing the best counts.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import eligo
from eligo import spark
from eligo.bench.foundation import rule_texts
from eligo.bench.joins import exploded_hash_join, join_events, join_rules, nested_loop_join
from eligo.errors import EligoError

Say = Callable[[str], None]

MATCH: Final[dict[str, Any]] = {
    "dimensions": 20,
    "event_size": 12.0,
    "rule_size": 4.0,
    "operators": "min",
    "match": 0.0001,
}
SPARSE: Final[dict[str, Any]] = {"dimensions": 400, "event_size": 15.0, "rule_size": 7.0, "match": 0.000005}


class Bench:
    """A session, a folder, and somebody to tell how it goes."""

    def __init__(self, folder: Path, cores: int, say: Say) -> None:
        self.folder, self.cores, self.say = folder, cores, say
        self.session: Any = spark.local_session("eligo bench", cores=cores, **{"spark.driver.memory": "3g"})
        self.session.range(10).count()

    def timed(self, what: str, work: Callable[[], Any], times: int = 1) -> tuple[float, Any]:
        """Seconds of the quickest run, and what the last one gave."""
        quickest, found = float("inf"), None
        for _ in range(times):
            start = time.perf_counter()
            found = work()
            quickest = min(quickest, time.perf_counter() - start)
        self.say(f"{what}: {quickest:.2f} s")
        return quickest, found


def run(group: str, rules: int | None, events: int | None, cores: int, say: Say) -> dict[str, Any]:
    """Measure one group."""
    if group not in GROUPS:
        raise EligoError(f"there is no group {group!r}; there are: {', '.join(GROUPS)}")
    with tempfile.TemporaryDirectory(prefix="eligo-bench-") as folder:
        bench = Bench(Path(folder), cores, say)
        try:
            return {"cores": cores, **GROUPS[group](bench, rules, events)}
        finally:
            bench.session.stop()


def noop(frame: Any) -> None:
    frame.write.format("noop").mode("overwrite").save()


def written(way: Callable[[], Any]) -> None:
    noop(way())


def match(bench: Bench, rules: int | None, events: int | None) -> dict[str, Any]:
    """Rows a second of the three ways to match."""
    rules, events = rules or 100_000, events or 5_000_000
    made = spark.generate(bench.session, "begen", rules=rules, events=events, **MATCH)
    source, path = str(bench.folder / "events"), str(bench.folder / "rules")
    columns = [*made.events.columns, "id"]
    from pyspark.sql.functions import monotonically_increasing_id

    numbered = made.events.withColumn("id", monotonically_increasing_id())
    bench.timed(f"{events:,} events generated", lambda: numbered.write.parquet(source))
    bench.timed(f"{rules:,} rules compiled", lambda: spark.compile_rules(made.rules, path))
    sample = pa.concat_tables([pq.read_table(file) for file in sorted(Path(source).glob("*.parquet"))[:2]]).slice(
        0, 200_000
    )
    matcher = eligo.open(path)
    matcher.match_batch(sample.slice(0, 8_192))
    engine, found = bench.timed("engine, 200,000 events", lambda: matcher.match_batch(sample), 3)
    a_second = sample.num_rows / engine * bench.cores
    result: dict[str, Any] = {
        "rules": rules, "events": events, "columns": len(columns), "matches_an_event": found.num_rows / sample.num_rows,
        "engine_events_s": sample.num_rows / engine,
    }  # fmt: skip
    frame = bench.session.read.parquet(source)
    ways: dict[str, Callable[[], Any]] = {
        "files": lambda: spark.match_files(source, path, session=bench.session, output="array", keep=["id"]),
        "frame": lambda: spark.match(frame, path, output="array", keep=["id"]),
        "files_exploded": lambda: spark.match_files(source, path, session=bench.session, keep=["id"]),
    }
    counts = {name: way().selectExpr("count(*)").collect()[0][0] for name, way in list(ways.items())[:2]}  # and warm
    if set(counts.values()) != {events}:
        raise EligoError(f"rows are lost: {counts}, not {events}")
    for name, way in ways.items():
        seconds, _ = bench.timed(name, partial(written, way), 2)
        result |= {f"{name}_events_s": events / seconds, f"{name}_share": events / seconds / a_second}
    return result


def joins(bench: Bench, rules: int | None, events: int | None) -> dict[str, Any]:
    """Eligo on all events, the joins on a sample."""
    rules, events, few = rules or 10_000, events or 1_000_000, 10_000
    frame = join_events(bench.session, events).localCheckpoint()
    given = join_rules(rules)
    path = str(bench.folder / "rules")
    spark.compile_rules(
        bench.session.createDataFrame([(r.id, r.text) for r in given], "id long, expression string"), path
    )
    sample = frame.limit(few).coalesce(bench.cores).localCheckpoint()
    ways: dict[str, Callable[[Any], Any]] = {
        "eligo": lambda some: spark.match(some, path, keep=["id"], version_column=None).withColumnRenamed(
            "rule", "rule"
        ),
        "nested_loop": lambda some: nested_loop_join(some, given),
        "exploded_hash": lambda some: exploded_hash_join(some, given),
    }
    answers = {name: sorted(map(tuple, way(sample).select("id", "rule").collect())) for name, way in ways.items()}
    if not answers["eligo"] == answers["nested_loop"] == answers["exploded_hash"]:
        raise EligoError(f"the joins disagree: { ({name: len(rows) for name, rows in answers.items()}) } matches")
    whole, _ = bench.timed(f"eligo, {events:,} events", lambda: noop(ways["eligo"](frame)), 2)
    result: dict[str, Any] = {
        "rules": rules, "events": events, "sample": few, "matches_an_event": len(answers["eligo"]) / few,
        "eligo_s": whole,
    }  # fmt: skip
    for name in ("nested_loop", "exploded_hash"):
        seconds, _ = bench.timed(f"{name}, {few:,} events", partial(noop, ways[name](sample)), 2)
        scaled = seconds * events / few
        result |= {f"{name}_s": scaled, f"{name}_times": scaled / whole}
    return result


def compiling(bench: Bench, rules: int | None, events: int | None) -> dict[str, Any]:
    """Text rules to a rule set, and an update of 10,000."""
    rules = rules or 1_000_000
    source, path = bench.folder / "rules.parquet", str(bench.folder / "rules")
    write_rules(source, rules)
    frame = bench.session.read.parquet(str(source))
    seconds, done = bench.timed(f"{rules:,} rules compiled", lambda: spark.compile_rules(frame, path))
    few = min(10_000, rules)
    changes = [(f"rule-{i * (rules // few):09d}", text) for i, text in enumerate(rule_texts(few, seed=7))]
    changed = bench.session.createDataFrame(changes, "id string, expression string")
    changed.count()
    first, _ = bench.timed(f"{few:,} rules updated", lambda: spark.update_rules(path, changed, compact=False))
    again, _ = bench.timed(f"{few:,} rules updated once more", lambda: spark.update_rules(path, changed, compact=False))
    compact, _ = bench.timed("compacted", lambda: spark.compact_rules(path, bench.session))
    texts = sum(file.stat().st_size for file in (Path(path) / "data").glob("rules-*.parquet"))
    return {
        "rules": rules, "compile_s": seconds, "shards": done.shards, "mapped_bytes_a_rule": done.bytes / rules,
        "text_bytes_a_rule": texts / rules, "update": few, "update_s": first, "update_again_s": again,
        "compact_s": compact, **{f"{stage}, s": took for stage, took in done.stages.items()},
    }  # fmt: skip


def memory(bench: Bench, rules: int | None, events: int | None) -> dict[str, Any]:
    """What workers have of their own after matching."""
    rules, events = rules or 1_000_000, events or 20_000
    made = spark.generate(bench.session, "begen", rules=rules, events=events, **SPARSE)
    source, path = str(bench.folder / "events"), str(bench.folder / "rules")
    made.events.write.parquet(source)
    seconds, done = bench.timed(f"{rules:,} rules compiled", lambda: spark.compile_rules(made.rules, path))
    held = bench.session.read.parquet(source)
    files = sorted(str(file) for file in Path(source).glob("*.parquet"))

    def measure(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        before = private_bytes()
        matcher = eligo.open(path)
        found = 0
        for file in files:
            for batch in pq.ParquetFile(file).iter_batches(10_000):
                found += matcher.match_batch(batch).num_rows
        for batch in batches:
            del batch
        yield pa.RecordBatch.from_arrays([pa.array([v]) for v in (before, private_bytes(), found)], ["a", "b", "c"])

    held.sparkSession.range(0, 1, 1, 1).mapInArrow(measure, "a long, b long, c long").collect()
    rows = bench.session.range(0, 2, 1, 2).mapInArrow(measure, "a long, b long, c long").collect()
    return {
        "rules": rules, "events": events, "compile_s": seconds, "shards": done.shards,
        "mapped_bytes_a_rule": done.bytes / rules, "matches_an_event": rows[0].c / events,
        "private_bytes": max(row.b for row in rows) - library_bytes(), "private_before": min(row.a for row in rows),
    }  # fmt: skip


def private_bytes() -> int:
    """Memory that is this process's alone, not shared with others or with files."""
    total = 0
    with open("/proc/self/smaps_rollup") as file:
        for line in file:
            if line.startswith(("Private_Clean:", "Private_Dirty:")):
                total += int(line.split()[1]) * 1024
    return total


def library_bytes() -> int:
    """What importing NumPy, PyArrow and Numba costs a process."""
    code = (
        "import numpy, pyarrow, pyarrow.compute, numba\n"
        "print(sum(int(l.split()[1]) * 1024 for l in open('/proc/self/smaps_rollup') "
        "if l.startswith(('Private_Clean:', 'Private_Dirty:'))))"
    )
    return int(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)


def streaming(bench: Bench, rules: int | None, events: int | None) -> dict[str, Any]:
    """Micro-batches of 100,000 events."""
    rules, events = rules or 1_000_000, events or 2_000_000
    size = 100_000
    made = spark.generate(bench.session, "begen", rules=rules, events=events, **SPARSE)
    source, path = bench.folder / "events", str(bench.folder / "rules")
    made.events.repartition(events // size).write.parquet(str(source))
    bench.timed(f"{rules:,} rules compiled", lambda: spark.compile_rules(made.rules, path))
    stream = bench.session.readStream.schema(made.events.schema).option("maxFilesPerTrigger", 1).parquet(str(source))
    answer = spark.match(stream, path, output="array", keep=[], observe="eligo")
    query: Any = answer.writeStream.format("noop").trigger(availableNow=True).start()
    query.awaitTermination()
    if query.exception() is not None:
        raise query.exception()
    batches = [progress for progress in query.recentProgress if progress.numInputRows]
    took = np.array([progress.durationMs["triggerExecution"] / 1000 for progress in batches])
    matches = sum(progress.observedMetrics["eligo"].matches for progress in batches)
    bench.say(f"{len(batches)} batches, p95 {np.quantile(took, 0.95):.2f} s")
    return {
        "rules": rules, "events": events, "batches": len(batches), "matches_an_event": matches / events,
        "median_s": float(np.median(took)), "p95_s": float(np.quantile(took, 0.95)), "worst_s": float(took.max()),
    }  # fmt: skip


def write_rules(path: Path, count: int) -> None:
    """Text rules with ids in another order than their rows, some at a time."""
    schema = pa.schema([("id", pa.string()), ("expression", pa.string())])
    texts = rule_texts(count)
    step = 7_919  # a prime: every row number comes once
    partial = path.with_suffix(".partial")
    with pq.ParquetWriter(partial, schema) as writer:
        for first in range(0, count, 100_000):
            numbers = range(first, min(first + 100_000, count))
            ids = [f"rule-{number * step % count if count % step else number:09d}" for number in numbers]
            writer.write_table(pa.table([ids, [next(texts) for _ in numbers]], schema=schema))
    os.replace(partial, path)


GROUPS: Final[dict[str, Callable[[Bench, int | None, int | None], dict[str, Any]]]] = {
    "match": match,
    "joins": joins,
    "compile": compiling,
    "memory": memory,
    "stream": streaming,
}
