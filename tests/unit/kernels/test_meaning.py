"""What changes the key of a kernel, and what does not."""

from __future__ import annotations

import os
import subprocess
import sys
import types
from typing import Any

import numpy as np
import pytest

from eligo.kernels.meaning import meaning

BASE = """
{comment}
LIMIT = {limit}
TABLE = np.array({table})

@kernel
def helper(x):
    return x {operator} LIMIT

@kernel
def outer(x, y=1):
    {docstring}
    if x > settings.flag:
        return helper(x) + TABLE[0]
    return np.abs(x) + {constant}
"""
PLAIN = {
    "comment": "",
    "limit": "3",
    "table": "[1, 2]",
    "operator": "+",
    "docstring": '"""Words."""',
    "constant": "1",
    "flag": 0,
    "package": "eligo",
}


def made(**given: Any) -> bytes:
    values = {**PLAIN, **given}
    package = values.pop("package")
    settings = types.ModuleType(f"{package}.settings")
    settings.flag = values.pop("flag")  # type: ignore[attr-defined]
    names: dict[str, Any] = {
        "np": np,
        "settings": settings,
        "kernel": lambda function: types.SimpleNamespace(py_func=function),
        "__name__": f"{package}.made",
    }
    exec(BASE.format(**values), names)
    return meaning(names["outer"].py_func)


def test_words_and_lines_mean_nothing() -> None:
    assert made() == made()
    assert made(comment="# a comment\n\n") == made(docstring='"""Others."""') == made()


@pytest.mark.parametrize(
    "change",
    [{"limit": "4"}, {"limit": "3.0"}, {"table": "[1, 3]"}, {"table": "[1.0, 2.0]"}, {"operator": "-"}, {"constant": "2"}, {"constant": "1.0"}, {"flag": 1}, {"flag": True}],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("package", ["eligo", "eligo_lab", "of_somebody_else"])
def test_what_a_kernel_or_a_helper_computes_does(change: dict[str, Any], package: str) -> None:
    assert made(**change, package=package) != made(package=package)


def test_a_set_means_the_same_in_every_process() -> None:
    program = "from eligo.kernels.meaning import meaning\ndef f(x):\n    return x in {'a', 'b', 'c', 'd'}\nprint(meaning(f).hex())"
    found = {
        subprocess.run(
            [sys.executable, "-c", program], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("1", "2")
    }
    assert len(found) == 1


def test_what_nobody_knows_the_meaning_of_is_refused() -> None:
    names: dict[str, Any] = {"odd": object(), "__name__": "eligo.made"}
    exec("def outer():\n    return odd", names)
    with pytest.raises(TypeError, match="nobody knows what it means"):
        meaning(names["outer"])
