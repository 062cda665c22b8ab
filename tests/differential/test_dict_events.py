"""Events as dicts: what the kernel reads is what the encoder says, for whatever values and keys."""

from __future__ import annotations

import gc
import math
import random
import subprocess
import sys
import threading
from collections import OrderedDict, UserDict, defaultdict
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum, IntEnum
from types import MappingProxyType
from typing import Any

import msgspec
import numpy as np
import pytest

import eligo
from eligo.compile import dict_events
from eligo.compile.dict_events import encode_event, encode_events
from eligo.compile.encode import Encoder
from eligo.compile.events import EventBuffer
from eligo.errors import EventError
from eligo.segments import live
from odd_values import Rude

RULES = (
    "a = 1 and b in ('x', 'y', 'ä\u00df', '😀')",
    "a between 2 and 5 or `a.b` < 0.5 and not (s = 'x' or flag)",
    "a.b.c >= 3 and f > 1.5",
    "s like 'ab%'",
    "s like '%b_c' or deep.er like 'x%y'",
    "s >= 'm' and a is not null",
    "flag = true and missing is null",
    "many contains any ('p', 'q', '\u20ac') and not many contains all ('p', 'r')",
    "numbers contains none (1, 2) or texts contains any ('aa') and texts like 'b%'",
    "`é` = 'tab\t' or `a..b` = 1 or `.lead` = 2 or `trail.` = 3",
    "a_name_that_is_longer_than_eight_bytes = 1 or a_name_that_is_longer_than_eight_bytez = 2",
    "t >= date '2026-01-01'",
    "true",
)
EVER = 10**9  # events waited for: the kernel reads the next one


class Other(dict[Any, Any]):
    """A dict whose items are others than it has."""

    def items(self) -> Any:
        return {"b": 7, "er": "xy"}.items()


class Name(str):
    """A key that is equal to others and is no plain text."""

    __slots__ = ()


class Colour(str, Enum):  # noqa: UP042
    RED = "x"


class Level(IntEnum):
    ONE = 1


NAMES = (
    "a", "b", "a.b", "a.b.c", "c", "s", "f", "flag", "missing", "many", "numbers", "texts", "deep", "er", "deep.er", "é",
    "a..b", ".lead", "trail.", "", "lead", "trail", ".b", "unknown", "x" * 40, "b.c", "\t", "t",
    "a_name_that_is_longer_than_eight_bytes", "a_name_that_is_longer_than_eight_bytez",
)  # fmt: skip
KEYS: tuple[Any, ...] = (
    1,
    None,
    2.5,
    True,
    (1, 2),
    b"a",
    Name("a"),
    Name("deep"),
    np.str_("s"),
    "\ud800",
    "a\udc00",
    object(),
)
VALUES: tuple[Any, ...] = (
    0, 1, -1, 5, 2**62, 2**63 - 1, -(2**63), 2**63, -(2**63) - 1, 10**40, True, False, None, 0.0, -0.0, 0.5, 2.5, 1e308,
    math.nan, math.inf, -math.inf, 5.0, 2.0**63, 5e-324, "", "x", "y", "ä\u00df", "😀", "abc", "azbzc", "xy", "m", "p", "\u20ac",
    "tab\t", "\x00", "a\x00b", "é" * 40, "日本語" * 9, "z" * 300, "\ud800", "x\udfff", "\U0010ffff", b"x", bytearray(b"x"),
    Colour.RED, Level.ONE, Name("x"), np.str_("xy"), np.int8(5), np.int64(-(2**63)), np.uint64(2**64 - 1), np.float32(2.5),
    np.float64("nan"), np.bool_(True), np.datetime64("2026-01-31"), np.datetime64("NaT"), np.timedelta64(1, "s"), np.array(5),
    np.array([1, 2]), np.array([]), np.array([[1]]), Decimal("5.00"), Decimal("0.1"), Decimal("nan"), Decimal("1e400"),
    date(2026, 1, 31), datetime(2026, 1, 31, 12, tzinfo=UTC), datetime(2026, 1, 31), timedelta(1), 1j, object, len,
    eligo.Between(1, 3), eligo.Below(0.4), eligo.OneOf("x", 1), eligo.NoneOf("x"), Rude(), {1, "p"}, frozenset(), range(3),
)  # fmt: skip


