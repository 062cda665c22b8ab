"""Events as JSON: what kernels read is what a decoder and the encoder of dicts say, for whatever bytes."""

from __future__ import annotations

import io
import json
import math
import random
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import eligo
from eligo.compile.encode import Encoder
from eligo.compile.events import EventBuffer
from eligo.compile.json_events import encode_json, encode_json_batch
from eligo.compile.json_numbers import UNSURE, float_bits
from eligo.compile.json_texts import decoded_event
from eligo.compile.ndjson import json_blocks, split
from eligo.errors import EventError

RULES = (
    "a = 1 and b in ('x', 'y', 'ä\u00df', '😀')",
    "a between 2 and 5 or `a.b` < 0.5 and not (s = 'x' or flag)",
    "a.b.c >= 3 and f > 1.5",
    "s like 'ab%'",
    "s like '%b_c' or deep.er like 'x%y'",
    "s >= 'm' and a is not null",
    "flag = true and missing is null",
    "many contains any ('p', 'q', '\u20ac') and not many contains all ('p', 'r')",
    "numbers contains none (1, 2)",
    "words contains any ('aa', 'bb')",
    "`é` = 'tab\t' or `a..b` = 1 or `.lead` = 2 or `trail.` = 3",
    "a_name_that_is_longer_than_eight_bytes = 1 or a_name_that_is_longer_than_eight_bytez = 2",
    "true",
)
NAMES = (
    "a", "b", "a.b", "a.b.c", "c", "s", "f", "flag", "missing", "many", "numbers", "words", "deep", "er", "deep.er", "é",
    "a..b", ".lead", "trail.", "", "lead", "trail", ".b", "unknown", "x" * 40, "b.c", "\t",
    "a_name_that_is_longer_than_eight_bytes", "a_name_that_is_longer_than_eight_bytez",
    "a_name_that_is_longer_than_eight_byte", "user", "name",
)  # fmt: skip
STRINGS = (
    "", "x", "y", "ä\u00df", "😀", "abc", "azbzc", "xy", "x  y", "m", "n", "p", "q", "r", "\u20ac", "aa", "bb", "tab\t",
    '"', "\\", "/", "\b\f\n\r\t", "\x00", "\x7f", "\x1f", "a" * 31, "b" * 32, "c" * 33, "é" * 40, "日本語" * 9, "\uffff",
    "\ud7ff\ue000", "\U0010ffff", "x" * 300,
)  # fmt: skip
NUMBERS = (
    "0", "-0", "1", "-1", "5", "1.0", "10e2", "1E5", "1e+5", "1e-5", "0.5", "-0.0", "0.25", "1.5", "123456789012345678",
    "9223372036854775807", "-9223372036854775807", "-9223372036854775808", "9223372036854775808", "18446744073709551615",
    "18446744073709551616", "1" * 40, "1e400", "-1e400", "1e-400", "1e308", "1.7976931348623157e308", "4.9e-324", "0e999",
    "0.0e-99999", "2.2250738585072014e-308", "0.30000000000000004", "0.1234567890123456789", "8.98846567431158e307", "1e22",
    "1e23", "9007199254740993.0", "9007199254740993e1", "5e-324", "123456789012345678901234567890.5", "1" * 5000,
    "0." + "0" * 500 + "1", "1e00000000000001", "3.14159", "-17.25", "100000000000000000000", "1.8014398509481985e16",
    "9223372036854775808.0", "0.1", "179769313486231580793e289",
)  # fmt: skip
BROKEN = (
    "01", "-", "1.", ".5", "1e", "+1", "NaN", "Infinity", "-Infinity", "nul", "tru", "falsey", "'x'", '"', '"\\x"', '"\\u12"',
    '"\\ud800"', '"\\udc00"', '"\\ud800\\u0041"', '"\\ud800x"', '"\t"', "undefined", "", "0x1", "1_000", "--1", '"\\', "00",
)  # fmt: skip


