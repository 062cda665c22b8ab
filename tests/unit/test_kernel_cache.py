"""Several processes and one cache of compiled kernels."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from eligo import kernel_cache

# A kernel with a version for each argument type, in a file of its own.
KERNELS = """
    import numba
    from eligo.kernel_cache import KernelCache

    def double(x):
        return x + x

    double = numba.njit(double)
    double._cache = KernelCache(double.py_func)
"""


@pytest.fixture
def kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "kernels.py").write_text(textwrap.dedent(KERNELS))
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{Path(kernel_cache.__file__).parent.parent}")
    return tmp_path


def _start(program: str) -> subprocess.Popen[str]:
    code = "from kernels import double\n" + textwrap.dedent(program)
    return subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def _said(process: subprocess.Popen[str]) -> str:
    said = process.communicate(timeout=120)[0]
    assert process.returncode == 0, said
    return said.strip()


def test_versions_that_are_compiled_at_once_do_not_take_each_others_place(kernels: Path) -> None:
    # The second reads the index while the first is still compiling, and so knows of no other version.
    both = [
        _start("import kernels; kernels.double._cache._lock.take = lambda: False; print(double(2))"),
        _start("import kernels; kernels.double._cache._lock.take = lambda: False; print(double(2.5))"),
    ]
    assert [_said(one) for one in both] == ["4", "5.0"]
    again = "print(double(2), double(2.5), double('a'), sum(double.stats.cache_hits.values()))"
    assert _said(_start(again)).startswith("4 5.0 aa ")
    assert _said(_start(again)).endswith(" 3")


def test_who_wants_what_another_is_compiling_waits_and_loads_it(kernels: Path) -> None:
    slow = """
        import time, kernels
        compiler = kernels.double._compiler
        compile = compiler.compile
        def slowly(*arguments):
            print("compiling", flush=True)
            time.sleep(3)
            return compile(*arguments)
        compiler.compile = slowly
        print(double(2))
    """
    first = _start(slow)
    assert first.stdout is not None
    assert first.stdout.readline() == "compiling\n"
    second = _start("print(double(2), sum(double.stats.cache_hits.values()))")
    assert _said(second) == "4 1"
    assert _said(first) == "4"


def test_who_dies_while_compiling_holds_nobody_up(kernels: Path) -> None:
    dying = """
        import os, kernels
        kernels.double._compiler.compile = lambda *arguments: os._exit(0)
        double(2)
    """
    _said(_start(dying))
    assert _said(_start("print(double(2), sum(double.stats.cache_hits.values()))")) == "4 0"


def test_a_folder_that_nobody_may_write_to(kernels: Path) -> None:
    assert kernel_cache._Lock("/proc/none/of/this.lock").take() is False
