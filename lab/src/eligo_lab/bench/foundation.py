"""What everything else stands on: reading rules, one event, a batch, an update, a fresh process, and `scan`.

Rules are conjunctions of seven predicates over 400 attributes of 48 values, 30% of them equalities; events have 15
attributes. What is read as JSON are plots of land, a kilobyte each, of which five rules look at a few fields. Times are
the best of several repetitions: on a shared machine the others measure the neighbours.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

import eligo
from eligo.language import parse, to_json

ATTRIBUTES, VALUES, PREDICATES, EVENT = 400, 48, 7, 15

Say = Callable[[str], None]


def rule_texts(count: int, seed: int = 1) -> Iterator[str]:
    """Conjunctions of seven predicates on different attributes."""
    rng = random.Random(seed)
    for _ in range(count):
        yield " and ".join(_predicate(f"a{a}", rng) for a in rng.sample(range(ATTRIBUTES), PREDICATES))


def _predicate(name: str, rng: random.Random) -> str:
    value, kind = rng.randrange(VALUES), rng.random()
    if kind < 0.3:
        return f"{name} = {value}"
    if kind < 0.4:
        return f"{name} != {value}"
    if kind < 0.6:
        return f"{name} {rng.choice(('<', '<=', '>', '>='))} {value}"
    if kind < 0.8:
        return f"{name} between {value} and {value + rng.randrange(10)}"
    some = ", ".join(str((value + step) % VALUES) for step in (0, 5, 9))
    return f"{name} {'in' if kind < 0.9 else 'not in'} ({some})"


def events(count: int, names: list[str], seed: int = 2) -> list[dict[str, int]]:
    rng = random.Random(seed)
    return [{name: rng.randrange(VALUES) for name in rng.sample(names, EVENT)} for _ in range(count)]


def best(work: Callable[[], object], times: int = 5) -> float:
    """Seconds of the quickest of several runs."""
    quickest = float("inf")
    for _ in range(times):
        start = time.perf_counter()
        work()
        quickest = min(quickest, time.perf_counter() - start)
    return quickest


def run(rules: int, say: Say) -> dict[str, Any]:
    """All measurements; `rules` is the size of the large matcher."""
    result: dict[str, Any] = {"rules": rules}
    say("reading 100,000 rules as text, JSON form and Arrow table")
    result |= _loading(min(100_000, rules))
    say("one event and a batch against 100 rules")
    result |= _overhead()
    say("one event against 10,000 rules of equalities")
    result |= _equalities()
    say("JSON of a kilobyte against five rules")
    result |= _nested()
    say(f"loading {rules:,} rules")
    large = eligo.Matcher(index="scan")
    large.add_many(enumerate(rule_texts(rules)))
    say("scan, one event after another")
    result |= _scan(large)
    say("single additions and removals")
    result |= _updates(large)
    say("saving, opening, and a fresh process")
    result |= _fresh(large)
    return result


def _loading(count: int) -> dict[str, Any]:
    texts = list(rule_texts(count))
    forms = [to_json(parse(text)) for text in texts]
    table = pa.table({"id": pa.array(range(count)), "expression": texts})
    sources: dict[str, Any] = {"text": list(enumerate(texts)), "json": list(enumerate(forms)), "arrow": table}
    seconds = {}
    for name, source in sources.items():
        m = eligo.Matcher()
        start = time.perf_counter()
        m.add_many(source)
        seconds[f"load_{name}_s"] = time.perf_counter() - start
    return {"load_rules": count, **seconds}


def _overhead() -> dict[str, Any]:
    m = eligo.Matcher()
    m.add_many(enumerate(rule_texts(100)))
    names = sorted(m.attributes)
    some = events(500, names)
    columns = random.Random(3).sample(names, EVENT)
    rng = random.Random(4)
    table = pa.table({name: [rng.randrange(VALUES) for _ in range(10_000)] for name in columns})
    m.match(some[0])
    m.match_batch(table)
    one = best(lambda: [m.match(event) for event in some], 20) / len(some)
    many = best(lambda: m.match_batch(table, threads=1), 10) / table.num_rows
    return {"match_one_us": one * 1e6, "match_batch_us": many * 1e6}


def _equalities() -> dict[str, Any]:
    rng = random.Random(5)
    names = (rng.sample(range(ATTRIBUTES), PREDICATES) for _ in range(10_000))
    m = eligo.Matcher()
    m.add_many(enumerate(" and ".join(f"a{a} = {rng.randrange(VALUES)}" for a in some) for some in names))
    some = events(500, [f"a{a}" for a in range(ATTRIBUTES)])
    m.match(some[0])
    return {"equalities_us": best(lambda: [m.match(event) for event in some], 20) / len(some) * 1e6}


_PLOTS = (
    "properties.STREET = 'BEACH'",
    "properties.ST_TYPE = 'ST' and properties.ODD_EVEN = 'E' and properties.LOT_NUM < 40",
    "properties.FROM_ST between 1200 and 1210",
    "geometry.type = 'Polygon' and properties.STREET in ('TAYLOR', 'JONES', 'HYDE')",
    "properties.STREET like 'B%H' or properties.BLOCK_NUM = 17",
)


def plots(count: int, seed: int = 6) -> list[dict[str, Any]]:
    """Plots of land, as cities publish them: some properties, and a polygon."""
    rng = random.Random(seed)

    def plot() -> dict[str, Any]:
        block, lot, number = rng.randrange(1, 6000), rng.randrange(1, 80), rng.randrange(1, 4000)
        corners = [[-122.4 + rng.random() / 10, 37.7 + rng.random() / 10, 0.0] for _ in range(13)]
        return {
            "type": "Feature",
            "properties": {
                "MAPBLKLOT": f"{block:04}{lot:03}",
                "BLKLOT": f"{block:04}{lot:03}",
                "BLOCK_NUM": block,
                "LOT_NUM": lot,
                "FROM_ST": number,
                "TO_ST": number + 8,
                "STREET": rng.choice(("BEACH", "BUSH", "TAYLOR", "JONES", "HYDE", "LARKIN", "POLK", "BROADWAY")),
                "ST_TYPE": rng.choice(("ST", "AVE", "BLVD", None)),
                "ODD_EVEN": rng.choice("OE"),
            },
            "geometry": {"type": "Polygon", "coordinates": [corners]},
        }

    return [plot() for _ in range(count)]


def _nested() -> dict[str, Any]:
    m = eligo.Matcher()
    m.add_many(enumerate(_PLOTS))
    some = plots(2000)
    texts = [json.dumps(event).encode() for event in some]
    lines = b"\n".join(texts)
    answers = [m.match(event) for event in some]
    assert [m.match_json(text) for text in texts] == answers
    assert m.match_ndjson(lines).num_rows == sum(map(len, answers))
    each = 1e6 / len(some)
    return {
        "json_bytes": len(lines) / len(texts),
        "nested_us": best(lambda: [m.match(event) for event in some], 10) * each,
        "json_us": best(lambda: [m.match_json(text) for text in texts], 10) * each,
        "ndjson_us": best(lambda: m.match_ndjson(lines, threads=1), 10) * each,
    }


def _scan(m: eligo.Matcher) -> dict[str, Any]:
    some = events(100, [f"a{i}" for i in range(ATTRIBUTES)])
    m.match(some[0])
    seconds = best(lambda: [m.match(event) for event in some], 5) / len(some)
    stats = m.stats()
    return {
        "scan_ms": seconds * 1e3,
        "bytes_per_rule": stats.bytes_per_rule,
        "bytes": {name: size for name, size in stats.arrays.items() if size > len(m) // 4},
        "predicates": stats.predicates,
        "conjunctions": stats.conjunctions,
    }


def _updates(m: eligo.Matcher) -> dict[str, Any]:
    """Each change is followed by a match that must show it; the same match once more, unchanged, is taken off."""
    count = 1000
    others = {f"q{k}": VALUES for k in range(PREDICATES - 1)}
    spent = {"add": 0.0, "remove": 0.0}
    worst = 0.0
    for i in range(count):
        rule, event = 10**9 + i, {"probe": i, **others}
        text = " and ".join((f"probe = {i}", *(f"{name} >= {i % VALUES}" for name in others)))
        for name in spent:
            start = time.perf_counter()
            if name == "add":
                m.add(rule, text)
            else:
                m.remove(rule if i % 2 else i)
            seen = m.match(event)
            took = time.perf_counter() - start
            m.match(event)
            spent[name] += 2 * took - (time.perf_counter() - start)
            worst = max(worst, took)
            assert (rule in seen) == (name == "add" or i % 2 == 0)
    return {
        "add_ms": spent["add"] / count * 1e3,
        "remove_ms": spent["remove"] / count * 1e3,
        "update_worst_ms": worst * 1e3,
    }


_FRESH = """
import time; start = time.perf_counter()
import eligo
m = eligo.Matcher(); m.add("r", "age >= 18 and country in ('US', 'CA')")
assert m.match({"age": 20, "country": "US"}) == ["r"]
print(time.perf_counter() - start)
"""


def _fresh(m: eligo.Matcher) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rules.eligo"
        start = time.perf_counter()
        m.save(path)
        saved = time.perf_counter() - start
        opened = best(lambda: eligo.open(path), 3)
        unverified = best(lambda: eligo.open(path, verify=False), 3)
    command = [sys.executable, "-c", _FRESH]
    subprocess.run(command, check=True, capture_output=True)  # fills the kernel cache, if it was cold
    fresh = [float(subprocess.run(command, check=True, capture_output=True, text=True).stdout) for _ in range(3)]
    return {"save_s": saved, "open_s": opened, "open_unverified_s": unverified, "fresh_process_s": min(fresh)}