class Events:
    """Draws dicts: usual ones, and some with keys, values or containers that are none of the usual."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.odd = 0.0

    def value(self, depth: int) -> Any:
        kind = self.random.random()
        if kind < 0.5:
            return self.random.choice(VALUES if self.random.random() < self.odd else VALUES[:8] + VALUES[10:41])
        if kind < 0.65:
            return self.random.choice((1, 2, 3, "x", "p", True, 1.5))
        if depth > 4:
            return {}
        if kind < 0.8:
            made = [self.value(depth + 2) for _ in range(self.random.choice((0, 1, 2, 5, 70)))]
            return made if self.random.random() < 0.7 else tuple(made)
        return self.container(depth + 1)

    def container(self, depth: int) -> Any:
        made = self.plain(depth)
        if self.random.random() < self.odd:
            return self.random.choice(
                (Other(made), OrderedDict(made), MappingProxyType(made), UserDict(made), defaultdict(int, made))
            )
        return made

    def plain(self, depth: int = 0) -> dict[Any, Any]:
        names: list[Any] = self.random.choices(NAMES, k=self.random.choice((0, 1, 2, 4, 8, 16)))
        if self.random.random() < self.odd:
            names.append(self.random.choice(KEYS))
        lists = ("many", "numbers", "texts")
        made = {}
        for name in names:
            made[name] = self.value(depth)
            while isinstance(made[name], list | tuple) and name not in lists and self.random.random() < 0.9:
                made[name] = self.value(depth)
        return made

    def event(self) -> Any:
        self.odd = self.random.choice((0.0, 0.0, 0.05, 0.3))
        return self.container(0)


def matcher(index: str = "auto") -> eligo.Matcher:
    made = eligo.Matcher(index, multi=["numbers", "texts"])
    made.add_many([(f"rule {n}", text) for n, text in enumerate(RULES[:6])])
    for n, text in enumerate(RULES[6:], 6):
        made.add(f"rule {n}", text)
    return made


def encoder_of(made: eligo.Matcher) -> Encoder:
    view: Any = made.engine.rules.view
    found: Encoder = view.encoder
    return found


def text_at(buffer: EventBuffer, row: int) -> tuple[int, bytes]:
    return int(buffer.text_number[row]), buffer.text[buffer.text_low[row] : buffer.text_high[row]].tobytes()


def entries(buffer: EventBuffer, event: int = 0) -> list[Any]:
    """What the buffer has of its event, texts and ranges spelled out, in the order of attributes and then as it came."""
    found: list[Any] = []
    for n in range(int(buffer.offsets[event]), int(buffer.offsets[event + 1])):
        meta, key = int(buffer.meta[n]), int(buffer.key[n])
        told: Any = key
        if meta & 255 == 14:
            told = text_at(buffer, key)
        elif meta & 255 == 33:
            runs = buffer.range_runs[buffer.range_offsets[key] : buffer.range_offsets[key + 1]].tolist()
            told = [
                [(text_at(buffer, cut[1] // 2), cut[1] % 2) if cut[0] == 13 else cut for cut in (run[:3], run[3:])]
                for run in runs
            ]
        found.append((meta >> 8, meta & 255, told))
    attributes = [attribute for attribute, *_ in found]
    together = [a for n, a in enumerate(attributes) if n == 0 or attributes[n - 1] != a]
    assert len(together) == len(set(together)), "entries of one attribute stand next to each other"
    assert buffer.widest >= len(found)
    assert buffer.count == buffer.offsets[buffer.events]
    return sorted(found, key=lambda entry: entry[0])


def outcome(encode: Any, encoder: Encoder, event: Any, buffer: EventBuffer) -> Any:
    buffer.clear()
    try:
        encode(encoder, event, buffer)
    except EventError as error:
        return str(error)
    return entries(buffer)


def both(encoder: Encoder, event: Any, buffer: EventBuffer) -> Any:
    """What the encoder says, which the kernel has to say too."""
    said = outcome(Encoder.encode, encoder, event, EventBuffer())
    buffer.waited = EVER
    assert outcome(encode_event, encoder, event, buffer) == said, event
    return said


@pytest.mark.parametrize("oddity", [0.0, 0.02, 0.3])
def test_lists_are_read_as_their_events_are(oddity: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dict_events, "_FEW", 0)
    monkeypatch.setattr(dict_events, "_loaded", True)
    encoder, events = encoder_of(matcher()), Events(5)
    for size in [*range(8), 20, 100] * 20:
        events.odd = oddity
        some = [events.container(0) for _ in range(size)]
        said = [outcome(Encoder.encode, encoder, event, EventBuffer()) for event in some]
        wrong = next((i for i, each in enumerate(said) if isinstance(each, str)), None)
        buffer = EventBuffer(1, 4)
        if wrong is not None:
            with pytest.raises(EventError) as error:
                encode_events(encoder, some, buffer, 1000)
            assert str(error.value) == f"event {1000 + wrong}: {said[wrong]}"
            some, buffer = some[:wrong], EventBuffer(1, 4)
        encode_events(encoder, some, buffer, 0)
        assert buffer.events == len(some)
        assert [entries(buffer, i) for i in range(len(some))] == said[: len(some)]


@pytest.mark.parametrize("seed", range(4))
def test_entries_are_those_of_the_encoder(seed: int) -> None:
    encoder, events, buffer = encoder_of(matcher()), Events(seed), EventBuffer(1, 4)
    said = [both(encoder, events.event(), buffer) for _ in range(2500)]
    refused = sum(isinstance(one, str) for one in said)
    assert 100 < refused < 2000


def test_most_events_are_read_by_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    encoder, buffer, slow = encoder_of(matcher()), EventBuffer(), 0

    def encode(self: Encoder, event: Any, buffer: EventBuffer, flat: bool = False) -> None:
        nonlocal slow
        slow += 1
        whole(self, event, buffer, flat)

    whole = Encoder.encode
    monkeypatch.setattr(Encoder, "encode", encode)
    for event in (
        {"a": 1, "b": "x", "f": 2.5, "flag": True, "unknown": object(), "missing": None},
        {"a": {"b": {"c": 3}}, "deep": {"er": "xy", "unknown": [1, {2: 3}]}, "many": ["p", 1, None], "numbers": (1, 2)},
        {"t": datetime(2026, 1, 31, 12, tzinfo=UTC), "a": np.int64(5), "s": "text"},
    ):
        buffer.clear()
        buffer.waited = EVER
        encode_event(encoder, event, buffer)
    assert slow == 0
    buffer.clear()
    encode_event(encoder, Other(a=1), buffer)
    assert slow == 1


@pytest.mark.parametrize("name", ["a", "b", "s", "many", "texts", "numbers", "t", "unknown", "deep", "deep.er"])
def test_every_value_of_every_kind_of_attribute(name: str) -> None:
    encoder, buffer = encoder_of(matcher()), EventBuffer()
    for value in VALUES:
        for event in (
            {name: value},
            {name: [value, 1]},
            {name: (value,)},
            {"b": "x", name: value, "f": 2},
            {name: {"er": value}},
        ):
            both(encoder, event, buffer)


@pytest.mark.parametrize("key", KEYS, ids=map(repr, range(len(KEYS))))
def test_keys_that_are_no_plain_texts(key: Any) -> None:
    encoder, buffer = encoder_of(matcher()), EventBuffer()
    for value in (1, "xy", {"er": "xy", key: 1}, None):
        both(encoder, {key: value}, buffer)
        both(encoder, {"b": "x", key: value, "a": 1}, buffer)
        both(encoder, {"deep": {key: value, "er": "xy"}}, buffer)


@pytest.mark.parametrize(
    "event",
    [
        {"a.b": 1, "a": {"b": 2}}, {"a": {"b": 2}, "a.b": 1}, {"a.b": None, "a": {"b": 2}}, {"a": {"b": math.nan}, "a.b": 1},
        {"a": {"b.c": 1, "b": {"c": 1}}}, {"a": {"b.c": 1}}, {"a.b": {"c": 1}}, {"a.b": {"c": 1}, "a": {"b": {"x": 1}}},
        {"deep.er": "xy", "deep": {}}, {"deep": {"er": {"er": 1}}}, {"": 1, ".lead": 2}, {"": {"lead": 2}}, {"trail": {"": 3}},
    ],
)  # fmt: skip
def test_names_that_are_given_along_several_paths(event: dict[str, Any]) -> None:
    both(encoder_of(matcher()), event, EventBuffer())


def test_dicts_that_hold_themselves_and_deep_names() -> None:
    made = eligo.Matcher()
    made.add("deep", f"{'.'.join(['x'] * 100)} = 1 and {'.'.join(['x'] * 60)} is not null")
    encoder, buffer = encoder_of(made), EventBuffer()
    for depth in (1, 59, 60, 63, 64, 65, 99, 100, 101):
        event: Any = 1
        for _ in range(depth):
            event = {"x": event}
        both(encoder, event, buffer)
    circle: dict[str, Any] = {}
    circle["x"] = circle
    both(encoder, circle, buffer)
    endless: list[Any] = []
    endless.append(endless)
    both(encoder_of(matcher()), {"many": endless}, buffer)


def test_long_events_find_room() -> None:
    encoder, buffer = encoder_of(matcher()), EventBuffer(1, 4)
    for event in (
        {"many": ["p"] * 5000, "numbers": list(range(3000)), "s": "y" * 100_000},
        {"texts": ["bäh" * 50] * 3000, "s": "ab" * 10_000, "deep.er": "x" * 70},
        {"many": [np.int8(1)] * 500, "numbers": np.arange(700)},
    ):
        for _ in range(30):
            both(encoder, event, buffer)


def test_nothing_is_kept_of_events_and_nothing_is_lost() -> None:
    encoder, events, buffer = encoder_of(matcher()), Events(9), EventBuffer()
    some = [events.event() for _ in range(200)]
    values = [value for event in some for value in event.values()] + list(VALUES)
    for event in some:
        both(encoder, event, buffer)
    gc.collect()
    values = [value for value in values if sys.getrefcount(value) < 1000]  # None is everywhere
    before = [sys.getrefcount(value) for value in values]
    for event in some:
        buffer.waited = EVER
        outcome(encode_event, encoder, event, buffer)
    assert not buffer.dicts.left
    assert [sys.getrefcount(value) for value in values] == before


def test_values_left_by_a_reader_that_was_stopped_do_not_count() -> None:
    encoder, buffer = encoder_of(matcher()), EventBuffer()
    both(encoder, {"a": 1}, buffer)
    buffer.dicts.left.append("left")
    both(encoder, {"a": 1, "t": date(2026, 1, 31)}, buffer)
    both(encoder, {"t": date(2026, 1, 31)}, buffer)


def test_a_program_of_few_events_does_not_load_the_kernel() -> None:
    program = """
