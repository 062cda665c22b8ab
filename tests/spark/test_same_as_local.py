"""Spark gives what `Matcher.match` gives: every type of column, every way to match, several indexes.

Rules and events are drawn once and collide on purpose. Each column has values of its own type, and rules ask each of
them for values of all kinds: kinds that do not mix, '' and patterns, neighbours of 2⁵³ and of the ends of 64 bits,
decimals beside floats, dates and instants of one midnight, Booleans beside 0 and 1, nulls and NaN.

One table holds everything: the events are written once and read by `match`, `match_files`, the functions of SQL and a
stream; the same events as dicts go to a local matcher that scans.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import eligo
from eligo import spark

pytestmark = pytest.mark.spark

RULES: Final = 1500
EVENTS: Final = 200

BIG: Final = 2**53
MIDNIGHT: Final = datetime(2026, 1, 31, tzinfo=UTC)
WORDS: Final = ("", "a", "ab", "b", "1", "true", "a%", "é", "aaaaaaaaaaaaaaaa", "aaaaaaaaaaaaaaab", "2026-01-31")
WHOLE: Final = (0, 1, 2, -1, 5)
FRACTIONS: Final = (0.5, 1.5, 0.0, -0.0, 1.0, math.nan, math.inf, -math.inf)
DAYS: Final = (date(2026, 1, 31), date(2026, 2, 1), date(1969, 12, 31))
INSTANTS: Final = (
    MIDNIGHT,
    MIDNIGHT + timedelta(microseconds=1),
    datetime(2026, 1, 31, 1, tzinfo=timezone(timedelta(hours=1))),
)


class Column(NamedTuple):
    """A column: Arrow's type for the first file, Spark's for the table, and the values."""

    arrow: pa.DataType
    spark: str
    values: tuple[Any, ...]


def decimals(*texts: str) -> tuple[Decimal, ...]:
    return tuple(map(Decimal, texts))


COLUMNS: Final = {
    "i8": Column(pa.int8(), "tinyint", (*WHOLE, 127, -128)),
    "i16": Column(pa.int16(), "smallint", (*WHOLE, -(2**15))),
    "i32": Column(pa.int32(), "int", (*WHOLE, 2**31 - 1)),
    "i64": Column(pa.int64(), "bigint", (*WHOLE, BIG, BIG + 1, 2**63 - 1, -(2**63))),
    "f32": Column(pa.float32(), "float", (*FRACTIONS, float(2**24))),
    "f64": Column(pa.float64(), "double", (*FRACTIONS, 0.1, float(BIG), 2.0**63, 1e300, math.nextafter(0.1, 1))),
    "d2": Column(pa.decimal128(10, 2), "decimal(10,2)", decimals("0.10", "0.50", "1.00", "-1.00", "99999999.99")),
    "d0": Column(pa.decimal128(20, 0), "decimal(20,0)", decimals("1", str(BIG + 1), str(2**63 - 1), str(2**63), "-5")),
    "d18": Column(pa.decimal128(38, 18), "decimal(38,18)", decimals("0.1", "0.100000000000000006", f"{BIG + 1}", "1.5")),
    "text": Column(pa.string(), "string", WORDS),
    "code": Column(pa.string(), "string", WORDS),
    "varying": Column(pa.string(), "varchar(20)", WORDS),
    "padded": Column(pa.string(), "char(3)", ("   ", "a  ", "ab ", "b  ", "1  ")),
    "flag": Column(pa.bool_(), "boolean", (True, False)),
    "day": Column(pa.date32(), "date", DAYS),
    "at": Column(pa.timestamp("us", "UTC"), "timestamp", INSTANTS),
    "naive": Column(pa.timestamp("us"), "timestamp_ntz", tuple(one.astimezone(UTC).replace(tzinfo=None) for one in INSTANTS)),
    "nothing": Column(pa.null(), "void", (None,)),
    "ints": Column(pa.list_(pa.int32()), "array<int>", WHOLE),
    "words": Column(pa.list_(pa.string()), "array<string>", WORDS),
    "prices": Column(pa.list_(pa.decimal128(5, 1)), "array<decimal(5,1)>", decimals("0.5", "1.0", "-1.0")),
    "doubles": Column(pa.list_(pa.float64()), "array<double>", FRACTIONS),
    "days": Column(pa.list_(pa.date32()), "array<date>", DAYS),
    "moments": Column(pa.list_(pa.timestamp("us", "UTC")), "array<timestamp>", INSTANTS),
    "flags": Column(pa.list_(pa.bool_()), "array<boolean>", (True, False)),
}  # fmt: skip
LISTS: Final = tuple(name for name, column in COLUMNS.items() if pa.types.is_list(column.arrow))

# Structs, maps and Variants, by the paths into them; each path has the values of a column above, or of JSON.
INSIDE: Final = pa.struct([("word", pa.string()), ("list", pa.list_(pa.int32()))])
STRUCT: Final = pa.struct(
    [("n", pa.int64()), ("price", pa.decimal128(10, 2)), ("at", pa.timestamp("us", "UTC")), ("in", INSIDE)]
)
ITEM: Final = pa.struct([("n", pa.int32())])  # of a list of structs
MAPS: Final = {"mi": ("k", "two words"), "mw": ("k", "x.y"), "mp": ("k",)}
JSON: Final = (
    "1",
    "0",
    str(BIG + 1),
    f"{BIG + 1}.0",
    "0.5",
    "0.1",
    "1e300",
    '""',
    '"a"',
    '"b"',
    '"1"',
    "true",
    "false",
    "null",
)
PATHS: Final = {
    "s.n": "i64", "s.price": "d2", "s.at": "at", "s.in.word": "text", "s.in.list": "ints", "mi.k": "i32", "`mi.two words`": "i32",
    "mw.k": "text", "mw.x.y": "text", "mp.k": "d2", "v.x": "f64", "v.in.y": "text", "v.list": "ints", "absent": "i32",
    "s": "i32", "s.in": "text", "mi": "flag", "mw": "day", "v": "text", "v.in": "f64", "items": "ints",
}  # fmt: skip
# Rules look at the bytes of a string for patterns, and for some lists; these have no patterns to ask for the bytes.
WITHOUT_PATTERNS: Final = ("varying", "mw.k", "v.in.y", "words")
ONLY_LISTS: Final = "code"
MULTI: Final = (*LISTS, "s.in.list", "v.list", "items")


def maybe(rng: random.Random, value: Any) -> Any:
    return None if rng.random() < 0.15 else value


def event(rng: random.Random, number: int) -> dict[str, Any]:
    """One event as a row of Arrow; what Variants hold is text."""
    row: dict[str, Any] = {"id": number}
    for name, column in COLUMNS.items():
        some = [maybe(rng, rng.choice(column.values)) for _ in range(rng.randrange(4))]
        row[name] = maybe(rng, some if name in LISTS else rng.choice(column.values))
    inside = {"word": maybe(rng, rng.choice(WORDS)), "list": maybe(rng, rng.sample(WHOLE, rng.randrange(3)))}
    row["s"] = maybe(
        rng,
        {
            "n": maybe(rng, rng.choice(COLUMNS["i64"].values)),
            "price": maybe(rng, rng.choice(COLUMNS["d2"].values)),
            "at": maybe(rng, rng.choice(INSTANTS)),
            "in": maybe(rng, inside),
        },
    )
    for name, keys in MAPS.items():
        values = {"mi": WHOLE, "mw": WORDS, "mp": COLUMNS["d2"].values}[name]
        row[name] = maybe(rng, {key: maybe(rng, rng.choice(values)) for key in (*keys, "other") if rng.random() < 0.7})
    row["items"] = maybe(rng, [maybe(rng, {"n": 1}) for _ in range(rng.randrange(3))])
    chosen = rng.sample(
        rng.choice((["1", "2", "0"], ['"a"', '""', '"b"'], ["0.5", "1.0", f"{BIG}.5"])), rng.randrange(3)
    )
    json_list = f"[{', '.join(chosen)}]"
    inner = f'{{"y": {rng.choice(JSON)}}}' if rng.random() < 0.8 else rng.choice(JSON)
    whole = f'{{"x": {rng.choice((*JSON, "{}"))}, "in": {inner}, "list": {rng.choice((json_list, "1", "null", "{}"))}}}'
    row["json"] = maybe(rng, whole if rng.random() < 0.9 else rng.choice(JSON))
    return row


def as_dict(row: dict[str, Any]) -> dict[str, Any]:
    """The same event as `Matcher.match` takes it."""
    held = json.loads(row["json"], parse_float=Decimal) if row["json"] is not None else None
    return {**{name: value for name, value in row.items() if name != "json"}, "v": held}


def literal(rng: random.Random, name: str) -> str:
    """A value of the column's own, of another kind, or next to one of them."""
    own = COLUMNS[PATHS.get(name, name)].values
    others = (
        *WORDS,
        *WHOLE,
        BIG,
        BIG + 1,
        2**63 - 1,
        -(2**63),
        0.1,
        0.5,
        1.5,
        1e300,
        2.0**63,
        True,
        False,
        *DAYS,
        *INSTANTS,
    )
    value = rng.choice(own if rng.random() < 0.7 else others)
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        value = rng.choice(WORDS)
    if isinstance(value, Decimal):
        value = rng.choice((float(value), int(value) if abs(value) < 2**63 else float(value)))
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime):
        moment = value if value.tzinfo else value.replace(tzinfo=UTC)
        return f"timestamp '{moment.isoformat()}'"
    if isinstance(value, date):
        return f"date '{value}'"
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else repr(value)


