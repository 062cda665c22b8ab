"""What is said about workers that cannot be used."""

from __future__ import annotations

import pytest

from eligo import EligoError
from eligo.spark.preflight import _refuse, _unusable, folder_of, local_url

GOOD = {"host": "w1", "python": "/usr/bin/python3", "version": "3.12.1", "eligo": "1", "error": "", "sees": True}


@pytest.mark.parametrize(
    ("found", "words"),
    [
        ({"error": "ModuleNotFoundError: No module named 'eligo'"}, "install it there.*PYSPARK_PYTHON"),
        ({"eligo": "0.9"}, "has eligo 0.9, the driver 1"),
        ({"sees": False}, "w1 does not see '/rules'.*shared mount"),
    ],
)
def test_workers_that_are_refused(found: dict[str, object], words: str) -> None:
    with pytest.raises(EligoError, match=words):
        _refuse({**GOOD, **found}, "/rules", "1", None, "")
    _refuse(dict(GOOD), "/rules", "1", None, "")


def test_workers_that_cannot_even_be_asked() -> None:
    error = RuntimeError("Job aborted\n  File x\nModuleNotFoundError: No module named 'pyarrow'\n\tat java")
    said = _unusable(error)
    assert isinstance(said, EligoError)
    assert "No module named 'pyarrow'" in str(said)
    assert "environment archive" in str(said)
    other = RuntimeError("the disk is full")
    assert _unusable(other) is other


def test_paths() -> None:
    assert local_url("/a [1]/{b}*") == "file:///a \\[1\\]/\\{b\\}\\*"
    assert folder_of("/x/../y") == "/y"
    with pytest.raises(EligoError, match="URL"):
        folder_of("s3://bucket/rules")
