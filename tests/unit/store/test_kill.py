"""A process that changes rules is killed at random moments: what it acknowledged is there, and nothing twice.

The child makes changes whose order is fixed by a seed and writes the number of each to a pipe when its call has returned.
So the parent knows which state each number stands for. After a kill it opens the rules: they must be those after the last
number that it read, or after the one change that may have been under way.
"""

from __future__ import annotations

import os
import random
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import eligo

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="a system without SIGKILL")

KILLS = 5  # of each of the two kinds of rules
MAX_SECONDS = 120.0  # for a child to come up and do its work; far more than it takes

Change = tuple[str, list[tuple[str, str]]]


def changes(seed: int, model: dict[str, str]) -> Iterator[Change]:
    """Changes without end, each made in the model too when the next is asked for."""
    draw = random.Random(seed)
    number = 0
    while True:
        number += 1
        known = sorted(model)
        what = draw.choice(["add", "add", "add", "add_many", "replace", "remove", "remove_many", "save"])
        text = f"x = {draw.randrange(9)} and s = 's{seed}-{number}'"
        some: list[tuple[str, str]] = []
        if what == "add":
            some = [(f"r{seed}-{number}", text)]
        elif what == "add_many":
            some = [(f"m{seed}-{number}-{i}", f"{text} and y > {i}") for i in range(draw.randrange(1, 30))]
        elif what == "replace":
            some = [(draw.choice(known), text)] if known else []
        elif what in ("remove", "remove_many"):
            some = [(one, "") for one in draw.sample(known, min(len(known), 1 if what == "remove" else 9))]
        elif draw.random() < 0.6:
            continue  # saving takes longer than the rest
        if not some and what != "save":
            continue
        yield what, some
        for one, expression in some:
            if expression:
                model[one] = expression
            else:
                del model[one]


def work(path: str, seed: int, sync: str) -> None:
    """What the child does."""
    m = eligo.open(path, writable=True, sync=sync)  # type: ignore[arg-type]
    m.match({"x": 1})
    model: dict[Any, str] = {rule.id: rule.expression for rule in m.rules()}
    for number, (what, some) in enumerate(changes(seed, model), 1):
        if what == "add":
            m.add(*some[0])
        elif what == "replace":
            m.add(*some[0], replace=True)
        elif what == "add_many":
            m.add_many(some)
        elif what == "remove":
            m.remove(some[0][0])
        elif what == "remove_many":
            m.remove_many([one for one, _ in some])
        else:
            m.save(path)
        os.write(1, b"%d\n" % number)


def rules_of(m: eligo.Matcher) -> list[tuple[Any, str]]:
    return [(rule.id, rule.expression) for rule in m.rules()]


def acknowledged(child: subprocess.Popen[bytes], count: int, seconds: float) -> int:
    """Let the child make so many changes, kill it so long afterwards, and return the last number that it wrote."""
    assert child.stdout is not None
    said, deadline = b"", time.monotonic() + MAX_SECONDS
    try:
        while said.count(b"\n") < count:
            assert select.select([child.stdout], [], [], max(0.0, deadline - time.monotonic()))[0], "it is too slow"
            more = os.read(child.stdout.fileno(), 1 << 16)
            assert more, "the child has ended"
            said += more
        time.sleep(seconds)
    finally:
        child.kill()
        ended = child.wait()
    assert ended == -signal.SIGKILL
    said += child.stdout.read()
    child.stdout.close()
    return int(said.split(b"\n")[-2])  # the last one may be cut off


@pytest.mark.parametrize("index", ["propagation", "be-tree"])
def test_killed_at_random_moments(tmp_path: Path, index: str) -> None:
    path = tmp_path / "rules.eligo"
    eligo.Matcher(index).save(path)
    model: dict[str, str] = {}
    draw = random.Random(index)
    saves = 0
    for seed in range(KILLS):
        sync = ("always", "second", "never")[seed % 3]
        code = f"from unit.store.test_kill import work; work({str(path)!r}, {seed}, {sync!r})"
        tests = str(Path(__file__).parents[2])
        child = subprocess.Popen(
            [sys.executable, "-c", code],
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join([tests, *filter(None, sys.path)])},
        )
        last = acknowledged(child, draw.randrange(10, 60), draw.uniform(0.0, 0.02))
        steps = changes(seed, model)
        for _ in range(last):
            what, _some = next(steps)
            saves += what == "save"
        next(steps)  # which makes the last acknowledged change in the model, and not yet the one after it
        at_least = list(model.items())
        next(steps)
        at_most = list(model.items())
        with eligo.open(path, writable=True) as m:
            found = rules_of(m)
            assert found in (at_least, at_most), (seed, last)
            m.add("parent", "x = 1")
            m.remove("parent")
        assert rules_of(eligo.open(path)) == found
        model = dict(found)
    assert saves > 3
