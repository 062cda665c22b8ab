"""From kernels to object files and back, with every version of Numba that is said to be known."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
from pathlib import Path
from types import ModuleType
from typing import Any

import numba
import numpy as np
import pytest
from numba import types

from eligo import jit, kernels
from eligo.kernels import native
from eligo.kernels.finding import key_of

pytestmark = pytest.mark.skipif(not kernels.is_seen(numba.__version__), reason="an unknown Numba")


def alone(function: Any) -> native.Kernel:
    """A kernel that is kept nowhere."""

    def entry_point(kernel: native.Kernel, args: tuple[Any, ...]) -> Any:
        entry = native.make_entry(kernel, args, f"test.{function.__name__}.{key_of(kernel, args)}")
        return native.load_entry(pickle.loads(pickle.dumps(entry)), kernel.py_func)

    return native.Kernel(function, entry_point)


@alone
def twice(x):  # type: ignore[no-untyped-def]
    return x + x


@alone
def filled(n, x):  # type: ignore[no-untyped-def]
    made = np.zeros(n, np.float64)
    for i in range(n):
        made[i] = twice(x) + twice(i)
    return made


@alone
def checked(x):  # type: ignore[no-untyped-def]
    if x < 0:
        raise ValueError("below 0")
    return x, "text", np.sort(np.array([x, 1, 0]))


make_pair = jit.handle("Pair", ("left", "right"))


@alone
def total(pair):  # type: ignore[no-untyped-def]
    return pair.left.sum() + pair.right


def test_arrays_tuples_strings_and_errors() -> None:
    assert filled(3, 1).tolist() == [2.0, 4.0, 6.0]
    assert filled(2, 0.5).tolist() == [1.0, 3.0]
    number, text, array = checked(2)
    assert (number, text, array.tolist()) == (2, "text", [0, 1, 2])
    with pytest.raises(ValueError, match="below 0"):
        checked(-1)
    assert twice("ab") == "abab"
    read_only = np.arange(3)
    read_only.flags.writeable = False
    assert twice(read_only).tolist() == [0, 2, 4]


def test_handles() -> None:
    pair = make_pair(np.arange(4), 10)
    assert total(pair) == 16
    del pair
    pairs = [make_pair(np.full(1000, n), 0) for n in range(100)]
    assert [total(pair) for pair in pairs] == [1000 * n for n in range(100)]


def test_kernels_run_without_the_lock_of_the_interpreter() -> None:
    @alone
    def work(n):  # type: ignore[no-untyped-def]
        x = np.uint64(1)
        for _ in range(n):
            x = x * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
        return x

    work(1)
    thread = threading.Thread(target=work, args=(300_000_000,))
    steps = 0
    thread.start()
    while thread.is_alive():
        steps += 1
    # With the lock held, this thread would come to it once before and once after.
    assert steps > 100


def test_numba_of_others_is_as_it_was() -> None:
    def numbers(n):  # type: ignore[no-untyped-def]
        return np.cumsum(np.sort(np.zeros(n) + n)).sum()

    methods = numba.types.BaseFunction.get_call_type, native.postproc.PostProcessor.run
    before = numba.njit(numbers)(3)
    own = alone(numbers)
    assert own(3) == before
    context = native.cpu_target.target_context
    assert "get_executable" not in vars(context)
    assert "_library_class" not in vars(context.codegen())
    assert methods == (numba.types.BaseFunction.get_call_type, native.postproc.PostProcessor.run)
    # What they share with a kernel, such as np.sort for this type, was compiled by it without machine code.
    assert numba.njit(lambda n: numbers_of(n))(3.0) == 3.0
    assert numba.njit(numbers)(4) == 40.0


@numba.njit
def numbers_of(n):  # type: ignore[no-untyped-def]
    return np.sort(np.array([n, n + 1]))[0]


def test_an_entry_is_loaded_by_another_process(tmp_path: Path) -> None:
    entry = native.make_entry(filled, (types.int64, types.float64), "test.elsewhere")
    (tmp_path / "entry").write_bytes(pickle.dumps(entry))
    program = f"""
import pickle
from eligo.kernels import native
def named(): pass
entry = pickle.load(open({str(tmp_path / "entry")!r}, "rb"))
entry = native.Entry(entry.name, entry.symbol, tuple((s, "math", c) for s, _, c in entry.environments), entry.code)
print(native.load_entry(entry, named)(2, 0.5).tolist())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout == "[1.0, 3.0]\n", done.stderr


def test_an_unknown_numba_is_used_as_it_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert not kernels.is_seen("0.59.1")
    assert not kernels.is_seen("1.0.0")
    assert not kernels.is_seen("0.70.0dev0+12")
    assert kernels.is_seen("0.61.0rc1")
    monkeypatch.setattr(numba, "__version__", "9.9.9")
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))  # or other versions would find what this one keeps
    kernels._warn.cache_clear()
    with pytest.warns(UserWarning, match=r"does not know Numba 9\.9\.9"):
        plain = kernels.compiled(lambda x: x + 1)
    assert plain(1) == 2
    assert not isinstance(plain, native.Kernel)


def test_a_handle_that_was_kept_is_known_to_new_kernels(tmp_path: Path) -> None:
    """What makes a handle comes from the cache; a kernel that reads it is compiled in a later process."""
    (tmp_path / "handles.py").write_text(
        """
import numpy as np
from eligo import jit
make = jit.handle("Both", ("left", "right"))
made = make(np.arange(3), 5)
"""
    )
    (tmp_path / "later.py").write_text(
        """
from eligo import jit
from handles import made
@jit.kernel
def total(both):
    return both.left.sum() + both.right
print(total(made))
"""
    )
    home = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache"), "PYTHONPATH": str(tmp_path)}
    for program in ("handles.py", "later.py"):
        done = subprocess.run(
            [sys.executable, str(tmp_path / program)], capture_output=True, text=True, env=home, check=False
        )
        assert done.returncode == 0, done.stderr
    assert done.stdout == "8\n"


def test_a_handle_of_another_module_has_other_machine_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """Code that returns a handle looks for its class where it was when the code was made."""
    keys = set()
    for home in ("some_module", "another_module"):
        module: Any = ModuleType(home)
        monkeypatch.setitem(sys.modules, home, module)
        exec("from eligo import jit\nmake = jit.handle('Moved', ('left', 'right'))", vars(module))
        outer = jit.handle("Outer", ("inner", "n"))(module.make(np.arange(3), 1), 1)
        keys.add(key_of(total, (numba.typeof(outer),)))
    assert len(keys) == 2
