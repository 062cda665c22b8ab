"""Which Spark session a command runs on. No session is started here: what would be asked for is looked at."""

from __future__ import annotations

from typing import Any

import pytest
import typer

from eligo.cli.files import InputError
from eligo.cli.session import spark_session


class Asked:
    """Takes the place of a session and of its builder."""

    def __init__(self) -> None:
        self.calls: dict[str, Any] = {}
        self.stopped = False

    def __getattr__(self, name: str) -> Any:
        def call(*arguments: str) -> Asked:
            self.calls[name if len(arguments) < 2 else arguments[0]] = arguments[-1] if arguments else None
            return self

        return call

    def stop(self) -> None:
        self.stopped = True


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    sql = pytest.importorskip("pyspark.sql", reason="PySpark is not installed: pip install 'eligo[spark]'")
    import eligo.spark

    asked = Asked()

    def local(name: str, cores: int | None = None, **conf: str) -> Asked:
        asked.calls |= {"local": name, **conf}
        return asked

    monkeypatch.setattr(sql.SparkSession, "getActiveSession", lambda: None)
    monkeypatch.setattr(sql.SparkSession, "builder", asked)
    monkeypatch.setattr(eligo.spark, "local_session", local)
    monkeypatch.setattr(eligo.spark, "require_java", lambda: eligo.spark.Java(home="/java", version=17))  # type: ignore[arg-type]
    monkeypatch.setenv("JAVA_HOME", "/elsewhere")
    for name in ("PYSPARK_GATEWAY_PORT", "SPARK_REMOTE"):
        monkeypatch.delenv(name, raising=False)
    return asked


@pytest.mark.parametrize(
    ("environment", "master", "expected"),
    [
        ({}, None, {"appName": "x", "local": "x"}),
        ({}, "local[3]", {"appName": "x", "local": "x", "spark.master": "local[3]"}),
        ({}, "spark://host:7077", {"appName": "x", "master": "spark://host:7077", "getOrCreate": None}),
        ({}, "sc://host", {"appName": "x", "remote": "sc://host", "getOrCreate": None}),
        ({"PYSPARK_GATEWAY_PORT": "1"}, None, {"appName": "x", "getOrCreate": None}),
        ({"SPARK_REMOTE": "sc://host"}, None, {"appName": "x", "getOrCreate": None}),
    ],
)
def test_where_it_comes_from(
    environment: dict[str, str],
    master: str | None,
    expected: dict[str, Any],
    asked: Asked,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with spark_session("x", master, ["spark.a = b=c"]) as session:
        assert session is asked
        assert not asked.stopped
    assert asked.stopped
    assert asked.calls == {**expected, "spark.a": "b=c"}


def test_a_master_is_named_once(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, there in (("SPARK_REMOTE", "SPARK_REMOTE"), ("PYSPARK_GATEWAY_PORT", "spark-submit")):
        monkeypatch.setenv(name, "1")
        with pytest.raises(InputError, match=f"{there} has named the master already"), spark_session("x", "yarn"):
            pass
    with pytest.raises(typer.BadParameter, match="KEY=VALUE"), spark_session("x", None, ["spark.a"]):
        pass


def test_a_session_that_is_there_stays(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    from pyspark.sql import SparkSession

    there = Asked()
    monkeypatch.setattr(SparkSession, "getActiveSession", lambda: there)
    with spark_session("x") as session:
        assert session is there
    assert not there.stopped
    with pytest.raises(InputError, match="leave --master out"), spark_session("x", "yarn"):
        pass
