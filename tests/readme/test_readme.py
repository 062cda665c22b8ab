"""Every Python block of the README runs; what stands after `# →`, or in a text block right below, is what comes out."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import pytest

README = Path(__file__).parents[2] / "README.md"
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL)
PROMISE = re.compile(r"#\s*→\s*(.+)$")


def run(source: str, namespace: dict[str, Any]) -> int:
    """Run one block statement by statement; the number of promises checked."""
    lines = source.splitlines()
    checked = 0
    for statement in ast.parse(source).body:
        text = "\n".join(lines[statement.lineno - 1 : statement.end_lineno])
        promise = PROMISE.search(lines[(statement.end_lineno or statement.lineno) - 1])
        if promise is None:
            exec(compile(text, str(README), "exec"), namespace)
            continue
        assert isinstance(statement, ast.Expr), f"only an expression can promise a value: {text}"
        value = eval(compile(ast.Expression(statement.value), str(README), "eval"), namespace)
        assert value == ast.literal_eval(promise[1]), f"{text}\ngave {value!r}"
        checked += 1
    return checked


def test_readme_blocks_run_and_keep_their_promises(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)  # the README saves a snapshot
    blocks = BLOCK.findall(README.read_text(encoding="utf-8"))
    namespace: dict[str, Any] = {}
    checked = 0
    for source, printed in blocks:
        checked += run(source, namespace)
        assert capsys.readouterr().out == printed
    assert len(blocks) >= 4
    assert checked >= 5
    assert any(printed for _, printed in blocks)


def test_readme_links_lead_somewhere() -> None:
    links = re.findall(r"\]\(([^)#]+)\)", README.read_text(encoding="utf-8"))
    assert links
    missing = [link for link in links if "://" not in link and not (README.parent / link).exists()]
    assert not missing
