"""From kernels to object files and back, with every version of Numba that is said to be known."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numba
import numpy as np
import pytest
from numba import types
from numba.core.runtime import _nrt_python, rtsys

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


@pytest.mark.parametrize("dtype", [np.int64, np.uint8, np.int32, np.bool_, np.float64, np.complex128, "M8[s]"])
def test_items_are_those_of_numpy_whatever_the_array(dtype: Any) -> None:
    @alone
    def exchanged(array, i, j):  # type: ignore[no-untyped-def]
        array[i], array[j] = array[j], array[i]
        return array[i], array[-1], array[np.uint8(1)]

    def aligned(array: Any) -> Any:
        return array

    def unaligned(array: Any) -> Any:
        raw = np.zeros(array.nbytes + 1, np.uint8)[1:]
        raw[:] = array.view(np.uint8)
        return raw.view(array.dtype)

    def stepped(array: Any) -> Any:
        return np.repeat(array, 2)[::2]

    for shape in (aligned, unaligned, stepped):
        for i, j in ((0, 3), (-1, 1), (np.uint32(2), np.int8(-4))):
            given = shape(np.array([1, 0, 3, 0], np.uint8).astype(dtype))
            expected = given.copy()
            answer = exchanged.py_func(expected, i, j)
            assert exchanged(given, i, j) == answer
            assert given.tolist() == expected.tolist()


def test_items_of_other_types_are_converted_as_by_numpy() -> None:
    @alone
    def put(integers, bytes_, floats, x):  # type: ignore[no-untyped-def]
        integers[0] = x
        bytes_[1] = x
        floats[-1] = x
        integers[1:] = 7
        floats[:2] = integers[1:]
        return integers[0] + bytes_[1]

    for x in (3, 3.75, True, np.uint64(2**63 + 1)):
        arrays = np.zeros(3, np.int64), np.zeros(3, np.uint8), np.zeros(3)
        assert put(*arrays, x) == int(np.uint64(x).astype(np.int64)) + int(x) % 256
        assert [array.tolist() for array in arrays] == [
            [int(np.uint64(x).astype(np.int64)), 7, 7],
            [0, int(x) % 256, 0],
            [7.0, 7.0, float(x)],
        ]


def test_what_a_kernel_borrows_is_freed_once_and_not_before() -> None:
    make_outer = jit.handle("Outer", ("pair", "more"))

    @alone
    def borrowing(outer, n):  # type: ignore[no-untyped-def]
        longest, pair = outer.more, outer.pair
        for i in range(n):
            left, part = pair.left, outer.more[i : i + 2]
            both = (left, part)
            longest = both[i % 2] if len(both[i % 2]) > len(longest) else longest
            longest, left = left, longest
        return longest[0] + left[-1]

    @alone
    def making(outer, n):  # type: ignore[no-untyped-def]
        kept = np.zeros(1, np.int64)
        for i in range(n):
            kept = np.append(kept, borrowing(outer, 2) + i) if i % 2 else outer.pair.left[1:]
        return kept, outer.more, outer

    def in_use() -> int:
        stats = rtsys.get_allocation_stats()
        return int(stats.mi_alloc - stats.mi_free)

    _nrt_python.memsys_enable_stats()
    numbers = np.arange(10)
    before = in_use(), sys.getrefcount(numbers)
    for n in (1, 2, 5):
        outer = make_outer(make_pair(numbers[:4], 0), numbers)
        assert borrowing(outer, n) == borrowing.py_func(outer_of(numbers), n)
        kept, more, same = making(outer, n)
        del outer
        assert more.tolist() == numbers.tolist()
        appended = [borrowing.py_func(outer_of(numbers), 2) + 1] if n == 2 else []
        assert kept.tolist() == [*numbers[1:4].tolist(), *appended]
        assert borrowing(same, n) == borrowing.py_func(outer_of(numbers), n)
        del kept, more, same
    assert (in_use(), sys.getrefcount(numbers)) == before


def outer_of(numbers: Any) -> Any:
    return SimpleNamespace(pair=SimpleNamespace(left=numbers[:4], right=0), more=numbers)


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

    def theirs() -> list[Any]:
        return [getattr(owner, name) for owner, name, _, _ in native._OURS]

    methods = theirs()
    before = numba.njit(numbers)(3)
    own = alone(numbers)
    assert own(3) == before
    context = native.cpu_target.target_context
    assert "get_executable" not in vars(context)
    assert "_library_class" not in vars(context.codegen())
    assert methods == theirs()
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
