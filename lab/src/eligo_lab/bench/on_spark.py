"""What the pipeline costs on Spark: compiling, updating, matching, joins written by hand, memory, streams.

    match     the same events through `match_files`, a DataFrame and the engine alone, as shares of engine × cores
    joins     10,000 rules: eligo against two joins as one would write them, verified on a sample, scaled by its share
    compile   text rules to a rule set; an update of it; one shard, or several
    memory    what a worker has of its own beyond its libraries while it matches
    scale     many rules in several shards: compiled, and matched a shard after another, in a bounded memory
    stream    micro-batches over many rules: how long they take

Every figure is of one session in this process on `cores` cores. Comparisons are within one run; of several runs of the
same thing the best counts.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import eligo
from eligo import spark
from eligo.errors import EligoError
from eligo_lab.bench.foundation import rule_texts
from eligo_lab.bench.joins import exploded_hash_join, join_events, join_rules, nested_loop_join
from eligo_lab.bench.memory import Peak, library_bytes, watched
from eligo_lab.workload.on_spark import generate

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

    def __init__(self, folder: Path, cores: int, say: Say, heap: str = "3g") -> None:
        self.folder, self.cores, self.say, self.heap = folder, cores, say, heap
        self.session: Any = None
        self.start()

    def start(self) -> None:
        """A new session, with new workers."""
        if self.session is not None:
            self.session.stop()
        # Runs are long enough for Java's optimising compiler, and joins in the JVM deserve it.
        conf = {"spark.driver.memory": self.heap, "spark.driver.extraJavaOptions": ""}
        self.session = spark.local_session("eligo bench", cores=self.cores, **conf)
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
        bench = Bench(Path(folder), cores, say, HEAPS.get(group, "3g"))
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
    made = generate(bench.session, "begen", rules=rules, events=events, **MATCH)
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
    engine, found = bench.timed("engine, 200,000 events", lambda: matcher.match_batch(sample, threads=1), 3)
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
        "eligo": lambda some: spark.match(some, path, keep=["id"], version_column=None),
        "nested_loop": lambda some: nested_loop_join(some, given),
        "exploded_hash": lambda some: exploded_hash_join(some, given),
    }
    answers = {name: sorted(map(tuple, way(sample).select("id", "rule").collect())) for name, way in ways.items()}
    if not answers["eligo"] == answers["nested_loop"] == answers["exploded_hash"]:
        raise EligoError(f"the joins disagree: { ({name: len(rows) for name, rows in answers.items()}) } matches")
    whole, _ = bench.timed(f"eligo, {events:,} events", partial(noop, ways["eligo"](frame)), 3)
    result: dict[str, Any] = {
        "rules": rules, "events": events, "sample": few, "matches_an_event": len(answers["eligo"]) / few,
        "eligo_s": whole,
    }  # fmt: skip
    for name in ("nested_loop", "exploded_hash"):
        seconds, _ = bench.timed(f"{name}, {few:,} events", partial(noop, ways[name](sample)), 3)
        scaled = seconds * events / few
        result |= {f"{name}_s": scaled, f"{name}_times": scaled / whole}
    # What a query costs before its first event is scaled with a small sample; with all events it hardly counts.
    hashed, _ = bench.timed(f"exploded_hash, {events:,} events", partial(noop, ways["exploded_hash"](frame)))
    return result | {"exploded_hash_all_s": hashed, "exploded_hash_all_times": hashed / whole}


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
    """What a worker has of its own while it matches."""
    rules, events = rules or 1_000_000, events or 200_000
    made = generate(bench.session, "begen", rules=rules, events=events, **SPARSE)
    source, path = str(bench.folder / "events"), str(bench.folder / "rules")
    made.events.write.parquet(source)
    seconds, done = bench.timed(f"{rules:,} rules compiled", lambda: spark.compile_rules(made.rules, path))
    bench.start()  # workers that compiled are not those that match
    answer = spark.match(bench.session.read.parquet(source), path, output="array", keep=[])
    with watched() as peak:
        matches = answer.selectExpr("sum(size(rules))").collect()[0][0]
    rest, libraries = Peak(), library_bytes()
    rest.look()
    bench.say(
        f"{peak.private >> 20} MiB private, {rest.private >> 20} afterwards, {libraries >> 20} for libraries alone"
    )
    return {
        "rules": rules, "events": events, "compile_s": seconds, "shards": done.shards,
        "mapped_bytes_a_rule": done.bytes / rules, "matches_an_event": matches / events,
        "private_bytes": peak.private - libraries, "rest_bytes": rest.private - libraries, "library_bytes": libraries,
        "batch_bytes": 10_000 * 8 * len(made.events.columns), "columns": len(made.events.columns),
    }  # fmt: skip


def scale(bench: Bench, rules: int | None, events: int | None) -> dict[str, Any]:
    """Rules that do not fit at once: the memory of all of Spark's processes while they are compiled and matched."""
    rules, events = rules or 10_000_000, events or 100_000
    made = generate(bench.session, "begen", rules=rules, events=events, **SPARSE)
    source, given, path = (str(bench.folder / name) for name in ("events", "given", "rules"))
    from pyspark.sql.functions import monotonically_increasing_id

    made.events.withColumn("id", monotonically_increasing_id()).write.parquet(source)
    made.rules.write.parquet(given)
    frame = bench.session.read.parquet(given)
    with watched() as compiling_peak:
        seconds, done = bench.timed(f"{rules:,} rules compiled", lambda: spark.compile_rules(frame, path))
    bench.start()  # workers that compiled are not those that match
    found = bench.session.read.parquet(source)
    result: dict[str, Any] = {
        "rules": rules, "events": events, "compile_s": seconds, "shards": done.shards,
        "mapped_bytes_a_rule": done.bytes / rules, "compile_bytes": compiling_peak.whole,
        **{f"{stage}, s": took for stage, took in done.stages.items()},
    }  # fmt: skip
    answers = set()
    # At once: all shards are mapped, which is quicker and wants the memory. The answers have to be the same.
    for name, allowed in (("apart", max(1, done.bytes // done.shards)), ("at_once", 2 * done.bytes)):
        with watched() as peak:
            answer = spark.match(found, path, keep=["id"], memory=allowed, version_column=None)
            digest = answer.selectExpr("count(*)", "bit_xor(xxhash64(id, rule))")
            took, rows = bench.timed(f"{events:,} events matched {name}", digest.collect)
        answers.add(tuple(rows[0]))
        bench.say(f"{peak.whole / 2**30:.2f} GiB")
        result |= {f"{name}_s": took, f"{name}_bytes": peak.whole, "matches_an_event": rows[0][0] / events}
    if len(answers) > 1:
        raise EligoError(f"shards apart and at once give different matches: {answers}")
    return result


def streaming(bench: Bench, rules: int | None, events: int | None) -> dict[str, Any]:
    """Micro-batches of 100,000 events."""
    rules, events = rules or 1_000_000, events or 2_000_000
    size = 100_000
    made = generate(bench.session, "begen", rules=rules, events=events, **SPARSE)
    source, path = bench.folder / "events", str(bench.folder / "rules")
    made.events.repartition(events // size * bench.cores).write.parquet(str(source))
    bench.timed(f"{rules:,} rules compiled", lambda: spark.compile_rules(made.rules, path))
    # A file is a task's, so a batch has one for each core.
    stream = (
        bench.session.readStream.schema(made.events.schema)
        .option("maxFilesPerTrigger", bench.cores)
        .parquet(str(source))
    )
    answer = spark.match(stream, path, output="array", keep=[], observe="eligo")
    query: Any = answer.writeStream.format("noop").trigger(availableNow=True).start()
    query.awaitTermination()
    if query.exception() is not None:
        raise query.exception()
    batches = [progress for progress in query.recentProgress if progress.numInputRows]
    took = np.array([progress.durationMs["triggerExecution"] / 1000 for progress in batches])
    matches = sum(progress.observedMetrics["eligo"].matches for progress in batches)
    bench.say(f"{len(batches)} batches, s: {', '.join(f'{seconds:.1f}' for seconds in took)}")
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
    "scale": scale,
    "stream": streaming,
}
# Of the JVM. With `scale` it is an executor of 4 GB that counts: this, and what remains for Python.
HEAPS: Final[dict[str, str]] = {"scale": "1g"}
