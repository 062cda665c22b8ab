"""Result files as the tables of docs/performance.md."""

from __future__ import annotations

from typing import Any

HEAD = """# Performance

Written by `{command}` from what `eligo bench run {names}` measured. Do not edit: measure again.

Machine: {machine}. Such machines are shared and noisy: compare figures within one table, not between machines.
"""


def report(results: list[dict[str, Any]], command: str) -> str:
    """All results as one Markdown page."""
    names = ", ".join(result["name"] for result in results)
    parts = [HEAD.format(command=command, names=names, machine=results[0]["machine"])]
    parts += [_foundation(result["result"]) for result in results if result["name"] == "foundation"]
    return "\n".join(parts)


def _foundation(r: dict[str, Any]) -> str:
    large = f"{r['rules']:,}"
    rows = [
        (f"read and compile {r['load_rules']:,} rules from text", f"{r['load_text_s']:.1f} s", "15 s"),
        ("… from the JSON form", f"{r['load_json_s']:.1f} s", "15 s"),
        ("… from an Arrow table of text", f"{r['load_arrow_s']:.1f} s", "15 s"),
        ("one dict event of 15 attributes against 100 rules", f"{r['match_one_us']:.1f} µs", "15 µs"),
        ("one of 10,000 Arrow events of 15 attributes against 100 rules", f"{r['match_batch_us']:.2f} µs", "2 µs"),
        (f"`scan`: one event against {large} conjunctions of seven predicates", f"{r['scan_ms']:.2f} ms", "10 ms"),
        ("compiled arrays, beyond a rule's text and id", f"{r['bytes_per_rule']:.0f} bytes a rule", "200"),
        (f"add one rule to {large}, seen by the next match", f"{r['add_ms']:.2f} ms", "1 ms"),
        (f"remove one rule from {large}, seen by the next match", f"{r['remove_ms']:.2f} ms", "1 ms"),
        ("the slowest of 2,000 such changes, with its match", f"{r['update_worst_ms']:.1f} ms", ""),
        ("fresh process, kernels cached: import, add a rule, first match", f"{r['fresh_process_s']:.2f} s", "2 s"),
        (f"save {large} rules", f"{r['save_s']:.1f} s", ""),
        ("open them, all checksums verified", f"{r['open_s']:.2f} s", ""),
        ("open them unverified", f"{r['open_unverified_s'] * 1e3:.1f} ms", ""),
    ]  # fmt: skip
    lines = [
        "## Foundation",
        "",
        f"Rules are conjunctions of seven predicates over 400 attributes of 48 values; {r['predicates']:,} different "
        f"predicates and {r['conjunctions']:,} different conjunctions among {large} rules.",
        "",
        "| what | measured | to reach |",
        "|---|---:|---:|",
        *(f"| {what} | {figure} | {goal} |" for what, figure, goal in rows),
        "",
        f"Bytes by array, {large} rules (those of at least a quarter of a byte a rule):",
        "",
        "| array | bytes | a rule |",
        "|---|---:|---:|",
        *(f"| {name} | {size:,} | {size / r['rules']:.1f} |" for name, size in r["bytes"].items()),
        "",
    ]
    return "\n".join(lines)
