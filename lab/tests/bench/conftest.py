"""A workload small enough to measure within a test: all operators, integers and strings, sparse events."""

from __future__ import annotations

import gc
import random
from collections.abc import Iterator
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import pytest

from eligo_lab.workload.base import WORKLOADS, Workload, workload
from eligo_lab.workload.draft import BETWEEN, EQUAL, IN, NOT_IN, OPERATORS, Draft, conjunctive

NAMES = (*(f"a{i}" for i in range(10)), "in", "word")  # one is a keyword nearly everywhere
WORDS = ("ant", "bee", "cat", "o'hare", "dög", "elk")
VALUES = 12


def draft(rules: int, rng: random.Random) -> Draft:
    attribute: list[int] = []
    operator: list[int] = []
    operands: list[list[int]] = []
    ends = [0]
    for _ in range(rules):
        for place in rng.sample(range(len(NAMES)), rng.randint(1, 4)):
            textual = NAMES[place] == "word"
            kind = rng.choice((EQUAL, IN, NOT_IN)) if textual else rng.randrange(len(OPERATORS))
            count = rng.randint(1, 3) if kind in (IN, NOT_IN) else 2 if kind == BETWEEN else 1
            attribute.append(place)
            operator.append(kind)
            operands.append(sorted(rng.sample(range(len(WORDS) if textual else VALUES), count)))
        ends.append(len(attribute))
    return conjunctive(
        NAMES,
        np.array(attribute, np.int32),
        np.array(operator, np.uint8),
        np.concatenate(([0], np.cumsum([len(some) for some in operands]))).astype(np.int64),
        np.array([value for some in operands for value in some], np.int64),
        np.array(ends, np.int64),
        np.array([name == "word" for name in NAMES]),
        WORDS,
    )


def tiny(
    rules: Annotated[int, "rules"] = 200,
    events: Annotated[int, "events"] = 40,
    seed: Annotated[int, "seed"] = 1,
    present: Annotated[float, "how often an attribute is present"] = 0.6,
) -> Workload:
    rng = random.Random(seed)
    columns: dict[str, list[Any]] = {}
    for name in NAMES:
        values: Any = WORDS if name == "word" else range(VALUES)
        columns[name] = [rng.choice(values) if rng.random() < present else None for _ in range(events)]
    parameters: dict[str, object] = {"rules": rules, "events": events, "seed": seed, "present": present}
    return Workload("tiny", parameters, draft(rules, rng), pa.table(columns))


@pytest.fixture(autouse=True, scope="module")
def tiny_workload() -> Iterator[None]:
    """The workload by its name; and no second of each test for collecting what all the others have made."""
    workload("for tests")(tiny)
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()
    del WORKLOADS._known["tiny"]
