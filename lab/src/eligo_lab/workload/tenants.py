"""`tenants`: the commonest shape of rules there is, a tree behind one selective predicate.

    tenant = 't7' and (x3 = 4 or y1 > 52) and (s2 in ('a1', 'a8') or x11 = 0)

An event has one tenant and a value of every other attribute. Rules exist as text alone.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np
import pyarrow as pa

from eligo_lab.workload.base import Events, Rules, Seed, Workload, workload

_X, _Y, _S = 20, 10, 10  # attributes with ten values, with a hundred, and with nine texts


@workload("trees behind a selective predicate: tenant = … and (… or …) and (… or …)")
def tenants(
    rules: Rules = 20_000,
    events: Events = 1_000,
    tenants: Annotated[int, "tenants, each with as many rules"] = 400,
    seed: Seed = 1,
) -> Workload:
    """See the top of this file."""
    asked = dict(locals())
    rng = np.random.default_rng(seed)

    def predicate() -> str:
        kind = rng.integers(3)
        if kind == 0:
            return f"x{rng.integers(_X)} = {rng.integers(10)}"
        if kind == 1:
            return f"y{rng.integers(_Y)} > {rng.integers(100)}"
        return f"s{rng.integers(_S)} in ('a{rng.integers(9)}', 'a{rng.integers(9)}')"

    texts = [
        f"tenant = 't{rng.integers(tenants)}' and ({predicate()} or {predicate()}) and ({predicate()} or {predicate()})"
        for _ in range(rules)
    ]
    columns: dict[str, object] = {"tenant": [f"t{i}" for i in rng.integers(tenants, size=events)]}
    columns |= {f"x{i}": rng.integers(10, size=events) for i in range(_X)}
    columns |= {f"y{i}": rng.integers(100, size=events) for i in range(_Y)}
    columns |= {f"s{i}": [f"a{value}" for value in rng.integers(9, size=events)] for i in range(_S)}
    text = pa.table({"id": pa.array(np.arange(rules)), "expression": texts})
    return Workload("tenants", asked, None, pa.table(columns), {}, text)
