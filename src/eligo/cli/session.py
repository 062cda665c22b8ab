"""The Spark session that a command runs on, and the options that choose it.

a session is active in this process          that one
started by spark-submit, or SPARK_REMOTE     the one that these settings name; master and memory are theirs
--master sc://host                           through Spark Connect
--master spark://…, yarn, k8s://…            that cluster
--master local[4], or nothing                in this process
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from eligo.cli.files import InputError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Master = Annotated[
    str | None,
    typer.Option("--master", metavar="URL", help="With --engine spark: where it runs; else in this process."),
]
Conf = Annotated[
    list[str] | None,
    typer.Option("--conf", metavar="KEY=VALUE", help="With --engine spark: a setting of Spark; may be repeated."),
]


@contextmanager
def spark_session(name: str, master: str | None = None, conf: list[str] | None = None) -> Iterator[SparkSession]:
    """The session to use. One that was there before stays; one that is made here ends with the block."""
    settings = dict(_setting(text) for text in conf or ())
    try:
        from pyspark.errors import PySparkException
        from pyspark.sql import SparkSession
    except ImportError:
        raise InputError("Spark is not installed: pip install 'eligo[spark]'") from None
    active = SparkSession.getActiveSession()
    if active is not None:
        _refuse_another(master, "the session that is running")
        for key, value in settings.items():
            try:
                active.conf.set(key, value)
            except PySparkException as error:
                raise InputError(f"--conf {key}: a session that is running does not take it: {error}") from None
        yield active
        return
    session = _made(name, master, settings)
    try:
        yield session
    finally:
        session.stop()


def _made(name: str, master: str | None, settings: dict[str, str]) -> SparkSession:
    from pyspark.sql import SparkSession

    from eligo.spark import local_session, require_java

    builder = SparkSession.builder.appName(name)
    for key, value in settings.items():
        builder = builder.config(key, value)
    if "PYSPARK_GATEWAY_PORT" in os.environ:  # set by spark-submit for the Python that it starts
        _refuse_another(master, "spark-submit")
    elif "SPARK_REMOTE" in os.environ:
        _refuse_another(master, "SPARK_REMOTE")
    elif master is None or master.startswith("local"):
        return local_session(name, None, **settings | ({"spark.master": master} if master else {}))
    elif master.startswith("sc://"):
        builder = builder.remote(master)
    else:
        os.environ["JAVA_HOME"] = str(require_java().home)  # what Spark starts, whatever is on PATH
        builder = builder.master(master)
    return builder.getOrCreate()


def _refuse_another(master: str | None, there: str) -> None:
    if master is not None:
        raise InputError(f"--master {master}: {there} has named the master already; leave --master out")


def _setting(text: str) -> tuple[str, str]:
    key, sign, value = text.partition("=")
    if not sign or not key.strip():
        raise typer.BadParameter(f"--conf {text!r}: write it as KEY=VALUE")
    return key.strip(), value.strip()
