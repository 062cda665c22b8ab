"""One Spark session for the whole run: starting it takes longer than all the tests that use it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

import eligo
from eligo.spark import find_java, local_session

Rules = Iterable[tuple[Any, ...]]


@pytest.fixture(scope="session")
def session() -> Iterator[Any]:
    pytest.importorskip("pyspark", reason="PySpark is not installed: pip install 'eligo[spark]'")
    if find_java() is None:
        pytest.skip("Spark needs Java 17 or newer, and there is none")
    spark = local_session("eligo tests", cores=2, **{"spark.driver.memory": "1g"})
    yield spark
    spark.stop()


@pytest.fixture
def snapshot(tmp_path: Path) -> Callable[..., tuple[Any, str]]:
    """Compile rules into a snapshot: (matcher, path)."""

    def make(rules: Rules, name: str = "rules.eligo", **options: Any) -> tuple[Any, str]:
        matcher = eligo.Matcher(**options)
        matcher.add_many(rules)
        path = str(tmp_path / name)
        matcher.save(path)
        return matcher, path

    return make
