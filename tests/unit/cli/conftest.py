"""Running the program inside the test's own process, where kernels are compiled once for all tests."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from eligo.cli import main

sys.path.insert(0, str(Path(__file__).parent))  # for `command_line`, what the tests of this folder share

from command_line import EVENTS, RULES, Done, Run, ndjson


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """Run `eligo` with these arguments in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: object, stdin: bytes = b"") -> Done:
        out, err = io.BytesIO(), io.BytesIO()
        with monkeypatch.context() as patch:
            patch.setattr(sys, "argv", ["eligo", *map(str, arguments)])
            patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8"))
            patch.setattr(sys, "stdout", io.TextIOWrapper(out, encoding="utf-8", write_through=True))
            patch.setattr(sys, "stderr", io.TextIOWrapper(err, encoding="utf-8", write_through=True))
            with pytest.raises(SystemExit) as stop:
                main()
            code = stop.value.code
            # Not yet closed: a wrapper that is collected closes what it wraps.
            sys.stdout.flush()
            return Done(int(code or 0), out.getvalue(), err.getvalue().decode())

    return run


@pytest.fixture
def rules(run: Run) -> str:
    return ndjson("rules.ndjson", RULES)  # type: ignore[arg-type]


@pytest.fixture
def events(run: Run) -> str:
    return ndjson("events.ndjson", EVENTS)  # type: ignore[arg-type]
