"""Arguments of the public functions, checked where they come in: one sentence says what was given, and what to give."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from eligo.errors import EligoError, OptionError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def check_frame(frame: object, name: str) -> DataFrame:
    """A DataFrame of Spark."""
    pyspark = require_spark()
    if isinstance(frame, pyspark.DataFrame):
        return frame  # type: ignore[no-any-return]
    kind = type(frame)
    hint = (
        ": session.createDataFrame makes one of it"
        if kind.__module__.partition(".")[0] in ("pandas", "pyarrow")
        else ""
    )
    raise OptionError(f"{name} is a DataFrame of Spark, not {_show(frame)}{hint}")


def check_session(session: object) -> SparkSession:
    """A session of Spark."""
    pyspark = require_spark()
    if isinstance(session, pyspark.SparkSession) or hasattr(session, "createDataFrame"):
        return session  # type: ignore[return-value]
    raise OptionError(f"session is a SparkSession, not {_show(session)}")


def require_spark() -> Any:
    """The module pyspark.sql."""
    try:
        import pyspark.sql
    except ImportError as error:
        raise EligoError("Spark is not installed: pip install 'eligo[spark]'") from error
    return pyspark.sql


def check_names(given: object, name: str, example: str) -> tuple[str, ...]:
    """Names in a list: strings, no expressions of columns."""
    if isinstance(given, str):
        raise OptionError(f"{name} is a list of {example}, not the string {given!r}: {name}=[{given!r}]")
    if hasattr(given, "alias") or not isinstance(given, Iterable):  # a Column says that it can be iterated over
        raise OptionError(f"{name} is a list of {example}, not {_show(given)}")
    names = tuple(given)
    for one in names:
        if hasattr(one, "alias"):
            raise OptionError(
                f"{name} has the expression {_show(one)}: it is a list of {example}, which are strings; what is "
                "computed becomes a column with events_df.withColumn first"
            )
        if not isinstance(one, str):
            raise OptionError(f"{name} is a list of {example}, and {_show(one)} is no string")
    return names


def check_whole(number: object, name: str, least: int = 1, unit: str = "") -> None:
    """A whole number of at least so many, or None."""
    if number is not None and (not isinstance(number, int) or isinstance(number, bool) or number < least):
        raise OptionError(f"{name} is a whole number{unit} of at least {least}, not {_show(number)}")


def check_choice(value: object, name: str, choices: tuple[object, ...]) -> None:
    """One of some values; 1 is not True."""
    if not any(value is choice or (isinstance(choice, str) and value == choice) for choice in choices):
        raise OptionError(f"{name} is {' or '.join(map(repr, choices))}, not {_show(value)}")


def check_text(value: object, name: str, example: str) -> None:
    """A string that is not empty, or None."""
    if value is not None and (not isinstance(value, str) or not value):
        raise OptionError(f"{name} is a string such as {example!r}, not {_show(value)}")


def _show(value: object) -> str:
    kind = type(value)
    if kind.__module__ == "builtins":
        return f"{value!r:.60}"
    shown = f"{value!r:.60}" if kind.__name__ == "Column" else ""
    return f"{shown} (a {kind.__name__})" if shown else f"a {kind.__module__.partition('.')[0]} {kind.__name__}"