def comparison(rng: random.Random, name: str) -> str:
    ordered = next(found for found in iter(lambda: literal(rng, name), "") if found not in ("true", "false"))
    listed = ", ".join(literal(rng, name) for _ in range(rng.randint(1, 4)))
    forms = [f"{name} = {literal(rng, name)}", f"{name} != {literal(rng, name)}", f"{name} in ({listed})"]
    forms += [f"{name} {operator} {ordered}" for operator in ("<", "<=", ">", ">=")]
    forms += [f"{name} not in ('', {listed})", f"{name} not in ({listed})", f"not ({name} < {ordered})"]
    forms += [f"{name} is null", f"{name} is not null", f"{name} between {ordered} and {ordered}", f"not {name}", name]
    forms += [
        f"{name} {negated} '{rng.choice(('a%', '%b', '_', '%', 'a_', '%a%b', ''))}'" for negated in ("like", "not like")
    ]
    if name in WITHOUT_PATTERNS:
        forms = [form for form in forms if " like " not in form]
    if name.strip("`") in MULTI:
        forms += [f"{name} contains {how} ({listed})" for how in ("any", "all", "none")]
    return rng.choice(forms)


def rule(rng: random.Random) -> str:
    names = [name for name in (*COLUMNS, *PATHS, *PATHS) if name != ONLY_LISTS]
    leaves = [comparison(rng, rng.choice(names)) for _ in range(rng.choice((1, 1, 1, 2, 2, 3)))]
    made = leaves[0]
    for leaf in leaves[1:]:
        made = rng.choice(
            (f"{made} and {leaf}", f"{made} or {leaf}", f"not ({made} or {leaf})", f"({made}) and not ({leaf})")
        )
    return made


