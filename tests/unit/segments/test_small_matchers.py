"""What a small matcher costs: one process may have thousands of them, and none takes address space from others."""

from __future__ import annotations

import subprocess
import sys

import pytest

_PREAMBLE = """
import resource
from eligo import Matcher

def made(index, number):
    matcher = Matcher(index)
    for r in range(10):
        matcher.add(f"rule {r}", f"a{r % 3} = {r} and b > {number} and c in ('s{r}', 't{r}')", tags=["x"])
    assert matcher.match({"a0": 3, "b": number + 1, "c": "t3"}) == ["rule 3"]
    return matcher

def kilobytes(name):
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name + ":"))

def address_space():
    return kilobytes("VmSize")
"""


def run(script: str) -> None:
    done = subprocess.run([sys.executable, "-c", _PREAMBLE + script], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr


INDEXES = ("be-tree", "pst-bloom", "pst-hash", "propagation")


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("index", INDEXES)
def test_matcher_of_ten_rules_takes_at_most_200_kilobytes(index: str) -> None:
    run(f"""
several = [made({index!r}, number) for number in range(20)]
before = address_space(), kilobytes("VmRSS")
several += [made({index!r}, number) for number in range(200)]
after = address_space(), kilobytes("VmRSS")
assert after[0] - before[0] <= 200 * 200, (before, after)
assert after[1] - before[1] <= 200 * 200, (before, after)
""")


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("index", INDEXES)
def test_matcher_leaves_room_under_a_limit_of_address_space(index: str) -> None:
    run(f"""
made({index!r}, 0)
limit = (address_space() + 64 * 1024) * 1024
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
several = [made({index!r}, number) for number in range(20)]
bytearray(32 << 20)
""")


def test_empty_pools_of_changing_indexes_are_small() -> None:
    from eligo import Matcher

    for index in ("be-tree", "pst-bloom", "pst-hash"):
        structure = Matcher(index).engine.rules.structure  # type: ignore[attr-defined]
        both = *vars(structure.index.pools).values(), *vars(structure.pools).values()
        arrays = [array for array in both if hasattr(array, "nbytes")]
        assert sum(array.nbytes for array in arrays) < 32_000
