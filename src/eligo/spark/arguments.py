"""Arguments that only functions on Spark have: DataFrames, sessions, names for Spark. Others: `eligo.arguments`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from eligo.arguments import names, shown, text
from eligo.errors import EligoError, OptionError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def check_frame(name: str, frame: object) -> DataFrame:
    """A DataFrame of Spark."""
    pyspark = require_spark()
    if isinstance(frame, pyspark.DataFrame):
        return frame  # type: ignore[no-any-return]
    package = type(frame).__module__.partition(".")[0]
    if package in ("pandas", "polars", "pyarrow"):
        given = f"a {package} {type(frame).__name__}: session.createDataFrame makes one of it"
    else:
        given = shown(frame)
    raise OptionError(f"{name} is a DataFrame of Spark, not {given}")


def check_session(session: object) -> SparkSession:
    """A session of Spark."""
    pyspark = require_spark()
    if isinstance(session, pyspark.SparkSession) or hasattr(session, "createDataFrame"):
        return session  # type: ignore[return-value]
    raise OptionError(f"session is a SparkSession, not {shown(session)}")


def session_of(session: SparkSession | None) -> SparkSession:
    """The session that is meant: the one given, or the active one."""
    if session is not None:
        return check_session(session)
    require_spark()
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession()
    if active is None:
        raise EligoError("there is no active Spark session: pass session=…")
    return active


def require_spark() -> Any:
    """The module pyspark.sql."""
    try:
        import pyspark.sql
    except ImportError as error:
        raise EligoError("Spark is not installed: pip install 'eligo[spark]'") from error
    return pyspark.sql


def columns_named(name: str, given: object) -> tuple[str, ...]:
    """Names of columns; expressions have to be given a name first."""
    return names(name, given, "a list of column names (strings; an expression becomes a column with withColumn)")


def name_given(name: str, value: object, example: str) -> str:
    """A string that Spark is to use as a name, so not an empty one."""
    what = f"a string such as {example!r}"
    if not text(name, value, what):
        raise OptionError(f"{name} is {what}, not ''")
    return text(name, value)