def drawn_rules() -> list[tuple[str, str]]:
    """Every attribute with every form at least once in a while, and rules that were wrong once."""
    rng = random.Random(17)
    wrong_once = [
        f"{name} not in ('', 'a', 'b')" for name in ("text", "varying", "s.in.word", "mw.k", "v.in.y", "words")
    ]
    wrong_once += [f"{ONLY_LISTS} not in ({listed})" for listed in ("'', 'a', 'b'", "'a', 'b', 2", "'', 'ab', true")]
    wrong_once += [
        "text not in ('a', 'b', 2)",
        "text not in ('a', 'b') and text != true",
        "words contains none ('', 'a', 'b')",
    ]
    wrong_once += [f"day >= {moment}" for moment in ("date '2026-01-31'", "timestamp '2026-01-31 00:00:00.000001Z'")]
    texts = [*wrong_once, *(rule(rng) for _ in range(RULES - len(wrong_once)))]
    return [(f"r{number:04d}", text) for number, text in enumerate(texts)]


class Drawn(NamedTuple):
    rules: list[tuple[str, str]]
    expected: dict[str, dict[int, list[str]]]  # by semantics: event → rules
    folder: str  # the events as Parquet files of Spark
    events: Any  # as a DataFrame


@pytest.fixture(scope="module")
def drawn(session: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Drawn]:
    rng = random.Random(4)
    rows = [event(rng, number) for number in range(EVENTS)]
    rules = drawn_rules()
    dicts = [as_dict(row) for row in rows]
    expected = {}
    for absent in ("fails", "classical"):
        local = eligo.Matcher("scan", absent=absent, multi=MULTI)  # type: ignore[arg-type]
        local.add_many(rules)
        expected[absent] = {number: local.match(one) for number, one in enumerate(dicts)}
        batch = local.match_batch(dicts)
        assert batch.num_rows == sum(map(len, expected[absent].values()))
    place = tmp_path_factory.mktemp("same")
    maps = {"mi": pa.int32(), "mw": pa.string(), "mp": pa.decimal128(10, 2)}
    schema = pa.schema(
        [
            ("id", pa.int64()),
            *((name, column.arrow) for name, column in COLUMNS.items()),
            ("s", STRUCT),
            ("items", pa.list_(ITEM)),
        ]
        + [(name, pa.map_(pa.string(), kind)) for name, kind in maps.items()]
        + [("json", pa.string())]
    )
    whole = [{**row, **{name: row[name] and list(row[name].items()) for name in MAPS}} for row in rows]
    table = pa.Table.from_pylist(whole, schema)
    pq.write_table(table.drop_columns(["nothing"]), place / "first.parquet")
    columns = [f"{name} {column.spark}" for name, column in COLUMNS.items() if name != "nothing"]
    struct = "struct<n: bigint, price: decimal(10,2), at: timestamp, in: struct<word: string, list: array<int>>>"
    columns += [
        f"s {struct}",
        "mi map<string, int>",
        "mw map<string, string>",
        "mp map<string, decimal(10,2)>",
        "items array<struct<n: int>>",
        "v variant",
    ]
    session.conf.set("spark.sql.variant.writeShredding.enabled", "false")
    session.sql(
        f"CREATE TABLE same_as_local (id bigint, {', '.join(columns)}) USING parquet LOCATION '{place / 'events'}'"
    )
    first = session.read.parquet(str(place / "first.parquet")).selectExpr("*", "parse_json(json) AS v").drop("json")
    first.select(session.table("same_as_local").columns).repartition(3).write.insertInto("same_as_local")
    yield Drawn(rules, expected, str(place / "events"), session.table("same_as_local"))
    session.sql("DROP TABLE same_as_local")


