"""Arrow and NumPy arrays of one memory, and no pandas."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import eligo
from eligo.arrow import arrow_of, numpy_of, texts_of


@settings(deadline=None)
@given(st.lists(st.booleans(), max_size=40), st.integers(0, 40), st.sampled_from(["bool", "int32", "int64", "float64"]))
def test_there_and_back(values: list[bool], start: int, kind: str) -> None:
    array = np.array(values, kind)
    found = arrow_of(array)
    assert found.equals(pa.array(array))
    found.validate(full=True)
    assert numpy_of(found.slice(start)).tolist() == array[start:].tolist()
    assert numpy_of(found.slice(0, start)).tolist() == array[:start].tolist()
    assert arrow_of(array[::2]).to_pylist() == array[::2].tolist()


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"])), max_size=10))
def test_texts(texts: list[str]) -> None:
    assert texts_of(texts).equals(pa.array(texts, pa.string()))


def test_matching_a_batch_does_not_import_pandas() -> None:
    pytest.importorskip("pandas")
    code = """
import sys, pyarrow as pa, eligo
from eligo.arrow import arrow_of
import numpy as np
numbers = arrow_of(np.arange(5))
batch = pa.RecordBatch.from_arrays([numbers, numbers.cast(pa.string()), pa.nulls(5, pa.int64())], ["a", "b", "c"])
for index in ("propagation", "be-tree"):
    matcher = eligo.Matcher(index)
    matcher.add_many([(f"r{i}", f"a = {i} or b = '{i}' or c = 3") for i in range(3)])
    assert matcher.match_batch(batch).num_rows == 3
    assert matcher.top_batch(batch, 1).num_rows == 3
assert "pandas" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_matching_in_a_worker_of_spark_does_not_import_pandas(tmp_path: Path) -> None:
    pytest.importorskip("pandas")
    path = str(tmp_path / "rules")
    matcher = eligo.Matcher()
    matcher.add_many((f"r{i}", f"x = {i % 3}") for i in range(9))
    matcher.save(path)
    code = f"""
import sys, numpy as np, pyarrow as pa
from eligo.arrow import arrow_of, texts_of
from eligo.spark import worker
from eligo.spark.worker_cache import Source, manifest_hash
source = Source({path!r}, manifest_hash({path!r}))
batch = pa.RecordBatch.from_arrays([texts_of("abcde"), arrow_of(np.arange(5))], ["c0", "c1"])
for output, top_k in (("array", None), ("array", 2), ("exploded", None), ("exploded", 2), (worker.RANKED, None)):
    plan = worker.Plan(source, ("id",), (("x", 1),), 2, output, False, top_k=top_k)
    assert sum(found.num_rows for found in worker.run(plan, iter([batch])))
assert "pandas" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)
