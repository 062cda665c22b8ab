"""What is said while kernels are compiled."""

from __future__ import annotations

import io
import logging

import pytest

from eligo.kernels.progress import Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_one_line_on_a_terminal_and_the_log(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setattr("atexit.register", lambda *given, **named: None)
    progress = Progress()
    with caplog.at_level(logging.INFO, "eligo"):
        for seconds in (0.0, 1.0, 2.0):
            progress.begin()
            progress._began -= seconds
            progress.end("kernel")
    assert terminal.getvalue().split("\r")[1:] == [
        "eligo: compiling for this machine, once: 2 kernels in 1 s",
        "eligo: compiling for this machine, once: 3 kernels in 3 s",
    ]
    assert len(caplog.records) == 3


def test_nothing_is_printed_elsewhere(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    progress = Progress()
    progress.begin()
    progress._began -= 9
    progress.end("kernel")
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("sys.stderr", None)
    progress.end("kernel")