@pytest.mark.parametrize(
    ("index", "absent"),
    [("propagation", "fails"), ("scan", "classical"), ("pst-hash", "fails"), ("be-tree", "classical")],
)
def test_every_way_to_match_gives_what_a_local_matcher_gives(
    index: str, absent: Any, session: Any, drawn: Drawn, drained: Any, tmp_path: Path
) -> None:
    path = str(tmp_path / "rules")
    rules = session.createDataFrame(drawn.rules, "id string, expression string")
    done = spark.compile_rules(rules, path, index=index, absent=absent, multi=MULTI, shards=2)
    assert (done.rules, done.rejected) == (len(drawn.rules), 0)
    expected = drawn.expected[absent]
    texts = dict(drawn.rules)

    def check(way: str, found: list[Any]) -> None:
        """Same rules, in the same order; the first difference is named with its rule."""
        answers = {row.id: row.rules for row in found}
        assert answers.keys() == expected.keys(), way
        wrong = [
            (number, name, texts[name], "missing" if name in expected[number] else "too many")
            for number in expected
            for name in sorted({*answers[number]} ^ {*expected[number]})
        ]
        assert not wrong, f"{way}: {len(wrong)} differences, such as {wrong[:5]}"
        assert answers == expected, way

    options: dict[str, Any] = {"keep": ["id"], "output": "array"}
    check("match", spark.match(drawn.events, path, **options).collect())
    check("match_files", spark.match_files(drawn.folder, path, session=session, **options).collect())
    spark.register(session)
    call = f"eligo_match(TABLE(same_as_local), '{path}', keep => 'id', output => 'array')"
    check("eligo_match", session.sql(f"SELECT * FROM {call}").collect())
    check(
        "eligo_rules", session.sql(f"SELECT id, eligo_rules('{path}', struct(*)) AS rules FROM same_as_local").collect()
    )
    stream = session.readStream.schema(drawn.events.schema).parquet(drawn.folder)
    check("stream", [row for batch in drained(spark.match(stream, path, **options)) for row in batch])


def test_columns_of_char_and_varchar_types(session: Any, snapshot: Any) -> None:
    """With this setting a DataFrame has these types, where else it has strings."""
    _, path = snapshot([("c", "c = 'a  '"), ("v", "v like 'b%'")])
    session.conf.set("spark.sql.preserveCharVarcharTypeInfo", "true")
    try:
        events = session.sql("SELECT 1 AS id, cast('a' AS char(3)) AS c, cast('b' AS varchar(5)) AS v")
        assert [row.rule for row in spark.match(events, path, keep=["id"]).collect()] == ["c", "v"]
    finally:
        session.conf.unset("spark.sql.preserveCharVarcharTypeInfo")
