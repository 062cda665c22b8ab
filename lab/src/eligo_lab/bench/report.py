"""Result files as the tables of docs/performance.md."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from eligo_lab.bench import tables
from eligo_lab.bench.spark_tables import spark_table
from eligo_lab.bench.verdicts import everything

HEAD = """# Performance

Written by `{command}` from what `eligo bench run` measured. Do not edit: measure again, as
[benchmarks.md](benchmarks.md) says.

Machine: {machine}. Such machines are shared and noisy: compare figures within one table, not between machines.
"""

KEY = """## Comparisons

Each table is one run: the same rules and events for everyone, answers verified first, everyone timed in turn, several
times. Of the means of the repetitions the best is given; *quiet* is the mean over the events of each one's best
repetition, which other processes hardly touch, and is what plots and tables with several columns show. × is how many
times faster than the baseline: the median over the repetitions and between what it lay. A time of an event is index,
grouping and evaluation, one event at a time; encoding and making ids are apart. See [benchmarks.md](benchmarks.md).
"""


def report(results: list[dict[str, Any]], command: str) -> str:
    """All results as one Markdown page."""
    machines = "; and ".join(dict.fromkeys(result["machine"] for result in results))
    parts = [HEAD.format(command=command, machine=machines)]
    measured = [experiment for result in results for experiment in result.get("experiments", [])]
    parts += summary([(one["name"], one["title"], list(everything(one))) for one in measured])
    parts += [_foundation(result["result"]) for result in results if result.get("name") == "foundation"]
    parts += [spark_table(result) for result in results if str(result.get("name", "")).startswith("spark/")]
    if measured:
        parts.append(KEY)
    parts += ["\n".join(_experiment(experiment)) for experiment in measured]
    return "\n".join(parts)


SUMMARY = """## In one screen
"""

OF_BATCHES = """What `Matcher()`, which is `auto`, takes for an event, reading it and making the answer included, in
each case of the batches below; and how many times as fast it is as the best fixed choice of index and evaluator, in
batches and one by one.
"""

OF_INDEXES = """Who finds the satisfied conjunctions of an event fastest, in the last and mostly hardest case of each
comparison below, and how long `propagation` and `scan` take beside it. `auto` takes the faster one of `propagation`
and `pst-hash`.
"""


def summary(experiments: list[tuple[str, str, list[tables.Table]]]) -> list[str]:
    """A table of what `auto` takes in batches, and one of the fastest in each experiment that compares indexes; of each
    nothing if there is none.
    """
    found: list[tuple[str, ...]] = []
    batches: list[tuple[str, ...]] = []
    for name, title, its_tables in experiments:
        if its_tables and {"auto", "auto, all", "auto, one"} <= set(its_tables[0][1]):
            (_, columns, rows), (_, _, ratios), *_ = its_tables
            shown = [columns.index(one) for one in (*columns[:4], "auto", "auto, all", "auto, one") if one != "events"]
            batches += [(*(row[i] for i in shown), ratio[2], ratio[4]) for row, ratio in zip(rows, ratios, strict=True)]
        for heading, columns, rows in its_tables:
            times = {row[0]: row[-1] for row in rows if nanoseconds(row[-1]) is not None}
            if heading.lower().startswith("time of an event, index phase") and "propagation" in times:
                best = min(times, key=lambda one: nanoseconds(times[one]) or 0.0)
                beside = (times.get("propagation", ""), times.get("scan", ""))
                found.append((f"{name}: {title}", f"{columns[0]}: {columns[-1]}", best, times[best], *beside))
                break
    parts = []
    if batches:
        head = ("a batch, one thread", "all threads", "one by one", "× in batches", "× one by one")
        parts += [OF_BATCHES, "\n".join(markdown(("case", "rules", "matches an event", *head), batches)) + "\n"]
    if found:
        others = ("fastest", "time", "propagation", "scan")
        parts += [OF_INDEXES, "\n".join(markdown(("comparison", "case", *others), found)) + "\n"]
    return [SUMMARY, *parts] if parts else []


def nanoseconds(shown: str) -> float | None:
    """The opposite of `duration`; None for what is no duration."""
    number, _, unit = shown.partition(" ")
    scale = {"ns": 1.0, "µs": 1e3, "ms": 1e6, "s": 1e9}.get(unit)
    try:
        return None if scale is None else float(number) * scale
    except ValueError:
        return None


WHY_ANOTHER = (
    "Where the order is not the paper's, the last table of a case says why. `counting` touches a counter for every "
    "satisfied predicate of every conjunction (its candidates), but counters are bytes, a million of them lie in or "
    "near the second-level cache, and a list is gone through in order: a touch costs little. `k-index` takes fewer "
    "steps, but each is a search in a list and a new place in the sorted line of lists, and a match takes about as "
    "many as the rule has predicates: a step costs many times a touch. `propagation` looks at hardly more conjunctions "
    "than match, in one stream, and evaluates a few predicates of each."
)


def _experiment(experiment: dict[str, Any]) -> Iterator[str]:
    yield f"### {experiment['name']}: {experiment['title']}"
    yield ""
    for line in notes(experiment):
        yield line
        yield ""
    for title, columns, rows in everything(experiment):
        if title:
            yield f"{title[0].upper()}{title[1:]}:"
            yield ""
        yield from markdown(columns, rows)
        yield ""


def notes(experiment: dict[str, Any]) -> Iterator[str]:
    """What a reader has to know about an experiment: parameters, what was verified, who was left out."""
    points = experiment["points"]
    if not points:
        yield "Nothing could be measured."
        return
    fixed = {k: v for k, v in points[0]["parameters"].items() if all(p["parameters"].get(k) == v for p in points)}
    shown = ", ".join(f"{name} {_value(value)}" for name, value in fixed.items() if value is not None)
    workloads = " and ".join(dict.fromkeys(f"`{point['workload']}`" for point in points))
    first = points[0]
    scale = f" At scale {experiment['scale']:g}." if experiment.get("scale", 1) != 1 else ""
    absent = f" Absent attributes: {first['absent']}." if "absent" in first else ""
    yield f"Workload {workloads}: {shown}.{scale}{absent}"
    method = experiment.get("method", "compare")
    other = ", ".join(f"{name} is {_value(value)}" for name, value in first.get("other", {}).items())
    yield _compared(points) if method == "compare" else _ABOUT[method].format(**first | {"other": other})
    gone = {**experiment["left_out"]}
    for point in points:
        where = f" at {experiment['varied']} {point['label']}" if point["label"] else ""
        for name, reason in (point["left_out"] | point.get("outside", {}).get("left_out", {})).items():
            if name not in gone:
                gone[f"{name}{where}"] = reason
    if gone:
        yield "Left out: " + "; ".join(f"{name} ({reason})" for name, reason in gone.items()) + "."
    if any("counting" in order for order in experiment["orders"].values()):
        yield WHY_ANOTHER
    remarks = {
        f"{name}: {key} {_value(value)}"
        for point in points[:1]
        for name, figures in point["contenders"].items()
        for key, value in figures["notes"].items()
    }
    if remarks and len(points) == 1:
        yield "Notes of the indexes: " + "; ".join(sorted(remarks)) + "."


_ABOUT = {
    "batch": (
        "What `auto` plans beside every fixed choice: batches as Arrow tables in and out in one thread (`auto, all`: "
        "all threads), and dicts one by one to lists of ids (`…, one`), encoding and making ids included. All gave the "
        "same answers. The best of {repeat} repetitions. `blocks` is the index `bitmap`, `interval` and `shared` are "
        "`propagation` with these evaluators, `pst-hash` changes in place; `by hand` is a dict from tenants to "
        "compiled functions. Of the rules of `rules later` a thousandth came after the others: the last 16 one by one, "
        "those before at once."
    ),
    "replace": (
        "Rules are replaced one by one by those of a second workload, where {other}, and then back; half of the "
        "{events:,} events are of either. The index adjusts itself after each update and after some hundred events. At "
        "each point the events run through it and through one built anew over the same rules, in turn, {repeat} times; "
        "both gave what scan finds among the living rules for all events."
    ),
    "mix": (
        "Through the matcher: {events:,} matches of dicts to lists of ids and {updates:,} updates, half of them "
        "additions of rules as text, half removals. The garbage collector runs as in any process. Answers were put to "
        "the reference at the end of each case."
    ),
    "stab": (
        "Closed intervals of one attribute, and points. All structures counted for every point what sorting the ends "
        "gives, and the intervals that they wrote down hold their points. Everyone in turn, {repeat} times; of each "
        "figure the best. The paper says 7 ns a point for PS-Tree, which can only be locating: this is what "
        "its ratios are set beside, and counting and writing down are columns of their own. In an interval tree a "
        "point has only found its way then, and what lies on it is still to be compared. Scan has nothing to locate; "
        "its counting, measured on {scanned:,} points, stands there. The paper does not say how wide its "
        "intervals were."
    ),
    "join": (
        "Rules have a category and a range of prices, and a question to the documents: a single join (form one), or "
        "two joins and a category of the document (form two). A small draw of the same kind was put to the reference, "
        "and {verified[events]} events to trying all. Through the matcher, from a dict to a list of ids; everyone in "
        "turn, {repeat} times; of each event the best time. Trying all is a compiled loop over integers: the time of a "
        "pair on {tried[rules]:,} rules and {tried[documents]:,} documents, times all pairs. Stopping early, it asks "
        "what a rule says of the event first and ends with the document that decides; measured on {tried[events]} "
        "events."
    ),
}  # fmt: skip


def _compared(points: list[dict[str, Any]]) -> str:
    """What was verified, and what everyone shares."""
    first = points[0]
    events = min(point["verified"]["events"] for point in points)
    pairs = min(point["verified"]["reference_pairs"] for point in points)
    return (
        f"All contenders gave the same rules for {tables.plural(events, 'event')}, and the reference agreed on "
        f"{pairs:,} pairs of an event and a rule; {tables.plural(first['repeat'], 'repetition')}. What all indexes "
        f"share takes {tables.size(first['shared_bytes'])}; encoding an event takes "
        f"{tables.duration(first['encode_ns'])} in a table and {tables.duration(first['encode_dict_ns'])} as a dict; "
        f"reading the clock adds {first['clock_ns']:.0f} ns to a phase."
    )


def _value(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def markdown(columns: tuple[str, ...], rows: list[tuple[str, ...]]) -> Iterator[str]:
    """A table; numbers to the right."""
    yield f"| {' | '.join(columns)} |"
    yield f"|---{'|---:' * (len(columns) - 1)}|"
    for row in rows:
        yield f"| {' | '.join(cell.replace('|', '/') for cell in row)} |"


def _foundation(r: dict[str, Any]) -> str:
    large = f"{r['rules']:,}"
    rows = [
        (f"read and compile {r['load_rules']:,} rules from text", f"{r['load_text_s']:.2f} s", "1 s"),
        ("… from the JSON form", f"{r['load_json_s']:.1f} s", "15 s"),
        ("… from an Arrow table of text", f"{r['load_arrow_s']:.2f} s", "1 s"),
        ("one dict event of 15 attributes against 100 rules", f"{r['match_one_us']:.1f} µs", "6 µs"),
        ("… against 10,000 rules of seven equalities each", f"{r['equalities_us']:.1f} µs", "12 µs"),
        ("one of 10,000 Arrow events of 15 attributes against 100 rules", f"{r['match_batch_us']:.2f} µs", "2 µs"),
        (f"one event of {r['json_bytes']:,.0f} bytes of JSON against five rules", f"{r['json_us']:.2f} µs", "4 µs"),
        ("… of NDJSON, one of 2,000", f"{r['ndjson_us']:.2f} µs", "1.5 µs"),
        ("… as a nested dict", f"{r['nested_us']:.2f} µs", "5 µs"),
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
