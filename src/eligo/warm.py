"""Filling the kernel cache: one small pass through everything that runs a kernel, in several processes.

A kernel is compiled at its first call, and the machine code is kept (kernels/). Passes of different indexes and
evaluators share few kernels, so that two processors do it in little more than half the time; of what they share, one
process compiles and the others wait.
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Final

import numpy as np
import pyarrow as pa

from eligo.errors import EligoError
from eligo.language.ranges import Above, Below, Between, NoneOf, OneOf

# Every operator, kind and polarity, AND below OR below AND, and what no set of values describes.
_RULES: Final = (
    "a = 1 and s in ('x', 'y')",
    "a between 2 and 5 or f < 0.5 and not (s = 'x' or flag)",
    "not (a >= 3) and f > 1.5",
    "s like 'ab%'",
    "s like '%b_c'",
    "s >= 'm' and a is not null",
    "t >= timestamp '2026-01-31 12:00:00Z' or t = date '2026-01-01'",
    "flag = true and missing is null",
    "many contains any ('p', 'q') and not many contains all ('p', 'r')",
    "numbers contains none (1, 2)",
    "inner.x = 1 or inner.y = 'k'",
    "(a = 1 or a = 2) and (s = 'x' or f != 2.0) and (flag or t is null)",
    "true",
    "false",
)
# More leaves than a byte counts: their labels are wider.
_WIDE: Final = " and ".join(f"(a = {n} or f > {n}.5)" for n in range(130))
_MOMENT: Final = datetime(2026, 1, 31, 12, tzinfo=UTC)
_EVENTS: Final[tuple[dict[str, Any], ...]] = (
    {"a": 1, "s": "x", "f": 0.25, "flag": True, "t": _MOMENT, "many": ["p", "q"], "numbers": [1], "inner": {"x": 1}},
    {"a": 4, "s": "abc", "f": 2.5, "flag": False, "t": date(2026, 1, 1), "many": [], "numbers": [3, 4]},
    {"a": 2.5, "s": "azbzc", "f": None, "many": ["r"]},
    {},
)
_JSON: Final = b'{"a": 1, "s": "x", "f": 0.25, "flag": true, "many": ["p", "q"], "inner": {"x": 1}}'
_RANGES: Final[tuple[dict[str, Any], ...]] = (
    {"a": Between(1, 3), "f": Below(0.4)},
    {"a": OneOf(1, 2), "f": Above(1.0), "t": Above(_MOMENT)},
    {"a": NoneOf(1), "flag": OneOf(True)},
)
_MANY: Final = 600  # rules, one by one: enough for the small segments to be merged
# Tasks that are no pairs.
_LABELS, _EXCHANGE, _PIECES, _VARIANTS, _DOCUMENTS = "widest labels", "exchange", "pieces", "variants", "documents"
_TEXTS, _NUMBERED = "events read by kernels", "large loads, integer ids"
LOADS, BATCHES, TREES = "large loads", "large batches", "large batches, trees"  # all that many rules and events need
_COMPILED, _DONE = "compiled", "done"  # what a process says
# {"a": 1, "b": [1], "c": "x"}, as Spark writes a Variant: the names, and the values.
_NAMES: Final = bytes([1, 3, 0, 1, 2, 3]) + b"abc"
_VALUE: Final = bytes([2, 3, 0, 1, 2, 0, 2, 8, 10, 12, 1, 3, 1, 0, 2, 12, 1]) + bytes([5]) + b"x"


@dataclass(frozen=True)
class Step:
    """One step of progress: a kernel was compiled or, if `kernel` is empty, a task is done."""

    task: str
    kernel: str = ""
    seconds: float = 0.0


def warm(
    processes: int | None = None, said: Callable[[Step], None] = lambda step: None, only: Iterable[str] | None = None
) -> frozenset[str]:
    """Runs every index and every evaluator once, in so many processes; as many as there are processors by default. With
    `only`, runs those tasks, such as propagation/interval. `said` is called with each step.

    Returns the keys under which the kernels are kept that were needed. Raises an `EligoError` if a task fails.
    """
    waiting: SimpleQueue[str] = SimpleQueue()
    for task in tasks() if only is None else only:
        waiting.put(task)
    count = max(1, min(processes or _processors(), waiting.qsize()))
    with ThreadPoolExecutor(count) as threads:
        running = [threads.submit(_feed, waiting, said) for _ in range(count)]
        return frozenset().union(*(process.result() for process in running))


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def tasks(indexes: Iterable[str] | None = None) -> list[str]:
    """Returns the tasks as texts: pairs of index and evaluator that share most kernels together, the largest first.

    `indexes` are the names of those that are wanted, if not all.
    """
    from eligo.evaluate.registry import EVALUATORS
    from eligo.index.registry import INDEXES

    families: dict[str, list[str]] = {}
    for name in INDEXES.all() if indexes is None else indexes:
        path = INDEXES.get(name).__module__.split(".")
        families.setdefault(".".join(path[:3]), []).append(f"{name}/interval")
    pairs = [" ".join(some) for some in sorted(families.values(), key=len, reverse=True)]
    others = EVALUATORS.all() if indexes is None else EVALUATORS.own
    pairs += [f"auto/{evaluator}" for evaluator in others if evaluator != "interval"]
    return [*pairs, _DOCUMENTS, _LABELS, _EXCHANGE, _PIECES, _VARIANTS, _TEXTS, LOADS, _NUMBERED, BATCHES, TREES]


def _run(task: str) -> None:
    if task == _LABELS:
        _widest_labels()
        _larger_directory()
        _shapes()
    elif task == _EXCHANGE:
        _exchange()
    elif task == _PIECES:
        _pieces()
    elif task == _VARIANTS:
        _variants()
    elif task == _DOCUMENTS:
        _documents()
    elif task == _TEXTS:
        _read_by_kernels()
    elif task in (LOADS, _NUMBERED):
        _loads(integers=task == _NUMBERED)
    elif task == BATCHES:
        _batches("a = {}")
    elif task == TREES:
        _batches("s = 'x' and (a = {0} or f > {0})")
    else:
        for pair in task.split():
            index, evaluator = pair.split("/")
            for integers in (False, True):
                _pass(index, evaluator, integers)


def _feed(waiting: SimpleQueue[str], said: Callable[[Step], None] = lambda step: None) -> set[str]:
    """Starts a process that runs one waiting task after the other. Returns the keys of the kernels that they needed."""
    keys: set[str] = set()
    here = str(Path(__file__).parent.parent)
    path = os.pathsep.join([here, *filter(None, [os.environ.get("PYTHONPATH")])])
    command = [sys.executable, "-c", "import sys, eligo.warm; eligo.warm._serve(sys.stdin)"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": path}
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        while True:
            try:
                task = waiting.get_nowait()
            except Empty:
                return keys
            with suppress(OSError):
                print(task, file=process.stdin, flush=True)
            for line in process.stdout:
                what, _, rest = line.rstrip("\n").partition("\t")
                if what == _DONE:
                    keys.update(rest.split())
                    said(Step(task))
                    break
                kernel, _, seconds = rest.partition("\t")
                said(Step(task, kernel, float(seconds)))
            else:
                raise EligoError(f"compiling the kernels of {task} failed; what went wrong is printed above")


def _serve(given: Iterable[str]) -> None:
    """Runs the tasks that come line by line. Prints each kernel that is compiled and, after a task, all keys so far."""
    from eligo.kernels import finding

    gc.disable()  # in this process that does nothing else: compiling makes many objects and hardly any garbage
    finding.progress.told = lambda kernel, seconds: print(_COMPILED, kernel, seconds, sep="\t", flush=True)
    for line in given:
        _run(line.strip())
        print(_DONE, *finding.used, sep="\t", flush=True)


def _pass(index: str, evaluator: str, integers: bool) -> None:
    import eligo
    from eligo.evaluate.registry import EVALUATORS

    # The wide rule is one that an evaluator with a bound would refuse.
    options = {"past_terms": "interval"} if "past_terms" in EVALUATORS.get(evaluator).options else {}
    matcher = eligo.Matcher(index, evaluator, multi=["numbers"])
    ids: list[Any] = list(range(len(_RULES))) if integers else [f"rule {n}" for n in range(len(_RULES))]
    matcher.add_many([(rule, text, 1.0, ("some",)) for rule, text in zip(ids, _RULES, strict=True)])
    matcher.add(ids[0], "a > 0", replace=True)
    _ask(matcher)
    _change(eligo.Matcher(index, evaluator), integers)
    flat = eligo.Matcher(index, evaluator)
    flat.add_many([(ids[0], "a > 0"), (ids[1], "s = 'x'")])  # no trees
    flat.match(_EVENTS[0])
    wide = eligo.Matcher(index, evaluator, options=options)
    wide.add_many([(ids[0], _WIDE)])
    wide.match(_EVENTS[0])
    wide.match_batch(list(_EVENTS))
    with tempfile.TemporaryDirectory(prefix="eligo-warm-") as folder:
        path = os.path.join(folder, "rules.eligo")
        matcher.save(path)
        _ask(eligo.open(path))


def _widest_labels() -> None:
    """Evaluates labels of rules with more than 65,535 leaves, without making such a rule."""
    import numpy as np

    import eligo
    from eligo.evaluate.interval import Interval
    from eligo.segments.rule_set import RuleSet

    matcher = eligo.Matcher(evaluator="interval")
    matcher.add_many([(1, _WIDE)])
    rules = matcher.engine.rules
    assert isinstance(rules, RuleSet)
    segment = rules.segments[0]
    small = segment.evaluator
    assert isinstance(small, Interval)
    half = np.uint64(4 * small.span.itemsize)
    span = small.span.astype(np.uint64)
    wide = Interval(small.leaves, span & ((np.uint64(1) << half) - np.uint64(1)) | span >> half << np.uint64(32), 1)
    scratch, everyone = wide.scratch(), np.zeros(0, np.uint8)
    found = np.arange(segment.compiled.conjunctions, dtype=np.int32)
    wide.evaluate(found, len(found), everyone, scratch)
    wide.evaluate_batch(found, np.array([0, len(found)]), 1, everyone, scratch, np.zeros(2, np.int64))


def _larger_directory() -> None:
    """Enlarges a directory, as a BE-Tree with thousands of p-nodes does."""
    import numpy as np

    from eligo.index.be_tree.nodes import larger_slots

    larger_slots(np.full(8, -1, np.int64), np.zeros(8, np.int32))


def _shapes() -> None:
    """Matches rules that are one conjunction each, alike or not, and trees behind a selective predicate."""
    import eligo

    for texts in (
        [f"a = {n}" for n in range(100)],
        [f"a = {n % 50}" for n in range(100)],
        [f"a = {n} and (f > 0 or s = 'x')" for n in range(100)],
    ):
        for ids in (range(100), map(str, range(100))):
            matcher = eligo.Matcher("bitmap")
            matcher.add_many(zip(ids, texts, strict=True))
            _ask(matcher)


def _read_by_kernels() -> None:
    """Matches events that are JSON texts, or dicts, with rules in segments and with rules that change in place."""
    import eligo

    for index in ("auto", "pst-hash"):
        matcher = eligo.Matcher(index, multi=["numbers"])
        matcher.add_many(enumerate(_RULES))
        matcher.match_json(_JSON)
        matcher.match_ndjson(_JSON)
        matcher._buffer().waited = 1 << 30  # so many events that a kernel reads them
        matcher.match(_EVENTS[0])
        matcher.match_batch([_EVENTS[0]] * 40)
    few = eligo.Matcher()
    few.add(0, _RULES[0])
    few.match_json(_JSON)
    buffer = few._buffer()
    buffer.json.waited = buffer.waited = 1 << 30
    few.match_json(_JSON)
    few.match(_EVENTS[0])
    buffer.dicts.waited = 1 << 30
    few.match(_EVENTS[0])


def _exchange() -> None:
    import eligo

    exchange = eligo.exchange.Exchange()
    exchange.add_node("p", "publisher")
    exchange.add_node("a", "advertiser")
    exchange.connect("p", "a", "a > 0")
    exchange.book("c", "a", "p", "s = 'x'")
    exchange.eligible("p", {"a": 1, "s": "x"})
    exchange.eligible_batch([{"publisher": "p", "a": 1, "s": "x"}])


def _pieces() -> None:
    """Joins rules that were compiled apart, with statistics of events: what workers do on Spark."""
    from eligo.compile.attributes import Attributes
    from eligo.compile.builder import Builder
    from eligo.compile.naming import attribute_counts
    from eligo.compile.strings import Strings, merge_strings
    from eligo.evaluate.interval import Interval
    from eligo.index.registry import INDEXES, choose
    from eligo.language import parse
    from eligo.language.normalize import normalize
    from eligo.segments.pending import Pending
    from eligo.segments.pieces import Piece, join_pieces, make_piece
    from eligo.segments.rule_set import RuleSet
    from eligo.segments.segment import Recipe, restore_segment
    from eligo.segments.statistics import Statistics, Values
    from eligo.segments.view import ALL
    from eligo.store.arrays import map_arrays, write_arrays

    multi = frozenset({"many", "numbers"})
    pieces: list[Piece] = []
    for _ in range(2):
        attributes, strings = Attributes(), Strings()
        pending = Pending(Builder(attributes, strings, multi=multi))
        for number, text in enumerate(_RULES):
            pending.add(f"rule {len(pieces)} {number}", normalize(parse(text), multi=multi), "", 1.0, ("some",), number)
        pieces.append(make_piece(pending, attributes, strings))
    data, offsets, slots, numbers = merge_strings([piece.strings for piece in pieces])
    recipe = Recipe(choose("auto"), Interval, Attributes(pieces[0].attributes), Strings((data, offsets, slots)))
    seen = {"a": Values(2, ((1, 1.0), (2, 1.0))), "s": Values(1, (("x", 1.0),))}
    recipe.sample = Statistics(2, seen, recipe.attributes, recipe.strings)
    given = list(zip(pieces, numbers, strict=True))
    join_pieces(given, recipe, 0.5)
    with tempfile.TemporaryDirectory(prefix="eligo-warm-") as folder:
        for name in ("auto", *INDEXES.own):
            # Other indexes have been through this with a matcher of theirs; those that change in place have not.
            if choose(name).updates == "native" or name == "auto":
                rules = RuleSet(choose(name), Interval, "fails", multi)
                rules.adopt(recipe.attributes, recipe.strings)
                segment = join_pieces(given, rules.recipe)
                assert segment is not None
                attribute_counts(segment.whole(), recipe.attributes.names)
                written = write_arrays(Path(folder), "segment", segment.arrays())
                mapped = map_arrays(Path(folder), written, verify=False)
                rules.restore([restore_segment(mapped, rules.recipe)], [ALL])
                for found in (rules.view.batch(_table(), None, None), rules.view.best(_table(), ("some",), 1)):
                    assert list(found)
                list(rules.view.ranked(_table(), None, 1))


def _loads(integers: bool) -> None:
    """Adds rules in large numbers, with some among them that are read one by one, and others in their places."""
    import eligo
    from eligo.bulk import MANY
    from eligo.compile.compiled import copied_slices

    texts = [*_RULES, "a = 1 -- and no more"] * (MANY // len(_RULES) + 1)
    ids = range(len(texts)) if integers else [f"rule {n}" for n in range(len(texts))]
    matcher = eligo.Matcher(multi=["numbers"])
    for _ in range(2):
        matcher.add_many(pa.table({"id": ids, "expression": texts}), replace=True)
    for kind in (np.uint8, np.int32):  # of long texts, and of many rules
        copied_slices(np.zeros(1, kind), np.zeros(1, np.int64), np.array([0, 1]))


def _batches(text: str) -> None:
    """Matches few events, and enough for blocks of them, with enough rules, made of a text and a number."""
    import eligo
    from eligo.batch.answers import BUCKETS, count_matches
    from eligo.batch.search import STATE, new_scratch
    from eligo.segments.blocks import WORTH
    from eligo.segments.segment import Segment

    matcher = eligo.Matcher()
    matcher.add_many([(f"rule {n}", text.format(n)) for n in range(100)])
    for events in (WORTH - 1, WORTH):  # by the index, and in blocks
        matcher.match_batch(pa.table({"a": range(events), "f": [0.5] * events, "s": ["x"] * events}))
    # Threads that share a batch, for which this is too small, call one kernel more.
    (segment,) = matcher.engine.rules.view.segments
    assert isinstance(segment, Segment)
    scratch = new_scratch(segment.blocks.arrays, np.zeros(STATE, np.int64), np.zeros(4, np.int64))
    count_matches(scratch, len(segment), np.zeros(BUCKETS, np.int64))


def _documents() -> None:
    """Matches rules that ask about documents, with an index that changes in place and with one that does not."""
    from eligo.documents import Documents
    from eligo.documents.event_state import join_runs
    from eligo.documents.frozen import FrozenIndex, values_of_column
    from eligo.documents.index import Runs
    from eligo.documents.values import run_keys
    from eligo.matcher import Matcher

    for index in ("auto", "pst-hash"):
        documents = Documents(keep=2000)
        matcher = Matcher(index, documents=documents)
        matcher.add("single", "exists d (a < d.a) and forall d (s != d.s)")
        matcher.add("led", "exists d (a = d.a and s = d.s and d.f > 1)", owner="somebody")
        matcher.add("vectors", "exists d (a < d.a and f > d.f) or forall d (d.s not like 'a%b' or a > d.a)")
        matcher.add("received", "exists d in received (s = d.s and d.a is not null)", owner="somebody")
        many = 1800  # so that the next 100 go into the order one by one
        documents.add_many(
            pa.table({"a": range(many), "f": [0.5] * many, "s": ["x", "azb"] * (many // 2), "flag": [True] * many})
        )
        documents.add_many([{"a": [1, 2], "s": "abcdefghi"}] * 100)
        for event in _EVENTS:
            matcher.match(event)
            matcher.publish(event)
        matcher.match_batch(_table())
        documents.remove("a = 399")
        documents.clear()
    columns = ("a", pa.array([1, 2**60])), ("s", pa.array(["x", "abcdefghi"])), ("f", pa.array([True]))
    frozen = FrozenIndex(2, [(name, [values_of_column(column)]) for name, column in columns])
    for value in (1, "abcdefghi"):
        frozen.compared([(0, name, True, value) for name, _ in columns], np.zeros(1, np.int64))
        for attribute in range(len(columns)):
            frozen.located(attribute, Runs(run_keys(join_runs("<=", value))))


def _variants() -> None:
    """What is in Variant columns of Spark."""
    from eligo.spark.arrow_types import variant_type
    from eligo.spark.variant import attribute_column

    column = pa.array([{"value": _VALUE, "metadata": _NAMES}, None], variant_type())
    for key, several in (("a", False), ("c", False), ("b", True)):
        attribute_column(key, column, (key,), several)


def _change(matcher: Any, integers: bool) -> None:
    """Adds and removes rules one by one, until segments have been merged."""
    ids: list[Any] = list(range(_MANY)) if integers else [f"rule {n}" for n in range(_MANY)]
    for number, rule in enumerate(ids):
        matcher.add(rule, f"a = {number} and s = 'v{number % 7}' or f > {number}.5", tags=("some",))
    for rule in ids[: 3 * _MANY // 4]:
        matcher.remove(rule)
    matcher.match(_EVENTS[0])
    matcher.match_batch(list(_EVENTS))


def _ask(matcher: Any) -> None:
    for event in (*_EVENTS, *_RANGES):
        matcher.match(event)
    matcher.match(_EVENTS[0], tags=("some",), limit=1)
    matcher.top(_EVENTS[0], k=2)
    matcher.match_batch(list(_EVENTS))
    matcher.match_batch(_table())
    matcher.match_batch(_table().slice(1), tags=("some",), limit=1)
    full = pa.table({"a": [1, 2], "f": [0.5, 1.5], "s": ["x", "y"], "flag": [True, False], "t": [_MOMENT, _MOMENT]})
    matcher.match_batch(full)
    matcher.match_batch(_table(), pairs="inner")
    matcher.match_batch(pa.table({"many": pa.array([["p"]], pa.list_(pa.string(), 1))}))  # read column by column
    matcher.match_batch(full.to_batches()[0].slice(1))
    matcher.observe(list(_EVENTS) * 40)  # enough of them for indexes to adjust themselves
    matcher.observe(full)
    assert matcher.attributes
    assert list(matcher)
    matcher.stats()


def _table() -> pa.Table:
    """Returns a table with one column of every Arrow type that has a path of its own."""
    pairs = [[("x", 1)], [("y", 2)], None, []]
    return pa.table(
        {
            "a": pa.array([1, 4, None, 2], pa.int64()),
            "f": pa.array([0.25, 2.5, float("nan"), None]),
            "s": pa.array(["x", "abc", None, "azbzc"]),
            "flag": pa.array([True, False, None, True]),
            "t": pa.array([_MOMENT, _MOMENT, None, _MOMENT], pa.timestamp("us", "UTC")),
            "many": pa.array([["p", "q"], [], None, ["r"]], pa.list_(pa.string())),
            "numbers": pa.array([[1], [3, 4], None, []], pa.list_(pa.int64())),
            "inner": pa.array(pairs, pa.map_(pa.string(), pa.int64())),
        }
    )