import sys, eligo
m = eligo.Matcher()
m.add(1, "a = 1")
for n in range(900):
    m.match({"a": n})
assert "eligo.compile.dict_kernels" not in sys.modules
for n in range(200):
    m.match({"a": n})
assert "eligo.compile.dict_kernels" in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize("index", ["auto", "pst-hash", "be-tree"])
def test_matches_follow_the_rules_while_these_change(index: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dict_events, "_FEW", 0)
    monkeypatch.setattr(dict_events, "_loaded", True)
    made, events = matcher(index), Events(3)

    def matched(event: Any) -> Any:
        try:
            return made.match(event)
        except EventError as error:
            return str(error)

    for number in range(400):
        event = events.event()
        if number % 5 == 0:
            made.add(f"more {number}", f"fresh{number % 100} = 'new{number}' or unknown = {number}")
        if number % 50 == 49:
            made.remove(f"more {number - 9}")
        given = {**event, f"fresh{number // 5 * 5 % 100}": f"new{number // 5 * 5}"} if type(event) is dict else event
        fast = matched(given)
        with monkeypatch.context() as patched:
            patched.setattr(dict_events, "_FEW", EVER)
            made._buffer().dicts = None
            assert matched(given) == fast


def test_few_rules_are_matched_in_one_call_as_in_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dict_events, "_FEW", 0)
    monkeypatch.setattr(dict_events, "_loaded", True)
    monkeypatch.setattr(live, "_loaded", True)
    several = ["many", "numbers", "texts"]
    made, steps, events = eligo.Matcher(multi=several), eligo.Matcher(multi=several), Events(5)
    for n, text in enumerate(RULES):
        made.add(f"rule {n}", text)
    steps.add_many([(f"rule {n}", text) for n, text in enumerate(RULES)])

    def matched(match: Any, event: Any, limit: int | None) -> Any:
        try:
            return match(event, limit=limit)
        except EventError as error:
            return str(error)

    called = 0
    for number in range(2000):
        event, limit = events.event(), number % 3 or None
        if number % 100 == 50:
            for one in (made, steps):
                one.add(f"more {number // 100 % 5}", f"fresh{number} = 'new' or unknown = {number}", replace=True)
                one.discard(f"more {number // 200 % 5}")
        assert matched(made.match, event, limit) == matched(steps.match, event, limit), event
        try:
            raw = msgspec.json.encode(event)
        except (TypeError, ValueError, OverflowError, RecursionError):
            continue
        assert matched(made.match_json, raw, limit) == matched(steps.match_json, raw, limit), raw
        buffer = made._buffer()
        called += buffer.dicts is not None and buffer.dicts.call is not None and buffer.json.call is not None
    assert called > 500
    many = {"many": ["p"] * 5000, "numbers": list(range(3000)), "a": 1}
    for _ in range(5):
        assert made.match(many) == steps.match(many) == made.match_json(msgspec.json.encode(many))


def test_threads_read_events_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dict_events, "_loaded", True)
    made, wrong = matcher(), []
    given = [{"a": n, "b": "xy"[n % 2], "t": date(2026, 1, 1 + n % 20), "deep": {"er": "xy"}} for n in range(50)]
    expected = [made.match(event) for event in given]

    def work() -> None:
        for _ in range(40):
            wrong.extend(1 for event, ids in zip(given, expected, strict=True) if made.match(event) != ids)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
