"""What `eligo bench spark` measured, as tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Row = tuple[str, str, str]  # what, figure, goal


def spark_table(result: dict[str, Any]) -> str:
    """One result file as Markdown."""
    group, r = result["name"].removeprefix("spark/"), result["result"]
    title, rows = _TABLES[group](r)
    lines = [f"## Spark, {group}: {title}", "", f"`{result['command']}`, on {r['cores']} cores.", ""]
    lines += ["| what | measured | to reach |", "|---|---:|---:|"]
    lines += [f"| {what} | {figure} | {goal} |" for what, figure, goal in rows]
    return "\n".join([*lines, ""])


def _match(r: dict[str, Any]) -> tuple[str, list[Row]]:
    title = (
        f"{r['rules']:,} rules, {r['events']:,} events of {r['columns']} columns, {r['matches_an_event']:.1f} matches "
        "an event, to a sink that writes nothing"
    )
    rows: list[Row] = [("the engine alone, one core", f"{r['engine_events_s']:,.0f} events/s", "")]
    for name, words, goal in (
        ("files", "`match_files`, one row an event", "400,000 events/s"),
        ("frame", "`match` of a Parquet DataFrame, one row an event", "40%"),
        ("files_exploded", "`match_files`, one row a match", ""),
    ):
        share = f"{r[f'{name}_events_s']:,.0f} events/s, {r[f'{name}_share']:.0%} of engine × {r['cores']}"
        rows.append((words, share, goal))
    return title, rows


def _joins(r: dict[str, Any]) -> tuple[str, list[Row]]:
    title = f"{r['rules']:,} conjunctions, {r['events']:,} events, {r['matches_an_event']:.2f} matches an event"
    scaled = f"measured on {r['sample']:,} events and scaled"
    return title, [
        ("`match`", f"{r['eligo_s']:.1f} s", ""),
        (
            f"broadcast nested-loop join, {scaled}",
            f"{r['nested_loop_s']:,.0f} s, {r['nested_loop_times']:,.0f} ×",
            "100 ×",
        ),
        (
            f"exploded broadcast hash join with verification, {scaled}",
            f"{r['exploded_hash_s']:,.0f} s, {r['exploded_hash_times']:,.0f} ×",
            "20 ×",
        ),
        (
            "the same on all events, where what a query costs before its first event hardly counts",
            f"{r['exploded_hash_all_s']:,.0f} s, {r['exploded_hash_all_times']:,.0f} ×",
            "",
        ),
    ]


def _compile(r: dict[str, Any]) -> tuple[str, list[Row]]:
    rows: list[Row] = [(f"`compile_rules`, {r['shards']} shard(s)", f"{r['compile_s']:.0f} s", "120 s")]
    rows += [(f"… {name.removesuffix(', s')}", f"{took:.1f} s", "") for name, took in r.items() if name.endswith(", s")]
    return f"{r['rules']:,} rules of seven predicates from text", [
        *rows,
        (f"`update_rules`, {r['update']:,} rules replaced", f"{r['update_s']:.1f} s", "10 s"),
        ("… once more", f"{r['update_again_s']:.1f} s", "10 s"),
        ("`compact_rules`", f"{r['compact_s']:.1f} s", ""),
        ("arrays that matching maps", f"{r['mapped_bytes_a_rule']:.0f} bytes a rule", ""),
        ("texts, in Parquet", f"{r['text_bytes_a_rule']:.0f} bytes a rule", ""),
    ]


def _memory(r: dict[str, Any]) -> tuple[str, list[Row]]:
    return f"{r['rules']:,} rules in {r['shards']} shard(s), {r['matches_an_event']:.1f} matches an event", [
        (
            f"what a worker has for itself after {r['events']:,} events, beyond NumPy, PyArrow and Numba",
            f"{r['rest_bytes'] / 2**20:.0f} MiB",
            "100 MB" if r["rules"] <= 1_000_000 else "",
        ),
        (
            f"… the most while it matches, with two Arrow batches of {r['columns']} columns and "
            f"{r['batch_bytes'] / 2**20:.0f} MiB each under way",
            f"{r['private_bytes'] / 2**20:.0f} MiB",
            "",
        ),
        ("what these three cost a process", f"{r['library_bytes'] / 2**20:.0f} MiB", ""),
        ("arrays that matching maps, shared", f"{r['mapped_bytes_a_rule']:.0f} bytes a rule", ""),
        ("`compile_rules`", f"{r['compile_s']:.0f} s", ""),
    ]


def _scale(r: dict[str, Any]) -> tuple[str, list[Row]]:
    def gigabytes(name: str) -> str:
        return f"{r[name] / 1e9:.1f} GB"

    title = f"{r['rules']:,} rules in {r['shards']} shards, {r['events']:,} events, {r['matches_an_event']:.1f} matches"
    rows: list[Row] = [("`compile_rules`", f"{r['compile_s']:,.0f} s", "")]
    rows += [
        (f"… {name.removesuffix(', s')}", f"{took:,.1f} s", "") for name, took in r.items() if name.endswith(", s")
    ]
    return f"{title} an event; memory of the JVM and all its Python workers together", [
        *rows,
        ("… memory, pages of files that are mapped among it", gigabytes("compile_bytes"), ""),
        ("arrays that matching maps", f"{r['mapped_bytes_a_rule']:.0f} bytes a rule", ""),
        ("`match`, a shard after another", f"{r['apart_s']:,.1f} s", ""),
        ("… memory", gigabytes("apart_bytes"), "4 GB"),
        ("`match`, all shards mapped at once", f"{r['at_once_s']:,.1f} s", ""),
        ("… memory", gigabytes("at_once_bytes"), ""),
    ]


def _stream(r: dict[str, Any]) -> tuple[str, list[Row]]:
    size = r["events"] // r["batches"]
    return f"{r['rules']:,} rules, micro-batches of {size:,} events, {r['matches_an_event']:.1f} matches an event", [
        (f"median of {r['batches']} micro-batches", f"{r['median_s']:.1f} s", ""),
        ("95% take at most", f"{r['p95_s']:.1f} s", "15 s"),
        ("the slowest", f"{r['worst_s']:.1f} s", ""),
    ]


_TABLES: dict[str, Callable[[dict[str, Any]], tuple[str, list[Row]]]] = {
    "match": _match,
    "joins": _joins,
    "compile": _compile,
    "memory": _memory,
    "scale": _scale,
    "stream": _stream,
}
