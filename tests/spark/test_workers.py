"""Workers that cannot do the work are named on the driver, in a sentence, before anything runs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from eligo import EligoError, SnapshotError, spark
from eligo.spark import preflight

pytestmark = pytest.mark.spark

MISSING = "raise ModuleNotFoundError(\"No module named '{name}'\", name='{name}')\n"
# As on a machine where the folder of the rules is not mounted.
HIDDEN = """
import os, posixpath
for name in ("exists", "isdir"):
    def hide(path, original=getattr(posixpath, name)):
        return not str(path).startswith({path!r}) and original(path)
    setattr(posixpath, name, hide)
"""


@pytest.fixture
def python(session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Give the workers of new queries another Python: one that finds these modules before all others."""
    monkeypatch.setattr(preflight, "_checked", set())
    folder = tmp_path / "modules"
    folder.mkdir()

    def use(**modules: str) -> None:
        for name, text in modules.items():
            (folder / f"{name}.py").write_text(text)
        program = tmp_path / "python"
        # The daemon of the tests has loaded all that is to be missing: it is left out (`-m ready_daemon`).
        program.write_text(
            f'#!/bin/sh\nshift 2\nexport PYTHONPATH="{folder}:$PYTHONPATH"\nexec {sys.executable} -m pyspark.daemon "$@"\n'
        )
        program.chmod(0o755)
        monkeypatch.setattr(session.sparkContext, "pythonExec", str(program))

    return use


def test_no_eligo(session: Any, snapshot: Any, python: Any, tmp_path: Path) -> None:
    _, path = snapshot([("r", "x = 1")])
    events = session.range(3).selectExpr("id as x")
    python(eligo=MISSING.format(name="eligo"))
    with pytest.raises(EligoError, match=r"cannot import eligo \(ModuleNotFoundError.*install it there"):
        spark.match(events, path)
    target = tmp_path / "compiled"
    rules = session.createDataFrame([("r", "x = 1")], "id string, expression string")
    with pytest.raises(EligoError, match="cannot import eligo"):
        spark.compile_rules(rules, str(target))
    assert not (target / "CURRENT").exists()
    assert not list((target / "staging").iterdir())


def test_another_eligo(session: Any, snapshot: Any, python: Any) -> None:
    _, path = snapshot([("r", "x = 1")])
    python(eligo="__version__ = '0.0.1'\n")
    with pytest.raises(EligoError, match=r"has eligo 0\.0\.1, the driver .*give both the same"):
        spark.match(session.range(3), path)


def test_no_arrow(session: Any, snapshot: Any, python: Any) -> None:
    _, path = snapshot([("r", "x = 1")])
    python(pyarrow=MISSING.format(name="pyarrow"))
    with pytest.raises(EligoError, match=r"cannot be used .*pyarrow.*environment archive"):
        spark.match(session.range(3), path)


def test_no_python(session: Any, snapshot: Any, python: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    _, path = snapshot([("r", "x = 1")])
    monkeypatch.setattr(session.sparkContext, "pythonExec", "/nowhere/python")
    with pytest.raises(EligoError, match=r"cannot be used .*/nowhere/python.*PYSPARK_PYTHON"):
        spark.match(session.range(3), path)


def test_a_folder_that_workers_do_not_see(session: Any, snapshot: Any, python: Any, tmp_path: Path) -> None:
    _, path = snapshot([("r", "x = 1")])
    target = str(tmp_path / "compiled")
    python(sitecustomize=HIDDEN.format(path=path) + HIDDEN.format(path=target))
    with pytest.raises(SnapshotError, match=rf"does not see '{path}': .* shared mount"):
        spark.match(session.range(3), path)
    rules = session.createDataFrame([("r", "x = 1")], "id string, expression string")
    with pytest.raises(SnapshotError, match=f"does not see '{target}'"):
        spark.compile_rules(rules, target)
    assert not (tmp_path / "compiled" / "CURRENT").exists()