class Texts:
    """Draws JSON texts: good ones with odd spacing, escapes and names given twice, and some that are broken."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.broken = 0.0

    def blanks(self) -> str:
        if self.random.random() < 0.85:
            return ""
        return "".join(self.random.choices(" \t\n\r", k=self.random.choice((1, 1, 1, 3, 40))))

    def string(self, text: str) -> str:
        style = self.random.random()
        if style < 0.4:
            return json.dumps(text, ensure_ascii=False)
        if style < 0.7:
            return json.dumps(text)
        out = []
        for character in text:
            units = character.encode("utf-16-be")
            if self.random.random() < 0.3:
                digits = units.hex().upper() if self.random.random() < 0.5 else units.hex()
                out += ["\\u" + digits[i : i + 4] for i in range(0, len(digits), 4)]
            elif character == "/":
                out.append("\\/")
            else:
                out.append(json.dumps(character, ensure_ascii=False)[1:-1])
        return '"' + "".join(out) + '"'

    def value(self, depth: int) -> str:
        kind = self.random.random()
        if self.random.random() < self.broken:
            return self.random.choice(BROKEN)
        if kind < 0.3:
            return self.string(self.random.choice(STRINGS))
        if kind < 0.55:
            return self.number()
        if kind < 0.7:
            return self.random.choice(("true", "false", "null"))
        if depth > 4:
            return self.random.choice(("{}", "[]", "0"))
        if kind < 0.83:
            items = [
                self.blanks() + self.value(depth + 1) + self.blanks() for _ in range(self.random.choice((0, 1, 2, 5)))
            ]
            return "[" + (",".join(items) or self.blanks()) + "]"
        return self.object(depth + 1)

    def number(self) -> str:
        kind = self.random.random()
        if kind < 0.4:
            return str(self.random.choice((0, 1, 2, 3, 5, 100, -7)))
        if kind < 0.6:
            return self.random.choice(NUMBERS)
        if kind < 0.7:
            return repr(self.random.uniform(-2, 2) * 10 ** self.random.randint(-320, 307))
        if kind < 0.8:
            return repr(self.random.random())
        digits = str(self.random.getrandbits(self.random.choice((4, 20, 53, 54, 63, 64, 70))))
        fraction = f".{self.random.getrandbits(self.random.choice((1, 10, 30, 60)))}" * self.random.randint(0, 1)
        return f"{digits}{fraction}e{self.random.randint(-40, 40)}" if self.random.random() < 0.5 else digits + fraction

    def object(self, depth: int = 0) -> str:
        names = self.random.choices(NAMES, k=self.random.choice((0, 1, 2, 4, 8)))
        if self.random.random() < 0.8:
            names = list(dict.fromkeys(names))
        members = [
            f"{self.blanks()}{self.string(name)}{self.blanks()}:{self.blanks()}{self.value(depth)}{self.blanks()}"
            for name in names
        ]
        return "{" + (",".join(members) or self.blanks()) + "}"

    def text(self) -> bytes:
        """A text; one in three with something broken in it, in the way of JSON or of bytes."""
        fate = self.random.random()
        self.broken = 0.15 if fate < 0.1 else 0.0
        raw = bytearray((self.blanks() + self.object() + self.blanks()).encode())
        if 0.1 < fate < 0.2:
            for _ in range(self.random.choice((1, 1, 2, 5))):
                at = self.random.randrange(len(raw))
                raw[at] = self.random.choice((self.random.randrange(256), *b'{}[]",:\\ \x00\x80\xc0\xff0e.-'))
        elif fate < 0.25 and fate > 0.1:
            del raw[self.random.randrange(len(raw)) :]
        elif fate < 0.3 and fate > 0.1:
            at = self.random.randrange(len(raw) + 1)
            raw[at:at] = self.random.choice(
                (b",", b"}", b"]", b"x", b"\xef\xbb\xbf", b"\xc3", b"\xed\xa0\x80", b"\xf4\x90\x80\x80")
            )
        return bytes(raw)


def matcher(index: str = "auto", absent: Any = "fails") -> eligo.Matcher:
    made = eligo.Matcher(index, absent=absent, multi=["numbers", "words"])
    made.add_many([(f"rule {n}", text, 1.0, ("even",) if n % 2 == 0 else ()) for n, text in enumerate(RULES[:6])])
    for n, text in enumerate(RULES[6:], 6):
        made.add(f"rule {n}", text, tags=("even",) if n % 2 == 0 else ())
    return made


def encoder_of(made: eligo.Matcher) -> Encoder:
    view: Any = made.engine.rules.view
    found: Encoder = view.encoder
    return found


def entries(buffer: EventBuffer, event: int = 0) -> list[Any]:
    """What the buffer has of an event, strings with their bytes, in the order of attributes and then as it came."""
    found = []
    for n in range(int(buffer.offsets[event]), int(buffer.offsets[event + 1])):
        meta, key = int(buffer.meta[n]), int(buffer.key[n])
        text = b""
        if meta & 255 == 14:
            text = buffer.text[buffer.text_low[key] : buffer.text_high[key]].tobytes()
            key = int(buffer.text_number[key])
        found.append((meta >> 8, meta & 255, key, text))
    attributes = [attribute for attribute, *_ in found]
    together = [a for n, a in enumerate(attributes) if n == 0 or attributes[n - 1] != a]
    assert len(together) == len(set(together)), "entries of one attribute stand next to each other"
    return sorted(found, key=lambda entry: entry[0])


def by_dict(encoder: Encoder, raw: bytes) -> Any:
    buffer = EventBuffer()
    try:
        encoder.encode(decoded_event(raw), buffer)
    except EventError as error:
        return str(error)
    return entries(buffer)


@pytest.mark.parametrize("seed", range(4))
def test_entries_are_those_of_the_decoded_event(seed: int) -> None:
    encoder, texts, buffer = encoder_of(matcher()), Texts(seed), EventBuffer(1, 4)
    refused = 0
    for _ in range(2500):
        raw = texts.text()
        buffer.clear()
        try:
            encode_json(encoder, raw, buffer)
            found: Any = entries(buffer)
            assert buffer.widest >= len(found) == buffer.count
            assert buffer.events == 1
        except EventError as error:
            found = str(error)
            refused += 1
        assert found == by_dict(encoder, raw), raw
    assert 100 < refused < 2000


@pytest.mark.parametrize("number", [*NUMBERS, *BROKEN])
@pytest.mark.parametrize("name", ["a", "unknown", "many"])
def test_every_number_and_broken_word(number: str, name: str) -> None:
    encoder, buffer = encoder_of(matcher()), EventBuffer()
    for text in (f'{{"{name}":{number}}}', f'{{"{name}":[{number}, 1]}}', f'{{"b":"x", "{name}" : {number} , "f":2}}'):
        buffer.clear()
        try:
            encode_json(encoder, text.encode(), buffer)
            found: Any = entries(buffer)
        except EventError as error:
            found = str(error)
        assert found == by_dict(encoder, text.encode()), text


def test_every_pair_of_bytes_in_a_string() -> None:
    encoder, buffer = encoder_of(matcher()), EventBuffer()
    for first in range(256):
        for second in (*range(0, 256, 5), 0x22, 0x5C, 0x75, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0):
            for name in (b"b", b"unknown"):
                raw = b'{"%s":"..%c%c\x80.."}' % (name, first, second)
                buffer.clear()
                try:
                    encode_json(encoder, raw, buffer)
                    found: Any = entries(buffer)
                except EventError as error:
                    found = str(error)
                assert found == by_dict(encoder, raw), raw


def test_texts_cut_at_every_byte() -> None:
    encoder, buffer = encoder_of(matcher()), EventBuffer()
    whole = '{"a":1,"b":"x","deep":{"er":"xéy"},"many":["p",1.5e3,null,{}],"s":"\\u00e4\\ud83d\\ude00","flag":true}'.encode()
    for end in range(len(whole) + 1):
        buffer.clear()
        try:
            encode_json(encoder, whole[:end], buffer)
            found: Any = entries(buffer)
        except EventError as error:
            found = str(error)
        assert found == by_dict(encoder, whole[:end]), whole[:end]


@pytest.mark.parametrize("depth", [10, 62, 63, 64, 65, 66, 200, 5000])
@pytest.mark.parametrize("opening", ["[", '{"a":', '{"z":'])
def test_deep_texts(depth: int, opening: str) -> None:
    encoder, buffer = encoder_of(matcher()), EventBuffer()
    raw = ('{"b":"x","q":' + opening * depth + "1" + ("]" if opening == "[" else "}") * depth + "}").encode()
    try:
        encode_json(encoder, raw, buffer)
        found: Any = entries(buffer)
    except EventError as error:
        found = str(error)
    assert found == by_dict(encoder, raw)


def test_long_lists_and_texts_find_room() -> None:
    encoder, buffer = encoder_of(matcher()), EventBuffer(1, 4)
    for raw in (
        json.dumps({"many": ["p"] * 5000, "numbers": list(range(3000)), "s": "y" * 100_000}).encode(),
        json.dumps({"words": ["\\\n" * 50] * 3000, "s": "\n" * 10_000, "deep.er": "x" * 70}).encode(),
        json.dumps({"\n" * 4000: 1, "deep": {"e\\u0072": 1}}).encode(),
    ):
        buffer.clear()
        encode_json(encoder, raw, buffer)
        assert entries(buffer) == by_dict(encoder, raw)


@pytest.mark.parametrize("seed", range(3))
def test_batches_are_the_events_one_by_one(seed: int) -> None:
    encoder, texts = encoder_of(matcher()), Texts(100 + seed)
    raws = [raw for raw in (texts.text().replace(b"\n", b" ").replace(b"\r", b" ") for _ in range(1500)) if raw.strip()]
    good = [raw for raw in raws if not isinstance(by_dict(encoder, raw), str)]
    assert len(good) > 500
    for batch in (next(iter(json_blocks(b"\n".join(good)))), next(iter(json_blocks(pa.array(good, pa.binary()))))):
        buffer = EventBuffer(1, 4)
        encode_json_batch(batch, encoder, buffer, 0)
        assert buffer.events == len(good)
        for number, raw in enumerate(good):
            assert entries(buffer, number) == by_dict(encoder, raw), raw
        assert buffer.widest >= max(len(entries(buffer, number)) for number in range(len(good)))


@pytest.mark.parametrize("absent", ["fails", "classical"])
@pytest.mark.parametrize("index", ["auto", "pst-hash", "be-tree"])
def test_matches_are_those_of_the_decoded_event(index: str, absent: str) -> None:
    made, texts = matcher(index, absent), Texts(7)

    def outcome(match: Any, event: Any, **given: Any) -> Any:
        try:
            return match(event, **given)
        except EventError as error:
            return type(error), str(error)

    def decoded(raw: bytes, **given: Any) -> Any:
        return made.match(decoded_event(raw), **given)

    raws = [texts.text().replace(b"\n", b" ").replace(b"\r", b" ") for _ in range(1200)]
    raws = [raw for raw in raws if raw.strip()]
    for number, raw in enumerate(raws):
        given = ({}, {"tags": ["even"]}, {"limit": 2}, {"limit": 0}, {"tags": ["even"], "limit": 1})[number % 5]
        assert outcome(made.match_json, raw, **given) == outcome(decoded, raw, **given), raw
        if number % 50 == 0:
            assert outcome(made.match_json, bytearray(raw)) == outcome(decoded, raw)
            made.add(f"more {number}", f"fresh{number % 100} = 'new{number}' or unknown = {number}")
    for given in ({}, {"tags": ["even"]}, {"limit": 2}):
        pairs, rejects = [], []
        for number, raw in enumerate(raws):
            found = outcome(decoded, raw, **given)
            if isinstance(found, tuple):
                rejects.append((number, found[1]))
            else:
                pairs += [(number, rule) for rule in found]
        table, refused = made.match_ndjson(b"\n\n".join(raws), on_error="collect", **given)
        assert list(zip(*table.to_pydict().values(), strict=True)) == pairs
        found_rejects = [(reject.row, reject.message) for reject in refused]
        # A line keeps its newline, which a string that does not end runs into instead of the end.
        assert [row for row, _ in found_rejects] == [row for row, _ in rejects]
        column, refused = made.match_ndjson(pa.array(raws, pa.binary()), on_error="collect", **given)
        assert column == table
        assert [(reject.row, reject.message) for reject in refused] == rejects
        number, message = rejects[0]
        with pytest.raises(EventError) as error:
            made.match_ndjson(pa.array(raws, pa.large_binary()), **given)
        assert str(error.value) == f"event {number}: {message}"


def test_rules_that_ask_about_documents() -> None:
    made = eligo.Matcher(documents=eligo.Documents())
    made.add("dearer", "exists d (price > d.price)")
    made.add("new", "not exists d (author = d.author) and a.b = 1")
    made.publish({"price": 3, "author": "x"})
    events = [{"price": 4, "author": "x"}, {"price": 1, "a": {"b": 1}, "author": "y"}, {"price": [1]}]
    raws = [json.dumps(event).encode() for event in events]
    assert (
        [made.match_json(raw) for raw in raws[:2]]
        == [made.match(event) for event in events[:2]]
        == [["dearer"], ["new"]]
    )
    wanted, refused = made.match_batch(events, on_error="collect")
    assert made.match_ndjson(b"\n".join(raws), on_error="collect") == (wanted, refused)


def test_broken_texts_beside_values_that_cannot_be_compared_with_documents() -> None:
    documents = eligo.Documents()
    documents.add_many([{"x": 1}, {"x": 5}])
    matcher = eligo.Matcher(documents=documents)
    matcher.add_many([("some", "exists d (x = d.x)"), ("none", "not exists d (x > d.x)"), ("y", "y = 1")])
    texts = ['{"x": 1, "y": 1}', f'{{"x": {2**70}}}', "{broken", '{"x": 5}', "null", '{"x": [[1]]}', '{"y": 1}']
    found, rejects = matcher.match_ndjson("\n".join(texts).encode(), on_error="collect")
    expected, refused = [], []
    for number, text in enumerate(texts):
        try:
            expected += [(number, rule) for rule in matcher.match_json(text)]
        except EventError as error:
            refused.append((number, str(error)))
    assert list(zip(*found.to_pydict().values(), strict=True)) == expected
    assert [(reject.row, reject.message) for reject in rejects] == refused
    assert [number for number, _ in refused] == [1, 2, 4, 5]


def test_sources_of_lines(tmp_path: Path) -> None:
    made = matcher()
    lines = [b'{"a":1,"b":"x"}', b"", b" \t\x0b\x0c\r", b'{"a":3}\r', b'{"b":"y","a":1}']
    for given in (b"\n".join(lines), b"\xef\xbb\xbf" + b"\n".join(lines) + b"\n"):
        path = tmp_path / "events.ndjson"
        path.write_bytes(given)
        wanted = made.match_ndjson(given)
        assert wanted == made.match_batch([{"a": 1, "b": "x"}, {"a": 3}, {"b": "y", "a": 1}])
        for source in (bytearray(given), memoryview(given), path, str(path), io.BytesIO(given)):
            assert made.match_ndjson(source) == wanted
    column = pa.chunked_array([['{"a":1,"b":"x"}'], [], ['{"a":3}', '{"b":"y","a":1}']])
    for kind in (
        pa.string(),
        pa.large_string(),
        pa.binary(),
        pa.large_binary(),
        pa.dictionary(pa.int32(), pa.string()),
    ):
        assert made.match_ndjson(column.cast(kind)) == wanted
        assert made.match_ndjson(column.cast(kind).slice(1)) == made.match_batch([{"a": 3}, {"b": "y", "a": 1}])
    assert made.match_ndjson(b"").num_rows == made.match_ndjson(b"\n \n").num_rows == 0
    with pytest.raises(EventError, match="event 1: expected an object, found null"):
        made.match_ndjson(pa.array(["{}", None]))
    with pytest.raises(eligo.OptionError, match="a string is the path of a file"):
        made.match_ndjson('{"a": 1}')
    with pytest.raises(eligo.OptionError, match="binary mode"):
        made.match_ndjson(io.StringIO("{}"))
    with pytest.raises(eligo.OptionError, match="not Arrow type int64"):
        made.match_ndjson(pa.array([1]))
    with pytest.raises(eligo.OptionError, match="the bytes of NDJSON"):
        made.match_ndjson([{"a": 1}])
    with pytest.raises(EventError, match="bytes or a string, not dict; for a dict use match"):
        made.match_json({"a": 1})  # type: ignore[arg-type]
    with pytest.raises(EventError, match="not JSON: 'utf-8' codec"):
        made.match_json('{"a":"\ud800"}')


@pytest.mark.parametrize("block", [1, 7, 64, 4096])
def test_lines_of_a_file_are_those_of_python(block: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from eligo.compile import ndjson

    monkeypatch.setattr(ndjson, "_BLOCK", block)
    drawn = random.Random(block)
    for _ in range(60):
        pieces = drawn.choices(
            [b"\n", b" ", b"\r\n", b"{}", b"x" * 50, b"\xef\xbb\xbf", b"\x0b", b"\x00", b"y\n"], k=drawn.randint(0, 30)
        )
        raw = b"".join(pieces)
        wanted = []
        for number, line in enumerate(io.BytesIO(raw), 1):
            line = line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line
            if not line.isspace():
                wanted.append((number, line))
        found = [
            (number, events.data[begin:end].tobytes())
            for events, numbers in ndjson.lines_of(io.BytesIO(raw))
            for number, begin, end in zip(numbers.tolist(), events.begin.tolist(), events.end.tolist(), strict=True)
        ]
        assert found == wanted
        assert len(split(raw, True)[0]) == len(wanted)


def test_usual_events_need_no_decoder(monkeypatch: pytest.MonkeyPatch) -> None:
    from eligo.compile import json_events, json_texts

    def refuse(*_: object) -> None:
        raise AssertionError("decoded")

    monkeypatch.setattr(json_events, "decoded_event", refuse)
    monkeypatch.setattr(json_texts, "decoded_event", refuse)
    made = matcher()
    event = {
        "a": 1, "b": "x", "s": "abc\n\"é", "f": -2.5, "flag": True, "missing": None, "many": ["p", 1, None], "numbers": [],
        "deep": {"er": "xzy", "other": [[1], {}]}, "é": "tab\t", "unknown": {"a": [1.25e-7, 2**53, -1e100]}, "": "",
        "price": 0.30000000000000004, "large": 2**62,
    }  # fmt: skip
    for text in (
        json.dumps(event),
        json.dumps(event, ensure_ascii=False, indent=2),
        json.dumps(event, separators=(",", ":")),
    ):
        assert made.match_json(text) == made.match(event)
    assert made.match_ndjson(json.dumps(event).encode() * 1).num_rows == len(made.match(event))


def test_floats_are_those_that_python_reads() -> None:
    drawn, unsure = random.Random(1), 0
    for _ in range(20_000):
        digits, power = drawn.getrandbits(drawn.choice((10, 53, 54, 60, 63))), drawn.randint(-290, 270)
        if drawn.random() < 0.3:
            power = drawn.randint(-30, 30)
        elif drawn.random() < 0.3:  # right beside the middle between two floats
            below = drawn.uniform(1, 10)
            middle = (Fraction(below) + Fraction(math.nextafter(below, 11))) / 2
            digits, power = int(middle * 10**17) + drawn.randint(-1, 1), -17
        found = float_bits(np.uint64(digits), power)
        if found == UNSURE:
            unsure += 1
        else:
            assert found == np.float64(f"{digits}e{power}").view(np.int64), (digits, power)
    assert unsure < 200


def test_rules_come_and_go_between_events() -> None:
    for index in ("auto", "pst-hash"):
        made = eligo.Matcher(index)
        raw = b'{"a":{"b":1,"c":"new"},"l":[1]}'
        assert made.match_json(raw) == []
        made.add("one", "a.b = 1")
        assert made.match_json(raw) == ["one"]
        made.add("two", "a.c = 'new'")
        assert made.match_json(raw) == ["one", "two"]
        made.add("three", "a.c like 'n_w'")
        assert made.match_json(raw) == ["one", "two", "three"]
        made.add("single", "l = 1")
        with pytest.raises(EventError, match="single-valued"):
            made.match_json(raw)
        made.add("several", "l contains any (1)")
        assert made.match_json(raw) == made.match(decoded_event(raw)) == ["one", "two", "three", "single", "several"]
        made.remove("one")
        made.add_many([(f"more {n}", f"a.b = {n} or name{n} = 'x{n}'") for n in range(300)])
        assert made.match_json(raw) == made.match(decoded_event(raw))
        assert made.match_json(b'{"name299":"x299"}') == ["more 299"]
